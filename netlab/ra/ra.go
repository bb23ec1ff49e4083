// Package ra makes a device's network an IPv6 one. In go router solicitations
// on one interface; out go router advertisements: the prefix from which the
// device makes its addresses, the box as its router and name server. It
// follows RFC 4861 (neighbour discovery), RFC 4862 (stateless addresses) and
// RFC 8106 (name servers); there is no DHCPv6.
package ra

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

const (
	// lifetime of all that is advertised. A device keeps its addresses through
	// a restart of the box.
	lifetime = 30 * time.Minute
	// interval between advertisements that nobody asked for.
	interval = 3 * time.Minute
	// firstInterval is that of the first three, when a device may have missed one.
	firstInterval = 4 * time.Second
	// leastInterval bounds the answers to solicitations, however many come.
	leastInterval = 50 * time.Millisecond
	// writeTimeout bounds how long one may wait for the socket.
	writeTimeout = 50 * time.Millisecond
)

// Config of a Server. Interface, Router and Prefix are required.
type Config struct {
	// Interface is where the device is: "lab0".
	Interface string
	// Router is the link-local address of the interface that speaks.
	Router netip.Addr
	// Prefix has 64 bits: fd00:77::/64.
	Prefix netip.Prefix
	// DNS is the name server, left out when not valid.
	DNS netip.Addr
	MTU int
	// Portal is the URI of RFC 8910; empty leaves it out.
	Portal string
	Log    *slog.Logger
}

// Server advertises. End it with Close.
type Server struct {
	c      Config
	ifi    *net.Interface
	conn   net.PacketConn
	packet *ipv6.PacketConn
	good   []byte // the advertisement
	bye    []byte // and the one that takes it back
	asked  chan net.IP
	stop   chan struct{}
	said   chan struct{} // closed when the last word was said
	done   sync.WaitGroup
	once   sync.Once
}

// Serve starts to advertise.
func Serve(c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{c: c, asked: make(chan net.IP, 1), stop: make(chan struct{}), said: make(chan struct{})}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("start router advertisements on %s: %w", c.Interface, err)
	}
	s.done.Go(s.read)
	s.done.Go(func() { defer close(s.said); s.write() })
	return s, nil
}

func (s *Server) open() (err error) {
	if !s.c.Router.Is6() || !s.c.Router.IsLinkLocalUnicast() {
		return fmt.Errorf("the router's address %v is not link-local", s.c.Router)
	}
	if s.ifi, err = net.InterfaceByName(s.c.Interface); err != nil {
		return err
	}
	a := Advertisement{
		Lifetime: lifetime, Source: s.ifi.HardwareAddr, MTU: s.c.MTU, Prefix: s.c.Prefix, DNS: s.c.DNS, Portal: s.c.Portal,
	}
	if s.good, err = a.Marshal(); err != nil {
		return err
	}
	a.Lifetime = 0
	if s.bye, err = a.Marshal(); err != nil {
		return err
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, s.c.Interface)
		}); cerr != nil {
			return cerr
		}
		return err
	}}
	if s.conn, err = lc.ListenPacket(context.Background(), "ip6:ipv6-icmp", "::"); err != nil {
		return fmt.Errorf("open a raw socket (needs CAP_NET_RAW): %w", err)
	}
	s.packet = ipv6.NewPacketConn(s.conn)
	var filter ipv6.ICMPFilter
	filter.SetAll(true)
	filter.Accept(ipv6.ICMPTypeRouterSolicitation)
	err = errors.Join(
		s.packet.SetICMPFilter(&filter),
		s.packet.JoinGroup(s.ifi, &net.IPAddr{IP: net.IPv6linklocalallrouters}),
		s.packet.SetControlMessage(ipv6.FlagHopLimit, true),
		s.packet.SetMulticastLoopback(false),
	)
	if err != nil {
		return errors.Join(err, s.conn.Close())
	}
	return nil
}

// Announce advertises soon, without being asked: a device was plugged in.
func (s *Server) Announce() { s.ask(net.IPv6linklocalallnodes) }

// ask has somebody answered. While one answer waits, another makes it one for
// all (RFC 4861, 6.2.6).
func (s *Server) ask(who net.IP) {
	for {
		select {
		case s.asked <- who:
			return
		default:
		}
		select {
		case <-s.asked:
			who = net.IPv6linklocalallnodes
		default: // it was sent just now
		}
	}
}

func (s *Server) read() {
	b := make([]byte, 1500)
	for {
		n, cm, peer, err := s.packet.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // the interface is down: it passes
			select {
			case <-s.stop:
				return
			case <-time.After(leastInterval):
				continue
			}
		}
		ip, ok := peer.(*net.IPAddr)
		if !ok || cm == nil {
			continue
		}
		from, _ := netip.AddrFromSlice(ip.IP)
		if err := CheckSolicitation(b[:n], from, cm.HopLimit); err != nil {
			s.c.Log.Debug("a router solicitation is not answered", "from", from, "error", err)
			continue
		}
		if from.IsUnspecified() {
			s.Announce()
		} else {
			s.ask(ip.IP)
		}
	}
}

func (s *Server) write() {
	first := 3
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		to := net.IPv6linklocalallnodes
		select {
		case <-s.stop:
			s.leave()
			return
		case to = <-s.asked:
		case <-next.C:
			pause := interval
			if first--; first > 0 {
				pause = firstInterval
			}
			next.Reset(pause)
		}
		_ = s.send(s.good, to) // another follows
		select {               // who asks meanwhile waits
		case <-s.stop:
			s.leave()
			return
		case <-time.After(leastInterval):
		}
	}
}

// leave takes the router back. Nothing follows that could make up for it, so it
// is said as often as RFC 4861 (6.2.5) allows until the socket takes it: on a
// machine that stalls a deadline may pass before the writing begins.
func (s *Server) leave() {
	const most = 3
	for range most {
		if !errors.Is(s.send(s.bye, net.IPv6linklocalallnodes), os.ErrDeadlineExceeded) {
			return
		}
	}
}

func (s *Server) send(b []byte, to net.IP) error {
	cm := &ipv6.ControlMessage{HopLimit: 255, Src: s.c.Router.AsSlice(), IfIndex: s.ifi.Index}
	// An answer to an address that nobody has would hold up the others.
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // closed: then writing says so
	_, err := s.packet.WriteTo(b, cm, &net.IPAddr{IP: to, Zone: s.c.Interface})
	if err != nil {
		s.c.Log.Warn("a router advertisement was not sent", "error", err)
	}
	return err
}

// Close takes the router back and stops.
func (s *Server) Close() (err error) {
	s.once.Do(func() {
		close(s.stop)
		<-s.said
		err = s.conn.Close()
		s.done.Wait()
	})
	return err
}
