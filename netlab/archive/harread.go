package archive

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// isHAR tells a HAR by its beginning, after a byte order mark and blanks, or when it is
// compressed by zlib.
func isHAR(head []byte) bool {
	if isZlib(head) {
		return true
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	return len(head) > 0 && head[0] == '{'
}

// isZlib tells a zlib stream by its first two bytes (RFC 1950).
func isZlib(head []byte) bool {
	return len(head) >= 2 && head[0] == 0x78 && (int(head[0])<<8|int(head[1]))%31 == 0
}

// openHAR reads the exchanges of a HAR. Its bodies are decoded, so content codings are removed
// from the headers; a missing body is marked as cut off.
func (a *Archive) openHAR(file *io.SectionReader, l Limits) error {
	buffered := bufio.NewReader(file)
	most, r := l.Decoded, io.Reader(buffered)
	if head, err := buffered.Peek(2); err == nil && isZlib(head) { // mitmproxy's .zhar
		z, err := zlib.NewReader(buffered)
		if err != nil {
			return fmt.Errorf("HAR: %w", err)
		}
		defer z.Close()
		// JSON and base64 compress to a tenth; a few bytes that decode to gigabytes are no HAR.
		most, r = min(most, 64<<20+50*file.Size()), z
	}
	text, err := readAllLimited(r, most)
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
		e.ID, e.Order = uuid(fmt.Appendf(nil, "HAR\n%d\n%s\n%s\n%s", i, f.Log.Entries[i].Started, e.Method, e.URL)), i
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
	e := &lab.Exchange{Method: h.Request.Method, URL: u.String(), Status: int(h.Response.Status), Reason: h.Response.StatusText}
	e.Wall, _ = time.Parse(time.RFC3339Nano, h.Started)
	e.Protocol = harProtocol(h.Response.HTTPVersion, h.Request.HTTPVersion)
	if u.Scheme == "https" {
		e.TLS = "tls/1.3"
	}
	if ip, err := netip.ParseAddr(strings.Trim(h.Server, "[]")); err == nil {
		e.Server = netip.AddrPortFrom(ip, portOf(e.URL))
	}
	e.Request.Header = harHeaders(h.Request.Headers)
	if e.Request.Body, err = h.Request.PostData.bytes(h.Request.BodySize); err != nil {
		return nil, err
	}
	e.Response.Header = splitCookies(harHeaders(h.Response.Headers), len(h.Response.Cookies))
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

// splitCookies splits Set-Cookie fields that an exporter joined by commas (mitmproxy does), when
// the exporter lists more cookies than there are fields. The comma of a date is not followed
// by a name.
func splitCookies(fields []lab.HeaderField, cookies int) []lab.HeaderField {
	var out []lab.HeaderField
	have := 0
	for _, f := range fields {
		if !strings.EqualFold(f.Name, "Set-Cookie") {
			out = append(out, f)
			continue
		}
		have++
		begin := 0
		for i := strings.Index(f.Value, ", "); i >= 0; {
			name, _, found := strings.Cut(f.Value[i+2:], "=")
			if found && name != "" && !strings.ContainsAny(name, " \t;,") {
				out = append(out, lab.HeaderField{Name: f.Name, Value: f.Value[begin:i]})
				begin = i + 2
			}
			next := strings.Index(f.Value[i+2:], ", ")
			if next < 0 {
				break
			}
			i += 2 + next
		}
		out = append(out, lab.HeaderField{Name: f.Name, Value: f.Value[begin:]})
	}
	if cookies <= have {
		return fields
	}
	return out
}

// bytes returns the request's body; size is its length as the exporter states it.
func (p *harPost) bytes(size harInt) ([]byte, error) {
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
		b, err := base64.StdEncoding.DecodeString(string(p.Text))
		if err != nil {
			return nil, fmt.Errorf("request body: %w", err)
		}
		return nonEmpty(b), nil
	}
	return p.Text.wire(int64(size)).bytes, nil
}

// truncations are WARC's words for why a body was cut off.
var truncations = []string{"length", "time", "disconnect", "unspecified"}

// fill sets the body, and adapts the header to how HAR keeps the body.
func (c *harContent) fill(e *lab.Exchange) error {
	hasBody := e.Method != "HEAD" && e.Status >= 200 && e.Status != 204 && e.Status != 304
	var text wireText
	switch {
	case c.Text == nil:
		if why, ok := strings.CutPrefix(c.Comment, harCut); ok && hasBody && slices.Contains(truncations, why) {
			e.Truncated = why
		} else if c.Size > 0 && hasBody && e.Status/100 != 3 {
			e.Truncated = "unspecified"
		}
	case c.Encoding == "base64":
		b, err := base64.StdEncoding.DecodeString(string(*c.Text))
		if err != nil {
			return fmt.Errorf("response body: %w", err)
		}
		e.Response.Body = nonEmpty(b)
	case c.Encoding != "":
		return fmt.Errorf("response body in the unknown encoding %q", c.Encoding)
	default:
		text = c.Text.wire(int64(c.Size), int64(c.Size)+int64(c.Compression))
		e.Response.Body = text.bytes
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
			switch _, at := charsetOf(f.Value); {
			case at >= 0 && text.recoded:
				f.Value = f.Value[:at] + "charset=utf-8"
			case text.recoded && !text.same && hasCharset(f.Value): // else the browser would use the charset of a <meta>
				f.Value += "; charset=utf-8"
			}
		}
		kept = append(kept, f)
	}
	e.Response.Header = kept
	return nil
}
