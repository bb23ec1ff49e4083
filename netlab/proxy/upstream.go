package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go/http3"
	"golang.org/x/sys/unix"

	"eidetic/netlab/hop"
	"eidetic/netlab/message"
	"eidetic/netlab/proxy/wire"
	"eidetic/netlab/reach"
)

// UpstreamConfig says how origins are reached.
type UpstreamConfig struct {
	// Resolver answers names: "10.9.0.53:53". The zero value uses the
	// system's resolver.
	Resolver netip.AddrPort
	// Roots verify origins; nil means the system's.
	Roots *x509.CertPool
	// DialContext connects; nil means net.Dialer. addr holds an IP address.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// ListenPacket opens the UDP socket for HTTP/3. Nil means a socket of the
	// kernel, or, with a DialContext, no HTTP/3 at all.
	ListenPacket func(ctx context.Context) (net.PacketConn, error)
	// DialPacket, in place of ListenPacket, opens a UDP socket that is connected to
	// addr, for each connection of HTTP/3.
	DialPacket func(ctx context.Context, addr string) (net.Conn, error)
	// Lookup replaces Resolver: the addresses of a host in the order to try.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Hosts are names for which no name server is asked, with their addresses.
	Hosts map[string][]netip.Addr
	// IPv6First says that this machine reaches nobody over IPv4; nil is that it does.
	IPv6First func() bool
	// Reach judges each address. Nil judges none: then DialContext leads to a process that does, or to a namespace
	// with nothing else in it.
	Reach *reach.Rule
	// Send are fields that are added to requests, and kept out of recordings.
	Send Session
	// AnyCertificate leaves the origins' certificates unverified.
	AnyCertificate bool
	// Timeout bounds connecting, TLS included; default 30 s.
	Timeout time.Duration
}

// Upstream reaches origins as the device would: by HTTP/3 if both the device and the
// origin speak it, else by HTTP/2 or HTTP/1.1 as ALPN chooses. Bodies are returned as
// they are on the wire, and redirects are left to the device. httptrace reports the
// address that was connected to, Response.TLS and Proto the protocols.
type Upstream struct {
	c        UpstreamConfig
	dialer   reach.Dialer    // makes all connections, or says where one of UDP may go
	two, old *http.Transport // for origins that choose HTTP/2, and for all others
	quic     *upstreamQUIC   // nil without a socket for it
	bound    bound           // connections that one of a device's has for itself

	mu    sync.Mutex
	alpn  map[string]*choice // by host:port
	spare map[string]spare   // probed connections, not used yet
}

// spare is an unused connection, which the origin may close at any time.
type spare struct {
	*tls.Conn
	made time.Time
}

// maxSpare bounds the connections that were probed and not used.
const maxSpare = 256

// spareTime is how long a spare connection is expected to stay open.
const spareTime = 3 * time.Second

// NewUpstream makes an Upstream; end it with Close.
func NewUpstream(c UpstreamConfig) *Upstream {
	if c.ListenPacket == nil && c.DialPacket == nil && c.DialContext == nil {
		c.ListenPacket = func(ctx context.Context) (net.PacketConn, error) {
			return new(net.ListenConfig).ListenPacket(ctx, "udp", ":0")
		}
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	lookup := c.Lookup
	if lookup == nil {
		lookup = reach.AskServer(c.Resolver, c.DialContext)
	}
	u := &Upstream{
		c: c, dialer: reach.Dialer{Rule: c.Reach, Lookup: lookup, Dial: c.DialContext}, alpn: map[string]*choice{}, spare: map[string]spare{},
	}
	u.two, u.old = u.transport(u.dial2), u.transport(u.dial1)
	u.bound.make = func() *http.Transport { return u.transport(u.dial1) }
	u.two.Protocols = new(http.Protocols)
	u.two.Protocols.SetUnencryptedHTTP2(true) // to net/http, a wire.Conn2 is no TLS
	u.two.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := u.dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return wire.NewConn2(c), nil
	}
	if c.ListenPacket != nil || c.DialPacket != nil {
		u.quic = newUpstreamQUIC(u)
	}
	return u
}

// transport returns one that makes connections of TLS by a function.
func (u *Upstream) transport(dialTLS func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := u.dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return wire.NewConn(c), nil
		},
		DialTLSContext:         dialTLS,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 4 << 20, // a wire.Conn bounds heads, and a wire.Conn2, which makes them longer
		IdleConnTimeout:        time.Minute,
		ExpectContinueTimeout:  time.Second,
	}
}

// dial1 connects for HTTP/1.1.
func (u *Upstream) dial1(ctx context.Context, _, addr string) (net.Conn, error) {
	if c := u.takeSpare(addr, true); c != nil {
		return wire.NewConn(c), nil
	}
	c, err := u.dialTLS(ctx, addr, []string{"http/1.1"})
	if err != nil {
		return nil, err
	}
	return wire.NewConn(c), nil
}

// dial2 connects to an origin that has chosen HTTP/2 before.
func (u *Upstream) dial2(ctx context.Context, _, addr string) (net.Conn, error) {
	if c := u.takeSpare(addr, false); c != nil {
		return wire.NewConn2(c), nil
	}
	c, err := u.dialTLS(ctx, addr, []string{"h2", "http/1.1"})
	if err != nil {
		return nil, err
	}
	if c.ConnectionState().NegotiatedProtocol != "h2" { // another server behind the same address
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.alpn, addr)
		u.keep(addr, c)
		return nil, fmt.Errorf("%s chose HTTP/2 before, and does not choose it now: %w", addr, errNotHTTP2)
	}
	return wire.NewConn2(c), nil
}

// errNotHTTP2 says that an origin speaks HTTP/1.1 on a connection that was to be one of HTTP/2.
var errNotHTTP2 = errors.New("it speaks HTTP/1.1") // constant

// RoundTrip implements http.RoundTripper. A status that HTTP does not have, which net/http takes, is an error: no
// archive can hold it.
func (u *Upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.roundTrip(r)
	if err == nil && (resp.StatusCode < 100 || resp.StatusCode > 999) {
		_ = resp.Body.Close() // nothing of it is used
		return nil, fmt.Errorf("the origin answers with the status %d, which HTTP does not have", resp.StatusCode)
	}
	return resp, err
}

// roundTrip chooses the protocol.
func (u *Upstream) roundTrip(r *http.Request) (*http.Response, error) {
	r = sendable(u.withSession(r))
	device := hop.ConnOf(r.Context())
	upgrade := r.Header.Get("Upgrade") != ""
	if own := u.bound.transport(r, time.Now()); own != nil && !upgrade {
		return u.roundTrip1(own, r)
	}
	switch {
	case !upgrade && r.URL.Scheme == "http" && device.Protocol == "h2" && device.TLS == "": // which the device knows that the origin speaks
		return u.roundTrip2(r)
	case upgrade || r.URL.Scheme == "http":
		return u.roundTrip1(u.old, r)
	case u.quic != nil && device.Protocol == http3.NextProtoH3 && u.HTTP3(originOf(r)):
		resp, err := u.quic.roundTrip(r)
		if err == nil || !errors.Is(err, errNoQUIC) {
			return resp, err
		}
		if r, err = rewound(r, err); err != nil {
			return nil, err
		}
	}
	var resp *http.Response
	var err error
	if chosen, known := u.chosen(originOf(r)); known && chosen == "h2" {
		if resp, err = u.roundTrip2(r); wantsOld(err) {
			r, err = rewound(r, err)
		}
	}
	if resp == nil && err == nil {
		resp, err = u.roundTrip1(u.old, r) // if the origin did not answer, it reports the error
	}
	if err == nil && u.quic != nil {
		u.quic.note(r, resp.Header)
	}
	return resp, err
}

// wantsOld tells that an origin answers a request over HTTP/1.1 only, be it the connection or, as of a server that asks
// who logs in, this request (RFC 9113, 7: HTTP_1_1_REQUIRED).
func wantsOld(err error) bool {
	return errors.Is(err, errNotHTTP2) || err != nil && strings.Contains(err.Error(), "HTTP_1_1_REQUIRED")
}

// rewound returns a request that could not be sent for a reason, with its body from the beginning: a transport closes the
// body of what it does not send, too.
func rewound(r *http.Request, why error) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	if r.GetBody == nil {
		return nil, fmt.Errorf("%w; the body of the request cannot be had again", why)
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, fmt.Errorf("%w; the body of the request again: %w", why, err)
	}
	out := r.WithContext(r.Context())
	out.Body = body
	return out, nil
}

// sendable returns a request whose fields net/http takes: it refuses control characters. Over HTTP/1.1 a wire.Conn puts
// them back.
func sendable(r *http.Request) *http.Request {
	var out *http.Request
	for name, values := range r.Header {
		for i, v := range values {
			if plain := message.WithoutControls(v); plain != v {
				if out == nil {
					out = r.Clone(r.Context())
				}
				out.Header[name][i] = plain
			}
		}
	}
	return cmp.Or(out, r)
}

// persist sends a request by a transport. An origin may close a connection just when the next request is sent on it.
// Like browsers, and unlike net/http for a POST, it sends a request again that got no byte of an answer on a connection
// that was used before, or a 408: that says that the connection was idle for too long.
func persist(transport http.RoundTripper, r *http.Request) (*http.Response, error) {
	const most = 4 // connections that may have been closed
	for tries := 1; ; tries++ {
		var isReused, isHeard atomic.Bool
		trace := &httptrace.ClientTrace{
			GotConn:              func(i httptrace.GotConnInfo) { isReused.Store(i.Reused) },
			GotFirstResponseByte: func() { isHeard.Store(true) },
		}
		resp, err := transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
		if err == nil && resp.StatusCode == http.StatusRequestTimeout && isReused.Load() && tries <= most {
			if again, rewindErr := rewound(r, errIdle); rewindErr == nil {
				_ = resp.Body.Close() // it says no more
				r = again
				continue
			}
		}
		if err == nil || tries > most || !isReused.Load() || isHeard.Load() || !isClosed(err) || r.Context().Err() != nil {
			return resp, err
		}
		if r, err = rewound(r, err); err != nil {
			return nil, err
		}
	}
}

// errIdle says that an origin has closed a connection for want of a request.
var errIdle = errors.New("the origin waited too long for a request") // constant

// isClosed tells that an origin closed a connection instead of answering. net/http has no type for some of its errors.
func isClosed(err error) bool {
	for _, why := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, why) {
			return true
		}
	}
	text := err.Error()
	for _, why := range []string{"server closed idle connection", "client connection lost", "server sent GOAWAY and closed the connection"} {
		if strings.Contains(text, why) {
			return true
		}
	}
	return false
}

// roundTrip1 speaks HTTP/1.1 by one of our transports, with the order and case of both heads kept.
func (u *Upstream) roundTrip1(by *http.Transport, r *http.Request) (*http.Response, error) {
	var conn *wire.Conn
	e := hop.HeadersOf(r.Context())
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if conn, _ = i.Conn.(*wire.Conn); conn != nil {
			conn.Begin(r.Method, r.URL.Port() == "")
			if e != nil {
				conn.Arrange(e.Request)
			}
		}
	}}
	resp, err := persist(by, r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil || conn == nil {
		return resp, err
	}
	if c, ok := conn.NetConn().(*tls.Conn); ok && resp.TLS == nil {
		state := c.ConnectionState()
		resp.TLS = &state
	}
	if reason, fields, ok := conn.Head(); ok && e != nil {
		e.Response, resp.Status = fields, fmt.Sprintf("%03d %s", resp.StatusCode, reason)
	}
	return resp, nil
}

// roundTrip2 speaks HTTP/2, with the order of the answer's fields kept.
func (u *Upstream) roundTrip2(r *http.Request) (*http.Response, error) {
	resp, err := persist(u.two, r)
	if err != nil {
		return nil, err
	}
	if fields, ok := wire.Received(resp); ok {
		if e := hop.HeadersOf(r.Context()); e != nil {
			e.Response = fields
		}
	}
	return resp, nil
}

// Close ends the idle connections.
func (u *Upstream) Close() {
	u.two.CloseIdleConnections()
	u.old.CloseIdleConnections()
	u.bound.close()
	if u.quic != nil {
		u.quic.close()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.spare {
		_ = c.Close() // nothing was sent on it
	}
	clear(u.spare)
}

// Protocols returns the protocols to offer to the device for a host (with or without
// a port): those that its origin chooses. The first call connects to the origin, and
// the first request uses that connection.
func (u *Upstream) Protocols(host string) []string {
	addr := host
	if _, _, err := net.SplitHostPort(host); err != nil {
		addr = net.JoinHostPort(host, "443")
	}
	chosen, known := u.chosen(addr)
	if known && chosen == "h2" {
		return []string{"h2", "http/1.1"}
	}
	return []string{"http/1.1"} // if the origin did not answer, the request reports the error
}

// plainTimeout bounds looking whether a host takes connections without TLS.
const plainTimeout = 3 * time.Second

// Plain tells whether a host takes connections at HTTP's own port.
func (u *Upstream) Plain(ctx context.Context, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, plainTimeout)
	defer cancel()
	c, err := u.dial(ctx, "tcp", net.JoinHostPort(host, "80"))
	if err != nil {
		return false
	}
	_ = c.Close() // nothing was sent on it
	return true
}

// maxChoices bounds the origins whose choice is remembered.
const maxChoices = 4096

// choice is what an origin chooses by ALPN, once known is closed.
type choice struct {
	known    chan struct{}
	protocol string
	ok       bool
}

// chosen returns the protocol that an origin (host:port) chooses by ALPN. It is asked once, and asked again only if it
// did not answer.
func (u *Upstream) chosen(addr string) (protocol string, known bool) {
	u.mu.Lock()
	c := u.alpn[addr]
	isFirst := c == nil
	if isFirst {
		if len(u.alpn) >= maxChoices {
			clear(u.alpn)
		}
		c = &choice{known: make(chan struct{})}
		u.alpn[addr] = c
	}
	u.mu.Unlock()
	if isFirst {
		u.ask(addr, c)
	}
	<-c.known
	return c.protocol, c.ok
}

// ask connects to an origin to see what it chooses.
func (u *Upstream) ask(addr string, c *choice) {
	ctx, cancel := context.WithTimeout(context.Background(), u.c.Timeout)
	defer cancel()
	probe, err := u.dialTLS(ctx, addr, []string{"h2", "http/1.1"})
	u.mu.Lock()
	defer u.mu.Unlock()
	defer close(c.known)
	if err != nil {
		if u.alpn[addr] == c {
			delete(u.alpn, addr)
		}
		return
	}
	c.protocol, c.ok = probe.ConnectionState().NegotiatedProtocol, true
	u.keep(addr, probe)
}

// keep keeps a connection on which nothing was sent for who takes it next. The lock is held.
func (u *Upstream) keep(addr string, c *tls.Conn) {
	if _, have := u.spare[addr]; !have && len(u.spare) < maxSpare {
		u.spare[addr] = spare{c, time.Now()}
	} else {
		_ = c.Close() // nothing was sent on it
	}
}

// takeSpare returns a probed connection, or nil: of HTTP/1.1 if old is set, else of h2.
func (u *Upstream) takeSpare(addr string, old bool) *tls.Conn {
	u.mu.Lock()
	defer u.mu.Unlock()
	c, ok := u.spare[addr]
	if !ok || old == (c.ConnectionState().NegotiatedProtocol == "h2") {
		return nil
	}
	delete(u.spare, addr)
	if time.Since(c.made) > spareTime || isEnded(c.NetConn()) {
		_ = c.Close() // nothing was sent on it
		return nil
	}
	return c.Conn
}

// isEnded tells that the other side has ended a connection, of which nothing is read yet.
func isEnded(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := sc.SyscallConn()
	ended := false
	if err == nil {
		err = rc.Control(func(fd uintptr) {
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
			n, err := unix.Poll(p, 0)
			ended = err == nil && n > 0
		})
	}
	return err != nil || ended
}

func (u *Upstream) dialTLS(ctx context.Context, addr string, protocols []string) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	ctx, cancel := context.WithTimeout(ctx, u.c.Timeout)
	defer cancel()
	raw, err := u.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	origin := OriginTLS{Host: host, Roots: u.c.Roots, Protocols: protocols, Any: u.c.AnyCertificate, Dial: u.dial}
	c, err := origin.Handshake(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("TLS with %s (%v): %w", addr, raw.RemoteAddr(), err)
	}
	return c, nil
}

// dial resolves and connects, one address after the other.
func (u *Upstream) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, u.c.Timeout)
	defer cancel()
	return u.dialer.DialContext(ctx, network, addr)
}
