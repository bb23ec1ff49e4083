package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"eidetic/netlab/proxy"
)

// ErrForbidden is in the error of an address that a webhook may not call.
var ErrForbidden = errors.New("webhooks may not call it") // constant

// Guard says which addresses may be called.
type Guard struct {
	// Allow names hosts, as names or addresses, that may be in private networks and may be
	// called without TLS.
	Allow []string
	// Inside lists the networks of the devices; nil knows none.
	Inside func() []netip.Prefix
	// Own lists the addresses of this machine; nil asks its interfaces.
	Own func() []netip.Addr
}

// CheckURL returns an error for an address of a webhook that is none, whatever its host
// resolves to.
func (g Guard) CheckURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the address cannot be read: %w", errors.Unwrap(err))
	}
	host := u.Hostname()
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || host == "" || u.Opaque != "":
		return nil, errors.New("the address must begin with https:// and a host")
	case u.User != nil:
		return nil, errors.New("the address must have no user and no password: the signature says who calls")
	case u.Fragment != "":
		return nil, errors.New("the address must have no fragment (#)")
	case u.Scheme == "http" && !g.allows(host):
		return nil, fmt.Errorf("http:// is for hosts that the configuration names (webhooks.allow), and %q is none of them: use https://", host)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return u, g.Check(host, a)
	}
	return u, nil
}

// allows says whether the configuration names a host.
func (g Guard) allows(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, name := range g.Allow {
		if strings.ToLower(strings.TrimSuffix(name, ".")) == host {
			return true
		}
		a, err := netip.ParseAddr(name)
		if b, otherErr := netip.ParseAddr(host); err == nil && otherErr == nil && a.Unmap() == b.Unmap() {
			return true
		}
	}
	return false
}

// Names says whether the configuration names the host of an address.
func (g Guard) Names(text string) bool {
	u, err := url.Parse(text)
	return err == nil && g.allows(u.Hostname())
}

// Check returns an error unless a host that has the address may be called there. A host that
// the configuration names may be in a private network. It may be this machine, a link-local
// address or a device only if the configuration names that address, or localhost: a name's
// address is the choice of whoever answers for the name.
func (g Guard) Check(host string, a netip.Addr) error {
	a = a.Unmap().WithZone("")
	if g.allows(a.String()) || strings.EqualFold(host, "localhost") && a.IsLoopback() && g.allows(host) {
		return nil
	}
	why := ""
	switch {
	case !a.IsValid() || a.IsUnspecified() || a.IsLoopback() || g.isOwn(a):
		why = "is an address of the box itself"
	case a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsInterfaceLocalMulticast():
		why = "is a link-local or multicast address, where clouds keep their metadata"
	case g.isInside(a):
		why = "is in the network of a device"
	case g.allows(host):
		return nil
	case proxy.Public(netip.AddrPortFrom(a, 0)) != nil:
		why = "is an address of a private network"
	default:
		return nil
	}
	return fmt.Errorf("%s %s, and %w, unless the configuration names it (webhooks.allow)", a, why, ErrForbidden)
}

func (g Guard) isInside(a netip.Addr) bool { return g.Inside != nil && isIn(a, g.Inside()) }

func isIn(a netip.Addr, all []netip.Prefix) bool {
	for _, p := range all {
		if p.Masked().Contains(a) {
			return true
		}
	}
	return false
}

// isOwn says whether an address is one of this machine's. If its interfaces cannot be read,
// every address is.
func (g Guard) isOwn(a netip.Addr) bool {
	if g.Own != nil {
		for _, own := range g.Own() {
			if own.Unmap() == a {
				return true
			}
		}
		return false
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, one := range all {
		if p, err := netip.ParsePrefix(one.String()); err == nil && p.Addr().Unmap().WithZone("") == a {
			return true
		}
	}
	return false
}
