package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"eidetic/netlab/reach"
)

// upstreamQUIC is the HTTP/3 half of an Upstream. Only requests that a device sends by
// HTTP/3 are sent to their origins by HTTP/3.
type upstreamQUIC struct {
	u         *Upstream
	transport *http3.Transport

	mu sync.Mutex
	// socket is opened with the first connection. With DialPacket each connection has
	// a socket in own instead.
	socket *quic.Transport
	own    map[*quic.Transport]bool
	closed bool
	// The following are by host:port of the origin.
	alt   map[string]string // where Alt-Svc says that HTTP/3 is
	known map[string]*origin3
	late  map[string]int        // how many attempts in a row timed out
	spare map[string]*quic.Conn // probed, not used yet
}

// origin3 says whether an origin speaks HTTP/3; ready is closed when that is known.
type origin3 struct {
	ready chan struct{}
	ok    bool
}

func newUpstreamQUIC(u *Upstream) *upstreamQUIC {
	q := &upstreamQUIC{
		u: u, alt: map[string]string{}, known: map[string]*origin3{}, spare: map[string]*quic.Conn{}, late: map[string]int{},
		own: map[*quic.Transport]bool{},
	}
	q.transport = &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: u.c.Roots, MinVersion: tls.VersionTLS13, InsecureSkipVerify: u.c.AnyCertificate},
		QUICConfig: &quic.Config{
			HandshakeIdleTimeout: handshakeTimeout, MaxIdleTimeout: time.Minute, KeepAlivePeriod: 15 * time.Second,
		},
		DisableCompression:     true,
		MaxResponseHeaderBytes: 1 << 20,
		Dial:                   q.dial,
	}
	return q
}

// HTTP3 tells whether the origin of a host (with or without a port) speaks
// HTTP/3. The first call connects to the origin; requests use that connection.
func (u *Upstream) HTTP3(host string) bool {
	q := u.quic
	if q == nil {
		return false
	}
	addr := host
	if _, _, err := net.SplitHostPort(host); err != nil {
		addr = net.JoinHostPort(host, "443")
	}
	q.mu.Lock()
	o := q.known[addr]
	if o == nil {
		if len(q.known) >= maxChoices { // a device can name hosts without end
			clear(q.known)
			clear(q.late)
		}
		o = &origin3{ready: make(chan struct{})}
		q.known[addr] = o
		q.mu.Unlock()
		err := q.probe(addr)
		o.ok = err == nil
		q.mu.Lock()
		if !q.settles(addr, err) && q.known[addr] == o {
			delete(q.known, addr)
		}
		q.mu.Unlock()
		close(o.ready)
		return o.ok
	}
	q.mu.Unlock()
	<-o.ready
	return o.ok
}

// maxLate is how many QUIC handshakes in a row may time out before an origin counts as
// one without HTTP/3. One timeout may come from a busy machine or network; with a
// network that drops QUIC the device must not wait each time.
const maxLate = 3

// settles tells whether the result of an attempt is conclusive. The caller holds q.mu.
func (q *upstreamQUIC) settles(addr string, err error) bool {
	if err == nil {
		delete(q.late, addr)
		return true
	}
	if errors.Is(err, context.Canceled) {
		return false // the caller gave up
	}
	var timeout net.Error
	if late := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout(); !late {
		return true
	}
	q.late[addr]++
	return q.late[addr] >= maxLate
}

// probe makes the first connection, which is used for the first request.
func (q *upstreamQUIC) probe(addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	c, err := q.connect(ctx, addr, q.tlsFor(addr), q.transport.QUICConfig)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.spare[addr] != nil || len(q.spare) >= maxSpare {
		_ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") // nothing was sent on it
		return nil
	}
	q.spare[addr] = c
	return nil
}

func (q *upstreamQUIC) tlsFor(addr string) *tls.Config {
	c := q.transport.TLSClientConfig.Clone()
	c.ServerName, _, _ = net.SplitHostPort(addr)
	c.NextProtos = []string{http3.NextProtoH3}
	return c
}

// dial gives the transport a connection for its requests.
func (q *upstreamQUIC) dial(ctx context.Context, addr string, t *tls.Config, c *quic.Config) (*quic.Conn, error) {
	q.mu.Lock()
	spare := q.spare[addr]
	delete(q.spare, addr)
	q.mu.Unlock()
	if spare != nil && spare.Context().Err() == nil {
		return spare, nil
	}
	conn, err := q.connect(ctx, addr, t, c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoQUIC, err)
	}
	return conn, nil
}

// errNoQUIC says that nothing was sent, so that the request may be sent by TCP.
var errNoQUIC = errors.New("no connection for HTTP/3")

// connect finds the address of the origin's HTTP/3 and tries one IP address after the other.
func (q *upstreamQUIC) connect(ctx context.Context, addr string, t *tls.Config, c *quic.Config) (*quic.Conn, error) {
	q.mu.Lock()
	if alt := q.alt[addr]; alt != "" {
		addr = alt
	}
	q.mu.Unlock()
	addrs, err := q.u.dialer.Addresses(ctx, addr)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(addr) // Addresses has split it
	ctx = reach.For(ctx, host)
	var errs []error
	for _, a := range addrs {
		conn, err := q.early(ctx, a, t, c)
		if err == nil {
			select {
			case <-conn.HandshakeComplete():
				return conn, nil
			case <-conn.Context().Done():
				err = context.Cause(conn.Context())
			case <-ctx.Done():
				err = ctx.Err()
				_ = conn.CloseWithError(0, "")
			}
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("connect to %s by QUIC: %w", addr, errors.Join(errs...))
}

// early starts a connection to one address.
func (q *upstreamQUIC) early(ctx context.Context, to netip.AddrPort, t *tls.Config, c *quic.Config) (*quic.Conn, error) {
	remote := net.UDPAddrFromAddrPort(to)
	if q.u.c.DialPacket == nil {
		socket, err := q.open(ctx)
		if err != nil {
			return nil, err
		}
		return socket.DialEarly(ctx, remote, t, c)
	}
	packets, err := q.u.c.DialPacket(ctx, to.String())
	if err != nil {
		return nil, fmt.Errorf("open a socket for QUIC: %w", err)
	}
	socket := &quic.Transport{Conn: connected{packets, remote}}
	q.mu.Lock()
	closed := q.closed
	if !closed {
		q.own[socket] = true
	}
	q.mu.Unlock()
	if closed {
		_ = packets.Close()
		return nil, net.ErrClosed
	}
	conn, err := socket.DialEarly(ctx, remote, t, c)
	if err != nil {
		q.drop(socket)
		return nil, err
	}
	context.AfterFunc(conn.Context(), func() { q.drop(socket) })
	return conn, nil
}

// drop closes a socket of one connection.
func (q *upstreamQUIC) drop(socket *quic.Transport) {
	q.mu.Lock()
	delete(q.own, socket)
	q.mu.Unlock()
	closeSocket(socket)
}

func closeSocket(socket *quic.Transport) {
	_ = socket.Close() // its connections too
	_ = socket.Conn.Close()
}

// connected makes a connected socket look like the unconnected one that quic-go needs.
type connected struct {
	net.Conn
	to net.Addr
}

// ReadFrom implements net.PacketConn.
func (c connected) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := c.Read(b)
	return n, c.to, err
}

// WriteTo implements net.PacketConn.
func (c connected) WriteTo(b []byte, _ net.Addr) (int, error) { return c.Write(b) }

func (q *upstreamQUIC) open(ctx context.Context) (*quic.Transport, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, net.ErrClosed
	}
	if q.socket == nil {
		pc, err := q.u.c.ListenPacket(ctx)
		if err != nil {
			return nil, fmt.Errorf("open a socket for QUIC: %w", err)
		}
		q.socket = &quic.Transport{Conn: pc}
	}
	return q.socket, nil
}

// roundTrip sends a request of a device that speaks HTTP/3. It returns errNoQUIC when
// the request can still be sent by TCP.
func (q *upstreamQUIC) roundTrip(r *http.Request) (*http.Response, error) {
	resp, err := q.transport.RoundTrip(r)
	if errors.Is(err, errNoQUIC) {
		q.refuse(originOf(r), err)
	}
	return resp, err
}

// refuse remembers that an origin does not answer by QUIC, until note finds an Alt-Svc
// that says otherwise.
func (q *upstreamQUIC) refuse(addr string, err error) {
	ready := make(chan struct{})
	close(ready)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.settles(addr, err) {
		q.known[addr] = &origin3{ready: ready}
	}
}

func originOf(r *http.Request) string {
	port := r.URL.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(r.URL.Hostname(), port)
}

// note reads from an answer's Alt-Svc where HTTP/3 is (RFC 7838).
func (q *upstreamQUIC) note(r *http.Request, header http.Header) {
	if r.URL.Scheme != "https" {
		return
	}
	origin := originOf(r)
	for _, field := range header.Values("Alt-Svc") {
		for _, entry := range strings.Split(field, ",") {
			protocol, rest, found := strings.Cut(strings.TrimSpace(entry), "=")
			if !found || protocol != http3.NextProtoH3 {
				continue
			}
			where, _, _ := strings.Cut(rest, ";")
			host, p, err := net.SplitHostPort(strings.Trim(strings.TrimSpace(where), `"`))
			if err != nil {
				continue
			}
			if host == "" {
				host = r.URL.Hostname()
			}
			q.mu.Lock()
			if alt := net.JoinHostPort(host, p); len(q.alt) < maxAlternatives && q.alt[origin] != alt {
				q.alt[origin] = alt
				delete(q.known, origin) // the result for another address does not hold
				delete(q.late, origin)
			}
			q.mu.Unlock()
			return
		}
	}
}

// maxAlternatives bounds the memory that origins can use up with Alt-Svc.
const maxAlternatives = 10_000

func (q *upstreamQUIC) close() {
	_ = q.transport.Close() // ends the connections; its error says that they were in use
	q.mu.Lock()
	q.closed = true
	sockets := slices.Collect(maps.Keys(q.own))
	if q.socket != nil {
		sockets = append(sockets, q.socket)
	}
	q.mu.Unlock()
	for _, s := range sockets {
		closeSocket(s) // which closes the unused connections too
	}
}
