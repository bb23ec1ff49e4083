package samplesite

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"
)

// Config says where a site is served, and with which certificates.
type Config struct {
	// Site is the site to serve; nil is a live one.
	Site *Site
	// Listen and ListenPacket open sockets on ports 443, 80 and 53; nil uses the process's network namespace.
	Listen       func(ctx context.Context, network, address string) (net.Listener, error)
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
	// Certificates returns the certificate for a handshake; it is required (see Authority).
	Certificates func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Addresses replaces addresses of Hosts.
	Addresses map[string]netip.Addr
	// Resolver replaces Resolver().
	Resolver netip.AddrPort
	// Ready, if not nil, is called once all sockets are open.
	Ready func()
	// Log receives the servers' messages; nil discards them.
	Log *slog.Logger
}

// Serve runs the origins and their name server until ctx ends, and then returns nil. It opens
// all sockets before it serves any; if one cannot be opened, it closes the others.
func Serve(ctx context.Context, c Config) error {
	if err := c.complete(); err != nil {
		return err
	}
	hosts := Hosts()
	for h, a := range c.Addresses {
		if _, ok := hosts[h]; !ok {
			return fmt.Errorf("address of %q: no such host; there are %s", h, strings.Join(slices.Sorted(maps.Keys(hosts)), ", "))
		}
		hosts[h] = a
	}
	byAddr := map[netip.Addr][]string{}
	for h, a := range hosts {
		byAddr[a] = append(byAddr[a], h)
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var runs []func() error
	var closers []func() error
	fail := func(err error) error {
		for _, c := range closers {
			_ = c() // only the first error is reported
		}
		return err
	}
	base := func(net.Listener) context.Context { return ctx }
	logger := slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug)
	for _, addr := range slices.SortedFunc(maps.Keys(byAddr), netip.Addr.Compare) {
		served := byAddr[addr]
		slices.Sort(served)
		for _, port := range []uint16{443, 80} {
			at := netip.AddrPortFrom(addr, port)
			l, err := c.Listen(ctx, "tcp", at.String())
			if err != nil {
				return fail(fmt.Errorf("listen on %s for %s: %w (is the address there? ip address add %s/32 dev lo)", at,
					strings.Join(served, " and "), err, addr))
			}
			closers = append(closers, l.Close)
			srv := &http.Server{Handler: c.Site.Redirect(), BaseContext: base, ErrorLog: logger, ReadHeaderTimeout: 10 * time.Second,
				IdleTimeout: time.Minute}
			run := func() error { return srv.Serve(l) }
			if port == 443 {
				srv.Handler = c.Site.HandlerFor(served...)
				srv.Protocols = protocols(served)
				srv.TLSConfig = &tls.Config{GetCertificate: c.Certificates, MinVersion: tls.VersionTLS12}
				run = func() error { return srv.ServeTLS(l, "", "") }
			}
			runs = append(runs, func() error { return end(run()) })
			closers = append(closers, func() error { return shut(srv) })
		}
	}
	servers, err := c.nameServers(ctx, names(hosts))
	for _, s := range servers {
		closers = append(closers, s.stop)
		runs = append(runs, s.run)
	}
	if err != nil {
		return fail(err)
	}

	group, gctx := errgroup.WithContext(ctx)
	for _, run := range runs {
		group.Go(run)
	}
	group.Go(func() error {
		<-gctx.Done()
		stop() // ends responses that still wait
		var errs []error
		for _, c := range closers {
			if err := c(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
	for _, s := range servers {
		select {
		case <-s.started:
		case <-gctx.Done(): // a server failed, or the caller's context ended
			return group.Wait()
		}
	}
	if c.Ready != nil {
		c.Ready()
	}
	return group.Wait()
}

// complete fills in the defaults.
func (c *Config) complete() error {
	if c.Certificates == nil {
		return errors.New("sample site: no certificates; pass Authority.Certificate")
	}
	if c.Site == nil {
		s, err := New(Options{})
		if err != nil {
			return err
		}
		c.Site = s
	}
	var lc net.ListenConfig
	if c.Listen == nil {
		c.Listen = lc.Listen
	}
	if c.ListenPacket == nil {
		c.ListenPacket = lc.ListenPacket
	}
	if !c.Resolver.IsValid() {
		c.Resolver = Resolver()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// protocols is HTTP/1.1 for the third party, and h2 with HTTP/1.1 for the shop.
func protocols(hosts []string) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(!slices.Contains(hosts, Ads))
	return p
}

// shut gives responses a moment to end, then closes their connections.
func shut(srv *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := srv.Shutdown(ctx); err == nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return srv.Close()
}

func end(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// nameServer is one transport of the authoritative name server.
type nameServer struct {
	started   chan struct{}
	run, stop func() error
}

// nameServers opens UDP and TCP; with an error it returns those that are open.
func (c *Config) nameServers(ctx context.Context, h dns.Handler) ([]nameServer, error) {
	var out []nameServer
	add := func(srv *dns.Server, closeIt func() error) {
		started := make(chan struct{})
		srv.Handler = h
		srv.NotifyStartedFunc = func() { close(started) }
		out = append(out, nameServer{started, func() error { return end(srv.ActivateAndServe()) }, func() error {
			select {
			case <-started:
				return srv.Shutdown()
			default:
				return closeIt()
			}
		}})
	}
	at := c.Resolver.String()
	explain := func(err error) error {
		return fmt.Errorf("listen on %s for names: %w (is the address there? ip address add %s/32 dev lo)", at, err, c.Resolver.Addr())
	}
	p, err := c.ListenPacket(ctx, "udp", at)
	if err != nil {
		return out, explain(err)
	}
	add(&dns.Server{PacketConn: p}, p.Close)
	l, err := c.Listen(ctx, "tcp", at)
	if err != nil {
		return out, explain(err)
	}
	add(&dns.Server{Listener: l}, l.Close)
	return out, nil
}
