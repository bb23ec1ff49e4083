package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// The parts of HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/) that
// are read and written. Numbers are any JSON number: exporters disagree.
type (
	harFile struct {
		Log *harLog `json:"log"`
	}
	harLog struct {
		Version string     `json:"version"`
		Creator harCreator `json:"creator"`
		Pages   []harPage  `json:"pages,omitempty"`
		Entries []harEntry `json:"entries"`
	}
	harCreator struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	harPage struct {
		Started     string   `json:"startedDateTime"`
		ID          string   `json:"id"`
		Title       string   `json:"title"`
		PageTimings struct{} `json:"pageTimings"`
	}
	harEntry struct {
		Started  string      `json:"startedDateTime"`
		Time     float64     `json:"time"`
		Request  harRequest  `json:"request"`
		Response harResponse `json:"response"`
		Cache    struct{}    `json:"cache"`
		Timings  harTimings  `json:"timings"`
		Server   string      `json:"serverIPAddress,omitempty"`
	}
	harRequest struct {
		Method      string    `json:"method"`
		URL         string    `json:"url"`
		HTTPVersion string    `json:"httpVersion"`
		Cookies     []harPair `json:"cookies"`
		Headers     []harPair `json:"headers"`
		QueryString []harPair `json:"queryString"`
		PostData    *harPost  `json:"postData,omitempty"`
		HeadersSize int       `json:"headersSize"`
		BodySize    int       `json:"bodySize"`
	}
	harResponse struct {
		Status      int        `json:"status"`
		StatusText  string     `json:"statusText"`
		HTTPVersion string     `json:"httpVersion"`
		Cookies     []harPair  `json:"cookies"`
		Headers     []harPair  `json:"headers"`
		Content     harContent `json:"content"`
		RedirectURL string     `json:"redirectURL"`
		HeadersSize int        `json:"headersSize"`
		BodySize    int        `json:"bodySize"`
		Error       string     `json:"_error,omitempty"` // Chrome
	}
	harPair struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	harPost struct {
		MIME     string    `json:"mimeType"`
		Text     string    `json:"text"`
		Encoding string    `json:"encoding,omitempty"` // Charles, mitmproxy
		Params   []harPair `json:"params,omitempty"`
	}
	harContent struct {
		Size     int64   `json:"size"`
		MIME     string  `json:"mimeType"`
		Text     *string `json:"text,omitempty"`
		Encoding string  `json:"encoding,omitempty"`
	}
	harTimings struct {
		Send    float64 `json:"send"`
		Wait    float64 `json:"wait"`
		Receive float64 `json:"receive"`
	}
)

// isHAR tells a HAR by how it starts, behind a byte order mark and blanks.
func isHAR(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	return len(head) > 0 && head[0] == '{'
}

// openHAR reads the exchanges of a HAR. Bodies there are decoded, so content
// codings are taken away; one that is missing is marked as cut off.
func (a *Archive) openHAR(r io.Reader, l Limits) error {
	text, err := readAllLimited(r, l.Decoded)
	if err != nil {
		return fmt.Errorf("HAR: %w", err)
	}
	var f harFile
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), &f); err != nil {
		return fmt.Errorf("HAR: %w", err)
	}
	if f.Log == nil || f.Log.Entries == nil {
		return fmt.Errorf("the JSON has no log.entries, so it is not a HAR")
	}
	if len(f.Log.Entries) > l.Exchanges {
		return fmt.Errorf("%d entries are more than %d: %w", len(f.Log.Entries), l.Exchanges, errLimit)
	}
	a.options.Software = strings.TrimSpace(f.Log.Creator.Name + " " + f.Log.Creator.Version)
	for i := range f.Log.Entries {
		e, err := f.Log.Entries[i].exchange()
		if err != nil {
			a.warn("entry %d (%.120s) is left out: %v", i, f.Log.Entries[i].Request.URL, err)
			continue
		}
		if e.Truncated != "" {
			a.warn("entry %d (%.120s) has no body: export with content", i, e.URL)
		}
		e.ID, e.Order = fmt.Sprintf("urn:eidetic:har:%d", i), i
		if a.options.Wall.IsZero() || e.Wall.Before(a.options.Wall) && !e.Wall.IsZero() {
			a.options.Wall = e.Wall
		}
		a.exchanges = append(a.exchanges, e)
	}
	for _, e := range a.exchanges {
		e.Start = max(0, e.Wall.Sub(a.options.Wall))
		if len(a.pages) == 0 && isDocument(e) {
			a.pages = []Page{{URL: e.URL, Wall: e.Wall}}
		}
	}
	return nil
}

func (h *harEntry) exchange() (*lab.Exchange, error) {
	u, err := url.Parse(h.Request.URL)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the scheme %q is not http or https", u.Scheme)
	case h.Response.Error != "":
		return nil, fmt.Errorf("it failed: %s", h.Response.Error)
	case h.Response.Status < 100 || h.Response.Status > 999:
		return nil, fmt.Errorf("it has no answer (status %d)", h.Response.Status)
	case h.Request.Method == "":
		return nil, fmt.Errorf("it has no method")
	}
	u.Fragment, u.RawFragment = "", ""
	e := &lab.Exchange{Method: h.Request.Method, URL: u.String(), Status: h.Response.Status, Reason: h.Response.StatusText}
	e.Wall, _ = time.Parse(time.RFC3339Nano, h.Started)
	e.Protocol = harProtocol(h.Response.HTTPVersion, h.Request.HTTPVersion)
	if u.Scheme == "https" {
		e.TLS = "tls/1.3"
	}
	if ip, err := netip.ParseAddr(strings.Trim(h.Server, "[]")); err == nil {
		e.Server = netip.AddrPortFrom(ip, portOf(e.URL))
	}
	e.Request.Header = harHeaders(h.Request.Headers)
	if e.Request.Body, err = h.Request.PostData.bytes(); err != nil {
		return nil, err
	}
	e.Response.Header = harHeaders(h.Response.Headers)
	if err := h.Response.Content.fill(e); err != nil {
		return nil, err
	}
	ms := func(v float64) time.Duration {
		return time.Duration(min(max(v, 0), float64(maxTime)/1e6) * float64(time.Millisecond))
	}
	e.FirstByte = ms(h.Timings.Wait)
	if n := len(e.Response.Body); n > 0 {
		e.Chunks = []lab.Chunk{{At: min(e.FirstByte+ms(h.Timings.Receive), time.Duration(maxTime)), Bytes: n}}
	}
	return e, nil
}

// harProtocol reads what browsers call a version: h2, HTTP/2, http/2.0, h3, h3-29, HTTP/1.1, unknown.
func harProtocol(names ...string) string {
	for _, name := range names {
		name = strings.ToLower(name)
		switch {
		case name == "h2" || strings.HasPrefix(name, "http/2"):
			return "h2"
		case strings.HasPrefix(name, "h3") || strings.HasPrefix(name, "http/3") || strings.Contains(name, "quic"):
			return "h3"
		case name == "http/1.0" || name == "http/1.1":
			return name
		}
	}
	return "http/1.1"
}

// harHeaders drops h2's pseudo fields, and splits what Safari and Chrome join by line breaks.
func harHeaders(pairs []harPair) []lab.HeaderField {
	var out []lab.HeaderField
	for _, p := range pairs {
		if p.Name == "" || strings.HasPrefix(p.Name, ":") || strings.ContainsAny(p.Name, " \r\n:") {
			continue
		}
		for _, v := range strings.Split(p.Value, "\n") {
			out = append(out, lab.HeaderField{Name: p.Name, Value: strings.TrimSpace(v)})
		}
	}
	return out
}

func (p *harPost) bytes() ([]byte, error) {
	switch {
	case p == nil:
		return nil, nil
	case p.Text == "" && len(p.Params) > 0 && strings.HasPrefix(p.MIME, "application/x-www-form-urlencoded"):
		var parts []string
		for _, q := range p.Params { // exporters keep them escaped
			parts = append(parts, q.Name+"="+q.Value)
		}
		return []byte(strings.Join(parts, "&")), nil
	case p.Encoding == "base64":
		b, err := base64.StdEncoding.DecodeString(p.Text)
		if err != nil {
			return nil, fmt.Errorf("request body: %w", err)
		}
		return nonEmpty(b), nil
	}
	return nonEmpty([]byte(p.Text)), nil
}

// fill sets the body, and a header that fits what HAR keeps of it.
func (c *harContent) fill(e *lab.Exchange) error {
	hasBody := e.Method != "HEAD" && e.Status >= 200 && e.Status != 204 && e.Status != 304
	switch {
	case c.Text == nil:
		if c.Size > 0 && hasBody && e.Status/100 != 3 {
			e.Truncated = "unspecified"
		}
	case c.Encoding == "base64":
		b, err := base64.StdEncoding.DecodeString(*c.Text)
		if err != nil {
			return fmt.Errorf("response body: %w", err)
		}
		e.Response.Body = nonEmpty(b)
	case c.Encoding != "":
		return fmt.Errorf("response body in the unknown encoding %q", c.Encoding)
	default:
		e.Response.Body = nonEmpty([]byte(*c.Text))
	}
	if !hasBody {
		e.Response.Body = nil
		return nil
	}
	kept := e.Response.Header[:0]
	for _, f := range e.Response.Header {
		switch strings.ToLower(f.Name) {
		case "content-encoding", "transfer-encoding":
			continue
		case "content-length":
			f.Value = strconv.Itoa(len(e.Response.Body))
		case "content-type":
			// A text of another charset was turned into UTF-8 by the exporter.
			if c.Encoding == "" && c.Text != nil && !utf8.ValidString(*c.Text) {
				return fmt.Errorf("response body is not UTF-8")
			}
			if i := strings.Index(strings.ToLower(f.Value), "charset="); i >= 0 && c.Encoding == "" {
				f.Value = f.Value[:i] + "charset=utf-8"
			}
		}
		kept = append(kept, f)
	}
	e.Response.Header = kept
	return nil
}

// WriteHAR writes the exchanges as HAR 1.2, bodies decoded, bytes in base64.
func WriteHAR(w io.Writer, a *Archive) error {
	f := harFile{Log: &harLog{Version: "1.2", Creator: harCreator{Name: "eidetic"}, Entries: []harEntry{}}}
	for i, p := range a.pages {
		f.Log.Pages = append(f.Log.Pages, harPage{Started: p.Wall.Format(time.RFC3339Nano), ID: fmt.Sprint("page_", i+1), Title: p.URL})
	}
	for _, e := range a.exchanges {
		f.Log.Entries = append(f.Log.Entries, harEntryOf(e))
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f); err != nil {
		return fmt.Errorf("export HAR: %w", err)
	}
	return nil
}

func harEntryOf(e *lab.Exchange) harEntry {
	const perMs = float64(time.Millisecond)
	end := e.FirstByte
	if n := len(e.Chunks); n > 0 {
		end = max(end, e.Chunks[n-1].At)
	}
	version := map[string]string{"http/1.0": "HTTP/1.0", "http/1.1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}[e.Protocol]
	h := harEntry{
		Started: e.Wall.Format(time.RFC3339Nano), Time: float64(end) / perMs,
		Timings: harTimings{Wait: float64(e.FirstByte) / perMs, Receive: float64(end-e.FirstByte) / perMs},
		Request: harRequest{
			Method: e.Method, URL: e.URL, HTTPVersion: version, Headers: harPairs(e.Request.Header),
			Cookies: []harPair{}, QueryString: []harPair{}, HeadersSize: -1, BodySize: len(e.Request.Body),
		},
		Response: harResponse{
			Status: e.Status, StatusText: e.Reason, HTTPVersion: version, Headers: harPairs(e.Response.Header),
			Cookies: []harPair{}, RedirectURL: e.Response.Get("Location"), HeadersSize: -1, BodySize: len(e.Response.Body),
		},
	}
	if e.Server.IsValid() {
		h.Server = e.Server.Addr().String()
	}
	if u, err := url.Parse(e.URL); err == nil {
		for name, values := range u.Query() {
			for _, v := range values {
				h.Request.QueryString = append(h.Request.QueryString, harPair{name, v})
			}
		}
	}
	if len(e.Request.Body) > 0 {
		text, encoding := harText(e.Request.Body)
		h.Request.PostData = &harPost{MIME: e.Request.Get("Content-Type"), Text: text, Encoding: encoding}
	}
	body := e.Response.Body
	if plain, err := Decoded(&e.Response); err == nil {
		body = plain
	}
	text, encoding := harText(body)
	h.Response.Content = harContent{Size: int64(len(body)), MIME: e.Response.Get("Content-Type"), Text: &text, Encoding: encoding}
	return h
}

func harPairs(fields []lab.HeaderField) []harPair {
	out := []harPair{}
	for _, f := range fields {
		out = append(out, harPair(f))
	}
	return out
}

func harText(b []byte) (text, encoding string) {
	if utf8.Valid(b) {
		return string(b), ""
	}
	return base64.StdEncoding.EncodeToString(b), "base64"
}

// Decoded returns a body without its content coding.
func Decoded(m *lab.Message) ([]byte, error) {
	coding := strings.ToLower(strings.TrimSpace(m.Get("Content-Encoding")))
	if coding == "" || coding == "identity" || len(m.Body) == 0 {
		return m.Body, nil
	}
	r, err := inject.NewDecoder(coding, bytes.NewReader(m.Body))
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", coding, err)
	}
	defer r.Close()
	b, err := readAllLimited(r, 1<<30)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", coding, err)
	}
	return b, nil
}
