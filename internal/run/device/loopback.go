package device

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"eidetic/netlab/netspace"
)

// OwnMark is the SO_MARK of connections to the device's own loopback, such as those of a
// program that drives a browser. All others go to the box.
const OwnMark = 0xe1de1

// loopback is the address at which the box answers for the device's loopback. It is in
// the part of the synthetic range that stands for no other origin.
var loopback = netip.MustParseAddr("198.18.0.1") // constant

// Loopback returns the address at which the box answers for 127.0.0.1 of the device.
func Loopback() netip.Addr { return loopback }

// leadLoopback sends the TCP connections that the namespace's programs open to
// 127.0.0.0/8 out by eth0 to the box, so that http://localhost:3000/ can be recorded
// and replayed. The browser does not notice: to it the page is local, and so a secure
// context.
//
// The kernel has no such way for ::1, whose packets never leave the loopback interface.
// They are refused, and browsers then try 127.0.0.1 for "localhost".
func leadLoopback(ns *netspace.Namespace) error {
	const file = "/proc/sys/net/ipv4/conf/" + inner + "/route_localnet"
	err := ns.Do(func() error { return os.WriteFile(file, []byte("1"), 0) })
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return fmt.Errorf("pages of localhost cannot be loaded here, because this machine's /proc is read-only: %w", err)
	}
	if err != nil {
		return err
	}
	conn, err := nftables.New(nftables.WithNetNSFd(ns.Fd()))
	if err != nil {
		return fmt.Errorf("opening netfilter: %w", err)
	}
	t := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "eidetic-loopback"})
	out := conn.AddChain(&nftables.Chain{
		Table: t, Name: "output", Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
	})
	local := netip.MustParsePrefix("127.0.0.0/8")
	rule := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(OwnMark)},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
	}
	rule = append(append(rule, to(local)...),
		&expr.Immediate{Register: 1, Data: loopback.AsSlice()},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1})
	conn.AddRule(&nftables.Rule{Table: t, Chain: out, Exprs: rule})
	post := conn.AddChain(&nftables.Chain{
		Table: t, Name: "postrouting", Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting,
		Priority: nftables.ChainPriorityNATSource,
	})
	// The source is 127.0.0.1 still, and must become the address of eth0.
	conn.AddRule(&nftables.Rule{Table: t, Chain: post, Exprs: append(to(netip.PrefixFrom(loopback, loopback.BitLen())), &expr.Masq{})})
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("pages of localhost cannot be loaded here (it needs nft_nat and nft_masq in the kernel): %w", err)
	}
	return nil
}
