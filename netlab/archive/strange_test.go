package archive

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/andybalholm/brotli"

	"eidetic/internal/lab"
)

// TestRequestsOfRecords: a request is that of the response that it names among others, or, where it names none that the
// file has, that of its URL.
func TestRequestsOfRecords(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	post := func(url string, names ...string) [2]string {
		head := "WARC-Type: request\nWARC-Target-URI: " + url
		for _, name := range names {
			head += "\nWARC-Concurrent-To: " + name
		}
		return [2]string{head, "POST / HTTP/1.1\r\nHost: r.test\r\n\r\nq=" + url[len(url)-1:]}
	}
	data := warcText(
		[2]string{"WARC-Type: response\nWARC-Target-URI: http://r.test/a", answer}, post("http://r.test/a", "<urn:x:9>", "<urn:x:0>"),
		[2]string{"WARC-Type: response\nWARC-Target-URI: http://r.test/b", answer}, post("http://r.test/b", "<urn:elsewhere>"),
		[2]string{"WARC-Type: response\nWARC-Target-URI: http://r.test/c", answer}, post("http://r.test/c"),
	)
	for url, e := range byURL(openOdd(t, string(data))) {
		if want := "q=" + url[len(url)-1:]; e.Method != "POST" || string(e.Request.Body) != want {
			t.Errorf("%s: %s with %q; want POST with %q", url, e.Method, e.Request.Body, want)
		}
	}
}

// TestBodiesOfCrawlers: a body that is shorter than its record says is cut off, one that the crawler decoded has no
// coding, and a resource without a type gets none.
func TestBodiesOfCrawlers(t *testing.T) {
	var b bytes.Buffer
	z := brotli.NewWriter(&b)
	_, _ = z.Write([]byte(strings.Repeat("body{color:green} ", 50))) // to memory
	_ = z.Close()
	text := "<!doctype html><title>decoded</title>" + strings.Repeat("<p>é", 50)
	for name, test := range map[string]struct {
		head, body, coding, cut, method string
	}{
		"short":           {"Content-Length: 20\r\n", "ten bytes.", "", lab.Disconnected, "GET"},
		"whole":           {"Content-Length: 10\r\n", "ten bytes.", "", "", "GET"},
		"longer":          {"Content-Length: 5\r\n", "ten bytes.", "", "", "GET"},
		"redirect":        {"Location: /\r\nContent-Length: 20\r\n", "", "", "", "GET"},
		"head":            {"Content-Length: 20\r\n", "", "", "", "HEAD"},
		"brotli":          {"Content-Encoding: br\r\n", b.String(), "br", "", "GET"},
		"cut brotli":      {"Content-Encoding: br\r\n", b.String()[:b.Len()/2], "br", "", "GET"},
		"decoded brotli":  {"Content-Encoding: br\r\n", text, "", "", "GET"},
		"decoded deflate": {"Content-Encoding: deflate\r\n", text, "", "", "GET"},
		"decoded, short":  {"Content-Encoding: gzip\r\nContent-Length: 22\r\n", "ok", "", "", "GET"},
	} {
		status := "200 OK"
		if strings.HasPrefix(test.head, "Location") {
			status = "302 Found"
		}
		data := warcText(
			[2]string{"WARC-Type: response\nWARC-Target-URI: http://b.test/", "HTTP/1.1 " + status + "\r\n" + test.head + "\r\n" + test.body},
			[2]string{"WARC-Type: request\nWARC-Target-URI: http://b.test/\nWARC-Concurrent-To: <urn:x:0>", test.method + " / HTTP/1.1\r\n\r\n"})
		e := byURL(openOdd(t, string(data)))["http://b.test/"]
		if e == nil || e.Response.Get("Content-Encoding") != test.coding || e.Truncated != test.cut || string(e.Response.Body) != test.body {
			t.Errorf("%s: %+v; want coding %q, cut off by %q", name, e, test.coding, test.cut)
		}
	}
	data := warcText([2]string{"WARC-Type: resource\nWARC-Target-URI: http://b.test/r", "x"})
	if e := byURL(openOdd(t, string(data)))["http://b.test/r"]; e == nil || len(e.Response.Header) != 0 {
		t.Errorf("a resource without a type: %+v; want no header", e)
	}
	for field, want := range map[string][2]string{
		"WARC-Protocol: h2\nWARC-Protocol: tls/1.2": {"h2", "tls/1.2"}, "WARC-Protocol: HTTP/2, TLS/1.3": {"h2", "tls/1.3"}, "WARC-Protocol: h3-29": {"h3", ""},
		"WARC-Protocol: http/1.0": {"http/1.0", ""}, "WARC-Protocol: spdy/3": {"http/1.1", ""},
	} {
		data := warcText([2]string{"WARC-Type: response\nWARC-Target-URI: https://b.test/\n" + field, "HTTP/1.1 200 OK\r\n\r\nx"})
		if e := byURL(openOdd(t, string(data)))["https://b.test/"]; e == nil || [2]string{e.Protocol, e.TLS} != want {
			t.Errorf("%q: %+v; want protocols %q", field, e, want)
		}
	}
	for raw, want := range map[string]string{
		"http://b\u00fccher.example/\u00e4 b?q=\u00f6|\"x\"#f": "http://xn--bcher-kva.example/%C3%A4%20b?q=%C3%B6|%22x%22",
		"https://B\u00dcCHER.example:8080/%C3%A4":              "https://xn--bcher-kva.example:8080/%C3%A4",
		"http://b.test/a\xe4b":                                 "http://b.test/a%E4b", "http://b_c.test/": "http://b_c.test/", "http://[2001:db8::1]/\u00e4": "http://[2001:db8::1]/%C3%A4",
	} {
		data := warcText([2]string{"WARC-Type: response\nWARC-Target-URI: " + raw, "HTTP/1.1 200 OK\r\n\r\nx"})
		quoted, err := json.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []*Archive{openOdd(t, string(data)), oddHAR(t, `{"request":{"method":"GET","url":`+string(quoted)+`},"response":{"status":200,"content":{"text":"x"}}}`)} {
			if byURL(a)[want] == nil && utf8.ValidString(raw) {
				t.Errorf("%q: %v; want %s", raw, slices.Collect(maps.Keys(byURL(a))), want)
			}
		}
	}
	gzipped := func(plain []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(plain) // to memory
		_ = w.Close()
		return b.Bytes()
	}
	twice := gzipped(gzipped(data))
	if _, err := OpenReader(bytes.NewReader(twice), int64(len(twice)), Limits{}); err == nil || !strings.Contains(err.Error(), "gzip twice") {
		t.Errorf("a WARC in gzip twice: %v; want an error that says so", err)
	}
}

// TestHARWithoutHeaders: an exporter that leaves headers out has where a redirect leads, and the type of a body, in
// fields of their own; what those say is used where the header has nothing.
func TestHARWithoutHeaders(t *testing.T) {
	entry := func(name, response string) string {
		return fmt.Sprintf(`{"startedDateTime":"2026-05-01T12:00:00Z","request":{"method":"GET","url":"http://h.test/%s","headers":[]},"response":%s}`,
			name, response)
	}
	a := oddHAR(t,
		entry("moved", `{"status":302,"headers":[],"redirectURL":"/next","content":{"size":0,"mimeType":""}}`),
		entry("told", `{"status":301,"headers":[{"name":"location","value":"/a"}],"redirectURL":"/b","content":{"size":0}}`),
		entry("style", `{"status":200,"headers":[],"redirectURL":"","content":{"size":6,"mimeType":"text/css; charset=utf-8","text":"body{}"}}`),
		entry("untyped", `{"status":200,"headers":[{"name":"Server","value":"x"}],"content":{"size":6,"mimeType":"text/css","text":"body{}"}}`),
		entry("unknown", `{"status":200,"headers":[],"content":{"size":1,"mimeType":"x-unknown","text":"x"}}`),
		strings.Replace(entry("form", `{"status":200,"headers":[],"content":{"size":1,"text":"x"}}`), `"method":"GET"`,
			`"method":"POST","postData":{"mimeType":"multipart/form-data; boundary=x","params":[{"name":"a","value":"1"}]}`, 1),
		strings.Replace(entry("fields", `{"status":200,"headers":[],"content":{"size":1,"text":"x"}}`), `"method":"GET"`,
			`"method":"POST","postData":{"params":[{"name":"a","value":"1"},{"name":"b","value":"2"}]}`, 1))
	got := byURL(a)
	for name, want := range map[string][2]string{
		"moved": {"/next", ""}, "told": {"/a", ""}, "style": {"", "text/css; charset=utf-8"}, "untyped": {"", ""}, "unknown": {"", ""},
	} {
		e := got["http://h.test/"+name]
		if e == nil || e.Response.Get("Location") != want[0] || e.Response.Get("Content-Type") != want[1] {
			t.Errorf("%s: %+v; want Location %q and Content-Type %q", name, e, want[0], want[1])
		}
	}
	if e := got["http://h.test/fields"]; e == nil || string(e.Request.Body) != "a=1&b=2" {
		t.Errorf("fields: %+v; want the body a=1&b=2", e)
	}
	if told := strings.Join(a.Warnings(), "\n"); !strings.Contains(told, "postData.text") || !strings.Contains(told, "http://h.test/form") {
		t.Errorf("told %q; want that the text of a form is missing", told)
	}
}
