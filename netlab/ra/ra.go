// Package ra gives a device's network IPv6. In go router solicitations on one
// interface; out go router advertisements with the prefix from which the device
// makes its addresses, and the box as its router and name server. It follows
// RFC 4861 (neighbour discovery), RFC 4862 (stateless addresses) and RFC 8106
// (name servers); there is no DHCPv6.
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
	// lifetime of all that is advertised, so that a device keeps its addresses
	// during a restart of the box.
	lifetime = 30 * time.Minute
	// interval between unsolicited advertisements.
	interval = 3 * time.Minute
	// firstInterval is the interval of the first three, one of which a device may
	// have missed.
	firstInterval = 4 * time.Second
	// leastInterval is the rate limit of answers to solicitations.
	leastInterval = 50 * time.Millisecond
	// writeTimeout bounds how long writing an advertisement can block.
	writeTimeout = 50 * time.Millisecond
)

// Config of a Server. Interface, Router and Prefix are required.
type Config struct {
	// Interface leads to the device: "lab0".
	Interface string
	// Router is the link-local address of Interface, the source of advertisements.
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
	c        Config
	ifi      *net.Interface
	conn     net.PacketConn
	packet   *ipv6.PacketConn
	current  []byte      // the advertisement
	final    []byte      // the advertisement with lifetime 0, which withdraws the router
	requests chan net.IP // where to send an advertisement
	stop     chan struct{}
	written  chan struct{} // closed when the final advertisement was sent
	done     sync.WaitGroup
	once     sync.Once
}

// Serve starts to advertise.
func Serve(c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{c: c, requests: make(chan net.IP, 1), stop: make(chan struct{}), written: make(chan struct{})}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("start router advertisements on %s: %w", c.Interface, err)
	}
	s.done.Go(s.read)
	s.done.Go(func() { defer close(s.written); s.write() })
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
	if s.current, err = a.Marshal(); err != nil {
		return err
	}
	a.Lifetime = 0
	if s.final, err = a.Marshal(); err != nil {
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

// Announce sends an unsolicited advertisement soon, for a device that was plugged in.
func (s *Server) Announce() { s.request(net.IPv6linklocalallnodes) }

// request lets write send an advertisement to an address. If another one waits
// already, both become one advertisement to all nodes (RFC 4861, 6.2.6).
func (s *Server) request(to net.IP) {
	for {
		select {
		case s.requests <- to:
			return
		default:
		}
		select {
		case <-s.requests:
			to = net.IPv6linklocalallnodes
		default: // write has taken it meanwhile
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
		if err != nil { // the interface is down; try again
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
			s.request(ip.IP)
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
			s.withdraw()
			return
		case to = <-s.requests:
		case <-next.C:
			pause := interval
			if first--; first > 0 {
				pause = firstInterval
			}
			next.Reset(pause)
		}
		_ = s.send(s.current, to) // another one follows
		select {                  // Rate limit: later solicitations are answered after the pause.
		case <-s.stop:
			s.withdraw()
			return
		case <-time.After(leastInterval):
		}
	}
}

// withdraw sends the final advertisement. On a machine that stalls a deadline can
// expire before the write starts, and no later advertisement makes up for the
// final one, so withdraw tries as often as RFC 4861 (6.2.5) allows.
func (s *Server) withdraw() {
	const most = 3
	for range most {
		if !errors.Is(s.send(s.final, net.IPv6linklocalallnodes), os.ErrDeadlineExceeded) {
			return
		}
	}
}

func (s *Server) send(b []byte, to net.IP) error {
	cm := &ipv6.ControlMessage{HopLimit: 255, Src: s.c.Router.AsSlice(), IfIndex: s.ifi.Index}
	// Without a deadline an answer to an address that nobody has would block the
	// others.
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails when closed, as the write does
	_, err := s.packet.WriteTo(b, cm, &net.IPAddr{IP: to, Zone: s.c.Interface})
	if err != nil {
		s.c.Log.Warn("a router advertisement was not sent", "error", err)
	}
	return err
}

// Close withdraws the router and stops.
func (s *Server) Close() (err error) {
	s.once.Do(func() {
		close(s.stop)
		<-s.written
		err = s.conn.Close()
		s.done.Wait()
	})
	return err
}
