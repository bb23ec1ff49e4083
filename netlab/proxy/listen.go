package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// unsent is how many unsent bytes in the kernel make a connection full. It is small
// because the kernel sends bytes in the order in which it got them, even if others
// become urgent meanwhile. At 100 Mbit/s these last for a millisecond, enough to
// write more.
const unsent = 16 << 10

// Listen opens a TCP listener whose connections use a congestion control
// algorithm ("cubic"; "" keeps the machine's). It is set before listen(2): a
// socket that is switched after the handshake keeps the pacing of the old one.
// Each of prepare that is not nil may do more to the socket before it is bound.
func Listen(
	ctx context.Context, addr, congestion string, prepare ...func(network, address string, c syscall.RawConn) error,
) (net.Listener, error) {
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(false) // a device's handshake must be TCP's own
	lc.Control = func(network, address string, rc syscall.RawConn) error {
		if err := all(prepare)(network, address, rc); err != nil {
			return err
		}
		var err error
		if cerr := rc.Control(func(fd uintptr) {
			// The error is ignored: a kernel without this option only loses the order
			// of urgency in which streams are sent.
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
			if congestion != "" {
				if err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion); err != nil {
					const known = "/proc/sys/net/ipv4/tcp_available_congestion_control"
					err = fmt.Errorf("set congestion control %q (the kernel's are in %s): %w", congestion, known, err)
				}
			}
		}); cerr != nil {
			return cerr
		}
		return err
	}
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		hint := ""
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			hint = "; another program listens there: see it with 'ss -ltnp'"
		case errors.Is(err, syscall.EACCES):
			hint = "; ports below 1024 need root, or a network namespace of the program's own"
		}
		return nil, fmt.Errorf("listen for the device%s: %w", hint, err)
	}
	return l, nil
}

// SetFlight bounds the unacknowledged bytes of each connection that is accepted from
// now on. 0 leaves that to TCP, and so does a bound that the kernel cannot set. Without
// a bound a sender fills the queue of the link and leaves slow start at a random
// moment; the device's other requests then wait behind that queue, for another time
// in every trial.
func (s *Server) SetFlight(n int) {
	s.slow.Store(n > 0)
	if n/2 > largestBuffer() {
		n = 0 // a smaller bound could leave the link partly idle
	}
	s.flight.Store(int64(n))
}

// Flight returns the bound in force, or 0.
func (s *Server) Flight() int { return int(s.flight.Load()) }

// bound sets the bound for a connection, as its send buffer: the kernel doubles the
// size that it is given. A connection without a socket has no bound.
func (s *Server) bound(nc net.Conn) {
	if t, ok := nc.(*net.TCPConn); ok && s.Flight() > 0 {
		_ = t.SetWriteBuffer(s.Flight() / 2) // fails only for a closed connection
	}
}

// largestBuffer returns the largest send buffer that the kernel allows. A socket is
// asked because network namespaces have the setting's file only since Linux 6.8.
var largestBuffer = sync.OnceValue(func() int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(fd) }() // nothing was sent on it
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<29) != nil {
		return 0
	}
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return 0
	}
	return n / 2
})

// all calls each of prepare that is not nil.
func all(prepare []func(network, address string, c syscall.RawConn) error) func(network, address string, c syscall.RawConn) error {
	return func(network, address string, c syscall.RawConn) error {
		for _, f := range prepare {
			if f == nil {
				continue
			}
			if err := f(network, address, c); err != nil {
				return err
			}
		}
		return nil
	}
}

// Congestion returns the algorithm that a TCP listener's connections inherit.
func Congestion(l net.Listener) (string, error) {
	sc, ok := l.(syscall.Conn)
	if !ok {
		return "", fmt.Errorf("read the congestion control: %T has no socket", l)
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return "", fmt.Errorf("read the congestion control: %w", err)
	}
	var name string
	if cerr := rc.Control(func(fd uintptr) {
		name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	}); cerr != nil {
		err = cerr
	}
	if err != nil {
		return "", fmt.Errorf("read the congestion control: %w", err)
	}
	return name, nil
}
