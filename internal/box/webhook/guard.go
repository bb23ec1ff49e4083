package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"eidetic/netlab/reach"
)

// Guard says which addresses may be called.
type Guard struct {
	// Allow names hosts, as names or addresses, that may be in private networks and may be
	// called without TLS.
	Allow []string
	// Inside lists the networks of the devices; nil knows none.
	Inside func() []netip.Prefix
	// Machine is that of a reach.Rule.
	Machine func() (reach.Machine, error)
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

// Names says whether the configuration names the host of an address.
func (g Guard) Names(text string) bool {
	u, err := url.Parse(text)
	return err == nil && g.allows(u.Hostname())
}

// Check returns an error unless a host that has the address may be called there.
func (g Guard) Check(host string, a netip.Addr) error {
	return g.rule().Check(host, netip.AddrPortFrom(a, 0))
}

func (g Guard) allows(host string) bool { return reach.Names(g.Allow, host) }

func (g Guard) rule() *reach.Rule {
	return &reach.Rule{
		Allow: g.Allow, Devices: g.Inside, Machine: g.Machine,
		Remedy: "webhooks reach it if the configuration names it (webhooks.allow)",
	}
}
