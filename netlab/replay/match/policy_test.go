package match

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// recorded makes the entry of an exchange with an answer.
func recorded(t testing.TB, id, method, url, body, answer string) *Entry {
	t.Helper()
	e := &lab.Exchange{ID: id, Method: method, URL: url, Status: 200}
	e.Request = lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: "application/json"}}, Body: []byte(body)}
	e.Response.Body = []byte(answer)
	en := NewEntry(e, BodySum([]byte(answer)))
	return en
}

func TestPolicies(t *testing.T) {
	const uuids = "https://h.test/doc/123e4567-e89b-12d3-a456-4266141740"
	list := []*Entry{
		recorded(t, "item", "GET", "https://h.test/item/17", "", "a long answer"),
		recorded(t, "about", "GET", "https://h.test/About/us.html", "", "who we are"),
		recorded(t, "query", "GET", "https://h.test/api?id=17", "", "seventeen"),
		recorded(t, "repeated", "GET", "https://h.test/list?a=1&a=2&b=3", "", "in this order"),
		recorded(t, "session", "GET", "https://h.test/s/123e4567-e89b-12d3-a456-426614174000/x", "", "by lot"),
		recorded(t, "doc0", "GET", uuids+"00", "", "document 0"),
		recorded(t, "doc1", "GET", uuids+"01", "", "document 1"),
		recorded(t, "beacon", "POST", "https://h.test/beacon", `{"load":1200,"page":"home","kind":"nav"}`, ""),
		recorded(t, "track", "POST", "https://h.test/track", `{"load":1200,"page":"home","kind":"nav"}`, `{"price":12}`),
		recorded(t, "thanks", "POST", "https://h.test/collect?k=home", `{"load":1200,"page":"home"}`, `{"success":true,"id":"0123456789abcdef"}`),
		recorded(t, "lines", "POST", "https://h.test/lines", "{\"load\":1200}\n{\"lcp\":3}\n", ""),
		recorded(t, "bytes", "POST", "https://h.test/bytes", "\x0a\x03abc\x10\x01", ""),
		recorded(t, "moment", "POST", "https://h.test/moment", `{"at":"2026-05-06T07:08:09.123Z","day":"2026-05-06T00:00:00.000Z"}`, "noon"),
		recorded(t, "events", "POST", "https://h.test/events", "{\"ts\":1}\n{\"name\":\"a\"}", "two events"),
		recorded(t, "socket.io", "GET", "https://h.test/socket.io/?EIO=4&transport=polling&t=bithm7xp", "", "0{}"),
		recorded(t, "poll0", "GET", "https://h.test/sync?rid=0&mwzoty9s", "", "all"),
		recorded(t, "poll1", "GET", "https://h.test/sync?rid=1&mwzotzfw", "", "one more"),
		recorded(t, "poll2", "GET", "https://h.test/sync?rid=2&mwzou0m1", "", "two more"),
		recorded(t, "log0", "POST", "https://h.test/log", `{"t":1,"page":"home"}`, `{"level":"info"}`),
		recorded(t, "log1", "POST", "https://h.test/log", `{"t":2,"page":"home"}`, `{"level":"info"}`),
	}
	x := NewIndex(Learn(list, nil))
	for _, en := range list {
		x.Add(en)
	}
	const measured = `{"load":1300,"page":"home","kind":"nav"}`
	// The answers by strict, normal and loose; "" is a miss.
	for _, c := range []struct {
		name, ask, body, header string
		want                    [3]string
		why                     string // of normal
	}{
		{"exact", "GET https://h.test/item/17", "", "", [3]string{"item", "item", "item"}, ""},
		{"a cache-buster", "GET https://h.test/item/17?_=1700000000000", "", "", [3]string{"", "item", "item"}, "value of time or chance"},
		{"a time without a name", "GET https://h.test/item/17?1700000000000", "", "", [3]string{"", "item", "item"}, "value of time or chance"},
		{"one in base 36", "GET https://h.test/item/17?mwzoty9s", "", "", [3]string{"", "item", "item"}, "value of time or chance"},
		{"a word", "GET https://h.test/item/17?national", "", "", [3]string{}, "may change the answer"},
		{"a poll beyond the last", "GET https://h.test/sync?rid=3&mwzou1sx", "", "", [3]string{"", "poll0", "poll0"}, "the next poll of a chain"},
		{"another identifier", "GET https://h.test/item/18", "", "", [3]string{"", "", "item"}, "may change the answer; the policy loose would"},
		{"a longer identifier", "GET https://h.test/item/904", "", "", [3]string{"", "", "item"}, "may change the answer; the policy loose would"},
		{"an identifier in the query", "GET https://h.test/api?id=18", "", "", [3]string{"", "", "query"}, "the policy loose would"},
		{"another case", "GET https://h.test/about/us.html", "", "", [3]string{"", "", "about"}, "the policy loose would"},
		{"another case of the extension", "GET https://h.test/About/us.HTML", "", "", [3]string{"", "", "about"}, "the policy loose would"},
		{"the order of names", "GET https://h.test/list?b=3&a=1&a=2", "", "", [3]string{"", "repeated", "repeated"}, "layout"},
		{"the order of values", "GET https://h.test/list?a=2&a=1&b=3", "", "", [3]string{"", "", "repeated"}, "the policy loose would"},
		{"a UUID by lot", "GET https://h.test/s/123e4567-e89b-12d3-a456-426614174999/x", "", "", [3]string{"", "session", "session"}, "part of the path"},
		{"a UUID that identifies", "GET " + uuids + "02", "", "", [3]string{"", "", "doc0"}, "the policy loose would"},
		{"a known UUID", "GET " + uuids + "01", "", "", [3]string{"doc1", "doc1", "doc1"}, ""},
		{"HEAD", "HEAD https://h.test/item/17", "", "", [3]string{"", "item", "item"}, "that to GET without its body"},
		{"no content", "POST https://h.test/beacon", measured, "", [3]string{"", "beacon", "beacon"}, "the answer has no content"},
		{"an answer with content", "POST https://h.test/track", measured, "", [3]string{"", "", "track"}, "the policy loose would"},
		{"an acknowledgement", "POST https://h.test/collect?k=cart", `{"cart":[1,2,3],"from":"mail"}`, "", [3]string{"", "thanks", "thanks"},
			"only that the request arrived"},
		{"lines of JSON without content", "POST https://h.test/lines", "{\"load\":9}\n{\"fid\":1}\n{\"cls\":0}", "", [3]string{"", "lines", "lines"},
			"no content"},
		{"bytes without content", "POST https://h.test/bytes", "\x0a\x09entirely\x20\x05", "", [3]string{"", "bytes", "bytes"}, "no content"},
		{"a date of now", "POST https://h.test/moment", `{"at":"2026-05-06T07:08:11.004Z","day":"2026-05-06T00:00:00.000Z"}`, "",
			[3]string{"", "moment", "moment"}, "value of time or chance"},
		{"a day of the calendar", "POST https://h.test/moment", `{"at":"2026-05-06T07:08:09.123Z","day":"2026-05-07T00:00:00.000Z"}`, "",
			[3]string{"", "", "moment"}, "the policy loose would"},
		{"a time in lines of JSON", "POST https://h.test/events", "{\"ts\":2}\n{\"name\":\"a\"}", "", [3]string{"", "events", "events"},
			"value of time or chance"},
		{"another line of JSON", "POST https://h.test/events", "{\"ts\":1}\n{\"name\":\"b\"}", "", [3]string{"", "", "events"}, "the policy loose would"},
		{"an answer that is not read", "POST https://h.test/track", measured, "no-cors", [3]string{"", "track", "track"}, "cannot read the answer"},
		{"always the same answer", "POST https://h.test/log", `{"t":3,"page":"home"}`, "", [3]string{"", "log0", "log0"}, "2 different requests"},
		{"layout of a body", "POST https://h.test/log", `{ "page":"home", "t":2 }`, "", [3]string{"", "log1", "log1"}, "layout"},
		{"the clock of Engine.IO", "GET https://h.test/socket.io/?EIO=4&transport=polling&t=bitq2go1", "", "",
			[3]string{"", "socket.io", "socket.io"}, "layout"},
		{"a session of Engine.IO", "GET https://h.test/socket.io/?EIO=4&transport=polling&t=bithm7xp&sid=x", "", "",
			[3]string{"", "", "socket.io"}, "the policy loose would"},
		{"another method", "PUT https://h.test/item/17", "", "", [3]string{}, "not similar enough"},
		{"unheard of", "GET https://other.test/nothing", "", "", [3]string{}, "nothing like it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			method, url, _ := strings.Cut(c.ask, " ")
			h := http.Header{"Content-Type": {"application/json"}}
			if c.header != "" {
				h["Sec-Fetch-Mode"], h["Sec-Fetch-Dest"] = []string{c.header}, []string{"empty"}
			}
			r := NewRequest(method, url, h, []byte(c.body))
			for i, p := range []Policy{Strict, Normal, Loose} {
				m := x.Find(p, NewClient(), r, h)
				got := ""
				if m.Entry != nil {
					got = m.Entry.ID
				}
				if got != c.want[i] {
					t.Errorf("%s: %q by %s (%s); want %q", p, got, m.Stage, m.Why, c.want[i])
				}
				isExact := m.Stage == lab.StageExact || m.Stage == lab.StageSequence
				if isExact != (m.Why == "") || !isExact && m.RunnerUp == "" && len(m.Differs) == 0 && !strings.Contains(m.Why, "nothing like it") {
					t.Errorf("%s: a match by %s says %q, differs %q, next %q; want what differs, and why it was accepted or not", p, m.Stage, m.Why,
						m.Differs, m.RunnerUp)
				}
				if p == Normal && !strings.Contains(m.Why, c.why) {
					t.Errorf("normal says %q; want %q in it", m.Why, c.why)
				}
			}
		})
	}
}

// TestDifferencesOfRepeatedNames: the order of values is told, and one value is not told twice.
func TestDifferencesOfRepeatedNames(t *testing.T) {
	for _, c := range []struct {
		recorded, asked string
		want            []string
	}{
		{"a=1&a=2", "a=2&a=1", []string{"query a: in the order 1, 2 → 2, 1"}},
		{"a=1&a=2", "a=1&a=3", []string{"query a: 2 → 3"}},
		{"a=1", "a=1&a=2&b=1", []string{"query a: none → 2", "query b: none → 1"}},
		{"b=1&a=1", "a=1&b=1", []string{"URL: the recorded one → the same in another spelling"}},
		{"a=", "b=", []string{`query a: "" → none`, `query b: none → ""`}},
	} {
		got := differences(newTestRequest(t, "https://h.test/?"+c.recorded), newTestRequest(t, "https://h.test/?"+c.asked))
		if !slices.Equal(got, c.want) {
			t.Errorf("differences(%s, %s) = %q; want %q", c.recorded, c.asked, got, c.want)
		}
	}
}

func TestParsePolicy(t *testing.T) {
	for name, want := range map[string]Policy{"": Normal, "strict": Strict, "normal": Normal, "loose": Loose} {
		if got, err := ParsePolicy(name); got != want || err != nil {
			t.Errorf("ParsePolicy(%q) = %q, %v; want %q, nil", name, got, err, want)
		}
	}
	if _, err := ParsePolicy("nearest"); err == nil || !strings.Contains(err.Error(), "strict, normal, loose") {
		t.Errorf("ParsePolicy(nearest) = %v; want the names of the policies", err)
	}
}
