package archive

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
)

func TestMatchURL(t *testing.T) {
	for _, tt := range []struct {
		pattern, url string
		want         bool
	}{
		{"a.js", "https://x/a.js?1", true}, {"*.js", "https://x/a.js?1", false}, {"*.js*", "https://x/a.js?1", true},
		{"https://*/a*z", "https://x/abcz", true}, {"a*a", "a", false}, {"*", "", true}, {"", "x", true}, {"x*y*z", "xyyz", true}, {"x*y*z", "xz", false},
	} {
		if got := MatchURL(tt.pattern, tt.url); got != tt.want {
			t.Errorf("MatchURL(%q, %q) = %v; want %v", tt.pattern, tt.url, got, tt.want)
		}
	}
}

func exampleExchange() *lab.Exchange {
	return &lab.Exchange{
		Order: 7, ID: "abcdef", URL: "https://x.test/a.js", Status: 200, Reason: "OK", FirstByte: 10 * time.Millisecond,
		Response: lab.Message{Body: []byte("old"), Header: []lab.HeaderField{
			{Name: "content-type", Value: "text/javascript"}, {Name: "Content-Encoding", Value: "br"}, {Name: "X-A", Value: "1"},
		}},
		Chunks: []lab.Chunk{{At: 10 * time.Millisecond, Bytes: 1}, {At: 15 * time.Millisecond, Bytes: 2}},
	}
}

func TestSelection(t *testing.T) {
	e := exampleExchange()
	for _, c := range []struct {
		s    Selection
		want bool
	}{
		{Selection{}, false}, {Selection{URL: []string{"b.js", "*.js"}}, true}, {Selection{ID: []string{"7"}}, true},
		{Selection{ID: []string{"cdef"}}, true}, {Selection{ID: []string{"def"}}, false}, {Selection{ID: []string{"6"}}, false},
	} {
		if got := c.s.Has(e); got != c.want {
			t.Errorf("%+v.Has(%s) = %v; want %v", c.s, e.URL, got, c.want)
		}
	}
}

func TestEdit(t *testing.T) {
	for name, c := range map[string]struct {
		edit Edit
		want func(*lab.Exchange)
	}{
		"nothing": {Edit{}, func(*lab.Exchange) {}},
		"status":  {Edit{Status: 500}, func(e *lab.Exchange) { e.Status, e.Reason = 500, "" }},
		"fields": {Edit{Set: []string{"x-a: 2"}, Drop: []string{"CONTENT-TYPE"}}, func(e *lab.Exchange) {
			e.Response.Header = []lab.HeaderField{{Name: "Content-Encoding", Value: "br"}, {Name: "x-a", Value: "2"}}
		}},
		"body": {Edit{Body: []byte("new text")}, func(e *lab.Exchange) {
			e.Response.Body, e.Chunks = []byte("new text"), []lab.Chunk{{At: e.FirstByte, Bytes: 8}}
			e.Response.Header = append([]lab.HeaderField{e.Response.Header[0]}, e.Response.Header[2], lab.HeaderField{Name: "Content-Length", Value: "8"})
		}},
		"empty body": {Edit{Body: []byte{}}, func(e *lab.Exchange) {
			e.Response.Body, e.Chunks = []byte{}, []lab.Chunk{{At: e.FirstByte, Bytes: 0}}
			e.Response.Header = append([]lab.HeaderField{e.Response.Header[0]}, e.Response.Header[2], lab.HeaderField{Name: "Content-Length", Value: "0"})
		}},
		"first byte": {Edit{FirstByte: 40 * time.Millisecond}, func(e *lab.Exchange) {
			e.FirstByte, e.Chunks = 40*time.Millisecond, []lab.Chunk{{At: 40 * time.Millisecond, Bytes: 1}, {At: 45 * time.Millisecond, Bytes: 2}}
		}},
	} {
		old, want := exampleExchange(), exampleExchange()
		c.want(want)
		got, err := c.edit.Apply(old)
		if d := cmp.Diff(want, got, addrEqual); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
		if d := cmp.Diff(exampleExchange(), old, addrEqual); d != "" {
			t.Errorf("%s: the original was changed:\n%s", name, d)
		}
	}
	for says, edit := range map[string]Edit{
		"final status": {Status: 100}, "negative": {FirstByte: -1}, "Name: value": {Set: []string{"nonsense"}},
	} {
		if err := edit.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Validate() of %+v = %v; want a word of %q", edit, err, says)
		}
	}
}
