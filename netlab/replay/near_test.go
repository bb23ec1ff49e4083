package replay

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"eidetic/internal/lab"

	"github.com/google/go-cmp/cmp"
)

// lookalikes draws exchanges from few words, so that many are as near as others.
func lookalikes(t testing.TB, r *rand.Rand, n int) []*entry {
	var out []*entry
	for range n {
		method, url, body := drawRequest(r)
		e := &lab.Exchange{Method: method, URL: url, Status: []int{200, 200, 200, 206, 304, 404, 416}[r.IntN(7)]}
		if body != "" {
			e.Request.Body = []byte(body)
			e.Request.Header = append(e.Request.Header, lab.HeaderField{Name: "Content-Type", Value: "application/x-www-form-urlencoded"})
		}
		if r.IntN(6) == 0 {
			e.Request.Header = append(e.Request.Header, lab.HeaderField{Name: "Range", Value: "bytes=0-3"})
		}
		if r.IntN(4) == 0 {
			e.Request.Header = append(e.Request.Header, lab.HeaderField{Name: "Origin", Value: fmt.Sprint("https://", r.IntN(2))})
			e.Response.Header = append(e.Response.Header, lab.HeaderField{Name: "Vary", Value: "Origin, Accept-Encoding"})
		}
		if r.IntN(5) == 0 {
			e.Truncated = "disconnect"
		}
		s, err := newShape(e.Method, e.URL, &e.Request, e.Request.Body)
		if err != nil {
			t.Fatal(err)
		}
		en := &entry{Exchange: e, shape: s, reqRange: e.Request.Get("Range")}
		if e.Status == 206 {
			en.span = &contentRange{0, 3 + r.IntN(2), 4 + r.IntN(2)}
		}
		out = append(out, en)
	}
	return out
}

func drawRequest(r *rand.Rand) (method, url, body string) {
	word := func() string {
		words := []string{"", "a", "ab", "abc", "file-1", "file-2", "file-12", "x1y", "1700000000000", "1700000000001", "0.12345678901234", "aé", strings.Repeat("ab", 30)}
		w := words[r.IntN(len(words))]
		if r.IntN(3) == 0 {
			w += words[r.IntN(len(words))]
		}
		return w
	}
	pairs := func() string {
		var out []string
		for range r.IntN(4) {
			out = append(out, []string{"q", "q", "page", "cb", "t"}[r.IntN(5)]+"="+word())
		}
		return strings.Join(out, "&")
	}
	url = fmt.Sprintf("https://h.test/%s/%s%s", word(), word(), []string{"", ".js"}[r.IntN(2)])
	if q := pairs(); q != "" {
		url += "?" + q
	}
	if method = "GET"; r.IntN(2) == 0 {
		method, body = "POST", pairs()
	}
	return method, url, body
}

// TestNearIndex: the index finds what comparing with all finds, with all
// that is said about it.
func TestNearIndex(t *testing.T) {
	for seed := range uint64(300) {
		nearBothWays(t, seed, 200, 20)
	}
}

func nearBothWays(t *testing.T, seed uint64, entries, requests int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	indexed, plain := newPrepared(nil, nil), newPrepared(nil, nil)
	for _, en := range lookalikes(t, r, entries) {
		indexed.add(en)
		plain.add(en)
	}
	for _, n := range indexed.near {
		n.build()
	}
	one, other := &client{used: map[*entry]bool{}}, &client{used: map[*entry]bool{}}
	for range requests {
		method, url, body := drawRequest(r)
		h := http.Header{}
		switch r.IntN(6) {
		case 0:
			h.Set("Range", fmt.Sprintf("bytes=0-%d", r.IntN(5)))
		case 1:
			h.Set("If-None-Match", "x")
		case 2:
			h.Set("Origin", fmt.Sprint("https://", r.IntN(2)))
		}
		s, err := newShape(method, url, &lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}}}, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		got, want := indexed.nearest(one, s, h), plain.nearest(other, s, h)
		if got.entry != want.entry || got.stage != want.stage || got.score != want.score || got.runnerUp != want.runnerUp || cmp.Diff(got.differs, want.differs) != "" {
			t.Fatalf("seed %d: %s %s %q %v\nwith the index %+v\nwithout       %+v", seed, method, url, body, h, got, want)
		}
	}
}

func FuzzNearIndex(f *testing.F) {
	f.Add("/a/file-1.js?q=1", "/a/file-2.js?q=1&q=2", "/b/file-1.js?cb=1700000000000", "/a/file-12.js?q=2")
	f.Add("/é/", "/è/", "/e/", "/\xc3/")
	f.Fuzz(func(t *testing.T, a, b, c, asked string) {
		var shapes []*shape
		for _, path := range []string{a, b, c, asked} {
			s, err := newShape("GET", "https://h.test"+path, &lab.Message{}, nil)
			if err != nil {
				return
			}
			shapes = append(shapes, s)
		}
		indexed, plain := newPrepared(nil, nil), newPrepared(nil, nil)
		for i := range 3 * many {
			s := shapes[i%3]
			en := &entry{Exchange: &lab.Exchange{Method: "GET", URL: s.url, Status: 200}, shape: s}
			indexed.add(en)
			plain.add(en)
		}
		for _, n := range indexed.near {
			n.build()
		}
		got, want := indexed.nearest(&client{used: map[*entry]bool{}}, shapes[3], nil), plain.nearest(&client{used: map[*entry]bool{}}, shapes[3], nil)
		if got.entry != want.entry || got.score != want.score || got.runnerUp != want.runnerUp {
			t.Errorf("with the index %+v, without %+v", got, want)
		}
	})
}

// BenchmarkNearest asks for what is not recorded, among 20,000 exchanges that
// all could be meant.
func BenchmarkNearest(b *testing.B) {
	for _, c := range []struct{ name, recorded, asked string }{
		{"path", "/assets/%[2]d/file-%05[1]d.css", "/assets/12/file-00020x.css"},
		{"query", "/api/item?id=%[1]d&lang=en&page=%[2]d", "/api/item?id=12345x&lang=en&page=7"},
		{"ties", "/assets/file-%05[1]d.css", "/assets/file-.css"},
		{"names", "/api/item?id=%[1]d&n%[1]d=1", "/api/item?id=12345x&m=1"},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := newPrepared(nil, nil)
			for i := range 20_000 {
				e := &lab.Exchange{Method: "GET", URL: "https://h.test" + fmt.Sprintf(c.recorded, i, i%97), Status: 200}
				s, err := newShape(e.Method, e.URL, &e.Request, nil)
				if err != nil {
					b.Fatal(err)
				}
				p.add(&entry{Exchange: e, shape: s})
			}
			for _, n := range p.near {
				n.build()
			}
			s, err := newShape("GET", "https://h.test"+c.asked, &lab.Message{}, nil)
			if err != nil {
				b.Fatal(err)
			}
			processor := func() float64 { // the clock says little where others work
				var u syscall.Rusage
				if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
					b.Fatal(err)
				}
				return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
			}
			before := processor()
			defer func() { b.ReportMetric((processor()-before)/float64(b.N), "processor-µs/op") }()
			for b.Loop() {
				if p.nearest(&client{used: map[*entry]bool{}}, s, http.Header{}).entry == nil {
					b.Fatal("nothing was near")
				}
			}
		})
	}
}
