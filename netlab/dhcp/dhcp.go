// Package dhcp gives the device its address. In go DHCPv4 messages (RFC 2131)
// on one interface, out come leases from one prefix with the gateway, the name
// server and a time server as options (RFC 2132), and a callback for each lease.
// Leases are kept in a file when one is named, so that a device keeps its
// address when the box restarts. The protocol is insomniacslk/dhcp's.
//
// Messages come from anybody with a cable: they are handled one at a time, the
// table is never larger than the prefix, and the file is written at most once
// a second.
package dhcp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"
)

const (
	// offerTime is how long an offered address is held for the one who asked.
	offerTime = time.Minute
	// declineTime is how long an address that a device found in use is left out.
	declineTime = 10 * time.Minute
	maxPrefix   = 16 // bits: the table stays small
	// saveEvery bounds how often the file is written.
	saveEvery = time.Second
	// maxFile is more than a full table needs.
	maxFile = 16 << 20
	// Unrestricted is the CaptivePortal of a network that has none (RFC 8910, 2).
	Unrestricted = "urn:ietf:params:capport:unrestricted"
)

// Config of a Server. Interface (or Conn), Gateway, Prefix and Now are required.
type Config struct {
	// Interface is where the device is: "lab0".
	Interface string
	// Conn replaces the socket on Interface.
	Conn net.PacketConn
	// Gateway is the box's address there; it is the router, and the name and
	// time server unless others are given.
	Gateway netip.Addr
	// Prefix holds the addresses that are given out, lowest first, except the
	// gateway's: 192.168.77.0/24.
	Prefix netip.Prefix
	// DNS and NTP default to the gateway; an empty, non-nil NTP is left out.
	DNS, NTP []netip.Addr
	// Lease is how long an address holds, default an hour.
	Lease time.Duration
	// Reserved gives devices addresses of their own, by MAC ("02:00:00:00:00:01").
	Reserved map[string]netip.Addr
	// CaptivePortal is the URL of option 114 (RFC 8910); empty leaves it out.
	CaptivePortal string
	// File keeps the leases; empty keeps them in memory.
	File string
	// OnLease is told of each lease that is given or renewed.
	OnLease func(Lease)
	// OnDoubt is told when the MAC address of a lease that holds asks in
	// another voice: it was set up anew, or two devices have one address.
	OnDoubt func(Lease)
	Now     func() time.Time
	Log     *slog.Logger
}

// Lease is an address that a device holds.
type Lease struct {
	MAC   string     `json:"mac"`
	Addr  netip.Addr `json:"addr"`
	Name  string     `json:"name,omitempty"` // as the device calls itself
	Until time.Time  `json:"until"`
}

// held is a lease, and how the device that has it speaks.
type held struct {
	Lease
	voice voice
}

// Server gives out leases. End it with Close.
type Server struct {
	c    Config
	conn net.PacketConn
	done chan struct{}

	mu     sync.Mutex
	leases map[netip.Addr]*held // also offers and declined addresses (no MAC)
	closed bool
	saved  time.Time // of the file, by the machine's own clock
	later  *time.Timer
}

// Serve starts to answer.
func Serve(c Config) (*Server, error) {
	if !c.Gateway.Is4() || !c.Prefix.IsValid() || !c.Prefix.Contains(c.Gateway) || c.Prefix.Bits() < maxPrefix || c.Prefix.Bits() > 30 {
		return nil, fmt.Errorf("start DHCP: gateway %v and prefix %v do not fit: the gateway lies in an IPv4 prefix of %d to 30 bits", c.Gateway, c.Prefix, maxPrefix)
	}
	if c.Now == nil {
		return nil, errors.New("start DHCP: a clock is required")
	}
	c.Prefix = c.Prefix.Masked()
	if c.Lease == 0 {
		c.Lease = time.Hour
	}
	if c.DNS == nil {
		c.DNS = []netip.Addr{c.Gateway}
	}
	if c.NTP == nil {
		c.NTP = []netip.Addr{c.Gateway}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{c: c, leases: map[netip.Addr]*held{}, done: make(chan struct{})}
	reserved := map[string]netip.Addr{}
	for text, addr := range c.Reserved {
		mac, err := net.ParseMAC(text)
		if err != nil || !s.usable(addr) {
			return nil, fmt.Errorf("start DHCP: reservation %s = %v: not a MAC address and an address of %v", text, addr, c.Prefix)
		}
		reserved[mac.String()] = addr
	}
	s.c.Reserved = reserved
	if err := s.load(); err != nil {
		return nil, err
	}
	if s.conn = c.Conn; s.conn == nil {
		conn, err := server4.NewIPv4UDPConn(c.Interface, &net.UDPAddr{IP: net.IPv4zero, Port: dhcpv4.ServerPort})
		if err != nil {
			return nil, fmt.Errorf("start DHCP on %s (needs CAP_NET_RAW and CAP_NET_BIND_SERVICE): %w", c.Interface, err)
		}
		s.conn = conn
	}
	go s.run()
	return s, nil
}

// run reads until Close. One message after the other: a flood waits in the
// socket, and is lost there.
func (s *Server) run() {
	defer close(s.done)
	buffer := make([]byte, maxMessage)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		n, peer, err := s.conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // the interface is down: it passes
			s.c.Log.Warn("a DHCP message was not read", "interface", s.c.Interface, "error", err)
			pause.Reset(100 * time.Millisecond)
			<-pause.C
			continue
		}
		m, err := dhcpv4.FromBytes(buffer[:n])
		if err != nil {
			s.c.Log.Debug("no DHCP message", "from", peer, "error", err)
			continue
		}
		s.handle(s.conn, peer, m)
	}
}

// Close stops answering.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	if s.later != nil { // though it may run already: then it waits for us, and leaves it to us
		s.later.Stop()
		s.later = nil
		s.write()
	}
	s.mu.Unlock()
	var err error
	if first {
		err = s.conn.Close()
	}
	<-s.done
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

// Leases returns those that hold, by address.
func (s *Server) Leases() []Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list()
}

func (s *Server) list() []Lease {
	var out []Lease
	for _, l := range s.leases {
		if l.MAC != "" && s.c.Now().Before(l.Until) {
			out = append(out, l.Lease)
		}
	}
	slices.SortFunc(out, func(a, b Lease) int { return a.Addr.Compare(b.Addr) })
	return out
}
