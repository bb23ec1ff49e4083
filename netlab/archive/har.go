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
		Text     harString `json:"text"`
		Encoding string    `json:"encoding,omitempty"` // Charles, mitmproxy
		Params   []harPair `json:"params,omitempty"`
	}
	harContent struct {
		Size        int64      `json:"size"`
		Compression float64    `json:"compression,omitempty"`
		MIME        string     `json:"mimeType"`
		Text        *harString `json:"text,omitempty"`
		Encoding    string     `json:"encoding,omitempty"`
	}
	harTimings struct {
		Send    float64 `json:"send"`
		Wait    float64 `json:"wait"`
		Receive float64 `json:"receive"`
	}
)

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
		h.Request.PostData = &harPost{MIME: e.Request.Get("Content-Type"), Text: harString(text), Encoding: encoding}
	}
	body := e.Response.Body
	if plain, err := Decoded(&e.Response); err == nil {
		body = plain
	}
	text, encoding := harText(body)
	content := harString(text)
	h.Response.Content = harContent{Size: int64(len(body)), MIME: e.Response.Get("Content-Type"), Text: &content, Encoding: encoding}
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
