package slots

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"

	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

// fakeConn is a connection from anywhere.
type fakeConn struct {
	net.Conn
	from   net.Addr
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr { return c.from }
func (c *fakeConn) Close() error         { c.closed = true; return nil }

// fakeListener hands out connections from the addresses that it is given.
type fakeListener struct {
	net.Listener
	next *fakeConn
}

func (l *fakeListener) Accept() (net.Conn, error) { return l.next, nil }

// desk is a listener with small limits.
type desk struct {
	t *testing.T
	*Listener
}

func newDesk(t *testing.T) *desk {
	return &desk{t, New(&fakeListener{}, Limits{Strangers: 6, PerAddress: 4, Local: 2, Admitted: 2})}
}

// from accepts a connection from an address.
func (d *desk) from(ip string) *Conn {
	d.t.Helper()
	addr := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 1234))
	d.Listener.Listener.(*fakeListener).next = &fakeConn{from: addr}
	c, err := d.Accept()
	if err != nil {
		d.t.Fatal(err)
	}
	return c.(*Conn)
}

func isClosed(c *Conn) bool { return c.Conn.(*fakeConn).closed }

func TestAddressIsBounded(t *testing.T) {
	d := newDesk(t)
	first, other := d.from("192.0.2.7"), d.from("192.0.2.8")
	for range 3 {
		d.from("192.0.2.7")
	}
	if isClosed(first) {
		t.Error("a connection was closed before its address had too many")
	}
	d.from("192.0.2.7")
	if !isClosed(first) || isClosed(other) {
		t.Errorf("oldest of the address closed: %v, another address's: %v; want true, false", isClosed(first), isClosed(other))
	}
}

func TestStrangersAreBounded(t *testing.T) {
	d := newDesk(t)
	person := d.from("198.51.100.1")
	var hostile []*Conn
	for range 3 {
		hostile = append(hostile, d.from("192.0.2.7"))
	}
	d.from("192.0.2.8")
	d.from("192.0.2.8")
	late := d.from("198.51.100.2")
	if isClosed(person) || isClosed(late) || !isClosed(hostile[0]) {
		t.Errorf("closed: the person %v, the late one %v, the oldest of the address with the most %v; want false, false, true",
			isClosed(person), isClosed(late), isClosed(hostile[0]))
	}
	for i := range 20 { // many sources with one connection each: the oldest goes
		d.from(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}).String())
	}
	if d.strangers != 6 {
		t.Errorf("%d strangers, want 6", d.strangers)
	}
}

func TestSourceOfIPv6IsItsNetwork(t *testing.T) {
	d := newDesk(t)
	first := d.from("2001:db8::1")
	for i := range 4 {
		d.from(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(2 + i)}).String())
	}
	if !isClosed(first) {
		t.Error("five addresses of a /64 have five connections, want four")
	}
}

// Strangers take no slots from this machine, nor from those who are logged in.
func TestReserves(t *testing.T) {
	d := newDesk(t)
	local, member := d.from("127.0.0.1"), d.from("192.0.2.7")
	ctx := ConnContext(context.Background(), member)
	Admit(ctx)
	Admit(ctx) // once
	for i := range 100 {
		d.from(netip.AddrFrom4([4]byte{192, 0, 2, byte(i % 10)}).String())
	}
	if isClosed(local) || isClosed(member) || d.admitted != 1 {
		t.Errorf("closed: local %v, admitted %v; admitted %d; want false, false, 1", isClosed(local), isClosed(member), d.admitted)
	}
	d.from("::1")
	d.from("127.0.0.1")
	if !isClosed(local) {
		t.Error("connections from this machine are not bounded")
	}
	for range 3 { // more than two stay strangers
		Admit(ConnContext(context.Background(), d.from("192.0.2.9")))
	}
	if d.admitted != 2 {
		t.Errorf("%d connections are admitted, want 2", d.admitted)
	}
	if err := errors.Join(member.Close(), member.Close()); err != nil || d.admitted != 1 {
		t.Errorf("after Close(): %v, %d admitted, want 1", err, d.admitted)
	}
	Admit(ctx)
	if d.admitted != 1 {
		t.Error("a closed connection was admitted")
	}
}

func TestSlotsAreFreed(t *testing.T) {
	d := newDesk(t)
	for i := range 100 {
		if err := d.from(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String()).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if d.strangers != 0 || len(d.groups) != 0 {
		t.Errorf("%d strangers in %d groups after all closed, want 0 in 0", d.strangers, len(d.groups))
	}
}

// A real connection: the one that lost its slot gets a reset, and a write that nobody reads
// has a deadline.
func TestRealConnection(t *testing.T) {
	under, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer under.Close()
	l := New(under, Limits{Strangers: 1, PerAddress: 1, Local: 1, Admitted: 1})
	var conns []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", under.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer accepted.Close()
		conns = append(conns, c)
		if len(conns) == 2 {
			if _, err := accepted.Write([]byte("x")); err != nil {
				t.Errorf("Write() of a connection with a slot = %v", err)
			}
		}
	}
	if _, err := io.ReadAll(conns[0]); err == nil {
		t.Error("the connection that lost its slot ended in order, want a reset")
	}
	if n, err := io.ReadFull(conns[1], make([]byte, 1)); n != 1 || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("ReadFull() = %d, %v; want a byte", n, err)
	}
}
