package dns

import (
	"fmt"
	"net/netip"

	"github.com/miekg/dns"
)

// ResolvConf is the file in which Linux programs find their name servers.
const ResolvConf = "/etc/resolv.conf"

// SystemResolver returns the first name server of a file such as ResolvConf
// (resolv.conf(5)), with port 53.
func SystemResolver(file string) (netip.AddrPort, error) {
	conf, err := dns.ClientConfigFromFile(file)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("find a name server: %w", err)
	}
	for _, s := range conf.Servers {
		if a, err := netip.ParseAddr(s); err == nil {
			return netip.AddrPortFrom(a, 53), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("find a name server: %s has no line \"nameserver ADDRESS\"", file)
}
