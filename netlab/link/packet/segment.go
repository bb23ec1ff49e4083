package packet

import (
	"encoding/binary"
	"math/bits"
)

// clampSegments lowers the maximum segment size in a TCP SYN (RFC 9293, 3.7.1) to what fits into packets of mtu bytes, as
// routers before tunnels and DSL lines do. Both ends know the MTU of their own cable only, and would lose every full
// packet.
func (f *frame) clampSegments(mtu int) {
	const tcp, least = 6, 20 // the protocol number, and the size of the header without options
	t, p := f.payload()
	head, most := 0, 0 // where the segment begins, and the size that fits
	switch {
	case t == 0x0800 && len(p) >= 20 && p[9] == tcp && binary.BigEndian.Uint16(p[6:])&0x3fff == 0: // no fragment
		head, most = int(p[0]&15)*4, mtu-20-least
	case t == 0x86dd && len(p) >= 40 && p[6] == tcp:
		head, most = 40, mtu-40-least
	}
	const flags, syn = 13, 0x02
	if head == 0 || len(p) < head+least || p[head+flags]&syn == 0 {
		return
	}
	segment := p[head:]
	options := min(int(segment[12]>>4)*4, len(segment)) // where they end
	for at := least; at+4 <= options; {
		const end, pad, size = 0, 1, 2 // kinds of options
		switch kind, n := segment[at], int(segment[at+1]); {
		case kind == end:
			return
		case kind == pad:
			at++
		case n < 2:
			return
		case kind == size && n == 4:
			if int(binary.BigEndian.Uint16(segment[at+2:])) > most {
				f.replace(segment, at+2, uint16(most))
			}
			return
		default:
			at += n
		}
	}
}

// replace writes a number into a TCP segment and updates its checksum (RFC 1624), unless that is still to be computed.
func (f *frame) replace(segment []byte, at int, value uint16) {
	const checksum, needsChecksum = 16, 1 // where it is; VIRTIO_NET_HDR_F_NEEDS_CSUM
	old := binary.BigEndian.Uint16(segment[at:])
	binary.BigEndian.PutUint16(segment[at:], value)
	if f.data[0]&needsChecksum != 0 {
		return
	}
	if at%2 == 1 { // its bytes are in two words of the checksum
		old, value = bits.ReverseBytes16(old), bits.ReverseBytes16(value)
	}
	sum := uint32(^binary.BigEndian.Uint16(segment[checksum:])) + uint32(^old) + uint32(value)
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(segment[checksum:], ^uint16(sum))
}
