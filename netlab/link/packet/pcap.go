package packet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"
)

// pcapRecord bounds the size that a file may state for one packet.
const pcapRecord = 256 << 10

// ReadPcap reads a file that tcpdump -w wrote (pcap-savefile(5)), or dumpcap (pcapng), and calls got with the time and
// the IP length of each packet to an address, in the order of the file. It reads Ethernet, raw IP, loopback interfaces
// and Linux's cooked captures. What a program that was ended left behind of a last packet is isCut.
func ReadPcap(name string, r io.Reader, to netip.Addr, got func(at time.Duration, bytes int)) (isCut bool, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	to = to.Unmap()
	take := func(at time.Duration, ip []byte, whole int) {
		if dest, bytes := destination(ip, whole); dest == to {
			got(at, bytes)
		}
	}
	head, _ := in.Peek(4) // there may be less
	if string(head) == "\x0a\x0d\x0d\x0a" {
		err = readBlocks(in, take)
	} else {
		err = readSavefile(in, take)
	}
	if errors.Is(err, errPacketCut) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return false, nil
}

// errPacketCut says that a file ends within a packet.
var errPacketCut = errors.New("its last packet is cut off") // constant

// taker takes the IP packet of a frame, as far as it was captured, and how many bytes it had with what follows it.
type taker func(at time.Duration, ip []byte, whole int)

func readSavefile(in *bufio.Reader, take taker) error {
	var head [24]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return errors.New("the file is too short for a pcap file")
	}
	var order binary.ByteOrder = binary.LittleEndian
	unit := time.Microsecond
	switch magic := binary.LittleEndian.Uint32(head[:]); magic {
	case 0xa1b2c3d4:
	case 0xa1b23c4d:
		unit = time.Nanosecond
	case 0xd4c3b2a1:
		order = binary.BigEndian
	case 0x4d3cb2a1:
		order, unit = binary.BigEndian, time.Nanosecond
	default:
		if head[0] == 0x1f && head[1] == 0x8b {
			return errors.New("the file is compressed by gzip: decompress it (gunzip -k), and give what comes of it")
		}
		return fmt.Errorf("the file is no pcap file (it begins with %x)", head[:4])
	}
	ip, err := pcapIP(order.Uint32(head[20:]) & 0xffff)
	if err != nil {
		return err
	}
	buf := make([]byte, 0, 2048)
	for n := 1; ; n++ {
		var record [16]byte
		switch _, err := io.ReadFull(in, record[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return errPacketCut
		case err != nil:
			return err
		}
		size := order.Uint32(record[8:])
		if size > pcapRecord {
			return fmt.Errorf("packet %d claims %d bytes", n, size)
		}
		if int(size) > cap(buf) {
			buf = make([]byte, 0, size)
		}
		buf = buf[:size]
		if _, err := io.ReadFull(in, buf); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errPacketCut
		} else if err != nil {
			return err
		}
		at := time.Duration(order.Uint32(record[:]))*time.Second + time.Duration(order.Uint32(record[4:]))*unit
		packet := ip(buf)
		take(at, packet, int(order.Uint32(record[12:]))-(len(buf)-len(packet)))
	}
}

// pcapIP returns the function that finds the IP packet in a frame of a link type; nil where it has none.
func pcapIP(linkType uint32) (func([]byte) []byte, error) {
	skip, at := 0, -1 // bytes before the packet, and the offset of its EtherType
	switch linkType {
	case 0, 108: // loopback of BSD and macOS: the protocol's family
		skip = 4
	case 1: // Ethernet
		skip, at = 14, 12
	case 12, 14, 101, 228, 229: // raw IP
	case 113: // Linux cooked
		skip, at = 16, 14
	case 276: // Linux cooked, version 2
		skip, at = 20, 0
	case 149, 258: // Apple's PKTAP, as of an iPhone on a Mac's cable (rvictl)
		return pktapIP, nil
	default:
		return nil, fmt.Errorf("captures of link type %d are not supported; capture on an Ethernet interface, or with -i any", linkType)
	}
	return func(frame []byte) []byte {
		if len(frame) < skip {
			return nil
		}
		rest := frame[skip:]
		if at < 0 {
			return rest
		}
		kind := binary.BigEndian.Uint16(frame[at:])
		if linkType == 1 && !slices.Contains([]uint16{etherIPv4, etherIPv6, etherPPPoE, etherVLAN, etherVLANs, etherOldVLANs}, kind) &&
			(frame[0]>>4 == 4 || frame[0]>>4 == 6) {
			return frame // drivers of modems and rvictl call raw IP Ethernet
		}
		for (kind == etherVLAN || kind == etherVLANs || kind == etherOldVLANs) && len(rest) >= 4 {
			kind, rest = binary.BigEndian.Uint16(rest[2:]), rest[4:]
		}
		const pppoe = 8 // its head, and PPP's protocol
		if kind == etherPPPoE && len(rest) >= pppoe {
			rest = rest[pppoe:]
		}
		return rest
	}, nil
}

// pktapIP finds the IP packet behind the header of xnu's pktap.h.
func pktapIP(frame []byte) []byte {
	const length, before, head = 0, 44, 48 // where the header says its own length, and that of the frame's; the least it has
	if len(frame) < head {
		return nil
	}
	skip := uint64(binary.LittleEndian.Uint32(frame[length:])) + uint64(binary.LittleEndian.Uint32(frame[before:]))
	if skip > uint64(len(frame)) {
		return nil
	}
	return frame[skip:]
}

// EtherTypes of IP, and of what stands before an IP packet: IEEE 802.1Q, 802.1ad and its forerunner, and RFC 2516.
const (
	etherIPv4     = 0x0800
	etherIPv6     = 0x86dd
	etherVLAN     = 0x8100
	etherVLANs    = 0x88a8
	etherOldVLANs = 0x9100
	etherPPPoE    = 0x8864
)

// destination returns an IP packet's destination and length, also when only its beginning was captured. A packet that
// the network card has yet to cut states 0 bytes: then it is all that the frame has.
func destination(p []byte, whole int) (to netip.Addr, bytes int) {
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		to, _ = netip.AddrFromSlice(p[16:20])
		bytes = int(binary.BigEndian.Uint16(p[2:]))
		if bytes == 0 {
			bytes = min(max(whole, 0), pcapRecord)
		}
	case len(p) >= 40 && p[0]>>4 == 6:
		to, _ = netip.AddrFromSlice(p[24:40])
		bytes = 40 + int(binary.BigEndian.Uint16(p[4:]))
		if bytes == 40 {
			bytes = max(min(whole, pcapRecord), 40)
		}
	}
	return to, bytes
}
