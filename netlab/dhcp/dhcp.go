// Package dhcp gives the device its address. In go DHCPv4 messages (RFC 2131)
// on one interface, out come leases from one prefix with the gateway, the name
// server and a time server as options (RFC 2132), and a callback for each lease.
// With a file, leases survive a restart of the box. insomniacslk/dhcp implements
// the protocol.
//
// Anything on the cable can send messages, so the server handles one at a time,
// its table is never larger than the prefix, and it writes the file at most once
// a second. A lease counts once its address answers ARP (RFC 826) with the MAC
// address that it was given to: until then it is in no list and no file, nobody is
// told of it, and it goes to another device when no address is left.
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
	// offerTime is how long an offered address is reserved for its device.
	offerTime = time.Minute
	// declineTime is how long the server does not give out an address that a
	// device found in use, unless no other is left.
	declineTime = 10 * time.Minute
	maxPrefix   = 16 // bits; it bounds the table
	// saveEvery bounds how often the file is written.
	saveEvery = time.Second
	// maxFile bounds the file that is read; a full table needs less.
	maxFile = 16 << 20
	// Unrestricted is the CaptivePortal of a network without one (RFC 8910, 2).
	Unrestricted = "urn:ietf:params:capport:unrestricted"
)

// Config of a Server. Interface (or Conn), Gateway, Prefix and Now are required.
type Config struct {
	// Interface leads to the device: "lab0".
	Interface string
	// Conn replaces the socket on Interface.
	Conn net.PacketConn
	// Gateway is the box's address on Interface: the router, and the name and
	// time server unless DNS and NTP are set.
	Gateway netip.Addr
	// Prefix contains the addresses that the server gives out, lowest first and
	// without the gateway's: 192.168.77.0/24.
	Prefix netip.Prefix
	// DNS and NTP default to the gateway. With an empty, non-nil NTP the option is
	// left out.
	DNS, NTP []netip.Addr
	// Lease is how long a lease is valid, default an hour.
	Lease time.Duration
	// Reserved gives devices addresses of their own, by MAC ("02:00:00:00:00:01").
	Reserved map[string]netip.Addr
	// CaptivePortal is the URL of option 114 (RFC 8910); empty leaves it out.
	CaptivePortal string
	// File keeps the leases; empty keeps them in memory.
	File string
	// Answers returns the MAC addresses of those addresses that answer on Interface; nil asks the kernel there, and
	// with a Conn takes every lease for answered.
	Answers func(asked []netip.Addr) map[netip.Addr]string
	// OnLease is called for each lease that was given and is answered, or is renewed.
	OnLease func(Lease)
	// OnDoubt is called when a request for a valid lease has the same MAC address
	// and another signature: the device was reinstalled, or two devices have one
	// MAC address.
	OnDoubt func(Lease)
	Now     func() time.Time
	Log     *slog.Logger
}

// Lease is an address that a device holds.
type Lease struct {
	MAC   string     `json:"mac"`
	Addr  netip.Addr `json:"addr"`
	Name  string     `json:"name,omitempty"` // the host name that the device sent
	Until time.Time  `json:"until"`
}

// held is a lease with the signature of the device that has it.
type held struct {
	Lease
	signature signature
	since     time.Time
	given     bool // it is more than an offer
	answered  bool // see the package comment
}

// isProvisional tells a lease or an offer that nobody has answered for yet.
func (h *held) isProvisional() bool { return h.MAC != "" && !h.answered }

// isUnproven tells what may go to another device when no address is left: what is provisional, and what a device has
// declined, for nobody but itself says that the address is in use.
func (h *held) isUnproven() bool { return !h.answered }

// Server gives out leases. End it with Close.
type Server struct {
	c    Config
	conn net.PacketConn
	done chan struct{}
	ask  chan struct{} // wakes prove
	both sync.WaitGroup

	mu     sync.Mutex
	leases map[netip.Addr]*held // also offers and declined addresses (no MAC)
	closed bool
	saved  time.Time // when the file was written, by the machine's own clock
	later  *time.Timer
}

// Serve starts to answer.
func Serve(c Config) (*Server, error) {
	if !c.Gateway.Is4() || !c.Prefix.IsValid() || !c.Prefix.Contains(c.Gateway) || c.Prefix.Bits() < maxPrefix || c.Prefix.Bits() > 30 {
		return nil, fmt.Errorf("start DHCP: the gateway %v is not in an IPv4 prefix of %d to 30 bits: %v", c.Gateway, maxPrefix, c.Prefix)
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
	if c.Answers == nil && c.Conn == nil {
		c.Answers = neighbours(c.Interface)
	}
	s := &Server{c: c, leases: map[netip.Addr]*held{}, done: make(chan struct{}), ask: make(chan struct{}, 1)}
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
	s.both.Go(s.run)
	s.both.Go(s.prove)
	return s, nil
}

// run reads until Close, one message after the other. A flood overflows the
// socket's buffer and is lost there.
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
		if err != nil { // the interface is down; try again
			s.c.Log.Warn("a DHCP message was not read", "interface", s.c.Interface, "error", err)
			pause.Reset(100 * time.Millisecond)
			<-pause.C
			continue
		}
		m, err := parse(buffer[:n])
		if err != nil {
			s.c.Log.Debug("a packet is no DHCP message", "from", peer, "error", err)
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
	if s.later != nil { // its function may wait for the lock, and does nothing once closed is set
		s.later.Stop()
		s.later = nil
		s.write()
	}
	s.mu.Unlock()
	var err error
	if first {
		err = s.conn.Close()
	}
	s.both.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

// Leases returns the valid leases that are answered, sorted by address.
func (s *Server) Leases() []Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list()
}

func (s *Server) list() []Lease {
	var out []Lease
	for _, l := range s.leases {
		if l.answered && s.c.Now().Before(l.Until) {
			out = append(out, l.Lease)
		}
	}
	slices.SortFunc(out, func(a, b Lease) int { return a.Addr.Compare(b.Addr) })
	return out
}
