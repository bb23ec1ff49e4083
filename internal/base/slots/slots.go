// Package slots bounds the connections of a listener that strangers can reach, so that they
// can take neither all descriptors, nor much memory, nor the processor from the rest.
//
// In go a listener and [Limits]; out comes a listener whose connections have a deadline for
// each write and small buffers in the kernel. A connection is a stranger's until a request
// on it came with a right token ([Admit]). Strangers are bounded in all and per address; a
// new one always gets in, at the expense of the oldest stranger of the address that has the
// most. So whoever holds connections open loses them, and a person who comes now is served.
// Connections from this machine, and of those who were admitted, have bounds of their own.
//
// Strangers who come back as often as they are dropped are bounded by the rate of their new
// connections. An address that comes faster is kept out for a while, by a filter on the
// socket: the kernel drops its first packet (SYN), which costs the program nothing, and
// which its own kernel repeats ever more slowly. The address of somebody who was admitted
// has a higher rate.
package slots

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Limits bound the connections of each kind.
type Limits struct {
	Strangers  int // of all addresses together
	PerAddress int // strangers of one address
	Local      int // from this machine, not admitted
	Admitted   int
	OfOne      int // admitted of one token, and of one address; 0 is no bound
	// PerSecond bounds the new connections of strangers, in all and of one address. Twice as many as may be open may
	// come at once. 0 is no bound.
	PerSecond, AddressPerSecond int
}

// DefaultLimits leaves most of the process's descriptors to the proxies and the store.
func DefaultLimits() Limits {
	var files syscall.Rlimit
	n := 1024
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		n = int(min(files.Cur, 1<<16))
	}
	part := func(n, least, most int) int { return max(least, min(n, most)) }
	return Limits{
		Strangers: part(n/8, 16, mostStrangers), PerAddress: part(n/16, 8, mostOfAddress),
		Local: part(n/16, 16, mostLocal), Admitted: part(n/4, 32, mostAdmitted),
		PerSecond: strangersPerSecond, AddressPerSecond: addressPerSecond,
	}
}

// The default limits where the process may have enough descriptors. A new connection costs a handshake of TLS, about a
// millisecond.
const (
	mostStrangers, mostOfAddress, mostLocal, mostAdmitted = 256, 64, 128, 512
	strangersPerSecond, addressPerSecond                  = 32, 4
)

const (
	// A write that the other side does not read for so long ends the connection. A stream
	// of events renews the deadline with each event.
	strangerWrite = 10 * time.Second
	admittedWrite = 30 * time.Second
	// The kernel's buffers for each direction of a connection, in bytes. Linux doubles
	// them, and without a bound lets each grow to 6 MB. A stranger needs little.
	strangerBuffer = 32 << 10
	admittedBuffer = 1 << 20
)

// Listener is a listener with limits.
type Listener struct {
	net.Listener
	limits Limits
	mu     sync.Mutex
	// groups holds the strangers of each source, each list oldest first.
	groups    map[netip.Prefix]*list.List
	strangers int // in all groups but localSource
	admitted  int
	// tokens and addresses are how many of the admitted are of each token and source.
	tokens    map[string]int
	addresses map[netip.Prefix]int
	count     int64 // connections so far, for their order
	rates     *rates
}

// localSource is the group of connections from this machine.
var localSource netip.Prefix // constant

// New returns a listener that takes its connections from l.
func New(l net.Listener, limits Limits) *Listener {
	return &Listener{
		Listener: l, limits: limits, groups: map[netip.Prefix]*list.List{}, rates: newRates(limits, newGate(l)),
		tokens: map[string]int{}, addresses: map[netip.Prefix]int{},
	}
}

// Conn is a connection that takes a slot.
type Conn struct {
	net.Conn
	owner    *Listener
	source   netip.Prefix
	number   int64
	at       *list.Element // nil once admitted or closed
	token    string        // by which it was admitted
	admitted bool
	closed   bool
}

// Accept returns the next connection. It may close older ones to make room.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		own := &Conn{Conn: c, owner: l, source: source(c.RemoteAddr())}
		if own.source != localSource {
			if !l.rates.allow(own.source) {
				own.reset()
				continue
			}
			setBuffers(c, strangerBuffer)
		}
		if evicted := l.enter(own); evicted != nil {
			evicted.reset()
		}
		return own, nil
	}
}

// Close closes the listener.
func (l *Listener) Close() error {
	l.rates.close()
	return l.Listener.Close()
}

// source is what an address counts as: a host has a whole /64 of IPv6.
func source(addr net.Addr) netip.Prefix {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return localSource
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.IsLoopback() {
		return localSource
	}
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(ip, bits).Masked()
}

// enter gives a connection its slot, and returns the one that has to go for it, or nil.
func (l *Listener) enter(c *Conn) (evicted *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if group := l.groups[c.source]; group != nil && group.Len() >= l.most(c.source) {
		evicted = group.Front().Value.(*Conn)
	} else if c.source != localSource && l.strangers >= l.limits.Strangers {
		evicted = l.oldestOfLargest()
	}
	if evicted != nil {
		l.leave(evicted)
	}
	group := l.groups[c.source]
	if group == nil {
		group = list.New()
		l.groups[c.source] = group
	}
	l.count++
	c.number, c.at = l.count, group.PushBack(c)
	if c.source != localSource {
		l.strangers++
	}
	return evicted
}

// most is how many strangers a source may have.
func (l *Listener) most(source netip.Prefix) int {
	if source == localSource {
		return l.limits.Local
	}
	return l.limits.PerAddress
}

// oldestOfLargest is the oldest connection of the source that has the most; l.mu is held.
func (l *Listener) oldestOfLargest() (found *Conn) {
	most := 0
	for source, group := range l.groups {
		if source == localSource || group.Len() < most {
			continue
		}
		first := group.Front().Value.(*Conn)
		if group.Len() > most || first.number < found.number {
			most, found = group.Len(), first
		}
	}
	return found
}

// leave takes a stranger's slot from it; l.mu is held.
func (l *Listener) leave(c *Conn) {
	if c.at == nil {
		return
	}
	group := l.groups[c.source]
	group.Remove(c.at)
	c.at = nil
	if group.Len() == 0 {
		delete(l.groups, c.source)
	}
	if c.source != localSource {
		l.strangers--
	}
}

// countAdmitted counts an admitted connection that comes (1) or goes (-1).
func (l *Listener) countAdmitted(c *Conn, n int) {
	l.admitted += n
	if l.tokens[c.token] += n; l.tokens[c.token] == 0 {
		delete(l.tokens, c.token)
	}
	if l.addresses[c.source] += n; l.addresses[c.source] == 0 {
		delete(l.addresses, c.source)
	}
}

// admit moves a connection from the strangers to the admitted, if there is room for one more of its token and address.
func (l *Listener) admit(c *Conn, token string) {
	l.mu.Lock()
	own := max(l.tokens[token], l.addresses[c.source])
	enough := c.admitted || c.at == nil || l.admitted >= l.limits.Admitted || l.limits.OfOne > 0 && own >= l.limits.OfOne
	if !enough {
		l.leave(c)
		c.admitted, c.token = true, token
		l.countAdmitted(c, 1)
	}
	l.mu.Unlock()
	if !enough && c.source != localSource {
		l.rates.know(c.source)
		setBuffers(c.Conn, admittedBuffer)
	}
}

// Write writes with a deadline of its own.
func (c *Conn) Write(b []byte) (int, error) {
	limit := strangerWrite
	if c.isAdmitted() {
		limit = admittedWrite
	}
	if err := c.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *Conn) isAdmitted() bool {
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	return c.admitted
}

// Close closes the connection and frees its slot.
func (c *Conn) Close() error {
	l := c.owner
	l.mu.Lock()
	l.leave(c)
	if c.admitted && !c.closed {
		l.countAdmitted(c, -1)
	}
	c.closed = true
	l.mu.Unlock()
	return c.Conn.Close()
}

// reset closes a connection that has lost its slot. What was not sent yet is dropped, so
// that the kernel frees its memory at once.
func (c *Conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // only a closed connection refuses
	}
	_ = c.Conn.Close() // its reader gets an error, and closes it as well
}

// setBuffers bounds what the kernel holds for a connection.
func setBuffers(c net.Conn, size int) {
	if tcp, ok := c.(*net.TCPConn); ok {
		// Only a closed connection refuses.
		_ = errors.Join(tcp.SetReadBuffer(size), tcp.SetWriteBuffer(size))
	}
}

type connKey struct{}

// ConnContext is for http.Server: it lets [Admit] find the connection of a request.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	for {
		switch under := c.(type) {
		case *Conn:
			return context.WithValue(ctx, connKey{}, under)
		case interface{ NetConn() net.Conn }: // TLS, and what it reads from
			c = under.NetConn()
		default:
			return ctx
		}
	}
}

// Admit says that a request came with this right token, by its name. Its connection does not
// count as a stranger's from now on, unless as many are the token's or its address's as may be.
// Without a Listener it does nothing.
func Admit(ctx context.Context, token string) {
	if c, ok := ctx.Value(connKey{}).(*Conn); ok {
		c.owner.admit(c, token)
	}
}

// IsAdmitted says whether Admit was called on the connection of a request.
func IsAdmitted(ctx context.Context) bool {
	c, ok := ctx.Value(connKey{}).(*Conn)
	return ok && c.isAdmitted()
}
