package packet

import (
	"container/heap"
	"encoding/binary"
	"net/netip"
	"slices"

	"eidetic/internal/lab"
)

const (
	// vnetHeader is the size of struct virtio_net_hdr, which AF_PACKET puts before
	// each frame. It says which checksum is still to be computed, and whether the
	// frame carries several segments.
	vnetHeader = 10
	ethernet   = 14
	// frameSize is the buffer of a frame of one segment; a merged frame gets a
	// larger buffer of its own.
	frameSize = 2048
	// largest is the size of the largest frame.
	largest = vnetHeader + ethernet + 65535 + 1
)

// frame is an Ethernet frame on its way.
type frame struct {
	data    []byte // vnetHeader, then the frame
	seq     uint64
	arrived lab.Time
	due     lab.Time
	bypass  bool // sent at once, without passing the emulated link
}

// cost returns the bytes that a rate counts: those of the Ethernet payload.
func (f *frame) cost() int { return max(0, len(f.data)-vnetHeader-ethernet) }

// isMerged reports whether the frame carries several segments (its gso_type is
// not NONE).
func (f *frame) isMerged() bool { return f.data[1] != 0 }

// payload returns the frame's EtherType and payload, those behind a VLAN tag if
// there is one.
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

// isNeighbourDiscovery reports ARP, IPv6's neighbour discovery and IPv6's
// link-local multicast. Such frames are never lost and draw no random number: a
// lost one would cost a second that no access network costs, and the kernel sends
// them at times that the programs of the device do not determine.
func (f *frame) isNeighbourDiscovery() bool {
	t, p := f.payload()
	switch {
	case t == 0x0806:
		return true
	case t != 0x86dd || len(p) < 41:
		return false
	case p[24] == 0xff && p[25]&0xf == 2: // destination ff02::/16, link-local multicast
		return true
	}
	const icmpv6, first, last = 58, 133, 137 // types from router solicitation to redirect
	return p[6] == icmpv6 && p[40] >= first && p[40] <= last
}

// origin returns the address of the server: the source of a frame towards the
// device, the destination of a frame from it.
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

// hasDevicePort reports a TCP segment whose port on the device is one of those
// given: the destination port towards the device, the source port from it.
func (f *frame) hasDevicePort(ports []uint16, down bool) bool {
	const tcp = 6
	t, p := f.payload()
	switch {
	case t == 0x0800 && len(p) >= 20 && p[9] == tcp && binary.BigEndian.Uint16(p[6:])&0x1fff == 0: // later fragments have no ports
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

// frames is a heap by due time; frames that are due at the same time keep their order.
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
