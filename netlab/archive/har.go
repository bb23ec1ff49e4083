package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
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
		HeadersSize harInt    `json:"headersSize"`
		BodySize    harInt    `json:"bodySize"`
	}
	harResponse struct {
		Status      harInt     `json:"status"`
		StatusText  string     `json:"statusText"`
		HTTPVersion string     `json:"httpVersion"`
		Cookies     []harPair  `json:"cookies"`
		Headers     []harPair  `json:"headers"`
		Content     harContent `json:"content"`
		RedirectURL string     `json:"redirectURL"`
		HeadersSize harInt     `json:"headersSize"`
		BodySize    harInt     `json:"bodySize"`
		Error       string     `json:"_error,omitempty"` // Chrome
	}
	harPair struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	harPost struct {
		MIME     string    `json:"mimeType"`
		Text     harString `json:"text"`
		Encoding string    `json:"encoding,omitempty"` // Charles, mitmproxy
		Params   []harPair `json:"params,omitempty"`
	}
	harContent struct {
		Size        harInt     `json:"size"`
		Compression float64    `json:"compression,omitempty"`
		MIME        string     `json:"mimeType"`
		Text        *harString `json:"text,omitempty"`
		Encoding    string     `json:"encoding,omitempty"`
		Comment     string     `json:"comment,omitempty"`
	}
	harTimings struct {
		Send    float64 `json:"send"`
		Wait    float64 `json:"wait"`
		Receive float64 `json:"receive"`
	}
)

// harInt is a whole number. Exporters also write 12.0 and 1.2e1.
type harInt int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *harInt) UnmarshalJSON(raw []byte) error {
	var v float64 // 0 for null
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	const most = 1 << 53 // beyond it a float64 skips whole numbers
	*n = harInt(min(max(v, -most), most))
	return nil
}

// harBody bounds the bytes that a body is decoded to for an export, since a few bytes of a
// hostile recording can decode to gigabytes.
const harBody = 256 << 20

// WriteHAR writes the exchanges as HAR 1.2, with decoded bodies; bytes that are no text are in
// base64. A body that was cut off, or cannot be decoded, is left out, and its comment says so.
func WriteHAR(w io.Writer, a *Archive) error {
	if err := writeHAR(w, a, harBody); err != nil {
		return fmt.Errorf("export HAR: %w", err)
	}
	return nil
}

// writeHAR writes the entries one by one, since the bodies together may not fit into memory.
func writeHAR(w io.Writer, a *Archive, most int64) error {
	f := harFile{Log: &harLog{Version: "1.2", Creator: harCreator{Name: "eidetic"}, Entries: []harEntry{}}}
	for i, p := range a.pages {
		f.Log.Pages = append(f.Log.Pages, harPage{Started: p.Wall.Format(time.RFC3339Nano), ID: fmt.Sprint("page_", i+1), Title: p.URL})
	}
	frame, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	const entries = `"entries": [` // inside a text the quotes would be escaped
	at := bytes.Index(frame, []byte(entries)) + len(entries)
	if _, err := w.Write(frame[:at]); err != nil {
		return err
	}
	between := ""
	for _, e := range a.exchanges {
		text, err := json.MarshalIndent(harEntryOf(e, most), "      ", "  ")
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n      %s", between, text); err != nil {
			return err
		}
		between = ","
	}
	end := ""
	if between != "" {
		end = "\n    "
	}
	_, err = fmt.Fprintf(w, "%s%s\n", end, frame[at:])
	return err
}

func harEntryOf(e *lab.Exchange, most int64) harEntry {
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
			Cookies: []harPair{}, QueryString: []harPair{}, HeadersSize: -1, BodySize: harInt(len(e.Request.Body)),
		},
		Response: harResponse{
			Status: harInt(e.Status), StatusText: e.Reason, HTTPVersion: version, Headers: harPairs(e.Response.Header),
			Cookies: []harPair{}, RedirectURL: e.Response.Get("Location"), HeadersSize: -1, BodySize: harInt(len(e.Response.Body)),
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
		text, encoding := harText(e.Request.Body, "")
		h.Request.PostData = &harPost{MIME: e.Request.Get("Content-Type"), Text: harString(text), Encoding: encoding}
	}
	h.Response.Content = harContentOf(e, most)
	return h
}

// harCut begins the comment of a body that was cut off; the reason follows in WARC's words.
const harCut = "the body was cut off: "

func harContentOf(e *lab.Exchange, most int64) harContent {
	c := harContent{Size: harInt(len(e.Response.Body)), MIME: e.Response.Get("Content-Type")}
	if e.Truncated != "" {
		c.Comment = harCut + e.Truncated
		return c
	}
	body, err := decodeWithin(&e.Response, most)
	if err != nil {
		c.Comment = "the body is left out: " + err.Error()
		return c
	}
	text, encoding := harText(body, c.MIME)
	c.Text, c.Size, c.Encoding = (*harString)(&text), harInt(len(body)), encoding
	return c
}

func harPairs(fields []lab.HeaderField) []harPair {
	out := []harPair{}
	for _, f := range fields {
		out = append(out, harPair(f))
	}
	return out
}

// harText returns bytes as text if they are UTF-8 and declared as nothing else: in charsets such
// as ISO-2022-JP all bytes are ASCII.
func harText(b []byte, contentType string) (text, encoding string) {
	charset, _ := charsetOf(contentType)
	if utf8.Valid(b) && (charset == "" || charset == "utf-8" || charset == "utf8") {
		return string(b), ""
	}
	return base64.StdEncoding.EncodeToString(b), "base64"
}

// Decoded returns a body without its content coding.
func Decoded(m *lab.Message) ([]byte, error) { return decodeWithin(m, 1<<30) }

// decodeWithin decodes a body to at most n bytes.
func decodeWithin(m *lab.Message, n int64) ([]byte, error) {
	coding := strings.ToLower(strings.TrimSpace(m.Get("Content-Encoding")))
	if coding == "" || coding == "identity" || len(m.Body) == 0 {
		return m.Body, nil
	}
	r, err := inject.NewDecoder(coding, bytes.NewReader(m.Body))
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", coding, err)
	}
	defer r.Close()
	b, err := readAllLimited(r, n)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", coding, err)
	}
	return b, nil
}
