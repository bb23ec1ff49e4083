package replay

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/hop"
	"eidetic/netlab/inject"
	"eidetic/netlab/replay/match"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

var recordedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// exchange makes one for tests: a request line, request fields, a body, and the answer.
type exchange struct {
	ask    string // "POST https://a.example/x"
	with   string // "Name: value" lines
	body   string
	status int
	header string
	answer string
	chunks []lab.Chunk
	first  time.Duration
	cut    string
}

func fields(lines string) (out []lab.HeaderField) {
	for _, line := range strings.Split(lines, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			out = append(out, lab.HeaderField{Name: name, Value: value})
		}
	}
	return out
}

func build(list ...exchange) *archive.Archive {
	var out []*lab.Exchange
	for i, x := range list {
		method, url, _ := strings.Cut(x.ask, " ")
		e := &lab.Exchange{
			ID: fmt.Sprint("e", i), Order: i, Wall: recordedAt, Method: method, URL: url, Protocol: "h2", TLS: "tls/1.3",
			Status: max(x.status, 100), FirstByte: x.first, Chunks: x.chunks, Truncated: x.cut,
			Request:  lab.Message{Header: fields(x.with), Body: []byte(x.body)},
			Response: lab.Message{Header: fields(x.header), Body: []byte(x.answer)},
		}
		if x.status == 0 {
			e.Status = 200
		}
		if e.Chunks == nil && x.answer != "" {
			e.Chunks = []lab.Chunk{{At: x.first, Bytes: len(x.answer)}}
		}
		out = append(out, e)
	}
	return archive.New(out, nil, nil, archive.CreateOptions{Wall: recordedAt})
}

// asker replays an archive without a network.
type asker struct {
	t   testing.TB
	s   *Session
	mu  sync.Mutex
	log []lab.Served
}

func newAsker(t testing.TB, a *archive.Archive, o Options) *asker {
	k := &asker{t: t}
	begin := time.Now()
	if o.Clock == nil {
		o.Clock = func() lab.Time { return lab.Time(time.Since(begin)) }
	}
	o.Log = func(line lab.Served) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.log = append(k.log, line)
	}
	s, err := NewSession(a, o)
	if err != nil {
		t.Fatal(err)
	}
	k.s = s
	return k
}

// ask sends one request and returns the answer and its log line.
func (k *asker) ask(client, ask, with, body string) (*http.Response, string, lab.Served) {
	method, url, _ := strings.Cut(ask, " ")
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	for _, f := range fields(with) {
		r.Header.Add(f.Name, f.Value)
	}
	r = r.WithContext(hop.WithConn(r.Context(), hop.Conn{Client: netip.MustParseAddr(client), Protocol: "h2"}))
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				panic(v)
			}
		}()
		k.s.ServeHTTP(w, r)
	}()
	resp := w.Result()
	text, _ := io.ReadAll(resp.Body)
	k.mu.Lock()
	defer k.mu.Unlock()
	return resp, string(text), k.log[len(k.log)-1]
}

func TestMatching(t *testing.T) {
	const form = "Content-Type: application/x-www-form-urlencoded"
	const js = "Content-Type: application/json"
	multi := func(boundary, value string) (string, string) {
		return "Content-Type: multipart/form-data; boundary=" + boundary,
			"--" + boundary + "\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n" + value + "\r\n--" + boundary + "--\r\n"
	}
	m1h, m1b := multi("xxx", "1")
	m2h, m2b := multi("xxx", "2")
	m3h, m3b := multi("yyyy", "2")
	type ask struct {
		ask, with, body string
		want            string // the answer, or "miss"
		stage           lab.Stage
		policy          match.Policy
	}
	tests := []struct {
		name    string
		archive []exchange
		asks    []ask
	}{
		{
			"a bare URL does not win over a cache-buster",
			[]exchange{{ask: "GET https://a.example/a", answer: "bare"}, {ask: "GET https://a.example/a?id=5&cb=9", answer: "five"}},
			[]ask{
				{ask: "GET https://a.example/a?id=5&cb=1", want: "five", stage: lab.StageNormalised},
				{ask: "GET https://a.example/a", want: "bare", stage: lab.StageExact},
			},
		},
		{
			"an unknown cache-buster in front",
			[]exchange{
				{ask: "GET https://a.example/a", answer: "bare"},
				{ask: "GET https://a.example/a?zz=abc&id=5&x=y", answer: "five"},
				{ask: "GET https://a.example/a?zz=def&id=6&x=y", answer: "six"},
			},
			[]ask{
				{ask: "GET https://a.example/a?zz=ghi&id=6&x=y", want: "miss", stage: lab.StageMiss},
				{ask: "GET https://a.example/a?zz=ghi&id=6&x=y", policy: match.Loose, want: "six", stage: lab.StageFuzzy},
			},
		},
		{"methods are not mixed", []exchange{{ask: "POST https://a.example/a", answer: "post"}},
			[]ask{
				{ask: "GET https://a.example/a", want: "miss", stage: lab.StageMiss},
				{ask: "OPTIONS https://a.example/a", want: "miss", stage: lab.StageMiss},
			}},
		{
			"two POSTs by body",
			[]exchange{
				{ask: "POST https://a.example/q", with: js, body: `{"q":1}`, answer: "one"},
				{ask: "POST https://a.example/q", with: js, body: `{"q":2}`, answer: "two"},
			},
			[]ask{
				{ask: "POST https://a.example/q", with: js, body: `{"q":2}`, want: "two", stage: lab.StageExact},
				{ask: "POST https://a.example/q", with: js, body: `{ "q" : 1 }`, want: "one", stage: lab.StageNormalised},
			},
		},
		{
			"the same form twice",
			[]exchange{
				{ask: "POST https://a.example/buy", with: form, body: "a=1", answer: "first"},
				{ask: "POST https://a.example/buy", with: form, body: "a=1", answer: "second"},
			},
			[]ask{
				{ask: "POST https://a.example/buy", with: form, body: "a=1", want: "first", stage: lab.StageSequence},
				{ask: "POST https://a.example/buy", with: form, body: "a=1", want: "second", stage: lab.StageSequence},
				{ask: "POST https://a.example/buy", with: form, body: "a=1", want: "second", stage: lab.StageSequence},
			},
		},
		{
			"multipart boundaries",
			[]exchange{
				{ask: "POST https://a.example/u", with: m1h, body: m1b, answer: "one"},
				{ask: "POST https://a.example/u", with: m2h, body: m2b, answer: "two"},
			},
			[]ask{{ask: "POST https://a.example/u", with: m3h, body: m3b, want: "two", stage: lab.StageNormalised}},
		},
		{"GraphQL", []exchange{
			{
				ask:    "POST https://a.example/graphql",
				with:   js,
				body:   `{"operationName":"A","query":"query A{x}","variables":{"n":1}}`,
				answer: "A",
			},
			{
				ask:    "POST https://a.example/graphql",
				with:   js,
				body:   `{"operationName":"B","query":"query B{y}","variables":{"n":1,"at":1700000000000}}`,
				answer: "B",
			}},
			[]ask{
				{
					ask:   "POST https://a.example/graphql",
					with:  js,
					body:  `{"query":"query B{y}","variables":{"at":1711111111111,"n":1},"operationName":"B"}`,
					want:  "B",
					stage: lab.StageNormalised,
				},
				{
					ask:   "POST https://a.example/graphql",
					with:  js,
					body:  `{"operationName":"C","query":"mutation{zzzzzzzzzzzzzzzzzz}"}`,
					want:  "miss",
					stage: lab.StageMiss,
				},
			}},
		{
			"a failed first try is not replayed",
			[]exchange{
				{ask: "GET https://a.example/x", answer: "ha", cut: "disconnect"},
				{ask: "GET https://a.example/x", answer: "half and more"},
			},
			[]ask{{ask: "GET https://a.example/x", want: "half and more", stage: lab.StageExact}},
		},
		{
			"a 304 is not for an empty cache",
			[]exchange{{ask: "GET https://a.example/x", status: 304}, {ask: "GET https://a.example/x", answer: "whole"}},
			[]ask{{ask: "GET https://a.example/x", want: "whole", stage: lab.StageExact}},
		},
		{
			"another host",
			[]exchange{{ask: "GET https://a.example/x", answer: "a"}},
			[]ask{{ask: "GET https://b.example/x", want: "miss", stage: lab.StageMiss}},
		},
		{
			"another kind of file",
			[]exchange{{ask: "GET https://a.example/x.js", answer: "a"}},
			[]ask{{ask: "GET https://a.example/x.css", want: "miss", stage: lab.StageMiss}},
		},
		{"volatile path", []exchange{{ask: "GET https://a.example/s/123e4567-e89b-12d3-a456-426614174000/x", answer: "a"}},
			[]ask{{ask: "GET https://a.example/s/00000000-e89b-12d3-a456-426614174999/x", want: "a", stage: lab.StageNormalised}}},
		{
			"order of parameters",
			[]exchange{{ask: "GET https://a.example/x?a=1&b=2", answer: "a"}},
			[]ask{{ask: "GET https://a.example/x?b=2&a=1", want: "a", stage: lab.StageNormalised}},
		},
		{
			"a parameter that the recording shows not to matter",
			[]exchange{
				{ask: "GET https://a.example/x?sid=abc&id=1", answer: "one"},
				{ask: "GET https://a.example/x?sid=def&id=1", answer: "one"},
				{ask: "GET https://a.example/x?sid=abc&id=2", answer: "two"},
			},
			[]ask{{ask: "GET https://a.example/x?sid=zzz&id=2", want: "two", stage: lab.StageNormalised}},
		},
		{
			"Vary",
			[]exchange{
				{ask: "GET https://a.example/i", with: "Accept: image/webp", header: "Vary: Accept", answer: "webp"},
				{ask: "GET https://a.example/i", with: "Accept: image/png", header: "Vary: Accept", answer: "png"},
			},
			[]ask{{ask: "GET https://a.example/i", with: "Accept: image/png", want: "png", stage: lab.StageExact}},
		},
		{
			"HEAD by a GET",
			[]exchange{{ask: "GET https://a.example/x", answer: "body"}},
			[]ask{{ask: "HEAD https://a.example/x", want: "", stage: lab.StageNormalised}},
		},
		{"preflight never recorded", []exchange{{ask: "PUT https://a.example/x", answer: "put"}},
			[]ask{
				{
					ask:   "OPTIONS https://a.example/x",
					with:  "Origin: https://b.example\nAccess-Control-Request-Method: PUT",
					want:  "",
					stage: lab.StageBox,
				},
			}},
		{
			"a path of the box",
			nil,
			[]ask{{ask: "POST https://a.example/.well-known/eidetic/done", body: "{}", want: "", stage: lab.StageBox}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := newAsker(t, build(tt.archive...), Options{Timing: Timing{Mode: TimingNone}})
			for _, a := range tt.asks {
				k.s.o.Match = a.policy
				resp, text, line := k.ask("192.0.2.9", a.ask, a.with, a.body)
				if line.Stage != a.stage {
					t.Errorf("%s: stage %s, want %s (%+v)", a.ask, line.Stage, a.stage, line)
				}
				if a.want == "miss" {
					if resp.StatusCode != 404 {
						t.Errorf("%s: status %d, want 404", a.ask, resp.StatusCode)
					}
					continue
				}
				if text != a.want {
					t.Errorf("%s: %q, want %q", a.ask, text, a.want)
				}
				if line.Stage == lab.StageNormalised && len(line.Differs) == 0 ||
					line.BodySHA256 != "" && line.BodySHA256 != hexSum([]byte(text)) {
					t.Errorf("%s: the log has %+v; want the differences of a normalised match and the SHA-256 of the body", a.ask, line)
				}
			}
		})
	}
}

// TestClients: two devices at once each get the sequence from its start.
func TestClients(t *testing.T) {
	a := build(exchange{ask: "GET https://a.example/n", answer: "1"}, exchange{ask: "GET https://a.example/n", answer: "2"})
	k := newAsker(t, a, Options{})
	for _, want := range []string{"1", "2"} {
		for _, client := range []string{"192.0.2.1", "192.0.2.2", "2001:db8::1"} {
			if _, got, _ := k.ask(client, "GET https://a.example/n", "", ""); got != want {
				t.Errorf("%s got %s, want %s", client, got, want)
			}
		}
	}
	if st := k.s.Stats(); st.Requests != 6 || st.InFlight != 0 || st.Misses != 0 {
		t.Errorf("Stats() = %+v; want 6 requests, no miss, none in flight", st)
	}
}

func TestRanges(t *testing.T) {
	const full = "0123456789"
	a := build(
		exchange{ask: "GET https://a.example/full", header: "Content-Length: 10\nETag: \"x\"", answer: full},
		exchange{
			ask:    "GET https://a.example/part",
			with:   "Range: bytes=0-",
			status: 206,
			header: "Content-Range: bytes 0-9/10\nContent-Length: 10",
			answer: full,
		},
		exchange{
			ask:    "GET https://a.example/mid",
			with:   "Range: bytes=2-5",
			status: 206,
			header: "Content-Range: bytes 2-5/10\nContent-Length: 4",
			answer: "2345",
		},
	)
	tests := []struct {
		path, with string
		status     int
		body       string
		span       string
	}{
		{"full", "", 200, full, ""},
		{"full", "Range: bytes=2-4", 206, "234", "bytes 2-4/10"},
		{"full", "Range: bytes=-3", 206, "789", "bytes 7-9/10"},
		{"full", "Range: bytes=8-99", 206, "89", "bytes 8-9/10"},
		{"full", "Range: bytes=10-", 416, "", "bytes */10"},
		{"full", "Range: bytes=1-2,4-5", 200, full, ""},
		{"full", "Range: lines=1-2", 200, full, ""},
		{"full", "Range: bytes=0-1\nIf-Range: \"y\"", 200, full, ""},
		{"full", "Range: bytes=0-1\nIf-Range: \"x\"", 206, "01", "bytes 0-1/10"},
		{"part", "Range: bytes=0-", 206, full, "bytes 0-9/10"},
		{"part", "Range: bytes=4-5", 206, "45", "bytes 4-5/10"},
		{"part", "", 200, full, ""},
		{"mid", "Range: bytes=3-4", 206, "34", "bytes 3-4/10"},
		{"mid", "Range: bytes=3-9", 404, "", ""},
		{"mid", "", 404, "", ""},
	}
	k := newAsker(t, a, Options{})
	for _, tt := range tests {
		resp, text, _ := k.ask("192.0.2.1", "GET https://a.example/"+tt.path, tt.with, "")
		if resp.StatusCode != tt.status || resp.Header.Get("Content-Range") != tt.span || tt.status != 404 && text != tt.body {
			t.Errorf("%s %q: %d %q %q, want %d %q %q",
				tt.path, tt.with, resp.StatusCode, resp.Header.Get("Content-Range"), text, tt.status, tt.span, tt.body)
		}
		if n := resp.Header.Get("Content-Length"); n != "" && n != fmt.Sprint(len(text)) {
			t.Errorf("%s %q: Content-Length %s, want %d", tt.path, tt.with, n, len(text))
		}
	}
}

func TestDatesAndConditions(t *testing.T) {
	a := build(
		exchange{
			ask:    "GET https://a.example/x",
			answer: "x",
			header: "Date: Fri, 02 Jan 2026 03:04:05 GMT\nExpires: Fri, 02 Jan 2026 04:04:05 GMT\nLast-Modified: Thu, 01 Jan 2026 03:04:05 GMT\nETag: W/\"v1\"\n" +
				"Set-Cookie: a=b; expires=Sat, 03-Jan-2026 03:04:05 GMT; path=/\nSet-Cookie: gone=; Expires=Thu, 01 Jan 1970 00:00:00 GMT\nAlt-Svc: h3=\":443\"\nConnection: close",
		},
	)
	now := recordedAt.Add(365 * 24 * time.Hour)
	k := newAsker(t, a, Options{Wall: now, Clock: func() lab.Time { return 0 }, Timing: Timing{Mode: TimingNone}})
	resp, _, _ := k.ask("192.0.2.1", "GET https://a.example/x", "", "")
	for name, want := range map[string]string{
		"Date": "Sat, 02 Jan 2027 03:04:05 GMT", "Expires": "Sat, 02 Jan 2027 04:04:05 GMT", "Last-Modified": "Fri, 01 Jan 2027 03:04:05 GMT",
		"Alt-Svc": "", "Connection": "",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got, want := strings.Join(resp.Header["Set-Cookie"], "|"), "a=b; expires=Sun, 03 Jan 2027 03:04:05 GMT; path=/|gone=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"; got != want {
		t.Errorf("Set-Cookie: %s, want %s", got, want)
	}
	for with, want := range map[string]int{
		`If-None-Match: "v1"`:                              200 + 104,
		`If-None-Match: "v0", W/"v1"`:                      304,
		`If-None-Match: "v2"`:                              200,
		"If-Modified-Since: Fri, 01 Jan 2027 03:04:05 GMT": 304,
		"If-Modified-Since: Thu, 31 Dec 2026 03:04:05 GMT": 200,
	} {
		if resp, text, _ := k.ask("192.0.2.1", "GET https://a.example/x", with, ""); resp.StatusCode != want || want == 304 && text != "" {
			t.Errorf("%s: %d %q, want %d", with, resp.StatusCode, text, want)
		}
	}
}

// stamps is a ResponseWriter that notes when bytes come.
type stamps struct {
	*httptest.ResponseRecorder
	begin time.Time
	at    []time.Duration
	sizes []int
}

func (s *stamps) WriteHeader(code int) {
	s.at, s.sizes = append(s.at, time.Since(s.begin)), append(s.sizes, 0)
	s.ResponseRecorder.WriteHeader(code)
}

func (s *stamps) Write(b []byte) (int, error) {
	s.at, s.sizes = append(s.at, time.Since(s.begin)), append(s.sizes, len(b))
	return s.ResponseRecorder.Write(b)
}

func TestTiming(t *testing.T) {
	const ms = time.Millisecond
	x := exchange{
		ask:    "GET https://a.example/x",
		answer: "aabbbc",
		first:  50 * ms,
		chunks: []lab.Chunk{{At: 60 * ms, Bytes: 2}, {At: 100 * ms, Bytes: 3}, {At: 1000 * ms, Bytes: 1}},
	}
	for _, tt := range []struct{ timing, want string }{
		{"recorded", "[50ms 60ms 100ms 1s] [0 2 3 1]"},
		{"fixed:20ms", "[20ms 20ms] [0 6]"},
		{"none", "[0s 0s] [0 6]"},
	} {
		t.Run(tt.timing, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				timing, err := ParseTiming(tt.timing)
				if err != nil {
					t.Fatal(err)
				}
				k := newAsker(t, build(x), Options{Timing: timing})
				w := &stamps{ResponseRecorder: httptest.NewRecorder(), begin: time.Now()}
				k.s.ServeHTTP(w, httptest.NewRequest("GET", "https://a.example/x", nil))
				if got := fmt.Sprint(w.at, w.sizes); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		})
	}
	for _, bad := range []string{"x", "fixed", "fixed:", "fixed:-1s", "fixed:2h"} {
		if _, err := ParseTiming(bad); err == nil {
			t.Errorf("ParseTiming(%q) = nil error, want one", bad)
		}
	}
}

// TestInjectedOnce: a document has the script, at the recorded chunk times,
// and a fetch of the same URL has not.
func TestInjectedOnce(t *testing.T) {
	html := "<!doctype html><html><head><meta charset=utf-8>" + strings.Repeat("x", 2000)
	a := build(
		exchange{
			ask:    "GET https://a.example/",
			with:   "sec-fetch-dest: document",
			header: "content-type: text/html\ncontent-length: " + fmt.Sprint(len(html)),
			answer: html,
		},
	)
	k := newAsker(t, a, Options{Seed: 5, Inject: inject.Options{Date: recordedAt}})
	resp, text, _ := k.ask("192.0.2.1", "GET https://a.example/", "Sec-Fetch-Dest: document", "")
	script := inject.NewScript(inject.Options{Seed: 5, Date: recordedAt}).Text()
	if strings.Count(text, script) != 1 || resp.Header.Get("Content-Length") != fmt.Sprint(len(text)) ||
		resp.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("the document has %d scripts, %d bytes and the header %v; want one script and a header to match",
			strings.Count(text, script), len(text), resp.Header)
	}
	if _, text, _ = k.ask("192.0.2.1", "GET https://a.example/", "Sec-Fetch-Dest: empty", ""); text != html {
		t.Errorf("a fetch got %d bytes, want the %d that were recorded", len(text), len(html))
	}
}

// TestSameBytes: the same archive, seed and requests give the same bytes.
func TestSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		var list []exchange
		for i := range n {
			list = append(list, exchange{
				ask: rapid.SampledFrom([]string{"GET", "POST"}).
					Draw(t, "method") +
					" https://" + rapid.SampledFrom([]string{"a", "b"}).
					Draw(t, "host") +
					".example/" + rapid.StringMatching(`[a-c]{0,2}(\?[xy]=[1-3](&z=[0-9]{13})?)?`).
					Draw(t, "path"),
				body:   rapid.SampledFrom([]string{"", `{"a":1}`, `{"a":2}`}).Draw(t, "body"),
				answer: fmt.Sprint("answer ", i),
			})
		}
		a := build(list...)
		tb := new(testing.T)
		one, two := newAsker(tb, a, Options{}), newAsker(tb, a, Options{})
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, n-1), 1, 30).Draw(t, "asks") {
			_, x, line := one.ask("192.0.2.1", list[i].ask, "", list[i].body)
			_, y, _ := two.ask("192.0.2.1", list[i].ask, "", list[i].body)
			if x != y {
				t.Fatalf("%s: two sessions answer %q and %q, want the same", list[i].ask, x, y)
			}
			if line.Stage != lab.StageExact && line.Stage != lab.StageSequence {
				t.Fatalf("%s was recorded and is found by %s; want exact or sequence", list[i].ask, line.Stage)
			}
		}
		// In the order of the recording each request gets its own answer.
		fresh := newAsker(tb, a, Options{})
		for i, x := range list {
			if _, got, _ := fresh.ask("192.0.2.1", x.ask, "", x.body); got != fmt.Sprint("answer ", i) {
				t.Fatalf("request %d got %q, want %q", i, got, fmt.Sprint("answer ", i))
			}
		}
	})
}

func TestBodyIsRead(t *testing.T) {
	k := newAsker(t, build(), Options{})
	r := httptest.NewRequest("POST", "https://a.example/x", io.MultiReader(bytes.NewReader([]byte("a")), brokenReader{}))
	w := httptest.NewRecorder()
	k.s.ServeHTTP(w, r)
	if w.Code != 400 || k.log[0].Error == "" {
		t.Errorf("a body that breaks off: status %d, log %+v; want 400 and an error", w.Code, k.log)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// quiet drops net/http's messages about connections that the tests close.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
