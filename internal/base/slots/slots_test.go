package slots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/bpf"

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
	Admit(ctx, "a")
	Admit(ctx, "a") // once
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
		Admit(ConnContext(context.Background(), d.from("192.0.2.9")), "b")
	}
	if d.admitted != 2 {
		t.Errorf("%d connections are admitted, want 2", d.admitted)
	}
	if err := errors.Join(member.Close(), member.Close()); err != nil || d.admitted != 1 {
		t.Errorf("after Close(): %v, %d admitted, want 1", err, d.admitted)
	}
	Admit(ctx, "a")
	if d.admitted != 1 {
		t.Error("a closed connection was admitted")
	}
}

// One token, or one address, has four fifths of the connections of those who are logged in: others log in beside it.
func TestAdmittedHaveShares(t *testing.T) {
	for name, of := range map[string]func(i int) (address, token string){
		"one token":   func(i int) (string, string) { return fmt.Sprint("192.0.2.", i+1), "flood" },
		"one address": func(i int) (string, string) { return "192.0.2.7", fmt.Sprint("flood ", i) },
	} {
		d := newDesk(t)
		d.limits.Admitted, d.limits.OfOne = 10, 8
		var conns []net.Conn
		for i := range 20 {
			address, token := of(i)
			c := d.from(address)
			Admit(ConnContext(context.Background(), c), token)
			conns = append(conns, c)
		}
		if d.admitted != 8 {
			t.Errorf("%s has %d of ten connections, want 8", name, d.admitted)
		}
		person := ConnContext(context.Background(), d.from("198.51.100.1"))
		if Admit(person, "person"); !IsAdmitted(person) {
			t.Errorf("beside %s nobody else is admitted", name)
		}
		for _, c := range conns {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if d.admitted != 1 || len(d.tokens) != 1 || len(d.addresses) != 1 {
			t.Errorf("after %s has left, %d are admitted, of %v and %v; want one", name, d.admitted, d.tokens, d.addresses)
		}
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

// keeper is a gate that notes whom it keeps out.
type keeper struct {
	out, known []netip.Prefix
	crowd      bool
}

func (k *keeper) set(out, known []netip.Prefix, crowd bool) {
	k.out, k.known, k.crowd = out, known, crowd
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// An address that comes back as often as it is dropped is kept out for a while, and others are not.
func TestRateOfAnAddress(t *testing.T) {
	k, now := &keeper{}, time.Unix(1_800_000_000, 0)
	r := newRates(Limits{Strangers: 1000, PerAddress: 40, PerSecond: 1000, AddressPerSecond: 2}, k)
	defer r.close()
	r.now = func() time.Time { return now }
	flood, person := prefix("192.0.2.7/32"), prefix("192.0.2.8/32")
	for i := range 80 { // twice the connections that it may have come at once
		if !r.allow(flood) {
			t.Fatalf("connection %d was refused; want 80 at once", i)
		}
	}
	if r.allow(flood) || !slices.Equal(k.out, []netip.Prefix{flood}) || k.crowd {
		t.Errorf("after 81 connections %v are kept out, in a crowd: %v; want the address", k.out, k.crowd)
	}
	if !r.allow(person) {
		t.Error("another address is kept out, too")
	}
	r.know(person)
	for i := range 80 * knownTimes {
		if !r.allow(person) && i < 80*knownTimes-1 {
			t.Fatalf("connection %d of an address from which somebody logged in was refused", i)
		}
	}
	now = now.Add(outFor)
	r.mu.Lock()
	r.shut(now)
	r.mu.Unlock()
	if len(k.out) != 0 || !r.allow(flood) {
		t.Errorf("after %v %v are kept out; want none", outFor, k.out)
	}
	for r.allow(flood) { // it comes again
	}
	now = now.Add(outFor)
	r.mu.Lock()
	r.shut(now)
	r.mu.Unlock()
	if !slices.Equal(k.out, []netip.Prefix{flood}) {
		t.Errorf("the second time %v are kept out after %v; want the address, for twice as long", k.out, outFor)
	}
}

// Strangers of many addresses are kept out together, but for a few and those who are known.
func TestRateOfAll(t *testing.T) {
	k, now := &keeper{}, time.Unix(1_800_000_000, 0)
	r := newRates(Limits{Strangers: 5, PerAddress: 4, PerSecond: 1, AddressPerSecond: 4}, k)
	defer r.close()
	r.now = func() time.Time { return now }
	known := prefix("2001:db8::/64")
	r.know(known)
	refused := 0
	for i := range 20 {
		if !r.allow(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 32)) {
			refused++
		}
	}
	if refused != 10 || !k.crowd || !slices.Equal(k.known, []netip.Prefix{known}) || !r.allow(known) {
		t.Errorf("%d of 20 were refused, in a crowd: %v, known: %v; want 10, true and the known one", refused, k.crowd, k.known)
	}
	for i := range mostSources + 10 { // addresses without number take no memory without number
		r.allow(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 32))
	}
	if len(r.one) > mostSources {
		t.Errorf("%d sources are known; want at most %d", len(r.one), mostSources)
	}
	now = now.Add(outFor)
	r.mu.Lock()
	r.shut(now)
	r.mu.Unlock()
	if k.crowd {
		t.Error("the crowd does not end")
	}
}

// The filter drops the first packets of those who are out, and nothing else.
func TestFilter(t *testing.T) {
	packet := func(from string, flags byte) []byte {
		a := netip.MustParseAddr(from)
		ip := make([]byte, 40)
		if a.Is4() {
			ip[0] = 0x45
			copy(ip[12:], a.AsSlice())
		} else {
			ip[0] = 0x60
			copy(ip[8:], a.AsSlice())
		}
		tcp := make([]byte, 20)
		tcp[13] = flags
		return append(tcp, ip...)
	}
	// The simulator has no negative offsets: there the header of IP lies behind that of TCP.
	run := func(program []bpf.Instruction, p []byte) bool {
		t.Helper()
		moved := slices.Clone(program)
		for i, in := range moved {
			if l, ok := in.(bpf.LoadAbsolute); ok && l.Off >= ofIP {
				moved[i] = bpf.LoadAbsolute{Off: l.Off - ofIP + 20, Size: l.Size}
			}
			if _, ok := in.(bpf.LoadExtension); ok { // by chance: here never
				moved[i] = bpf.LoadConstant{Dst: bpf.RegA, Val: 255}
			}
		}
		vm, err := bpf.NewVM(moved)
		if err != nil {
			t.Fatal(err)
		}
		n, err := vm.Run(p)
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
	out := []netip.Prefix{prefix("192.0.2.7/32"), prefix("2001:db8:1:2::/64")}
	known := []netip.Prefix{prefix("192.0.2.9/32"), prefix("2001:db8:1:9::/64")}
	for _, c := range []struct {
		from         string
		flags        byte
		alone, crowd bool
	}{
		{"192.0.2.7", syn, false, false}, {"192.0.2.7", syn | ack, true, true}, {"192.0.2.7", ack, true, true}, {"192.0.2.7", 0x04, true, true},
		{"192.0.2.8", syn, true, false}, {"192.0.2.9", syn, true, true}, {"127.0.0.1", syn, true, true}, {"::1", syn, true, true},
		{"2001:db8:1:2::77", syn, false, false}, {"2001:db8:1:3::77", syn, true, false}, {"2001:db8:1:9::1", syn, true, true},
		{"2001:db8:1:2::77", ack, true, true},
	} {
		if got := run(filter(out, known, false), packet(c.from, c.flags)); got != c.alone {
			t.Errorf("a packet of %s with flags %#x comes in: %v; want %v", c.from, c.flags, got, c.alone)
		}
		if got := run(filter(out, known, true), packet(c.from, c.flags)); got != c.crowd {
			t.Errorf("in a crowd, a packet of %s with flags %#x comes in: %v; want %v", c.from, c.flags, got, c.crowd)
		}
	}
	many := make([]netip.Prefix, mostOut)
	for i := range many {
		many[i] = netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 7: byte(i)}), 64)
	}
	if raw, err := bpf.Assemble(filter(many, many, true)); err != nil || len(raw) > 4096 {
		t.Errorf("the longest filter: %d instructions, %v; want one that the kernel takes", len(raw), err)
	}
}
