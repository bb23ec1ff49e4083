package dhcp

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

const (
	// writeTimeout bounds how long writing an answer can block.
	writeTimeout = 50 * time.Millisecond
	maxMessage   = 4096 // bytes; a UDP packet on Ethernet has fewer
	maxName      = 63
	// bootTime is how long a device has its address that speaks BOOTP alone, and renews nothing.
	bootTime = 24 * time.Hour
)

// usable reports whether the server can give out an address.
func (s *Server) usable(a netip.Addr) bool {
	last := s.c.Prefix.Addr().As4()
	for i := s.c.Prefix.Bits(); i < 32; i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	return s.c.Prefix.Contains(a) && a != s.c.Gateway && a != s.c.Prefix.Addr() && a != netip.AddrFrom4(last)
}

// free reports whether a device can have an address now; the caller holds the lock.
func (s *Server) free(a netip.Addr, mac string) bool {
	if !s.usable(a) || s.isAnothers(a, mac) {
		return false
	}
	l := s.leases[a]
	return l == nil || l.MAC == mac || !s.c.Now().Before(l.Until) || l.isProvisional() && s.c.Now().Sub(l.since) > offerTime
}

// isAnothers reports whether an address is reserved for another device.
func (s *Server) isAnothers(a netip.Addr, mac string) bool {
	for m, r := range s.c.Reserved {
		if r == a && m != mac {
			return true
		}
	}
	return false
}

// choose returns the address for a device: its reservation, the one that it has or
// had, the one that it asks for, or the lowest free one. The caller holds the lock.
func (s *Server) choose(mac string, wish netip.Addr) (netip.Addr, bool) {
	if a, ok := s.c.Reserved[mac]; ok {
		return a, true
	}
	var had netip.Addr
	for a, l := range s.leases {
		if l.MAC == mac && (!had.IsValid() || a.Less(had)) {
			had = a
		}
	}
	for _, a := range []netip.Addr{had, wish} {
		if a.IsValid() && s.free(a, mac) {
			return a, true
		}
	}
	var oldest, unproven netip.Addr
	for a := s.c.Prefix.Addr().Next(); s.c.Prefix.Contains(a); a = a.Next() {
		l := s.leases[a]
		if l != nil && l.isUnproven() && !s.isAnothers(a, mac) &&
			(!unproven.IsValid() || l.since.Before(s.leases[unproven].since)) {
			unproven = a
		}
		if !s.free(a, mac) {
			continue
		}
		if s.leases[a] == nil {
			return a, true
		}
		// A device may ask for its expired address again, so expired ones come last.
		if !oldest.IsValid() || s.leases[a].Until.Before(s.leases[oldest].Until) {
			oldest = a
		}
	}
	if !oldest.IsValid() {
		// Whoever invents MAC addresses, or declines what it is offered, holds what is left, and loses the oldest first.
		oldest = unproven
	}
	return oldest, oldest.IsValid()
}

// handle answers one message.
func (s *Server) handle(conn net.PacketConn, peer net.Addr, m *dhcpv4.DHCPv4) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.isAnswerable(m) {
		return
	}
	mac := m.ClientHWAddr.String()
	reply := s.answer(m, mac)
	if reply == nil {
		return
	}
	peer = destination(m, reply, peer)
	// Without a deadline an answer to an address that nobody has would block for
	// three seconds. On a machine that stalls the deadline can expire before the
	// write starts, hence the second try.
	var err error
	for range 2 {
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails when closed, as the write does
		if _, err = conn.WriteTo(reply.ToBytes(), peer); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	if err != nil {
		s.c.Log.Warn("a DHCP answer was not sent", "to", mac, "error", err)
	}
}

// parse reads a message, also of a small device that forgets the option that ends the list, and one of BOOTP, which has
// no list (RFC 951).
func parse(b []byte) (*dhcpv4.DHCPv4, error) {
	const vendor = 236 // where the list stands
	m, err := dhcpv4.FromBytes(b)
	if err != nil && len(b) >= vendor+4 && bytes.Equal(b[vendor:vendor+4], make([]byte, 4)) {
		return dhcpv4.FromBytes(append(bytes.Clone(b[:vendor]), 99, 130, 83, 99, dhcpv4.OptionEnd.Code())) // RFC 2131, 3
	}
	if err != nil {
		m, err = dhcpv4.FromBytes(append(bytes.Clone(b), dhcpv4.OptionEnd.Code()))
	}
	return m, err
}

// isAnswerable reports whether a message comes from a device on this cable, or by a relay on it, such as a repeater of
// a Wi-Fi, and not from a server, another medium, a relay elsewhere, or a group or empty MAC address.
func (s *Server) isAnswerable(m *dhcpv4.DHCPv4) bool {
	mac, relay := m.ClientHWAddr, addrOf(m.GatewayIPAddr)
	return m.OpCode == dhcpv4.OpcodeBootRequest && len(mac) == 6 && mac[0]&1 == 0 && !bytes.Equal(mac, make([]byte, 6)) &&
		(!relay.IsValid() || s.usable(relay))
}

// destination returns where an answer goes: to the relay, to the device's address if it has one, else to the broadcast
// address, as does a refusal (RFC 2131, 4.1).
func destination(m, reply *dhcpv4.DHCPv4, peer net.Addr) net.Addr {
	u, ok := peer.(*net.UDPAddr)
	if !ok {
		return peer
	}
	if relay := addrOf(m.GatewayIPAddr); relay.IsValid() {
		return &net.UDPAddr{IP: relay.AsSlice(), Port: dhcpv4.ServerPort}
	}
	if has := addrOf(m.ClientIPAddr); !has.IsValid() || !addrOf(u.IP).IsValid() || reply.MessageType() == dhcpv4.MessageTypeNak {
		return &net.UDPAddr{IP: net.IPv4bcast, Port: dhcpv4.ClientPort}
	}
	return &net.UDPAddr{IP: u.IP, Port: dhcpv4.ClientPort}
}

// answer returns the answer to a message, or nil for none. The caller holds the lock.
func (s *Server) answer(m *dhcpv4.DHCPv4, mac string) *dhcpv4.DHCPv4 {
	now := s.c.Now()
	requested := addrOf(m.RequestedIPAddress())
	switch m.MessageType() {
	case dhcpv4.MessageTypeNone:
		return s.bootstrap(m, mac)
	case dhcpv4.MessageTypeDiscover:
		a, ok := s.choose(mac, requested)
		if !ok {
			s.c.Log.Warn("no address is left", "for", mac, "prefix", s.c.Prefix)
			return nil
		}
		if l := s.leases[a]; l == nil || l.MAC != mac || now.After(l.Until) {
			s.leases[a] = &held{Lease: Lease{MAC: mac, Addr: a, Until: now.Add(offerTime)}, since: now}
		}
		return s.reply(m, dhcpv4.MessageTypeOffer, a)
	case dhcpv4.MessageTypeRequest:
		if id := addrOf(m.ServerIdentifier()); id.IsValid() && id != s.c.Gateway {
			return nil // the device took another server's offer
		}
		a := requested
		if !a.IsValid() {
			a = addrOf(m.ClientIPAddr)
		}
		if r, ok := s.c.Reserved[mac]; !s.free(a, mac) || ok && r != a {
			return s.refuse(m)
		}
		s.give(m, mac, a, s.c.Lease)
		return s.reply(m, dhcpv4.MessageTypeAck, a)
	case dhcpv4.MessageTypeDecline:
		if l := s.leases[requested]; l != nil && l.MAC == mac {
			s.leases[requested] = &held{Lease: Lease{Addr: requested, Until: now.Add(declineTime)}, since: now}
			s.save()
		}
	case dhcpv4.MessageTypeRelease:
		if l := s.leases[addrOf(m.ClientIPAddr)]; l != nil && l.MAC == mac {
			l.Until = now // the entry stays, so that the device gets the address again
			s.save()
		}
	case dhcpv4.MessageTypeInform:
		return s.reply(m, dhcpv4.MessageTypeAck, netip.Addr{})
	}
	return nil
}

// give gives a device its address for a time; the caller holds the lock.
func (s *Server) give(m *dhcpv4.DHCPv4, mac string, a netip.Addr, length time.Duration) {
	now := s.c.Now()
	l := &held{
		Lease:     Lease{MAC: mac, Addr: a, Name: hostname(m.HostName()), Until: now.Add(length)},
		signature: signatureOf(m), since: now, given: true, answered: s.c.Answers == nil,
	}
	if old := s.leases[a]; old != nil && old.MAC == mac && old.answered {
		l.answered = true
	}
	if old := s.leases[a]; s.c.OnDoubt != nil && old != nil && old.MAC == mac && old.signature.differs(l.signature) {
		s.c.OnDoubt(l.Lease)
	}
	for other, old := range s.leases { // a device has one address
		if old.MAC == mac && other != a {
			delete(s.leases, other)
		}
	}
	s.leases[a] = l
	if l.answered {
		s.count(l)
	} else {
		s.wake()
	}
}

// bootstrap answers a device that speaks BOOTP alone (RFC 1534, 2): one message is all that it sends.
func (s *Server) bootstrap(m *dhcpv4.DHCPv4, mac string) *dhcpv4.DHCPv4 {
	if len(m.Options) > 0 && m.Options.Get(dhcpv4.OptionDHCPMessageType) != nil {
		return nil // a message of a kind that there is none of
	}
	a := addrOf(m.ClientIPAddr)
	if !a.IsValid() {
		var ok bool
		if a, ok = s.choose(mac, netip.Addr{}); !ok {
			s.c.Log.Warn("no address is left", "for", mac, "prefix", s.c.Prefix)
			return nil
		}
		s.give(m, mac, a, bootTime)
	}
	r := s.reply(m, dhcpv4.MessageTypeNone, a)
	if r == nil {
		return nil
	}
	for _, of := range []dhcpv4.OptionCode{dhcpv4.OptionDHCPMessageType, dhcpv4.OptionServerIdentifier, dhcpv4.OptionIPAddressLeaseTime} {
		r.Options.Del(of) // DHCP's alone
	}
	return r
}

// count counts a lease that is answered; the caller holds the lock.
func (s *Server) count(l *held) {
	l.answered = true
	s.save()
	if s.c.OnLease != nil {
		s.c.OnLease(l.Lease)
	}
}

func (s *Server) reply(m *dhcpv4.DHCPv4, kind dhcpv4.MessageType, a netip.Addr) *dhcpv4.DHCPv4 {
	mods := []dhcpv4.Modifier{
		dhcpv4.WithMessageType(kind),
		dhcpv4.WithServerIP(s.c.Gateway.AsSlice()),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(s.c.Gateway.AsSlice())),
		dhcpv4.WithNetmask(net.CIDRMask(s.c.Prefix.Bits(), 32)),
		dhcpv4.WithRouter(s.c.Gateway.AsSlice()),
		dhcpv4.WithDNS(ips(s.c.DNS)...),
	}
	if a.IsValid() { // an INFORM's answer has neither (RFC 2131, 4.3.5)
		mods = append(mods, dhcpv4.WithYourIP(a.AsSlice()), dhcpv4.WithLeaseTime(uint32(s.c.Lease.Seconds())))
	}
	if len(s.c.NTP) > 0 {
		mods = append(mods, dhcpv4.WithOption(dhcpv4.OptNTPServers(ips(s.c.NTP)...)))
	}
	if s.c.CaptivePortal != "" {
		mods = append(mods, dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(114), []byte(s.c.CaptivePortal)))
	}
	return s.build(m, mods...)
}

// refuse makes a device with an address that is not free start over.
func (s *Server) refuse(m *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	mods := []dhcpv4.Modifier{
		dhcpv4.WithMessageType(dhcpv4.MessageTypeNak), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(s.c.Gateway.AsSlice())),
	}
	if addrOf(m.GatewayIPAddr).IsValid() { // the relay passes it on to everybody (RFC 2131, 4.3.2)
		mods = append(mods, dhcpv4.WithBroadcast(true))
	}
	return s.build(m, mods...)
}

func (s *Server) build(m *dhcpv4.DHCPv4, mods ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	r, err := dhcpv4.NewReplyFromRequest(m, mods...)
	if err != nil {
		s.c.Log.Warn("a DHCP answer cannot be made", "error", err)
		return nil
	}
	return r
}

func addrOf(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	if a = a.Unmap(); a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

func ips(in []netip.Addr) (out []net.IP) {
	for _, a := range in {
		out = append(out, a.AsSlice())
	}
	return out
}

// hostname returns a name with only letters, digits, dots and underscores; every
// run of other characters becomes one dash.
func hostname(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= maxName {
			break
		}
	}
	return strings.Trim(b.String(), "-.")
}

// signature distinguishes two devices with one MAC address: by client identifier,
// vendor class and requested options.
type signature struct{ client, class, wants string }

func signatureOf(m *dhcpv4.DHCPv4) signature {
	v := signature{client: string(m.Options.Get(dhcpv4.OptionClientIdentifier)), class: m.ClassIdentifier()}
	v.wants = string(m.Options.Get(dhcpv4.OptionParameterRequestList))
	return v
}

// differs reports a change. The first signature after a restart is no change.
func (v signature) differs(now signature) bool { return v != signature{} && v != now }
