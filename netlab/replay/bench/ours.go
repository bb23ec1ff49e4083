package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/dns"
	"eidetic/netlab/inject"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
	"eidetic/netlab/replay/match"
)

// be runs this program as one of the servers that it measures. The server prints "ready" with
// its address, and ends at SIGTERM.
func be(what string, o options, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	serve, ok := map[string]func(context.Context, []string) error{"appliance": beAppliance, "go": beGo, "dns": beDNS, "load": beLoad}[what]
	if !ok {
		return fmt.Errorf("-as %s: there is no such server", what)
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	return serve(ctx, args)
}

func ready(facts ...any) { fmt.Println(append([]any{"ready"}, facts...)...) }

func clock() lab.Clock {
	start := time.Now()
	return func() lab.Time { return lab.Time(time.Since(start)) }
}

// lines keeps the last lines of the log, as a run keeps all of its own.
type lines struct {
	mu   sync.Mutex
	kept [4096]lab.Served
	n    int
}

func (l *lines) add(s lab.Served) {
	l.mu.Lock()
	l.kept[l.n%len(l.kept)] = s
	l.n++
	l.mu.Unlock()
}

// newSession opens an archive as for a trial, but without the recorded pauses.
func newSession(file string, policy match.Policy) (*replay.Session, error) {
	a, err := archive.Open(file)
	if err != nil {
		return nil, err
	}
	return replay.NewSession(a, replay.Options{
		Seed: 1, Match: policy, Timing: replay.Timing{Mode: replay.TimingNone}, Clock: clock(), Wall: time.Now(),
		Inject: inject.Options{}, Log: new(lines).add,
	})
}

func beAppliance(ctx context.Context, args []string) error {
	session, err := newSession(args[0], match.Normal)
	if err != nil {
		return err
	}
	authority, err := ca.New(time.Now)
	if err != nil {
		return err
	}
	l, err := proxy.Listen(ctx, "127.0.0.1:0", "cubic")
	if err != nil {
		return err
	}
	s, err := proxy.Serve(proxy.Config{HTTPS: l, Certificates: authority, Core: session})
	if err != nil {
		return err
	}
	ready(l.Addr())
	<-ctx.Done()
	return s.Close()
}

// beGo is a minimal Go server that serves the same bodies by their path.
func beGo(ctx context.Context, _ []string) error {
	bodies := map[string][]byte{}
	for i := range exchanges {
		bodies[path(i)] = bodyOf(i, bodyBytes)
	}
	authority, err := ca.New(time.Now)
	if err != nil {
		return err
	}
	l, err := proxy.Listen(ctx, "127.0.0.1:0", "cubic")
	if err != nil {
		return err
	}
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, ok := bodies[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/css")
			_, _ = w.Write(body) // the client has closed the connection
		}),
		TLSConfig: &tls.Config{GetCertificate: authority.GetCertificate},
		ErrorLog:  log.New(os.Stderr, "", 0),
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	ready(l.Addr())
	if err := s.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// beDNS is our name server for the names of the DNS part.
func beDNS(ctx context.Context, _ []string) error {
	pool, err := dns.NewPool(netip.MustParsePrefix("198.18.0.0/15"), netip.Prefix{})
	if err != nil {
		return err
	}
	s, err := dns.Listen(dns.Config{Addr: "127.0.0.1:0", Pool: pool, Clock: clock(), OnQuery: func(dns.Query) {}})
	if err != nil {
		return err
	}
	table := dns.NewTable()
	for i := range dnsNames {
		table.AddHost(dnsName(i), dnsAddr(i))
	}
	s.Use(table)
	ready(s.Addr())
	<-ctx.Done()
	return s.Close()
}

// beLoad loads an archive for replaying and prints the elapsed time, the processor time,
// and the memory that stays in use.
func beLoad(_ context.Context, args []string) error {
	start := time.Now()
	session, err := newSession(args[0], match.Normal)
	if err != nil {
		return err
	}
	took := time.Since(start)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	ready(net.IPv4zero, took.Seconds(), processorTime().Seconds(), field(string(status), "VmRSS:"), field(string(status), "VmHWM:"))
	runtime.KeepAlive(session)
	return nil
}
