package netlab

import (
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/dns"
)

// tableOf returns the name server's table for a recording: the recorded answers, and
// for hosts without one (an import, an explicit proxy) the addresses of their
// exchanges.
func tableOf(a *archive.Archive) *dns.Table {
	t := dns.NewTable()
	for _, d := range a.DNS() {
		t.AddAnswer(d.Name, d.Type, d.RCode, d.Records)
	}
	recorded := map[string]bool{}
	for name, addrs := range t.Hosts() {
		recorded[name] = len(addrs) > 0
	}
	for _, e := range a.Exchanges() {
		u := lab.ParseURL(e.URL)
		if u.Hostname() == "" {
			continue
		}
		name := dns.Canonical(u.Hostname())
		if _, err := netip.ParseAddr(name); err == nil || recorded[name] {
			continue
		}
		if e.Server.IsValid() && !e.Server.Addr().IsUnspecified() {
			t.AddHost(name, e.Server.Addr())
		} else if len(t.Hosts()[name]) == 0 {
			t.AddHost(name, standIn(name))
		}
	}
	return t
}

// standIn derives an origin address from the name of a host without a recorded one. It
// is in 240.0.0.0/4, where no origin is.
func standIn(name string) netip.Addr {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash does not fail
	s := h.Sum32()
	return netip.AddrFrom4([4]byte{240 | byte(s>>24)&7, byte(s >> 16), byte(s >> 8), byte(s)})
}

// extras maps the host names of a profile's extra delays to the synthetic addresses
// that the device connects to.
type extras struct {
	want  map[string]time.Duration // by name or origin address
	hosts map[string][]netip.Addr  // origins, by name
}

func (e *extras) apply(n *Network) {
	out := map[netip.Addr]time.Duration{}
	for name, d := range e.want {
		origins := e.hosts[name]
		if a, err := netip.ParseAddr(name); err == nil {
			origins = []netip.Addr{a}
		}
		for _, o := range origins {
			if s, err := n.pool.Synthetic(o); err == nil {
				out[s] = max(out[s], d)
			}
		}
	}
	n.shaper.SetExtra(out)
}

func (n *Network) setHosts(t *dns.Table) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.extras.hosts = t.Hosts()
	n.extras.apply(n)
}

// onQuery passes a query on, and while recording takes the addresses of hosts with an
// extra delay from it. A device may ask for the same name without end.
func (n *Network) onQuery(q dns.Query) {
	n.mu.Lock()
	if d, ok := n.extras.want[q.Name]; ok && d > 0 && q.Source == "upstream" {
		known := n.extras.hosts[q.Name]
		fresh := slices.DeleteFunc(slices.Clone(q.Origins), func(a netip.Addr) bool { return slices.Contains(known, a) })
		if len(fresh) > 0 {
			hosts := map[string][]netip.Addr{}
			maps.Copy(hosts, n.extras.hosts)
			hosts[q.Name] = append(slices.Clone(known), fresh...)
			n.extras.hosts = hosts
			n.extras.apply(n)
		}
	}
	n.mu.Unlock()
	if n.c.OnQuery != nil {
		n.c.OnQuery(q)
	}
}
