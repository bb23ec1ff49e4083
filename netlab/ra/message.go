package ra

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Numbers of RFC 4861 (messages and the first options), RFC 8106 (RDNSS) and
// RFC 8910 (captive portal).
const (
	typeSolicitation  = 133
	typeAdvertisement = 134

	optionSource = 1
	optionPrefix = 3
	optionMTU    = 5
	optionDNS    = 25
	optionPortal = 37
)

// Advertisement is the content of a router advertisement.
type Advertisement struct {
	// Lifetime of the router as the default router; 0 withdraws it, and with it the
	// name server.
	Lifetime time.Duration
	Source   net.HardwareAddr // left out when empty
	MTU      int              // left out when 0
	Prefix   netip.Prefix     // of 64 bits, for addresses that devices make themselves
	DNS      netip.Addr       // left out when not valid
	Portal   string           // URI; left out when empty
}

// Marshal returns the ICMPv6 message. The kernel adds the checksum.
func (a Advertisement) Marshal() ([]byte, error) {
	if !a.Prefix.Addr().Is6() || a.Prefix.Bits() != 64 {
		return nil, fmt.Errorf("prefix %v is not an IPv6 prefix of 64 bits", a.Prefix)
	}
	seconds := uint32(min(max(a.Lifetime, 0), 9000*time.Second) / time.Second)
	const hopLimit = 64
	b := []byte{typeAdvertisement, 0, 0, 0, hopLimit, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(seconds))
	b = append(b, make([]byte, 8)...) // reachable and retransmission times: unspecified
	if len(a.Source) == 6 {
		b = append(append(b, optionSource, 1), a.Source...)
	}
	if a.MTU > 0 {
		b = binary.BigEndian.AppendUint32(append(b, optionMTU, 1, 0, 0), uint32(a.MTU))
	}
	const onLink, autonomous = 0x80, 0x40
	b = append(b, optionPrefix, 4, 64, onLink|autonomous)
	b = binary.BigEndian.AppendUint32(b, seconds) // valid
	b = binary.BigEndian.AppendUint32(b, seconds) // preferred
	b = append(append(b, 0, 0, 0, 0), a.Prefix.Masked().Addr().AsSlice()...)
	if a.DNS.Is6() {
		b = binary.BigEndian.AppendUint32(append(b, optionDNS, 3, 0, 0), seconds)
		b = append(b, a.DNS.AsSlice()...)
	}
	if a.Portal != "" && seconds > 0 {
		n := (2 + len(a.Portal) + 7) / 8
		if n > 255 {
			return nil, fmt.Errorf("the captive portal's URI has %d bytes, at most 2038 fit", len(a.Portal))
		}
		option := make([]byte, 8*n) // padded with zeros
		option[0], option[1] = optionPortal, byte(n)
		copy(option[2:], a.Portal)
		b = append(b, option...)
	}
	return b, nil
}

// CheckSolicitation returns an error unless b is a valid router solicitation from
// the address (RFC 4861, 6.1.1). hops is the hop limit of its packet.
func CheckSolicitation(b []byte, from netip.Addr, hops int) error {
	switch {
	case hops != 255:
		return fmt.Errorf("its hop limit is %d, and 255 on the link", hops)
	case len(b) < 8 || b[0] != typeSolicitation || b[1] != 0:
		return errors.New("the message is no router solicitation")
	case !from.Is6() || !from.IsUnspecified() && !from.IsLinkLocalUnicast():
		return fmt.Errorf("%v is no link-local address", from)
	}
	for options := b[8:]; len(options) > 0; {
		if len(options) < 2 || options[1] == 0 || 8*int(options[1]) > len(options) {
			return errors.New("the length of an option does not fit")
		}
		if options[0] == optionSource && from.IsUnspecified() {
			return errors.New("it has a source link-layer address and an unspecified source")
		}
		options = options[8*int(options[1]):]
	}
	return nil
}
