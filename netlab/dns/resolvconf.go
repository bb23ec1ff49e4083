package dns

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

// ResolvConf is the file in which Linux programs find their name servers.
const ResolvConf = "/etc/resolv.conf"

const (
	mostServers    = 3           // that count (resolv.conf(5))
	serverPatience = time.Second // for an answer of each
)

// SystemResolver returns the first name server of a file such as ResolvConf (resolv.conf(5)) that answers, with port 53.
// A recording uses one server for all names.
func SystemResolver(file string) (netip.AddrPort, error) {
	servers, err := serversOf(file)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("find a name server: %w", err)
	}
	return firstToAnswer(servers, serverPatience), nil
}

// serversOf reads the file.
func serversOf(file string) (servers []netip.AddrPort, err error) {
	conf, err := dns.ClientConfigFromFile(file)
	if err != nil {
		return nil, err
	}
	for _, s := range conf.Servers {
		if a, err := netip.ParseAddr(s); err == nil && len(servers) < mostServers {
			servers = append(servers, netip.AddrPortFrom(a, 53))
		}
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("%s has no line \"nameserver ADDRESS\"", file)
	}
	return servers, nil
}

// firstToAnswer returns the first server that answers a query for the address of the root, which has none. A server that
// answers with a failure, such as REFUSED, is used only if no other answers. If none answers at all it is the first.
func firstToAnswer(servers []netip.AddrPort, patience time.Duration) netip.AddrPort {
	if len(servers) == 1 {
		return servers[0]
	}
	best, hasFailed := servers[0], false
	for _, s := range servers {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		r, err := NewForwarder(s, nil, nil).exchange(ctx, new(dns.Msg).SetQuestion(".", dns.TypeA), "udp", []time.Duration{patience})
		cancel()
		if err == nil && !isFailure(r.Rcode) {
			return s
		}
		if err == nil && !hasFailed {
			best, hasFailed = s, true
		}
	}
	return best
}
