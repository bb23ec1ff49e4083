package proxy

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDrained: a connection is not drained before its device reads, also behind what was read ahead.
func TestDrained(t *testing.T) {
	isDrained(t, func(nc net.Conn) net.Conn { return nc })
	isDrained(t, func(nc net.Conn) net.Conn { return &sniffed{Conn: &sniffed{Conn: nc}} })
	if waited, err := (&conn{Conn: &sniffed{}}).Drained(); waited || err != nil {
		t.Errorf("Drained() without a socket = %v, %v; want false, nil", waited, err)
	}
}

func isDrained(t *testing.T, wrap func(net.Conn) net.Conn) {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		nc, _ := l.Accept()
		accepted <- nc
	}()
	device, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	c := &conn{Conn: wrap(<-accepted), forget: func(*conn) {}}
	defer c.Close()
	if waited, err := c.Drained(); waited || err != nil {
		t.Fatalf("Drained() before a write = %v, %v; want false, nil", waited, err)
	}
	n := fill(c, 64<<20) // more than any buffer
	if _, err := c.Drained(); err == nil {
		t.Error("Drained() = nil error after the deadline, want one")
	}
	_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
	took := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, device, int64(n))
		took <- err
	}()
	if _, err := c.Drained(); err != nil { // the device may have read everything already
		t.Errorf("Drained() = %v once the device reads, want nil", err)
	}
	if err := <-took; err != nil {
		t.Error(err)
	}
}

// fill writes pieces of a size until a write times out after an earlier one succeeded. It
// returns the number of bytes written.
func fill(c net.Conn, size int) (n int) {
	for full := false; !full || n == 0; {
		_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		k, err := c.Write(make([]byte, size))
		n, full = n+k, err != nil
	}
	return n
}

// TestFlight: the unacknowledged bytes of a connection stay below the bound while its
// device reads nothing, on each listener; a bound that the kernel cannot set counts as none.
func TestFlight(t *testing.T) {
	isBounded(t, func(s *Server, l net.Listener) net.Conn {
		nc, _ := s.track(l).Accept()
		return nc
	})
	isBounded(t, func(s *Server, l net.Listener) net.Conn {
		go s.sniff(l)
		nc, _ := s.tunnels.plain.Accept()
		return nc
	})
}

// isBounded tests what take takes from a listener.
func isBounded(t *testing.T, take func(s *Server, l net.Listener) net.Conn) {
	t.Helper()
	const most = 64 << 10
	l, err := Listen(t.Context(), "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &Server{conns: map[*conn]seat{}, of: map[netip.Addr]int{}, tunnels: newTunnels()}
	s.SetFlight(1 << 40)
	if s.Flight() != 0 {
		t.Errorf("Flight() = %d after a bound that the kernel cannot set, want 0", s.Flight())
	}
	s.SetFlight(most)
	accepted := make(chan net.Conn, 1)
	go func() { accepted <- take(s, l) }()
	// The device's own buffer is small, so that ours is what fills.
	dialer := net.Dialer{Control: func(_, _ string, rc syscall.RawConn) (err error) {
		cerr := rc.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<10) })
		return errors.Join(err, cerr)
	}}
	device, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if _, err := io.WriteString(device, "G"); err != nil { // tells the protocol
		t.Fatal(err)
	}
	c := (<-accepted).(*conn)
	defer c.Close()
	if !c.Slow() {
		t.Error("Slow() = false on a link with a bound, want true")
	}
	fill(c, 4<<10)
	rc, err := c.Conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	waiting := 0
	if err := errors.Join(rc.Control(func(fd uintptr) { waiting, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }), err); err != nil {
		t.Fatal(err)
	}
	if waiting == 0 || waiting > most {
		t.Errorf("%d bytes are unacknowledged, want 1 to %d", waiting, most)
	}
}
