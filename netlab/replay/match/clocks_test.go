package match

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// at makes a recorded exchange that was asked for after so many milliseconds, with "METHOD URL [BODY]".
func at(ms float64, ask, answer string, fields ...lab.HeaderField) *Entry {
	words := append(strings.SplitN(ask, " ", 3), "")
	e := &lab.Exchange{ID: ask, Method: words[0], URL: words[1], Status: 200, Start: time.Duration(ms * 1e6)}
	e.Request = lab.Message{Header: append(fields, lab.HeaderField{Name: "Content-Type", Value: "application/json"}), Body: []byte(words[2])}
	e.Response = lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: "application/json"}}, Body: []byte(answer)}
	return NewEntry(e, BodySum([]byte(answer)))
}

func dest(v string) lab.HeaderField { return lab.HeaderField{Name: "Sec-Fetch-Dest", Value: v} }

// indexOf learns from a recording and indexes it.
func indexOf(list ...*Entry) *Index {
	x := NewIndex(Learn(list, nil))
	for _, en := range list {
		x.Add(en)
	}
	return x
}

func ask(x *Index, text string) Result {
	words := append(strings.SplitN(text, " ", 3), "")
	h := http.Header{"Content-Type": {"application/json"}}
	return x.Find(Normal, NewClient(), NewRequest(words[0], words[1], h, []byte(words[2])), h)
}

// TestClocks: what is as large as the time since the document is another number in each load; what only looks
// like it is not.
func TestClocks(t *testing.T) {
	const h = "https://h.test"
	page := func(start float64) *Entry { return at(start, "GET "+h+"/", "<p>", dest("document")) }
	for _, c := range []struct {
		name     string
		recorded []*Entry
		asked    string
		miss     bool
	}{
		{"a whole number", []*Entry{page(5000), at(5310, "GET "+h+"/d?elapsed=290&id=7", "x")},
			"GET " + h + "/d?elapsed=733&id=7", false},
		{"another parameter beside it", []*Entry{page(5000), at(5310, "GET "+h+"/d?elapsed=290&id=7", "x")},
			"GET " + h + "/d?elapsed=733&id=8", true},
		{"microseconds", []*Entry{page(0), at(310, "GET "+h+"/d?perf=290417", "x")},
			"GET " + h + "/d?perf=1733001", false},
		{"seconds", []*Entry{page(0), at(1310, "GET "+h+"/d?uptime=1.29", "x")},
			"GET " + h + "/d?uptime=0.8", false},
		{"read early, with a browser's digits", []*Entry{page(0), at(9310, "GET "+h+"/d?start=141.79999999888241", "x")},
			"GET " + h + "/d?start=77", false},
		{"on a slow device, with a browser's digits", []*Entry{page(0), at(380, "GET "+h+"/d?start=974.6000000014901", "x")},
			"GET " + h + "/d?start=1038.5", false},
		{"digits that are far from the time", []*Entry{page(0), at(380, "GET "+h+"/d?x=9746.6000000014901", "x")},
			"GET " + h + "/d?x=1038.5", true},
		{"a whole number beside a clock", []*Entry{page(0), at(310, "GET "+h+"/d?t=281.5", "x"), at(340, "GET "+h+"/e?start=312", "y")},
			"GET " + h + "/e?start=226", false},
		{"a width beside a clock", []*Entry{page(0), at(310, "GET "+h+"/d?t=281.5", "x"), at(700, "GET "+h+"/i?w=640", "y")},
			"GET " + h + "/i?w=1280", true},
		{"the epoch with a part", []*Entry{page(0), at(90, "GET "+h+"/d?x=1764192340123.4", "x")},
			"GET " + h + "/d?x=1764192399999", false},
		{"in JSON in a query", []*Entry{page(0), at(300, "GET "+h+`/d?ctx={"id":3,"at":281.5}`, "x")},
			"GET " + h + `/d?ctx=%7B%22at%22%3A340.7%2C%22id%22%3A3%7D`, false},
		{"what else is in that JSON", []*Entry{page(0), at(300, "GET "+h+`/d?ctx={"id":3,"at":281.5}`, "x")},
			"GET " + h + `/d?ctx={"id":4,"at":281.5}`, true},
		{"variables of GraphQL", []*Entry{page(0), at(300, "POST "+h+`/gql {"query":"q","variables":{"sent":281.5,"n":1}}`, "x")},
			"POST " + h + `/gql {"query":"q","variables":{"sent":400.25,"n":1}}`, false},
		{"a text of JSON in JSON", []*Entry{page(0), at(300, "POST "+h+`/gql {"d":"{\"now\":281,\"n\":1}"}`, "x")},
			"POST " + h + `/gql {"d":"{\"now\":400,\"n\":1}"}`, false},
		{"a segment of the path", []*Entry{page(0), at(300, "GET "+h+"/t/281.4/d.json", "x")},
			"GET " + h + "/t/977.1/d.json", false},
		{"a whole number in the path, once", []*Entry{page(0), at(300, "GET "+h+"/t/281/d.json", "x")},
			"GET " + h + "/t/282/d.json", true},
		{"whole numbers in the path that move with time",
			[]*Entry{page(0), at(300, "GET "+h+"/t/281/d.json", "x"), at(800, "GET "+h+"/t/790/d.json", "y")}, "GET " + h + "/t/333/d.json", false},
		{"a width that a request happens to come at", []*Entry{page(0), at(660, "GET "+h+"/i?w=640", "x")},
			"GET " + h + "/i?w=1280", true},
		{"widths, of which one is near", []*Entry{page(0), at(660, "GET "+h+"/i?t=640", "x"), at(670, "GET "+h+"/i?t=1280", "y")},
			"GET " + h + "/i?t=1920", true},
		{"pages", []*Entry{page(0), at(300, "GET "+h+"/l?start=0", "x"), at(900, "GET "+h+"/l?start=100", "y")},
			"GET " + h + "/l?start=200", true},
		{"a place on the earth", []*Entry{page(0), at(100, "GET "+h+"/m?lat=52.5200066", "x")},
			"GET " + h + "/m?lat=48.1371079", true},
		{"a clock that is none in the replay", []*Entry{page(0), at(310, "GET "+h+"/d?t=290", "x")},
			"GET " + h + "/d?t=shoes", true},
		{"without a document", []*Entry{at(310, "GET "+h+"/d?t=290", "x")},
			"GET " + h + "/d?t=291", true},
		{"of a frame", []*Entry{page(0), at(4000, "GET "+h+"/f", "<p>", dest("iframe")),
			at(4300, "GET "+h+"/d?t=280", "x", lab.HeaderField{Name: "Referer", Value: h + "/f"})}, "GET " + h + "/d?t=291", false},
		{"behind a redirect", []*Entry{redirect(at(0, "GET "+h+"/old", "", dest("document"))), page(4000), at(4100, "GET "+h+"/d?t=4080", "x")},
			"GET " + h + "/d?t=2910", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := ask(indexOf(c.recorded...), c.asked)
			if (m.Entry == nil) != c.miss || m.Entry != nil && (m.Stage != lab.StageNormalised || m.Why == "") {
				t.Errorf("%s: %s, %q, because %q; want a miss: %v", c.asked, m.Stage, m.Differs, m.Why, c.miss)
			}
		})
	}
}

func redirect(en *Entry) *Entry {
	en.Status = 302
	return en
}

// TestClocksInTurn: polls whose clock is left out are given in their order.
func TestClocksInTurn(t *testing.T) {
	x := indexOf(at(0, "GET https://h.test/", "<p>", dest("document")), at(300, "GET https://h.test/p?now=281", "first"),
		at(1300, "GET https://h.test/p?now=1290", "second"))
	c := NewClient()
	for _, want := range []string{"first", "second", "second"} {
		m := x.Find(Normal, c, NewRequest("GET", "https://h.test/p?now=99999", http.Header{}, nil), http.Header{})
		if m.Entry == nil || string(m.Entry.Response.Body) != want {
			t.Fatalf("a poll got %+v; want %s", m, want)
		}
	}
}

// TestRuleOfAMiss: the rule that a miss is told with is for the request that missed, and makes it match.
func TestRuleOfAMiss(t *testing.T) {
	for _, c := range []struct{ recorded, asked, want string }{
		{"GET https://h.test/d?q=shoes&sid=a", "GET https://h.test/d?q=shoes&sid=b", "--url 'https://h.test/d?*' --ignore 'sid'"},
		{"GET https://h.test/d?q=shoes", "GET https://h.test/d?q=shoes&sid=b&u.x=1", "--url 'https://h.test/d?*' --ignore 'sid' --ignore 'u.x'"},
		{`POST https://h.test/d {"a":{"b":1},"c":2}`, `POST https://h.test/d {"a":{"b":2},"c":2}`, "--url 'https://h.test/d*' --ignore 'a.b'"},
		{"GET https://h.test/v/17/x", "GET https://h.test/v/18/x", "--url 'https://h.test/v/*/x*' --ignore '/2'"},
		{"GET https://h.test/d?c={\"id\":1}", "GET https://h.test/d?c={\"id\":2}", "--url 'https://h.test/d?*' --ignore 'c.id'"},
		{"POST https://h.test/d m|17|x", "POST https://h.test/d m|18|x", "--url 'https://h.test/d*' --ignore '*'"},
		{"POST https://h.test/d?q=1 m|17", "POST https://h.test/d?q=1 m|18", "--url 'https://h.test/d?q=1*' --ignore '*'"},
		{"GET https://h.test/d?o'x=1", "GET https://h.test/d?o'x=2", ""},
		{"GET https://h.test/o'x?b=1", "GET https://h.test/o'x?b=2", ""},
		{"GET https://h.test/d?b=1", "PUT https://h.test/d?b=1", ""},
	} {
		list := []*Entry{at(0, c.recorded, "an answer")}
		m := ask(indexOf(list...), c.asked)
		if m.Entry != nil || m.Rule != c.want {
			t.Errorf("%s → %s: rule %q by %s; want %q by a miss", c.recorded, c.asked, m.Rule, m.Stage, c.want)
			continue
		}
		if c.want == "" {
			continue
		}
		pattern := regexp.MustCompile(`--url '(.*?)'`).FindStringSubmatch(m.Rule)[1]
		x := NewIndex(Learn(list, func(url, name string) bool {
			return like(pattern).MatchString(url) && (strings.Contains(m.Rule, "--ignore '"+name+"'") || strings.Contains(m.Rule, "'*'"))
		}))
		x.Add(list[0])
		if m := ask(x, c.asked); m.Entry == nil || !strings.Contains(m.Why, "rule") {
			t.Errorf("%s with the rule: stage %s, why %q, differs %q; want an answer because of the rule", c.asked, m.Stage, m.Why, m.Differs)
		}
	}
}

// like makes a pattern with * a regular expression.
func like(pattern string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
}

// TestObjectsOfRules: a rule for an object leaves out what is in it.
func TestObjectsOfRules(t *testing.T) {
	list := []*Entry{at(0, `GET https://h.test/d?c={"id":1}&k=1`, "x")}
	x := NewIndex(Learn(list, func(_, name string) bool { return name == "c" }))
	x.Add(list[0])
	if m := ask(x, `GET https://h.test/d?c={"id":2}&k=1`); m.Entry == nil {
		t.Errorf("with the rule for c: a miss, %q", m.Differs)
	}
	if m := ask(x, `GET https://h.test/d?c={"id":2}&k=2`); m.Entry != nil {
		t.Errorf("with the rule for c another k matches by %s", m.Stage)
	}
}
