package archive

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"

	"github.com/google/go-cmp/cmp"
)

// TestEventStreams: an event stream of which a HAR has no text stays open, with the events that the HAR has; one with a
// text ends.
func TestEventStreams(t *testing.T) {
	entry := func(content, more string) string {
		return fmt.Sprintf(`{"startedDateTime":"2026-05-01T12:00:00Z","time":9,"timings":{"wait":100,"receive":5},"request":{"method":"GET","url":"http://h.test/odd","headers":[]},`+
			`"response":{"status":200,"headers":[{"name":"Content-Type","value":"text/event-stream; charset=utf-8"},{"name":"content-length","value":"70"},`+
			`{"name":"Content-Encoding","value":"gzip"}],"content":%s,"bodySize":-1}%s}`, content, more)
	}
	const none = `{"size":70,"mimeType":"text/event-stream"}`
	const begin = 1777636800 // 2026-05-01T12:00:00Z
	events := func(unit int) string {
		at := func(ms int) int { return (begin*1000 + ms) * unit / 1000 }
		return fmt.Sprintf(`,"_eventSourceMessages":[{"time":%d,"eventName":"message","eventId":"","data":"one"},`+
			`{"time":%d,"eventName":"price","eventId":"7","data":"two\nlines"}]`, at(1000), at(3000))
	}
	const text = "data: one\n\nevent: price\nid: 7\ndata: two\ndata: lines\n\n"
	pieces := []lab.Chunk{{At: time.Second, Bytes: 11}, {At: 3 * time.Second, Bytes: len(text) - 11}}
	for name, c := range map[string]struct {
		entry, body string
		chunks      []lab.Chunk
		isOpen      bool
		told        string
	}{
		"nothing":                {entry(none, ""), "", nil, true, "without its events"},
		"an empty text":          {entry(`{"size":0,"text":""}`, ""), "", nil, true, "without its events"},
		"events in seconds":      {entry(none, events(1)), text, pieces, true, "made of its events"},
		"events in milliseconds": {entry(none, events(1000)), text, pieces, true, "made of its events"},
		"no list of events":      {entry(none, `,"_eventSourceMessages":7`), "", nil, true, "without its events"},
		"a text":                 {entry(`{"size":11,"text":"data: one\n\n"}`, ""), "data: one\n\n", []lab.Chunk{{At: 105 * time.Millisecond, Bytes: 11}}, false, ""},
	} {
		a := oddHAR(t, c.entry)
		e, told := byURL(a)["http://h.test/odd"], strings.Join(a.Warnings(), "\n")
		if e == nil || e.IsOpen() != c.isOpen || string(e.Response.Body) != c.body || !strings.Contains(told, c.told) || (told == "") != (c.told == "") {
			t.Errorf("%s: read %+v, told %q; want the body %q, open %v, and told %q", name, e, told, c.body, c.isOpen, c.told)
			continue
		}
		if d := cmp.Diff(c.chunks, e.Chunks); d != "" {
			t.Errorf("%s: pieces (-want +got):\n%s", name, d)
		}
		if c.isOpen && (e.Response.Get("Content-Length")+e.Response.Get("Content-Encoding") != "" || Assess(a).Score != 1) {
			t.Errorf("%s: fields %v, score %v; want neither length nor coding, and 1", name, e.Response.Header, Assess(a).Score)
		}
	}
}
