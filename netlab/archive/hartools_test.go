package archive

import (
	"fmt"
	"strings"
	"testing"

	"eidetic/internal/lab"

	"github.com/google/go-cmp/cmp"
)

// TestBodiesOfRequests: a request's body that is no text is where HTTP Toolkit and PiRogue put it; one that a HAR lacks is
// told, unless the request had none.
func TestBodiesOfRequests(t *testing.T) {
	entry := func(request string) string {
		return fmt.Sprintf(`{"startedDateTime":"2026-05-01T12:00:00Z","request":{"url":"http://h.test/odd",%s},"response":{"status":200,"headers":[],"content":{"size":1,"text":"x"}}}`, request)
	}
	const told = "without the body that it sent"
	for name, c := range map[string]struct {
		request, body, told string
	}{
		"bytes": {`"method":"POST","headers":[],"bodySize":4,"_requestBodyStatus":"discarded:not-representable","_content":{"text":"//4AAQ==","size":4,"encoding":"base64"}`,
			"\xff\xfe\x00\x01", ""},
		"a text": {`"method":"POST","headers":[],"bodySize":2,"_content":{"text":"hi","size":2},"postData":{"mimeType":"text/plain","text":"ho"}`, "ho", ""},
		"Firefox's form": {`"method":"POST","headers":[],"bodySize":78,"postData":{"mimeType":"application/x-www-form-urlencoded","text":"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\n\r\na=1&b=2"}`,
			"a=1&b=2", ""},
		"a text like that": {`"method":"POST","headers":[],"postData":{"mimeType":"text/plain","text":"Content-Length: 9\r\n\r\nhi"}`, "Content-Length: 9\r\n\r\nhi", ""},
		"another like that": {`"method":"POST","headers":[],"postData":{"mimeType":"text/plain","text":"X: y\r\nContent-Length: 2\r\n\r\nhi"}`,
			"X: y\r\nContent-Length: 2\r\n\r\nhi", ""},
		"left out":        {`"method":"POST","headers":[],"bodySize":-1`, "", told},
		"of a length":     {`"method":"PUT","headers":[{"name":"content-length","value":"7"}]`, "", told},
		"none":            {`"method":"POST","headers":[{"name":"content-length","value":"0"}],"bodySize":-1`, "", ""},
		"none by size":    {`"method":"POST","headers":[],"bodySize":0`, "", ""},
		"none of a GET":   {`"method":"GET","headers":[],"bodySize":-1`, "", ""},
		"without a _text": {`"method":"POST","headers":[],"bodySize":9,"_content":{"size":9}`, "", told},
	} {
		a := oddHAR(t, entry(c.request))
		e, warned := byURL(a)["http://h.test/odd"], strings.Join(a.Warnings(), "\n")
		if e == nil || string(e.Request.Body) != c.body || !strings.Contains(warned, c.told) || (warned == "") != (c.told == "") {
			t.Errorf("%s: read %+v, told %q; want the body %q, and told %q", name, e, warned, c.body, c.told)
		}
	}
}

// TestJoinedCookies: cookies that a tool has joined by commas are set one by one; the commas of dates and values stay.
func TestJoinedCookies(t *testing.T) {
	const date = "a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT"
	for _, c := range []struct {
		value  string
		listed int
		want   []string
	}{
		{"a=1; Path=/,b=2; Secure; HttpOnly,c=3", 0, []string{"a=1; Path=/", "b=2; Secure; HttpOnly", "c=3"}},
		{date + "; Path=/,b=2; Expires=Thu, 01-Jan-1970 00:00:00 GMT", 0, []string{date + "; Path=/", "b=2; Expires=Thu, 01-Jan-1970 00:00:00 GMT"}},
		{"a=1,b=2", 0, []string{"a=1,b=2"}}, {"a=1, b=2", 2, []string{"a=1", "b=2"}}, {"a=1,b=2; Path=/", 1, []string{"a=1,b=2; Path=/"}},
		{date, 0, []string{date}}, {date, 1, []string{date}}, {"a={x,y}; Path=/, b=2", 0, []string{"a={x,y}; Path=/", "b=2"}}, {"a=1; Path=/,", 0, []string{"a=1; Path=/,"}},
	} {
		got := splitCookies([]lab.HeaderField{{Name: "X", Value: "a; b, c=d"}, {Name: "set-cookie", Value: c.value}}, c.listed)
		want := []lab.HeaderField{{Name: "X", Value: "a; b, c=d"}}
		for _, v := range c.want {
			want = append(want, lab.HeaderField{Name: "set-cookie", Value: v})
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("splitCookies(%q, %d) (-want +got):\n%s", c.value, c.listed, d)
		}
	}
}

// TestSocketsOverHTTP2: a WebSocket that was opened by CONNECT (RFC 8441) is one; a tunnel through a proxy is left out.
func TestSocketsOverHTTP2(t *testing.T) {
	entry := func(more string) string {
		return `{"startedDateTime":"2026-05-01T12:00:00Z"` + more + `,"request":{"method":"CONNECT","url":"https://h.test/live","headers":[{"name":":protocol","value":"websocket"}]},` +
			`"response":{"status":200,"headers":[],"content":{}}}`
	}
	e := byURL(oddHAR(t, entry(`,"_webSocketMessages":[{"type":"receive","time":1777636801,"opcode":1,"data":"hi"}]`)))["https://h.test/live"]
	if e == nil || e.Method != "GET" || e.Status != 101 || len(e.Socket) != 1 {
		t.Errorf("read %+v; want a WebSocket with one message", e)
	}
	if a := oddHAR(t, entry("")); len(a.Exchanges()) != 0 || a.Lost() != 0 {
		t.Errorf("of a tunnel, read %d exchanges, lost %d; want neither", len(a.Exchanges()), a.Lost())
	}
}

// TestInterimEntries: an answer that precedes the final one is not replayed in its place.
func TestInterimEntries(t *testing.T) {
	const page = `{"request":{"method":"GET","url":"http://i.test/"},"response":{"status":%d,"headers":[{"name":"Link","value":"</a.css>"}],"content":{"size":0}}}`
	a := openOdd(t, fmt.Sprintf(`{"log":{"entries":[`+page+","+page+","+page+`]}}`, 100, 103, 200))
	if told := strings.Join(a.Warnings(), "\n"); len(a.Exchanges()) != 1 || a.Exchanges()[0].Status != 200 || a.Lost() != 0 || !strings.Contains(told, "precedes the final one") {
		t.Errorf("read %d exchanges, lost %d, told %q; want the final one", len(a.Exchanges()), a.Lost(), told)
	}
}
