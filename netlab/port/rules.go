package port

import (
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The parts of a rule. Each is a few of nftables' instructions on register 1.

func rule(parts ...[]expr.Any) []expr.Any { return slices.Concat(parts...) }

// These are constants: instructions have no state.
var (
	v4     = meta(expr.MetaKeyNFPROTO, []byte{unix.NFPROTO_IPV4})
	v6     = meta(expr.MetaKeyNFPROTO, []byte{unix.NFPROTO_IPV6})
	tcp    = protocol(unix.IPPROTO_TCP)
	udp    = protocol(unix.IPPROTO_UDP)
	toHost = meta(expr.MetaKeyPKTTYPE, []byte{unix.PACKET_HOST})
	accept = []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	drop   = []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}
	reset  = []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}
)

func counted(verdict []expr.Any) []expr.Any { return rule([]expr.Any{&expr.Counter{}}, verdict) }

func meta(key expr.MetaKey, value []byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: value}}
}

// not inverts the last comparison of a match.
func not(match []expr.Any) []expr.Any {
	out := slices.Clone(match)
	last := *out[len(out)-1].(*expr.Cmp)
	last.Op = expr.CmpOpNeq
	out[len(out)-1] = &last
	return out
}

func protocol(n byte) []expr.Any { return meta(expr.MetaKeyL4PROTO, []byte{n}) }

func etherType(n uint16) []expr.Any {
	return meta(expr.MetaKeyPROTOCOL, binaryutil.BigEndian.PutUint16(n))
}

func interfaceName(name string) []byte {
	return append([]byte(name), make([]byte, unix.IFNAMSIZ-len(name))...)
}

func in(name string) []expr.Any    { return meta(expr.MetaKeyIIFNAME, interfaceName(name)) }
func notIn(name string) []expr.Any { return not(in(name)) }
func outBy(name string) []expr.Any { return meta(expr.MetaKeyOIFNAME, interfaceName(name)) }

func marked(mark uint32) []expr.Any {
	return meta(expr.MetaKeyMARK, binaryutil.NativeEndian.PutUint32(mark))
}

func field(base expr.PayloadBase, offset, length uint32) expr.Any {
	return &expr.Payload{DestRegister: 1, Base: base, Offset: offset, Len: length}
}

func destination(port uint16) []expr.Any {
	return []expr.Any{
		field(expr.PayloadBaseTransportHeader, 2, 2),
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
	}
}

func destinationIn(s *nftables.Set) []expr.Any {
	return []expr.Any{field(expr.PayloadBaseTransportHeader, 2, 2), &expr.Lookup{SourceRegister: 1, SetName: s.Name, SetID: s.ID}}
}

func icmpType(kind byte) []expr.Any {
	return []expr.Any{field(expr.PayloadBaseTransportHeader, 0, 1), &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{kind}}}
}

// opening matches a segment that opens a connection (SYN without ACK), or, with
// false, every other segment.
func opening(yes bool) []expr.Any {
	const syn, rst, ack = 0x02, 0x04, 0x10
	op := expr.CmpOpEq
	if !yes {
		op = expr.CmpOpNeq
	}
	return []expr.Any{
		field(expr.PayloadBaseTransportHeader, 13, 1),
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{syn | rst | ack}, Xor: []byte{0}},
		&expr.Cmp{Op: op, Register: 1, Data: []byte{syn}},
	}
}

func from(p netip.Prefix) []expr.Any { return within(p, 12, 8) }

func toward(p netip.Prefix) []expr.Any {
	family := v4
	if p.Addr().Is6() {
		family = v6
	}
	return rule(family, within(p, 16, 24))
}

// within matches an address at an offset of the IP header, which depends on the
// family. The rule must have matched the family before.
func within(p netip.Prefix, offset4, offset6 uint32) []expr.Any {
	offset, length := offset4, uint32(4)
	if p.Addr().Is6() {
		offset, length = offset6, 16
	}
	mask := make([]byte, length)
	for bit := range p.Bits() {
		mask[bit/8] |= 1 << (7 - bit%8)
	}
	return []expr.Any{
		field(expr.PayloadBaseNetworkHeader, offset, length),
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: length, Mask: mask, Xor: make([]byte, length)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: p.Masked().Addr().AsSlice()},
	}
}

// redirectTo passes a connection to the socket on otherPort and keeps its
// destination (TPROXY).
func redirectTo(family byte) []expr.Any {
	return rule([]expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(otherPort)},
		&expr.TProxy{Family: family, TableFamily: unix.NFPROTO_INET, RegPort: 1},
		&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(redirected)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1},
	}, accept)
}
