// Package reach decides where the box may connect on behalf of somebody else: a page that is recorded, or a person
// who named the address of a webhook. A Rule judges an address, after the name was resolved; a Dialer resolves a
// name, judges each of its addresses and connects to that very address, so that a name server cannot show one address
// to the check and another to the connection (DNS rebinding).
//
// Without more, a Rule lets pass public addresses alone. What is not public: loopback, link-local (with the metadata
// services of clouds), private, shared, multicast and reserved addresses (RFC 6890), the addresses of this machine,
// whatever they are, the networks that it is in (neighbours have no router between them that could refuse), and IPv6
// addresses that a translator leads to such an IPv4 address (RFC 3056, 4380, 6052, 8215).
package reach

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ErrRefused is in the error of an address that a Rule refuses.
var ErrRefused error = refusal{} // constant

type refusal struct{}

func (refusal) Error() string { return "the box does not connect there" }

// ByBox tells that no origin is at fault.
func (refusal) ByBox() bool { return true }

// Rule says where connections may go. The zero value lets pass public addresses alone.
type Rule struct {
	// Private opens this machine and private networks, but not Own.
	Private bool
	// Pages are the hosts of pages that a person named, each open at its addresses, and nowhere else.
	Pages map[string][]netip.Addr
	// Allow names hosts, as names or addresses, that may be in private networks. This machine, a link-local address
	// or a device is open only if Allow names that address, or localhost: a name's address is the choice of whoever
	// answers for the name.
	Allow []string
	// Own are the addresses at which the box itself listens; they are never open.
	Own []netip.AddrPort
	// Devices lists the networks of the devices; nil knows none.
	Devices func() []netip.Prefix
	// Machine lists what this machine is connected to; nil asks the kernel.
	Machine func() (Machine, error)
	// Remedy ends the error of a refusal: how a person opens such addresses.
	Remedy string
}

// Machine is where this machine is in the network.
type Machine struct {
	Addrs    []netip.Addr   // its own
	Networks []netip.Prefix // whose machines it reaches without a router
}

// The kinds of addresses that are not public, in the words of an error.
const (
	isPublic   = ""
	isNobody   = "is no address of one machine"
	isItself   = "is an address of the box itself"
	isLink     = "is a link-local address, where clouds keep their metadata"
	isDevice   = "is in the network of a device"
	isNear     = "is in a network that this machine is in"
	isPrivate  = "is an address of a private network"
	isListener = "is where the box itself listens, and the request would come back to it"
)

// Check returns an error unless a host that has the address may be connected to there.
func (r *Rule) Check(host string, to netip.AddrPort) error {
	host, a := canonical(host), to.Addr().Unmap().WithZone("")
	if r.isOwn(netip.AddrPortFrom(a, to.Port())) {
		return fmt.Errorf("%v %s: %w", to, isListener, ErrRefused)
	}
	if at, named := r.Pages[host]; named {
		if slices.Contains(at, a) {
			return nil
		}
		return fmt.Errorf("%s was at %v when the page was named, and now is at %v: %w", host, at, a, ErrRefused)
	}
	if r.isOfPage(host, a) || r.allows(a.String()) || host == "localhost" && a.IsLoopback() && r.allows(host) {
		return nil
	}
	if r.Private && !isOfNobody(a) {
		return nil
	}
	kind := r.kind(a)
	switch {
	case kind == isPublic, (kind == isPrivate || kind == isNear) && r.allows(host):
		return nil
	case r.Remedy == "" || kind == isNobody:
		return fmt.Errorf("%v %s: %w", a, kind, ErrRefused)
	}
	return fmt.Errorf("%v %s: %w; %s", a, kind, ErrRefused, r.Remedy)
}

// IsPublic tells whether anybody's page may be at an address.
func (r *Rule) IsPublic(a netip.Addr) bool { return r.kind(a.Unmap().WithZone("")) == isPublic }

// isOfPage tells whether a host means a named page's machine by its address, or is another name of this machine's
// loopback when the page is there: no name server answers for either.
func (r *Rule) isOfPage(host string, a netip.Addr) bool {
	literal, err := netip.ParseAddr(host)
	isLiteral := err == nil && literal.Unmap() == a
	isLoopback := a.IsLoopback() && IsLocal(host)
	if !isLiteral && !isLoopback {
		return false
	}
	for page, at := range r.Pages {
		if isLiteral && slices.Contains(at, a) || isLoopback && IsLocal(page) {
			return true
		}
	}
	return false
}

// IsLocal tells whether a host means this machine for everybody: localhost (RFC 6761, 6.3), or a loopback address.
func IsLocal(host string) bool {
	host = canonical(host)
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && a.Unmap().IsLoopback()
}

func (r *Rule) allows(host string) bool { return Names(r.Allow, host) }

// Names tells whether a list names a host.
func Names(list []string, host string) bool {
	host = canonical(host)
	for _, name := range list {
		if canonical(name) == host {
			return true
		}
		a, err := netip.ParseAddr(name)
		if b, otherErr := netip.ParseAddr(host); err == nil && otherErr == nil && a.Unmap() == b.Unmap() {
			return true
		}
	}
	return false
}

func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// kind says what an address is. If the kernel does not tell what this machine is connected to, every address may be
// its own.
func (r *Rule) kind(a netip.Addr) string {
	switch {
	case isOfNobody(a):
		return isNobody
	case a.IsUnspecified() || a.IsLoopback():
		return isItself
	case a.IsLinkLocalUnicast():
		return isLink
	}
	machine, err := r.machine()
	translated, isTranslated := embedded(a)
	switch {
	case err != nil:
		return fmt.Sprintf("may be an address of the box itself (%v)", err)
	case machine.has(a):
		return isItself
	case r.Devices != nil && contains(r.Devices(), a):
		return isDevice
	case a.IsPrivate() || contains(reserved, a):
		return isPrivate
	case contains(machine.Networks, a):
		return isNear
	case isTranslated && r.kind(translated) != isPublic:
		return isPrivate
	}
	return isPublic
}

// isOfNobody tells an address that is none, or of many.
func isOfNobody(a netip.Addr) bool {
	return !a.IsValid() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// reserved lists what a private network may use, or a translator leads into one, that netip does not name.
var reserved = []netip.Prefix{ // constant
	netip.MustParsePrefix("0.0.0.0/8"),       // RFC 791, this network
	netip.MustParsePrefix("100.64.0.0/10"),   // RFC 6598, shared by the customers of a provider
	netip.MustParsePrefix("192.0.0.0/24"),    // RFC 6890, protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"),   // RFC 2544, origins of a replay
	netip.MustParsePrefix("240.0.0.0/4"),     // RFC 1112, reserved
	netip.MustParsePrefix("::/96"),           // RFC 4291, IPv4-compatible
	netip.MustParsePrefix("::ffff:0:0:0/96"), // RFC 2765, IPv4-translated
	netip.MustParsePrefix("64:ff9b:1::/48"),  // RFC 8215, NAT64 of one's own network
	netip.MustParsePrefix("2001::/32"),       // RFC 4380, Teredo
	netip.MustParsePrefix("fec0::/10"),       // RFC 3879, site-local
}

func contains(all []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Masked().Contains(a) })
}

// embedded returns the IPv4 address that a translator makes of an IPv6 address: NAT64 (RFC 6052) and 6to4 (RFC 3056).
func embedded(a netip.Addr) (four netip.Addr, is bool) {
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}

// isOwn tells whether one of Own listens at an address.
func (r *Rule) isOwn(to netip.AddrPort) bool {
	for _, o := range r.Own {
		at := o.Addr().Unmap()
		if o.IsValid() && o.Port() == to.Port() &&
			(at == to.Addr() || at.IsUnspecified() && r.isHere(to.Addr()) || to.Addr().IsUnspecified() && r.isHere(at)) {
			return true
		}
	}
	return false
}

// isHere tells whether this machine has an address. Without the kernel's word it does.
func (r *Rule) isHere(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	machine, err := r.machine()
	return err != nil || machine.has(a)
}

func (r *Rule) machine() (Machine, error) {
	if r.Machine != nil {
		return r.Machine()
	}
	return ThisMachine()
}

func (m Machine) has(a netip.Addr) bool {
	return slices.ContainsFunc(m.Addrs, func(own netip.Addr) bool { return own.Unmap().WithZone("") == a })
}
