package device

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"eidetic/netlab/netspace"
)

// Guard is a default-deny rule on all packets that a namespace sends: packets for addresses
// outside the lab are dropped and counted. Without an uplink such packets have no route
// anyway; the guard proves that there were none.
type Guard struct {
	ns    *netspace.Namespace
	table *nftables.Table
	chain *nftables.Chain
}

// NewGuard lets ns send to the given prefixes, to link-local and multicast destinations on
// the cable, and to itself. All other packets are dropped.
func NewGuard(ns *netspace.Namespace, allowed ...netip.Prefix) (*Guard, error) {
	g := &Guard{ns: ns}
	conn, err := g.connect()
	if err != nil {
		return nil, err
	}
	policy := nftables.ChainPolicyDrop
	g.table = conn.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "eidetic"})
	g.chain = conn.AddChain(&nftables.Chain{
		Table: g.table, Name: "output", Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter, Policy: &policy,
	})
	accept := &expr.Verdict{Kind: expr.VerdictAccept}
	conn.AddRule(&nftables.Rule{Table: g.table, Chain: g.chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: append([]byte("lo"), make([]byte, 14)...)},
		accept,
	}})
	for _, prefix := range append(allowed,
		netip.MustParsePrefix("224.0.0.0/4"), // multicast does not leave the cable
		netip.MustParsePrefix("ff00::/8"), netip.MustParsePrefix("fe80::/10")) {
		conn.AddRule(&nftables.Rule{Table: g.table, Chain: g.chain, Exprs: append(to(prefix), accept)})
	}
	conn.AddRule(&nftables.Rule{Table: g.table, Chain: g.chain, Exprs: []expr.Any{
		&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop},
	}})
	if err := conn.Flush(); err != nil {
		return nil, fmt.Errorf("guarding the device's network: %w", err)
	}
	return g, nil
}

// Allow lets the namespace send to one more prefix.
func (g *Guard) Allow(prefix netip.Prefix) error {
	conn, err := g.connect()
	if err != nil {
		return err
	}
	conn.InsertRule(&nftables.Rule{Table: g.table, Chain: g.chain, Exprs: append(to(prefix), &expr.Verdict{Kind: expr.VerdictAccept})})
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("letting the device send to %v: %w", prefix, err)
	}
	return nil
}

// connect opens a netfilter socket inside the namespace.
func (g *Guard) connect() (conn *nftables.Conn, err error) {
	conn, err = nftables.New(nftables.WithNetNSFd(g.ns.Fd()))
	if err != nil {
		return nil, fmt.Errorf("opening netfilter: %w", err)
	}
	return conn, nil
}

// Strays is the number of packets for addresses outside the lab.
func (g *Guard) Strays() (packets uint64, err error) {
	conn, err := g.connect()
	if err != nil {
		return 0, err
	}
	rules, err := conn.GetRules(g.table, g.chain)
	if err != nil {
		return 0, fmt.Errorf("reading the guard's counter: %w", err)
	}
	for _, rule := range rules {
		for _, e := range rule.Exprs {
			if c, ok := e.(*expr.Counter); ok {
				packets += c.Packets
			}
		}
	}
	return packets, nil
}

// to matches packets of one address family whose destination is in the prefix.
func to(prefix netip.Prefix) []expr.Any {
	family, offset, length := byte(unix.NFPROTO_IPV4), uint32(16), uint32(4)
	if prefix.Addr().Is6() {
		family, offset, length = unix.NFPROTO_IPV6, 24, 16
	}
	mask := make([]byte, length)
	for bit := range prefix.Bits() {
		mask[bit/8] |= 1 << (7 - bit%8)
	}
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{family}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: length, Mask: mask, Xor: make([]byte, length)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: prefix.Masked().Addr().AsSlice()},
	}
}

// NoForwarding switches IP forwarding off in the current namespace. A new namespace may
// inherit a setting that allows it.
func NoForwarding() error {
	for _, file := range []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"} {
		if err := os.WriteFile(file, []byte("0\n"), 0o644); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("switching forwarding off: %w", err)
		}
	}
	return nil
}
