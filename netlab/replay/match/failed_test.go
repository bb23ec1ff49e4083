package match

import (
	"net/http"
	"testing"

	"eidetic/internal/lab"
)

// TestUnanswered: a request that differs from those to an origin, or to a path of it, none of which had an answer, has none
// either. Where one had an answer, it is a miss.
func TestUnanswered(t *testing.T) {
	failed := func(method, url, body string) *lab.Exchange {
		return &lab.Exchange{Method: method, URL: url, Request: lab.Message{Body: []byte(body)}, Truncated: lab.Disconnected}
	}
	x := NewIndex(&Ignored{})
	for _, e := range []*lab.Exchange{
		failed("POST", "https://dead.test/collect", `{"t":1}`), failed("GET", "https://dead.test/a.gif", ""),
		failed("POST", "https://alive.test/cut", "first"), {Method: "GET", URL: "https://alive.test/", Status: 200},
		failed("POST", "https://alive.test/now-and-then", "1"),
		{Method: "POST", URL: "https://alive.test/now-and-then", Request: lab.Message{Body: []byte("2")}, Status: 200},
	} {
		x.Add(NewEntry(e, e.URL))
	}
	for _, c := range []struct {
		method, url, body string
		policy            Policy
		want              string // the URL of what answers, or ""
	}{
		{"POST", "https://dead.test/collect", `{"t":2}`, Normal, "https://dead.test/collect"},
		{"POST", "https://dead.test/collect", `{"t":2}`, Strict, ""},
		{"GET", "https://dead.test/other/path?x=1", "", Normal, "https://dead.test/collect"},
		{"GET", "https://dead.test/other/path?x=1", "", Loose, "https://dead.test/collect"},
		{"POST", "https://alive.test/cut", "second", Normal, "https://alive.test/cut"},
		{"POST", "https://alive.test/cut", "", Normal, "https://alive.test/cut"},
		{"PUT", "https://alive.test/cut", "second", Normal, ""},
		{"POST", "https://alive.test/now-and-then", "3", Normal, ""},
		{"GET", "https://alive.test/other", "", Normal, ""},
	} {
		m := x.FindInexact(c.policy, NewClient(), NewRequest(c.method, c.url, http.Header{}, []byte(c.body)), http.Header{})
		got := ""
		if m.Entry != nil {
			got = m.Entry.URL
		}
		if got != c.want || got != "" && (m.Stage != lab.StageFuzzy || m.Why == "") {
			t.Errorf("%s %s %q under %s: %q, %s, %q; want %q", c.method, c.url, c.body, c.policy, got, m.Stage, m.Why, c.want)
		}
	}
}
