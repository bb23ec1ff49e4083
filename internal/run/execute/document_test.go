package execute

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

func TestDocument(t *testing.T) {
	answer := func(url string, status int, body string, fields ...lab.HeaderField) *lab.Exchange {
		return &lab.Exchange{Method: "GET", URL: url, Status: status, Response: lab.Message{Header: fields, Body: []byte(body)}}
	}
	to := func(where string) lab.HeaderField { return lab.HeaderField{Name: "Location", Value: where} }
	scripted := func(url string, status int) *lab.Exchange {
		e := answer(url, status, "{}")
		e.Request.Header = []lab.HeaderField{{Name: "Sec-Fetch-Dest", Value: "empty"}}
		return e
	}
	a := archive.New([]*lab.Exchange{
		answer("http://a.test/", 200, "<h1>hello"),
		answer("http://a.test/basic", 401, "", lab.HeaderField{Name: "WWW-Authenticate", Value: `Basic realm="x"`}),
		answer("http://a.test/digest", 401, "", lab.HeaderField{Name: "WWW-Authenticate", Value: `Digest realm="x", nonce="n"`}),
		answer("http://a.test/session", 403, ""),
		answer("http://a.test/none", 404, ""),
		answer("http://a.test/broken", 502, ""),
		answer("http://a.test/private", 302, "", to("/login?next=%2F")),
		answer("http://a.test/login?next=%2F", 200, "<form><INPUT name=p type='password'></form>"),
		answer("http://a.test/moved", 301, "", to("https://b.test/gone")),
		answer("https://b.test/gone", 410, ""),
		answer("http://a.test/loop", 301, "", to("/loop")),
		answer("http://a.test/lost", 302, "", to("http://gone.test/")),
		answer("http://a.test/mail", 302, "", to("mailto:x@a.test")),
		answer("http://a.test/untrusted", 302, "", to("https://u.test")),
		{Method: "GET", URL: "https://u.test/", Truncated: lab.Disconnected},
		answer("http://a.test/home", 302, "", to("/cookie")), // which has none, and is sent back with one
		answer("http://a.test/cookie", 302, "", to("/home")),
		answer("http://a.test/home", 200, "<h1>home"),
		answer("http://a.test/preloaded", 301, "", to("http://b.test/")), // b.test is one of the hosts that browsers ask by https
		answer("https://b.test/", 200, "<h1>b"),
		answer("http://a.test/nothing", 204, ""),
		answer("http://a.test/file", 302, "", to("/file.zip")),
		answer("http://a.test/file.zip", 200, "PK", lab.HeaderField{Name: "Content-Disposition", Value: "attachment; filename=a.zip"}),
		answer("http://a.test/data", 200, "PK", lab.HeaderField{Name: "Content-Type", Value: "application/zip"}),
		answer("http://c.test/", 200, "<div id=app>"), scripted("http://c.test/api/me?", 200), scripted("http://c.test/api/me", 401),
		answer("http://d.test/", 200, "<div id=app>"), scripted("http://d.test/api/me", 401), scripted("http://d.test/api/me", 200),
		scripted("http://c.test/api/you", 401),
	}, nil, nil, archive.CreateOptions{})
	for page, want := range map[string]struct{ problem, note string }{
		"http://a.test":                {},
		"http://a.test/#top":           {},
		"http://c.test/":               {note: "http://c.test/api/me answers a script of http://c.test/ by 401"},
		"http://d.test/":               {},
		"http://a.test/unknown":        {},
		"http://a.test/loop":           {problem: "leads in a circle: 20 redirects led from it to http://a.test/loop"},
		"http://a.test/lost":           {problem: "led to http://gone.test/, and nothing was asked for there"},
		"http://a.test/mail":           {problem: "led to mailto:x@a.test, and nothing was asked for there"},
		"http://a.test/untrusted":      {problem: "led to https://u.test/, which gave no answer"},
		"http://a.test/home":           {},
		"http://a.test/preloaded":      {},
		"http://a.test/nothing":        {problem: "answers 204 with nothing that a browser shows (No Content)"},
		"http://a.test/file":           {problem: "led to http://a.test/file.zip, which answers 200 with nothing that a browser shows (attachment; filename=a.zip)"},
		"http://a.test/data":           {problem: "answers 200 with nothing that a browser shows (application/zip)"},
		"http://a.test/basic":          {problem: "--header 'Authorization"},
		"http://a.test/digest":         {problem: `by "Digest", of which only Basic can be sent`},
		"http://a.test/session":        {problem: "--header 'Cookie"},
		"http://a.test/none":           {problem: "check the path"},
		"http://a.test/broken":         {problem: "502"},
		"http://a.test/moved":          {problem: "led to https://b.test/gone, which answers 410"},
		"http://a.test/private":        {note: "led to http://a.test/login?next=%2F, which asks for a password"},
		"http://a.test/login?next=%2F": {note: "http://a.test/login?next=%2F asks for a password"},
	} {
		note, problem := Document(a, page)
		text := ""
		if problem != nil {
			text = problem.Error()
		}
		if (want.problem == "") != (problem == nil) || !strings.Contains(text, want.problem) {
			t.Errorf("Document(%s) has the problem %q; want %q", page, text, want.problem)
		}
		if (want.note == "") != (note == "") || !strings.Contains(note, want.note) {
			t.Errorf("Document(%s) has the note %q; want %q", page, note, want.note)
		}
	}
}

// TestPasswordIsTyped: that a page asks for a password is no news where the plan types it.
func TestPasswordIsTyped(t *testing.T) {
	const page = "http://a.test/login"
	file := filepath.Join(t.TempDir(), "a.wacz")
	const form = "<input type=password>"
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	login := &lab.Exchange{Method: "GET", URL: page, Status: 200, Protocol: "h2", Wall: wall, Response: lab.Message{
		Header: []lab.HeaderField{{Name: "content-type", Value: "text/html"}}, Body: []byte(form)},
		Chunks: []lab.Chunk{{At: time.Millisecond, Bytes: len(form)}}}
	if err := archive.Save(file, archive.New([]*lab.Exchange{login}, nil, nil, archive.CreateOptions{Wall: wall})); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		steps []lab.Step
		notes int
	}{
		{nil, 1},
		{[]lab.Step{{Open: page}, {Click: "css #in"}}, 1},
		{[]lab.Step{{Open: page}, {Name: "log in", Steps: []lab.Step{{Type: "secret"}}}}, 0},
	} {
		x := &Execution{run: &lab.Run{}}
		if err := x.checkDocument(file, page, c.steps); err != nil || len(x.run.Warnings) != c.notes {
			t.Errorf("checkDocument() of %+v = %v, with the notes %q; want %d", c.steps, err, x.run.Warnings, c.notes)
		}
	}
}
