package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"eidetic/netlab/hop"
)

// quicListener is the HTTP/3 side of a Server. Its methods do nothing on nil.
type quicListener struct {
	s         *Server
	transport *quic.Transport
	listener  *quic.EarlyListener
	h3        *http3.Server

	mu    sync.Mutex
	conns map[*quic.Conn]struct{}
}

// errNotHTTP3 ends a handshake for a host that does not speak HTTP/3. Browsers then
// use TCP and do not try QUIC again for a while, as with the origin itself.
var errNotHTTP3 = errors.New("this host does not speak HTTP/3")

// serveQUIC starts to accept on pc, which Close closes.
func (s *Server) serveQUIC(pc *net.UDPConn) error {
	q := &quicListener{s: s, transport: &quic.Transport{Conn: pc}, conns: map[*quic.Conn]struct{}{}}
	var err error
	q.listener, err = q.transport.ListenEarly(
		http3.ConfigureTLSConfig(&tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: s.configForQUIC}),
		&quic.Config{
			MaxIdleTimeout:     idleTimeout,
			MaxIncomingStreams: 250, // as http.Server allows on h2
		})
	if err != nil {
		_ = q.transport.Close()
		_ = pc.Close()
		return fmt.Errorf("listen for QUIC on %v: %w", pc.LocalAddr(), err)
	}
	q.h3 = &http3.Server{
		Handler:        http.HandlerFunc(s.serveHTTP3),
		MaxHeaderBytes: maxHeader,
		IdleTimeout:    idleTimeout,
		Logger:         slog.New(slog.DiscardHandler), // it would log every device that goes away
		ConnContext: func(ctx context.Context, c *quic.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	s.quic = q
	s.done.Go(q.accept)
	return nil
}

// configForQUIC returns the TLS settings for HTTP/3 with the host that a client asks for.
func (s *Server) configForQUIC(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	host := strings.ToLower(hello.ServerName)
	if host == "" {
		host = s.serversOf(hello.Conn)[0]
	}
	s.mu.Lock()
	e := s.epoch
	s.mu.Unlock()
	if !e.core.HTTP3(host) {
		return nil, fmt.Errorf("%s: %w", host, errNotHTTP3)
	}
	return s.config(e, []string{http3.NextProtoH3}, tls.VersionTLS13), nil
}

func (q *quicListener) accept() {
	for {
		c, err := q.listener.Accept(context.Background())
		if err != nil {
			if !errors.Is(err, quic.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				q.s.c.Log.Error("the QUIC listener stopped", "address", q.listener.Addr(), "error", err)
			}
			return
		}
		if !q.remember(c) {
			_ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeExcessiveLoad), "too many connections")
			continue
		}
		q.s.done.Go(func() {
			defer q.forget(c)
			_ = q.h3.ServeQUICConn(c) // an error only says that the connection ended
		})
	}
}

func (q *quicListener) remember(c *quic.Conn) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.conns) >= maxConnections {
		return false
	}
	q.conns[c] = struct{}{}
	return true
}

func (q *quicListener) forget(c *quic.Conn) {
	q.mu.Lock()
	delete(q.conns, c)
	q.mu.Unlock()
}

func (q *quicListener) count() int {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.conns)
}

// abort ends every connection with a CONNECTION_CLOSE, as conn.abort does with a RST.
func (q *quicListener) abort() {
	if q == nil {
		return
	}
	q.mu.Lock()
	var open []*quic.Conn
	for c := range q.conns {
		open = append(open, c)
	}
	q.mu.Unlock()
	for _, c := range open {
		_ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") // it may be gone
	}
}

func (q *quicListener) close() error {
	if q == nil {
		return nil
	}
	err := q.listener.Close()
	q.abort()
	// The last packets are sent at once, so the socket is not needed any more.
	return errors.Join(err, q.transport.Close(), ignoreNetClosed(q.transport.Conn.Close()), q.h3.Close())
}

func ignoreNetClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// serveHTTP3 hands a request of a QUIC connection to the core.
func (s *Server) serveHTTP3(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		http.Error(w, "CONNECT is not served over HTTP/3", http.StatusMethodNotAllowed)
		return
	}
	c := hop.Conn{TLS: "tls/1.3", Protocol: http3.NextProtoH3, QUIC: true}
	if q, ok := r.Context().Value(connKey{}).(*quic.Conn); ok {
		c.Client, c.Dest = addrPort(q.RemoteAddr()).Addr(), addrPort(q.LocalAddr())
	}
	s.hand(w, r, c, "https", r.Host)
}

// ListenQUIC opens a UDP socket with buffers that hold a burst, for Config.QUIC.
func ListenQUIC(ctx context.Context, addr string, prepare ...func(network, address string, c syscall.RawConn) error) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: all(prepare)}
	pc, err := lc.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the device's QUIC: %w", err)
	}
	return pc.(*net.UDPConn), nil
}

// handshakeTimeout bounds finding out whether an origin speaks HTTP/3. The device's own
// QUIC handshake waits for that, beside its TCP handshake.
const handshakeTimeout = 3 * time.Second
