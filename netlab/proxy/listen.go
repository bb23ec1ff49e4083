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

// unsent is how many bytes wait in the kernel before a connection counts as
// full: what it has taken leaves in the order it came, whatever becomes urgent
// meanwhile. At 100 Mbit/s it lasts for a millisecond, in which we write more.
const unsent = 16 << 10

// Listen opens a TCP listener whose connections use a congestion control
// algorithm ("cubic"; "" keeps the machine's). It is set before listen(2): a
// socket that is switched after the handshake keeps the pacing of the old one.
// Each of prepare that is not nil may do more to the socket before it is bound.
func Listen(ctx context.Context, addr, congestion string, prepare ...func(network, address string, c syscall.RawConn) error) (net.Listener, error) {
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(false) // a device's handshake must be TCP's own
	lc.Control = func(network, address string, rc syscall.RawConn) error {
		if err := all(prepare)(network, address, rc); err != nil {
			return err
		}
		var err error
		if cerr := rc.Control(func(fd uintptr) {
			// It does without where there is no such option; older kernels only lose
			// the order in which streams were to leave.
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
			if congestion != "" {
				if err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion); err != nil {
					err = fmt.Errorf("set congestion control %q (the kernel's are in /proc/sys/net/ipv4/tcp_available_congestion_control): %w", congestion, err)
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
			hint = "; ports below 1024 need root or a namespace of one's own"
		}
		return nil, fmt.Errorf("listen for the device%s: %w", hint, err)
	}
	return l, nil
}

// SetFlight bounds how much a connection that is accepted from now on keeps
// sent and not acknowledged: 0 leaves that to TCP, and so does a bound that the
// kernel cannot set. A sender that fills whatever queue there is leaves slow start
// when noise says so, and what else the device asks for waits behind it, another
// time in every trial.
func (s *Server) SetFlight(n int) {
	s.slow.Store(n > 0)
	if n/2 > largestBuffer() {
		n = 0 // a smaller one could keep the link from being filled
	}
	s.flight.Store(int64(n))
}

// Flight returns the bound that holds.
func (s *Server) Flight() int { return int(s.flight.Load()) }

// bound sets the bound for a connection: as its send buffer, of which the
// kernel makes twice what it is given. One that no kernel's socket carries has
// none.
func (s *Server) bound(nc net.Conn) {
	if t, ok := nc.(*net.TCPConn); ok && s.Flight() > 0 {
		_ = t.SetWriteBuffer(s.Flight() / 2) // it is gone, then
	}
}

// largestBuffer is what the kernel lets a socket have. It is asked by a socket:
// the setting is a file that namespaces have since Linux 6.8 only.
var largestBuffer = sync.OnceValue(func() int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(fd) }() // it holds nothing
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
