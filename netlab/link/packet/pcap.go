package packet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// pcapRecord bounds the size that a file may state for one packet.
const pcapRecord = 256 << 10

// ReadPcap reads a file that tcpdump -w wrote (pcap-savefile(5), not pcapng) and
// calls got with the time and the IP length of each packet to an address, in the
// order of the file. It reads Ethernet, raw IP and Linux's cooked captures.
func ReadPcap(name string, r io.Reader, to netip.Addr, got func(at time.Duration, bytes int)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var head [24]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return fmt.Errorf("%s: the file is too short for a pcap file", name)
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
	case 0x0a0d0d0a:
		return fmt.Errorf("%s: the file is pcapng; convert it with: tcpdump -r %s -w FILE", name, name)
	default:
		return fmt.Errorf("%s: the file is no pcap file (it begins with %x)", name, head[:4])
	}
	ip, err := pcapIP(order.Uint32(head[20:]) & 0xffff)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	buf := make([]byte, 0, 2048)
	for n := 1; ; n++ {
		var record [16]byte
		if _, err := io.ReadFull(in, record[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: packet %d is cut off", name, n)
		}
		size := order.Uint32(record[8:])
		if size > pcapRecord {
			return fmt.Errorf("%s: packet %d claims %d bytes", name, n, size)
		}
		if int(size) > cap(buf) {
			buf = make([]byte, 0, size)
		}
		buf = buf[:size]
		if _, err := io.ReadFull(in, buf); err != nil {
			return fmt.Errorf("%s: packet %d is cut off", name, n)
		}
		if dest, bytes := destination(ip(buf)); dest == to {
			got(time.Duration(order.Uint32(record[:]))*time.Second+time.Duration(order.Uint32(record[4:]))*unit, bytes)
		}
	}
}

// pcapIP returns the function that finds the IP packet in a frame of a link type.
func pcapIP(linkType uint32) (func([]byte) []byte, error) {
	skip, at := 0, 0 // bytes before the packet, and the offset of its EtherType
	switch linkType {
	case 1: // Ethernet
		skip, at = 14, 12
	case 101, 228, 229: // raw IP
	case 113: // Linux cooked
		skip, at = 16, 14
	case 276: // Linux cooked, version 2
		skip, at = 20, 0
	default:
		return nil, fmt.Errorf("captures of link type %d are not supported; capture on an Ethernet interface, or with -i any", linkType)
	}
	return func(frame []byte) []byte {
		if len(frame) < skip {
			return nil
		}
		if linkType == 1 && len(frame) >= skip+4 && binary.BigEndian.Uint16(frame[at:]) == 0x8100 { // VLAN
			return frame[skip+4:]
		}
		return frame[skip:]
	}, nil
}

// destination returns an IP packet's destination and length, also when only its
// beginning was captured.
func destination(p []byte) (to netip.Addr, bytes int) {
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		to, _ = netip.AddrFromSlice(p[16:20])
		return to, int(binary.BigEndian.Uint16(p[2:]))
	case len(p) >= 40 && p[0]>>4 == 6:
		to, _ = netip.AddrFromSlice(p[24:40])
		return to, 40 + int(binary.BigEndian.Uint16(p[4:]))
	}
	return to, 0
}
