package proxy

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"eidetic/netlab/hop"
	"eidetic/netlab/proxy/wire"
)

// Bounds on the resources that one device can use.
const (
	maxHeader      = 256 << 10 // bytes of a request's header
	headerTimeout  = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxConnections = 4096
	maxOfClient    = 1024 // of them, so that one station of a Wi-Fi leaves some to the device
	endTimeout     = 5 * time.Second
	acceptPause    = 50 * time.Millisecond // when descriptors or memory have run out
)

// Certificates signs for the names that a device asks for; ca.Authority does.
type Certificates interface {
	Leaf(host string, more ...string) (*tls.Certificate, error)
}

// Config of a Server. The listeners may be nil; Certificates and Core are required.
type Config struct {
	// HTTP and HTTPS take transparent connections, Explicit those of clients that
	// are configured to use a proxy. The Server closes them.
	HTTP, HTTPS, Explicit net.Listener
	// QUIC takes HTTP/3; its port must be HTTPS's, because that is what Alt-Svc
	// names. Nil: no HTTP/3.
	QUIC *net.UDPConn
	// Other takes transparent connections to any port: TLS or plain HTTP, which the
	// first byte tells.
	Other net.Listener
	// Loopback is the address at which the device finds its own 127.0.0.1, if the box
	// answers for that.
	Loopback netip.Addr
	// HostsAt lists the hosts that the device has found at an address, the likeliest first, for a client that names
	// none; nil knows none.
	HostsAt      func(netip.Addr) []string
	Certificates Certificates
	// Ready, if not nil, is closed when connections to HTTP, HTTPS and Explicit may be accepted: until then they wait.
	Ready <-chan struct{}
	// Core answers until SetCore replaces it.
	Core Core
	Log  *slog.Logger
}

// Server serves a device on all its listeners.
type Server struct {
	c       Config
	wire    *wire.Server
	proxy   *http.Server // of Config.Explicit; nil without
	listens []net.Listener
	tunnels *tunnels
	quic    *quicListener // nil without Config.QUIC
	done    sync.WaitGroup
	flight  atomic.Int64 // see SetFlight
	slow    atomic.Bool  // the link has a rate

	mu    sync.Mutex
	epoch *epoch
	conns map[*conn]seat
	of    map[netip.Addr]int // how many each address has
	count int64              // connections so far
	ended bool
}

// epoch is the time in which one core answers: its requests and its TLS settings.
// Session tickets of an earlier epoch are not accepted, since a trial must not profit
// from the trial before.
type epoch struct {
	core     Core
	requests sync.WaitGroup
	ticket   [32]byte
	ctx      context.Context
	cancel   context.CancelFunc
	configs  sync.Map // ALPN list, joined → *tls.Config
}

func newEpoch(core Core) (*epoch, error) {
	e := &epoch{core: core}
	if _, err := rand.Read(e.ticket[:]); err != nil {
		return nil, fmt.Errorf("make a ticket key: %w", err)
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Serve starts to serve.
func Serve(c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	e, err := newEpoch(c.Core)
	if err != nil {
		return nil, err
	}
	s := &Server{c: c, epoch: e, conns: map[*conn]seat{}, of: map[netip.Addr]int{}, tunnels: newTunnels()}
	base := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: s.configFor,
	}
	s.wire = &wire.Server{
		Handler: http.HandlerFunc(s.serve), MaxHeader: maxHeader, HeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		Context: func(nc net.Conn) context.Context {
			d := s.facts(nc)
			return context.WithValue(hop.WithConn(context.Background(), d.Conn), connKey{}, d)
		},
		Log: c.Log,
	}
	if c.HTTP != nil {
		s.run(s.track(c.HTTP), nil)
	}
	if c.HTTPS != nil {
		s.run(s.track(c.HTTPS), base)
	}
	if c.QUIC != nil {
		if err := s.serveQUIC(c.QUIC); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if c.Explicit != nil || c.Other != nil {
		s.run(s.tunnels.plain, nil)
		s.run(s.tunnels.secure, base)
	}
	if c.Explicit != nil {
		s.serveProxy(c.Explicit)
	}
	if c.Other != nil {
		s.done.Go(func() { s.sniff(c.Other) })
	}
	return s, nil
}

// isShortage tells an error of accept(2) that is a temporary lack of descriptors or memory.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOBUFS) ||
		errors.Is(err, syscall.ENOMEM)
}

// run serves what a listener accepts, over TLS when there are settings for it.
func (s *Server) run(l net.Listener, t *tls.Config) {
	s.accept(l, func(nc net.Conn) {
		if t != nil {
			nc = tls.Server(nc, t)
		}
		s.wire.Serve(nc)
	})
}

// accept calls serve with each connection of a listener, in a goroutine of its own.
func (s *Server) accept(l net.Listener, serve func(net.Conn)) {
	s.listens = append(s.listens, l)
	s.done.Go(func() {
		if s.c.Ready != nil {
			select {
			case <-s.c.Ready:
			case <-s.tunnels.plain.done: // closing
			}
		}
		for {
			nc, err := l.Accept()
			switch {
			case err == nil:
			case isShortage(err):
				// The device tries again, and succeeds once other connections have ended.
				s.c.Log.Error("a connection could not be accepted", "address", l.Addr(), "error", err)
				time.Sleep(acceptPause)
				continue
			default:
				if !errors.Is(err, net.ErrClosed) {
					s.c.Log.Error("a listener stopped", "address", l.Addr(), "error", err)
				}
				return
			}
			s.done.Go(func() { serve(nc) })
		}
	})
}

// runConnects serves connections that begin with CONNECT with net/http's server, which goproxy needs.
func (s *Server) runConnects(l net.Listener) {
	s.listens = append(s.listens, l)
	s.proxy = &http.Server{
		Handler:           s.connect(),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.c.Log.Handler(), slog.LevelDebug),
	}
	s.done.Go(func() {
		if err := s.proxy.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.c.Log.Error("a listener stopped", "address", l.Addr(), "error", err)
		}
	})
}

// SetCore puts core behind the listeners. It closes every connection, cancels the
// requests of the previous core and waits for them until ctx ends.
func (s *Server) SetCore(ctx context.Context, core Core) error {
	e, err := newEpoch(core)
	if err != nil {
		return err
	}
	s.mu.Lock()
	old := s.epoch
	s.epoch = e
	open := s.take()
	s.mu.Unlock()
	s.quic.abort()
	return s.end(ctx, old, open)
}

// take empties the set of connections; the caller holds the lock.
func (s *Server) take() []*conn {
	open := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		open = append(open, c)
	}
	clear(s.conns)
	clear(s.of)
	return open
}

func (s *Server) end(ctx context.Context, old *epoch, open []*conn) error {
	for _, c := range open { // first, so that no device sees a handler's answer to the cancellation
		c.abort()
	}
	old.cancel()
	ended := make(chan struct{})
	go func() {
		old.requests.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the requests of the previous core: %w", ctx.Err())
	}
}

// Connections returns the number of open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) + s.quic.count()
}

// closed is the core of a server that is closing.
type closed struct{}

func (closed) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "the box is closing", http.StatusServiceUnavailable)
}
func (closed) Protocols(string) []string { return nil }
func (closed) HTTP3(string) bool         { return false }

// Close ends the listeners and the connections and waits for their goroutines.
func (s *Server) Close() error {
	e, err := newEpoch(closed{})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.ended = true
	old, open := s.epoch, s.take()
	s.epoch = e
	s.mu.Unlock()
	errs := []error{s.quic.close()}
	s.tunnels.close()
	if s.c.Other != nil {
		_ = s.c.Other.Close() // an error means that it is closed already
	}
	for _, l := range s.listens {
		errs = append(errs, ignoreNetClosed(l.Close()))
	}
	if s.proxy != nil {
		errs = append(errs, ignoreNetClosed(s.proxy.Close()))
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	errs = append(errs, s.end(ctx, old, open))
	s.done.Wait()
	return errors.Join(errs...)
}

// current returns the epoch and counts a request in it; the caller calls
// requests.Done.
func (s *Server) current() *epoch {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch.requests.Add(1)
	return s.epoch
}
