package match

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// newTestEntry makes the entry of a recorded GET.
func newTestEntry(t testing.TB, id, url string) *Entry {
	t.Helper()
	en := NewEntry(&lab.Exchange{ID: id, Method: "GET", URL: url, Status: 200}, "")
	return en
}

func newTestIndex(t testing.TB, urls ...string) *Index {
	t.Helper()
	x := NewIndex(&Ignored{})
	for i, url := range urls {
		x.Add(newTestEntry(t, fmt.Sprint("e", i), url))
	}
	return x
}

func newTestRequest(t testing.TB, url string) *Request {
	t.Helper()
	r := NewRequest("GET", url, http.Header{}, nil)
	return r
}

// TestNearest: the most similar exchange wins, of equal ones the first that the client
// was not given, and the log is told of the second.
func TestNearest(t *testing.T) {
	x := newTestIndex(
		t,
		"https://h.test/a/file-1.js?q=1",
		"https://h.test/a/file-2.js?q=1",
		"https://h.test/b/other.js",
		"https://i.test/a/file-3.js",
	)
	c := NewClient()
	const asked = "https://h.test/a/file-3.js?q=1"
	for _, want := range []struct {
		id, runnerUp string
	}{
		{"e0", "GET https://h.test/a/file-2.js?q=1 (e1, 0.97)"},
		{"e1", "GET https://h.test/a/file-1.js?q=1 (e0, 0.97)"}, // e0 was given already
		{"e0", "GET https://h.test/a/file-2.js?q=1 (e1, 0.97)"}, // both were
	} {
		got := x.Find(Loose, c, newTestRequest(t, asked), http.Header{})
		if got.Entry == nil {
			t.Fatalf("Find(%s) = %+v, want %s", asked, got, want.id)
		}
		differs := []string{fmt.Sprintf("path segment 2: file-%c.js → file-3.js", got.Entry.URL[len("https://h.test/a/file-")])}
		if got.Entry.ID != want.id || got.Stage != lab.StageFuzzy || got.RunnerUp != want.runnerUp || cmp.Diff(got.Differs, differs) != "" {
			t.Errorf("Find(%s) = %s by %s %q, runner-up %q; want %s, runner-up %q",
				asked, got.Entry.ID, got.Stage, got.Differs, got.RunnerUp, want.id, want.runnerUp)
		}
	}
	got := x.Find(Loose, c, newTestRequest(t, "https://h.test/zzzzzzzz/zzzzzzzzzzzzzzz.js?q=9"), http.Header{})
	if got.Entry != nil || got.Stage != lab.StageMiss || got.Score != 0 {
		t.Errorf("Find of an unlike request = %+v, want a miss", got)
	}
}

// TestUnlikeRequestsShareNoBucket: requests of different buckets have no similarity, so
// that the fuzzy stage need not compare them.
func TestUnlikeRequestsShareNoBucket(t *testing.T) {
	urls := []string{"https://h.test/a/x.js", "https://h.test/a/x.css", "https://h.test/a/b/x.js", "https://h.test/a/x"}
	for _, a := range urls {
		for _, b := range urls {
			ra, rb := newTestRequest(t, a), newTestRequest(t, b)
			if sameBucket, score := ra.bucketKey() == rb.bucketKey(), similarity(ra, rb); !sameBucket && score > 0 {
				t.Errorf("similarity(%s, %s) = %v in two buckets, want 0", a, b, score)
			}
		}
	}
}

// TestRepeatedNames: of pairs with one name, each is compared with the equal one, or
// else with the first that is left.
func TestRepeatedNames(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int64
	}{
		{"q=1&q=2", "q=2&q=1", one},
		{"q=1&q=2", "q=1", one / 2},
		{"q=ab&q=cd", "q=ax&q=cd", (one/2/2 + one) / 2},
		{"a=1&b=2&a=3", "b=2&a=1&a=3", one},
		{"a=1", "b=1", 0},
	} {
		if got := pairSimilarity(sortedByName(splitQuery(tt.a)), sortedByName(splitQuery(tt.b))); got != tt.want {
			t.Errorf("pairSimilarity(%s, %s) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

// BenchmarkNearest asks for what is not recorded, in an archive of 2,000 exchanges that
// are all in one bucket, so that each is compared.
func BenchmarkNearest(b *testing.B) {
	const exchanges = 2000
	for _, c := range []struct{ name, recorded, asked, form, askedForm string }{
		{"path", "/assets/%[2]d/file-%05[1]d.css", "/assets/12/file-00020x.css", "", ""},
		{"query", "/api/item?id=%[1]d&lang=en&page=%[2]d", "/api/item?id=12345x&lang=en&page=7", "", ""},
		{"ties", "/assets/file-%05[1]d.css", "/assets/file-.css", "", ""},
		{"names", "/api/item?id=%[1]d&n%[1]d=1", "/api/item?id=12345x&m=1", "", ""},
		{"form", "/api/item/%[2]d?lang=en", "/api/item/12?lang=en", "id=%[1]d&name=someone&page=%[2]d&sort=asc", "id=1234x&name=someone&page=7&sort=asc"},
	} {
		b.Run(c.name, func(b *testing.B) {
			method, form := "GET", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
			if c.form != "" {
				method = "POST"
			}
			body := func(format string, args ...any) []byte {
				if format == "" {
					return nil
				}
				return fmt.Appendf(nil, format, args...)
			}
			x := NewIndex(&Ignored{})
			for i := range exchanges {
				e := &lab.Exchange{Method: method, URL: "https://h.test" + fmt.Sprintf(c.recorded, i, i%97), Status: 200}
				e.Request.Header = []lab.HeaderField{{Name: "Content-Type", Value: form.Get("Content-Type")}}
				e.Request.Body = body(c.form, i, i%97)
				en := NewEntry(e, "")
				x.Add(en)
			}
			r := NewRequest(method, "https://h.test"+c.asked, form, []byte(c.askedForm))
			if n := len(x.buckets[r.bucketKey()]); n != exchanges {
				b.Fatalf("the request is compared with %d exchanges, want %d", n, exchanges)
			}
			before := processorTime(b)
			defer func() { b.ReportMetric((processorTime(b)-before)/float64(b.N), "processor-µs/op") }()
			b.ReportAllocs()
			for b.Loop() {
				if got := x.Find(Loose, NewClient(), r, form); got.Entry == nil {
					b.Fatalf("Find(%s) = %+v, want a match", c.asked, got)
				}
			}
		})
	}
}

// processorTime returns that of this process in µs: on a machine that others use too,
// the clock says little.
func processorTime(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

// FuzzNearest: whatever the paths are, the scores of the best and of the runner-up are
// what similarity says of all that were offered.
func FuzzNearest(f *testing.F) {
	f.Add("/a/file-1.js?q=1", "/a/file-2.js?q=1&q=2", "/b/file-1.js?cb=1700000000000", "/a/file-12.js?q=2")
	f.Add("/é/", "/è/", "/e/", "/\xc3/")
	f.Fuzz(func(t *testing.T, a, b, c, asked string) {
		defer testlab.Input(t)()
		x := NewIndex(&Ignored{})
		r := NewRequest("GET", "https://h.test"+asked, http.Header{}, nil)
		best := 0.0
		for _, path := range []string{a, b, c} {
			en := NewEntry(&lab.Exchange{Method: "GET", URL: "https://h.test" + path, Status: 200}, "")
			x.Add(en)
			if en.Origin() == r.origin {
				best = max(best, similarity(en.request, r))
			}
		}
		got := nearest(NewClient(), r, x.buckets[r.bucketKey()], false)
		if isFound := got.Entry != nil; isFound != (best >= Threshold) || isFound && got.Score != best {
			t.Errorf("nearest(%q) of %q = %+v, want the score %v", asked, strings.Join([]string{a, b, c}, " "), got, best)
		}
	})
}
