// Package dhcp gives the device its address. In go DHCPv4 messages (RFC 2131)
// on one interface, out come leases from one prefix with the gateway, the name
// server and a time server as options (RFC 2132), and a callback for each lease.
// Leases are kept in a file when one is named, so that a device keeps its
// address when the box restarts. The protocol is insomniacslk/dhcp's.
package dhcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
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

// Server gives out leases. End it with Close.
type Server struct {
	c      Config
	server *server4.Server
	done   chan struct{}
	mu     sync.Mutex
	leases map[netip.Addr]*Lease // also offers and declined addresses (no MAC)
	closed bool
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
	s := &Server{c: c, leases: map[netip.Addr]*Lease{}, done: make(chan struct{})}
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
	var opts []server4.ServerOpt
	if c.Conn != nil {
		opts = append(opts, server4.WithConn(c.Conn))
	}
	var err error
	if s.server, err = server4.NewServer(c.Interface, &net.UDPAddr{IP: net.IPv4zero, Port: dhcpv4.ServerPort}, s.handle, opts...); err != nil {
		return nil, fmt.Errorf("start DHCP on %s: %w", c.Interface, err)
	}
	go func() {
		defer close(s.done)
		err := s.server.Serve()
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && !s.closed {
			c.Log.Error("DHCP stopped", "interface", c.Interface, "error", err)
		}
	}()
	return s, nil
}

// Close stops answering.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	var err error
	if first {
		err = s.server.Close()
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
			out = append(out, *l)
		}
	}
	slices.SortFunc(out, func(a, b Lease) int { return a.Addr.Compare(b.Addr) })
	return out
}

// load reads the leases of before. A broken file is moved out of the way: a
// device without an address is worse than one with a new address.
func (s *Server) load() error {
	if s.c.File == "" {
		return nil
	}
	b, err := os.ReadFile(s.c.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("start DHCP: read the leases: %w", err)
	}
	var list []Lease
	if err := json.Unmarshal(b, &list); err != nil {
		s.c.Log.Warn("the file of leases is broken and begins anew", "file", s.c.File, "error", err)
		if err := os.Rename(s.c.File, s.c.File+".broken"); err != nil {
			return fmt.Errorf("start DHCP: move the broken leases away: %w", err)
		}
		return nil
	}
	for _, l := range list {
		if mac, err := net.ParseMAC(l.MAC); err == nil && s.usable(l.Addr) {
			l.MAC = mac.String()
			s.leases[l.Addr] = &l
		}
	}
	return nil
}

// save replaces the file; the caller holds the lock.
func (s *Server) save() {
	if s.c.File == "" {
		return
	}
	b, err := json.MarshalIndent(s.list(), "", "  ")
	if err == nil {
		temp := s.c.File + ".new"
		if err = os.MkdirAll(filepath.Dir(s.c.File), 0o755); err == nil {
			if err = os.WriteFile(temp, append(b, '\n'), 0o644); err == nil {
				err = os.Rename(temp, s.c.File)
			}
		}
	}
	if err != nil {
		s.c.Log.Error("the leases were not kept", "file", s.c.File, "error", err)
	}
}
