package link

import (
	"container/heap"
	"encoding/binary"
	"net/netip"
	"slices"

	"eidetic/internal/lab"
)

const (
	// vnetHeader is struct virtio_net_hdr, which AF_PACKET puts before each
	// frame: it carries checksums that are left to do, and says when a frame is
	// several segments.
	vnetHeader = 10
	ethernet   = 14
	// frameSize holds a segmented frame; a merged one gets a buffer of its own.
	frameSize = 2048
	// largest is the most that one frame can hold.
	largest = vnetHeader + ethernet + 65535 + 1
)

// frame is an Ethernet frame on its way.
type frame struct {
	data    []byte // vnetHeader, then the frame
	seq     uint64
	arrived lab.Time
	due     lab.Time
	direct  bool // passes the link by
}

// cost is what Rate counts: the bytes of the IP packet, or of what stands in
// its place.
func (f *frame) cost() int { return max(0, len(f.data)-vnetHeader-ethernet) }

// merged reports a frame of several segments (gso_type is not NONE).
func (f *frame) merged() bool { return f.data[1] != 0 }

// etherType and what follows it; a VLAN tag is looked through.
func (f *frame) payload() (etherType uint16, p []byte) {
	p = f.data[vnetHeader:]
	if len(p) < ethernet {
		return 0, nil
	}
	etherType, p = binary.BigEndian.Uint16(p[12:]), p[ethernet:]
	if etherType == 0x8100 && len(p) >= 4 {
		etherType, p = binary.BigEndian.Uint16(p[2:]), p[4:]
	}
	return etherType, p
}

// local reports a frame that only finds neighbours: ARP, and IPv6's neighbour
// discovery and talk with all of the cable. These are never lost, and draw
// nothing: a lost one would cost a second that has nothing to do with the access
// network, and when they are sent is not the device's program's doing.
func (f *frame) local() bool {
	t, p := f.payload()
	switch {
	case t == 0x0806:
		return true
	case t != 0x86dd || len(p) < 41:
		return false
	case p[24] == 0xff && p[25]&0xf == 2: // to ff02::/16, link-local multicast
		return true
	}
	const icmpv6, first, last = 58, 133, 137 // router solicitation to redirect
	return p[6] == icmpv6 && p[40] >= first && p[40] <= last
}

// origin returns the address on the far side: the source of what goes down,
// the destination of what goes up.
func (f *frame) origin(down bool) (a netip.Addr) {
	t, p := f.payload()
	at, n := 0, 0
	switch {
	case t == 0x0800 && len(p) >= 20:
		at, n = 12, 4
	case t == 0x86dd && len(p) >= 40:
		at, n = 8, 16
	default:
		return a
	}
	if !down {
		at += n
	}
	a, _ = netip.AddrFromSlice(p[at : at+n])
	return a
}

// toPorts reports a TCP segment of a connection to one of the device's own
// ports: from it on the way up, to it on the way down.
func (f *frame) toPorts(ports []uint16, down bool) bool {
	const tcp = 6
	t, p := f.payload()
	switch {
	case t == 0x0800 && len(p) >= 20 && p[9] == tcp && binary.BigEndian.Uint16(p[6:])&0x1fff == 0: // no later fragment
		p = p[min(len(p), int(p[0]&15)*4):]
	case t == 0x86dd && len(p) >= 40 && p[6] == tcp:
		p = p[40:]
	default:
		return false
	}
	at := 0 // the source port
	if down {
		at = 2
	}
	return len(p) >= 4 && slices.Contains(ports, binary.BigEndian.Uint16(p[at:]))
}

// frames is a heap by due time; equal times keep their order.
type frames []*frame

func (h frames) Len() int { return len(h) }
func (h frames) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].seq < h[j].seq
}
func (h frames) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *frames) Push(x any) { *h = append(*h, x.(*frame)) }

// Pop implements heap.Interface.
func (h *frames) Pop() any {
	old := *h
	f := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return f
}

var _ heap.Interface = (*frames)(nil)
