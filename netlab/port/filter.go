package port

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"eidetic/netlab"
	"eidetic/netlab/link/packet"
)

const (
	// otherPort takes the connections to ports without a listener of their own.
	otherPort = 7780
	// redirected marks the packets of such connections. It differs from packet.Mark,
	// which a packet can still have after lab's veth pair.
	redirected = 0xe1de7
)

// filter is the nftables tables of one port: inet/eidetic-lab0 determines what the
// box accepts on the lab interface, netdev/eidetic-lab0 keeps the kernel from using
// the inner end. The port's interface has a table of its own, because it can vanish
// with the interface.
type filter struct {
	names  names
	limits []string

	mu   sync.Mutex
	set  *nftables.Set // the other ports that the device may use
	tcp6 bool          // IPv6 can be redirected
}

// makeFilter adds the tables.
func (p *Port) makeFilter() (undo func() error, err error) {
	f := &filter{names: p.names}
	if err := f.guard(p.names.inner, p.names.table); err != nil {
		return nil, err
	}
	undo = func() error { return deleteTables(p.names.table) }
	if err := f.build(); err != nil {
		return undo, err
	}
	p.filter = f
	p.status.Limits = f.limits
	return undo, nil
}

// guard keeps the kernel from receiving and sending on an interface that only
// carries frames for others. The link's packet socket reads before the ingress
// hook, and the egress hook accepts the frames that it sends, by their mark.
func (f *filter) guard(device, table string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open netfilter: %w", err)
	}
	nothing := nftables.ChainPolicyDrop
	t := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyNetdev, Name: table})
	conn.AddChain(&nftables.Chain{
		Table: t, Name: "in-" + device, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookIngress,
		Priority: nftables.ChainPriorityFilter, Policy: &nothing, Device: device,
	})
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("drop what the kernel receives on %s (needs nf_tables with the netdev family): %w", device, err)
	}
	out := conn.AddChain(&nftables.Chain{
		Table: t, Name: "out-" + device, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookEgress,
		Priority: nftables.ChainPriorityFilter, Policy: &nothing, Device: device,
	})
	conn.AddRule(&nftables.Rule{Table: t, Chain: out, Exprs: rule(marked(packet.Mark), accept)})
	conn.AddRule(&nftables.Rule{Table: t, Chain: out, Exprs: rule(etherType(0x888e), accept)}) // hostapd's keys (IEEE 802.1X)
	if err := conn.Flush(); err != nil {                                                       // Linux before 5.16
		f.limits = append(f.limits, fmt.Sprintf("the kernel can send packets of its own on %s: %v", device, err))
	}
	return nil
}

// deleteTables removes the tables of this name in both families, if they are there.
func deleteTables(name string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open netfilter: %w", err)
	}
	for _, family := range []nftables.TableFamily{nftables.TableFamilyINet, nftables.TableFamilyNetdev} {
		tables, err := conn.ListTablesOfFamily(family)
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) {
			continue // a kernel without the family has no such table
		}
		if err != nil {
			return fmt.Errorf("list the tables of nftables (needs CAP_NET_ADMIN, and nf_tables in the kernel): %w", err)
		}
		for _, t := range tables {
			if t.Name == name {
				conn.DelTable(t)
			}
		}
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("remove the table %s of nftables: %w", name, err)
	}
	return nil
}

// build makes the table inet/eidetic-lab0.
func (f *filter) build() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open netfilter: %w", err)
	}
	t := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: f.names.table})
	f.set = &nftables.Set{Table: t, Name: "others", KeyType: nftables.TypeInetService, Interval: true}
	if err := conn.AddSet(f.set, nil); err != nil {
		return fmt.Errorf("make the set of ports: %w", err)
	}
	chain := func(name string, hook *nftables.ChainHook, priority *nftables.ChainPriority) func(...[]expr.Any) {
		accept := nftables.ChainPolicyAccept
		c := conn.AddChain(&nftables.Chain{Table: t, Name: name, Type: nftables.ChainTypeFilter, Hooknum: hook,
			Priority: priority, Policy: &accept})
		return func(parts ...[]expr.Any) { conn.AddRule(&nftables.Rule{Table: t, Chain: c, Exprs: rule(parts...)}) }
	}
	lab := f.names.lab
	pre := chain("prerouting", nftables.ChainHookPrerouting, nftables.ChainPriorityMangle)
	f.dropSpoofed(pre)
	pre(in(lab), v4, tcp, destinationIn(f.set), redirectTo(unix.NFPROTO_IPV4))

	input := chain("input", nftables.ChainHookInput, nftables.ChainPriorityFilter)
	for _, own := range []netip.Prefix{f.names.gateway, f.names.gateway6} {
		if own.IsValid() { // only the lab interface and lo reach the gateway's address
			input(notIn(lab), notIn("lo"), toward(netip.PrefixFrom(own.Addr(), own.Addr().BitLen())), counted(drop))
		}
	}
	input(notIn(lab), accept)
	input(marked(redirected), accept)
	for _, port := range []uint16{53, 80, 443, ProxyPort} {
		input(tcp, destination(port), accept)
	}
	for _, port := range []uint16{53, 67, 123, 443} {
		input(udp, destination(port), accept)
	}
	for _, kind := range []byte{0, 3, 8, 11} { // echo reply, unreachable, echo, time exceeded
		input(v4, protocol(unix.IPPROTO_ICMP), icmpType(kind), accept)
	}
	// Unreachable, too big, time exceeded, echo and its reply, router solicitations
	// and neighbour discovery; no router advertisement, no redirect.
	for _, kind := range []byte{1, 2, 3, 128, 129, 133, 135, 136} {
		input(v6, protocol(unix.IPPROTO_ICMPV6), icmpType(kind), accept)
	}
	// Segments of connections that the box itself opened to the device.
	input(toward(netip.PrefixFrom(f.names.gateway.Addr(), 32)), tcp, opening(false), accept)
	input(tcp, counted(reset))
	input(toHost, counted(drop))
	input(drop) // broadcasts and multicasts, which are not counted

	forward := chain("forward", nftables.ChainHookForward, nftables.ChainPriorityFilter)
	forward(in(lab), counted(drop))
	forward(outBy(lab), counted(drop))
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("filter %s (needs nf_tables with nft_tproxy and nft_reject_inet): %w", lab, err)
	}
	if f.names.gateway6.IsValid() {
		pre(in(lab), v6, tcp, destinationIn(f.set), redirectTo(unix.NFPROTO_IPV6))
		if err := conn.Flush(); err != nil {
			f.limits = append(f.limits, fmt.Sprintf("over IPv6 only the ports 80 and 443 are recorded and replayed: %v", err))
		} else {
			f.tcp6 = true
		}
	}
	return nil
}

// dropSpoofed drops packets whose source is no address of the port's networks, but for broadcasts of DHCP: a device that
// comes from another network, and saw its cable stay up, asks whether it may keep its address (RFC 2131, 4.3.2).
func (f *filter) dropSpoofed(pre func(...[]expr.Any)) {
	lab := f.names.lab
	pre(in(lab), toward(netip.MustParsePrefix("255.255.255.255/32")), udp, destination(67), accept)
	pre(in(lab), v4, not(from(netip.MustParsePrefix("0.0.0.0/32"))), not(from(f.names.gateway.Masked())), counted(drop))
	if !f.names.gateway6.IsValid() {
		pre(in(lab), v6, counted(drop))
		return
	}
	pre(in(lab), v6, not(from(netip.MustParsePrefix("::/128"))), not(from(netip.MustParsePrefix("fe80::/10"))),
		not(from(f.names.gateway6.Masked())), counted(drop))
}

// setPorts sets the TCP ports without a listener that the device can use.
func (f *filter) setPorts(p netlab.Ports) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open netfilter: %w", err)
	}
	ranges := [][2]uint16{}
	if p.All { // all except those with a listener
		last := uint16(1)
		for _, own := range []uint16{53, 80, 443, ProxyPort} {
			ranges = append(ranges, [2]uint16{last, own})
			last = own + 1
		}
		ranges = append(ranges, [2]uint16{last, 65535})
	}
	for _, n := range p.List {
		if n != 53 && n != 80 && n != 443 && n != ProxyPort && n != 65535 {
			ranges = append(ranges, [2]uint16{n, n + 1})
		}
	}
	var elements []nftables.SetElement
	for _, r := range ranges {
		elements = append(elements,
			nftables.SetElement{Key: binaryutil.BigEndian.PutUint16(r[0])},
			nftables.SetElement{Key: binaryutil.BigEndian.PutUint16(r[1]), IntervalEnd: true})
	}
	conn.FlushSet(f.set)
	if len(elements) > 0 {
		if err := conn.SetAddElements(f.set, elements); err != nil {
			return fmt.Errorf("set the ports of %s: %w", f.names.lab, err)
		}
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("set the ports of %s: %w", f.names.lab, err)
	}
	return nil
}

// strays returns the number of packets to destinations that the device must not
// reach.
func (f *filter) strays() (packets uint64, err error) {
	conn, err := nftables.New()
	if err != nil {
		return 0, fmt.Errorf("open netfilter: %w", err)
	}
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: f.names.table}
	for _, name := range []string{"prerouting", "input", "forward"} {
		rules, err := conn.GetRules(t, &nftables.Chain{Name: name, Table: t})
		if err != nil {
			return 0, fmt.Errorf("read the counters of %s: %w", f.names.lab, err)
		}
		for _, r := range rules {
			for _, e := range r.Exprs {
				if c, ok := e.(*expr.Counter); ok {
					packets += c.Packets
				}
			}
		}
	}
	return packets, nil
}
