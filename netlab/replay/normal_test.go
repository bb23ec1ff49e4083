package replay

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"eidetic/internal/lab"
)

// BenchmarkNormalised is a request with a parameter that the recording lacks.
func BenchmarkNormalised(b *testing.B) {
	var list []exchange
	for i := range 1000 {
		list = append(
			list,
			exchange{
				ask:    fmt.Sprintf("GET https://a.example/assets/%d/file-%d.css", i%97, i),
				header: "Content-Type: text/css",
				answer: "a{}",
			},
		)
	}
	s, err := NewSession(build(list...), Options{Timing: Timing{Mode: TimingNone}, Clock: lab.Monotonic, Log: func(lab.Served) {}})
	if err != nil {
		b.Fatal(err)
	}
	u, err := url.Parse("https://a.example/assets/20/file-20.css?_=1700000000000")
	if err != nil {
		b.Fatal(err)
	}
	r := &http.Request{
		Method: "GET", URL: u, RequestURI: u.RequestURI(), Host: u.Host, Proto: "HTTP/2.0", ProtoMajor: 2, Body: http.NoBody,
		Header: http.Header{"Accept": {"*/*"}, "User-Agent": {"bench"}},
	}
	b.ReportAllocs()
	for b.Loop() {
		s.ServeHTTP(&nowhere{header: http.Header{}}, r)
	}
}

// nowhere is a device that throws away what it gets.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n *nowhere) WriteHeader(int)             {}
func (n *nowhere) FlushError() error           { return nil }
