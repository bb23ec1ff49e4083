package dhcp

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
)

const (
	// askEvery is how often the addresses are asked that were given and have not answered. A device takes a moment to
	// use its address, and some ask first whether another has it (RFC 5227).
	askEvery = 200 * time.Millisecond
	// askedAtOnce bounds how many are asked at once; the newest come first.
	askedAtOnce = 64
)

// wake has prove look at the table.
func (s *Server) wake() {
	select {
	case s.ask <- struct{}{}:
	default:
	}
}

// prove asks the addresses that were given and have not answered, until Close.
func (s *Server) prove() {
	for {
		select {
		case <-s.done:
			return
		case <-s.ask:
		}
		for s.askOnce() {
			select {
			case <-s.done:
				return
			case <-time.After(askEvery):
			}
		}
	}
}

// askOnce asks once, and says whether there is something to ask.
func (s *Server) askOnce() bool {
	s.mu.Lock()
	var asked []netip.Addr
	for a, l := range s.leases {
		if l.given && l.isProvisional() && s.c.Now().Sub(l.since) <= offerTime {
			asked = append(asked, a)
		}
	}
	slices.SortFunc(asked, func(a, b netip.Addr) int { return s.leases[b].since.Compare(s.leases[a].since) })
	asked = asked[:min(len(asked), askedAtOnce)]
	s.mu.Unlock()
	if len(asked) == 0 {
		return false
	}
	found := s.c.Answers(asked)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range asked {
		if l := s.leases[a]; l != nil && l.given && l.isProvisional() && found[a] == l.MAC {
			s.count(l)
		}
	}
	return true
}

// neighbours asks the kernel which MAC addresses answer on an interface.
func neighbours(name string) func([]netip.Addr) map[netip.Addr]string {
	return func(asked []netip.Addr) map[netip.Addr]string {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return nil // it is being taken out
		}
		index := link.Attrs().Index
		for _, a := range asked {
			// As if a packet were to be sent there. An error is one of an address that does not answer then.
			_ = netlink.NeighSet(&netlink.Neigh{
				LinkIndex: index, Family: netlink.FAMILY_V4, State: netlink.NUD_NONE, Flags: netlink.NTF_USE, IP: a.AsSlice(),
			})
		}
		list, err := netlink.NeighList(index, netlink.FAMILY_V4)
		if err != nil {
			return nil
		}
		const known = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE
		found := map[netip.Addr]string{}
		for _, n := range list {
			if a, ok := netip.AddrFromSlice(n.IP); ok && n.State&known != 0 {
				found[a.Unmap()] = n.HardwareAddr.String()
			}
		}
		return found
	}
}
