package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/rigs/benchtable"
	"eidetic/netlab/ca"
	"eidetic/netlab/hop"
	"eidetic/netlab/replay"
	"eidetic/netlab/replay/match"
)

// nobody is a device that discards its answers.
type nobody struct{ header http.Header }

func (n *nobody) Header() http.Header         { return n.header }
func (n *nobody) Write(b []byte) (int, error) { return len(b), nil }
func (n *nobody) WriteHeader(int)             {}
func (n *nobody) FlushError() error           { return nil }

// measureMatch times the whole core without a network: matching, dates, log.
func measureMatch(_ context.Context, o options, t *table) error {
	all, err := newSession(filepath.Join(o.dir, "small.wacz"), match.Normal)
	if err != nil {
		return err
	}
	const fewer = 2000 // exchanges of a large site, each of which the fuzzy stage compares
	file := filepath.Join(o.dir, "fewer.wacz")
	if err := record(file, fewer, bodyBytes); err != nil {
		return err
	}
	some, err := newSession(file, match.Loose)
	if err != nil {
		return err
	}
	conn := hop.WithConn(context.Background(), hop.Conn{Client: netip.MustParseAddr("192.0.2.1"), Protocol: "h2", TLS: "tls/1.3"})
	for _, c := range []struct {
		name, end string // of the path, in place of .css
		session   *replay.Session
		goal      float64
	}{
		{"match-exact", ".css", all, 10}, {"match-normalised", ".css?_=1700000000000", all, 10},
		{"match-nearest", "x.css", some, 1000}, {"match-miss", ".html", all, 0},
	} {
		var requests []*http.Request
		for _, p := range askedPaths() {
			u, err := url.Parse("https://" + host + strings.TrimSuffix(p, ".css") + c.end)
			if err != nil {
				return err
			}
			requests = append(requests, (&http.Request{
				Method: "GET", URL: u, RequestURI: u.RequestURI(), Host: host, Proto: "HTTP/2.0", ProtoMajor: 2, Body: http.NoBody,
				Header: http.Header{"Accept": {"*/*"}, "User-Agent": {"bench"}},
			}).WithContext(conn))
		}
		var used time.Duration
		b := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			before := processorTime()
			for i := 0; b.Loop(); i++ {
				c.session.ServeHTTP(&nobody{http.Header{}}, requests[i%len(requests)])
			}
			used = processorTime() - before // of the last call, which has the most rounds
		})
		t.add(benchtable.Less(c.name, float64(used.Nanoseconds())/float64(b.N)/1e3, "µs").AimAbove(c.goal))
		t.add(benchtable.Less(c.name+"-allocations", float64(b.AllocsPerOp()), "1"))
	}
	return nil
}

// processorTime returns the processor time of this process, since elapsed time says little
// on a machine that other programs use too.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // cannot fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measureLeaf times a certificate for a name that was not asked for before.
func measureLeaf(_ context.Context, _ options, t *table) error {
	authority, err := ca.New(time.Now)
	if err != nil {
		return err
	}
	var failed error
	var used time.Duration
	b := testing.Benchmark(func(b *testing.B) {
		before := processorTime()
		defer func() { used = processorTime() - before }()
		for i := 0; b.Loop(); i++ {
			if _, err := authority.Leaf(fmt.Sprintf("host-%d.bench.test", i)); err != nil {
				failed = err
			}
		}
	})
	t.add(benchtable.Less("leaf", float64(used.Nanoseconds())/float64(b.N)/1e6, "ms").Aim(0.15))
	return failed
}

// measureLoad times the loading of a large archive, in a process of its own.
func measureLoad(ctx context.Context, o options, t *table) error {
	const size = 50_000
	file := filepath.Join(o.dir, "large.wacz")
	defer os.Remove(file)
	if err := record(file, exchanges, size); err != nil {
		return err
	}
	var seconds, processor, rss, peak []float64
	for range o.rounds {
		s, err := self(ctx, o, "load", file)
		if err != nil {
			return err
		}
		s.stop()
		for i, to := range []*[]float64{&seconds, &processor, &rss, &peak} {
			v, err := strconv.ParseFloat(s.said[2+i], 64)
			if err != nil {
				return err
			}
			*to = append(*to, v)
		}
	}
	const decoded = exchanges * size / 1024 // KiB
	t.add(benchtable.Less("load-1GB", median(seconds), "s").Aim(5))
	t.add(benchtable.Less("load-1GB-processor", median(processor), "s"))
	t.add(benchtable.Less("load-1GB-memory", median(rss)/decoded, "decoded size").Aim(1.3))
	t.add(benchtable.Less("load-1GB-peak-memory", median(peak)/decoded, "decoded size"))
	return nil
}

// field returns the first word after a name in a file of /proc.
func field(text, name string) string {
	_, rest, _ := strings.Cut(text, name)
	if f := strings.Fields(rest); len(f) > 0 {
		return f[0]
	}
	return ""
}
