package packet

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

// pcapFile returns what tcpdump writes for one IPv4 packet to 192.168.77.2 and one
// to another address.
func pcapFile(order binary.AppendByteOrder, magic, linkType uint32, before []byte) []byte {
	b := order.AppendUint32(nil, magic)
	b = append(b, make([]byte, 16)...)
	b = order.AppendUint32(b, linkType)
	for _, to := range []byte{2, 3} {
		ip := make([]byte, 20)
		ip[0] = 0x45
		binary.BigEndian.PutUint16(ip[2:], 1500)
		copy(ip[16:], []byte{192, 168, 77, to})
		b = order.AppendUint32(b, 7)
		b = order.AppendUint32(b, 500)
		b = order.AppendUint32(b, uint32(len(before)+len(ip)))
		b = order.AppendUint32(b, uint32(len(before)+1500)) // the rest was not captured
		b = append(append(b, before...), ip...)
	}
	return b
}

// pcapngFile returns what dumpcap writes: a section, an interface with stamps in units of 10 to the −9 (or, with unit
// 0x80|10, of 2 to the −10) seconds, a block that is nobody's, and the packets of pcapFile.
func pcapngFile(order binary.AppendByteOrder, linkType uint16, unit byte, before []byte) []byte {
	block := func(kind uint32, body []byte) []byte {
		body = append(body, make([]byte, (4-len(body)%4)%4)...)
		size := uint32(12 + len(body))
		b := order.AppendUint32(order.AppendUint32(nil, kind), size)
		return order.AppendUint32(append(b, body...), size)
	}
	b := block(0x0a0d0d0a, append(order.AppendUint32(nil, 0x1a2b3c4d), 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255))
	options := append(order.AppendUint16(order.AppendUint16(nil, 9), 1), unit, 0, 0, 0)
	b = append(b, block(1, append(append(order.AppendUint16(nil, linkType), 0, 0, 0, 0, 0, 0), options...))...)
	b = append(b, block(0xbad, make([]byte, 1<<20))...)
	for _, to := range []byte{2, 3} {
		ip := make([]byte, 20)
		ip[0] = 0x45
		binary.BigEndian.PutUint16(ip[2:], 1500)
		copy(ip[16:], []byte{192, 168, 77, to})
		stamp := uint64(7e9 + 500)
		if unit&0x80 != 0 {
			stamp = 7<<10 + 512
		}
		packet := order.AppendUint32(order.AppendUint32(make([]byte, 4), uint32(stamp>>32)), uint32(stamp))
		packet = order.AppendUint32(packet, uint32(len(before)+len(ip)))
		packet = order.AppendUint32(packet, uint32(len(before)+1500))
		b = append(b, block(6, append(append(packet, before...), ip...))...)
	}
	return b
}

func TestReadPcap(t *testing.T) {
	ethernet := append(make([]byte, 12), 8, 0)
	// A card that has yet to cut the packet leaves its length out.
	uncut := pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, ethernet)
	copy(uncut[24+16+14+2:], []byte{0, 0})
	pktap := append(binary.LittleEndian.AppendUint32(nil, 108), make([]byte, 104+14)...)
	pktap[44] = 14
	device := netip.MustParseAddr("192.168.77.2")
	for name, test := range map[string]struct {
		file []byte
		at   time.Duration
	}{
		"little, µs, Ethernet": {pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, ethernet), 7*time.Second + 500*time.Microsecond},
		"big, ns, VLAN":        {pcapFile(binary.BigEndian, 0xa1b23c4d, 1, append(make([]byte, 12), 0x81, 0, 0, 5, 8, 0)), 7*time.Second + 500},
		"cooked":               {pcapFile(binary.LittleEndian, 0xa1b23c4d, 113, make([]byte, 16)), 7*time.Second + 500},
		"cooked 2":             {pcapFile(binary.LittleEndian, 0xa1b23c4d, 276, make([]byte, 20)), 7*time.Second + 500},
		"raw":                  {pcapFile(binary.LittleEndian, 0xa1b23c4d, 101, nil), 7*time.Second + 500},
		"OpenBSD's raw":        {pcapFile(binary.LittleEndian, 0xa1b23c4d, 14, nil), 7*time.Second + 500},
		"loopback of macOS":    {pcapFile(binary.LittleEndian, 0xa1b23c4d, 0, []byte{2, 0, 0, 0}), 7*time.Second + 500},
		"VLAN in VLAN":         {pcapFile(binary.LittleEndian, 0xa1b23c4d, 1, append(make([]byte, 12), 0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0)), 7*time.Second + 500},
		"cooked VLAN":          {pcapFile(binary.LittleEndian, 0xa1b23c4d, 113, append(make([]byte, 14), 0x81, 0, 0, 6, 8, 0)), 7*time.Second + 500},
		"an iPhone's cable":    {pcapFile(binary.LittleEndian, 0xa1b23c4d, 258, pktap), 7*time.Second + 500},
		"an iPhone's, older":   {pcapFile(binary.LittleEndian, 0xa1b23c4d, 149, pktap), 7*time.Second + 500},
		"a modem":              {pcapFile(binary.LittleEndian, 0xa1b23c4d, 1, nil), 7*time.Second + 500},
		"PPPoE":                {pcapFile(binary.LittleEndian, 0xa1b23c4d, 1, append(make([]byte, 12), 0x88, 0x64, 0x11, 0, 0, 1, 5, 0xde, 0, 0x21)), 7*time.Second + 500},
		"a card's large piece": {uncut, 7*time.Second + 500*time.Microsecond},
		"pcapng":               {pcapngFile(binary.LittleEndian, 1, 9, ethernet), 7*time.Second + 500},
		"pcapng, big":          {pcapngFile(binary.BigEndian, 276, 9, make([]byte, 20)), 7*time.Second + 500},
		"pcapng, halves":       {pcapngFile(binary.LittleEndian, 1, 0x80|10, ethernet), 7*time.Second + 500*time.Millisecond},
	} {
		n := 0
		isCut, err := ReadPcap("f.pcap", bytes.NewReader(test.file), device, func(at time.Duration, bytes int) {
			n++
			if at != test.at || bytes != 1500 {
				t.Errorf("%s: %d bytes at %v, want 1500 at %v", name, bytes, at, test.at)
			}
		})
		if err != nil || n != 1 || isCut {
			t.Errorf("%s: %d packets, cut %v, error %v; want 1 packet", name, n, isCut, err)
		}
		// A program that was ended leaves half a packet behind.
		n = 0
		isCut, err = ReadPcap("f.pcap", bytes.NewReader(test.file[:len(test.file)-1]), device, func(time.Duration, int) { n++ })
		if err != nil || n != 1 || !isCut {
			t.Errorf("%s, cut off: %d packets, cut %v, error %v; want 1 packet, true", name, n, isCut, err)
		}
	}
	good := pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, ethernet)
	huge := slices.Clone(good)
	copy(huge[24+8:], []byte{0xff, 0xff, 0xff, 0x7f})
	for says, file := range map[string][]byte{
		"too short": good[:10], "no pcap file": []byte(strings.Repeat("x", 40)), "gunzip": append([]byte{0x1f, 0x8b}, make([]byte, 40)...),
		"no beginning of a pcapng": append([]byte{0x0a, 0x0d, 0x0d, 0x0a}, make([]byte, 40)...), "packet 1 claims": huge,
		"link type 9": pcapFile(binary.LittleEndian, 0xa1b2c3d4, 9, nil), "link type 105": pcapngFile(binary.LittleEndian, 105, 9, nil),
	} {
		if _, err := ReadPcap("f.pcap", bytes.NewReader(file), device, func(time.Duration, int) {}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("ReadPcap() = %v, want an error that says %q", err, says)
		}
	}
}

func FuzzReadPcap(f *testing.F) {
	f.Add(pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, append(make([]byte, 12), 8, 0)))
	f.Add(pcapFile(binary.BigEndian, 0xa1b23c4d, 276, make([]byte, 20)))
	f.Add(pcapFile(binary.LittleEndian, 0xa1b2c3d4, 258, append([]byte{48}, make([]byte, 47)...)))
	f.Add(pcapngFile(binary.BigEndian, 1, 0x80|10, append(make([]byte, 12), 8, 0)))
	f.Fuzz(func(t *testing.T, file []byte) {
		defer testlab.Input(t)()
		n := 0
		_, _ = ReadPcap("f", bytes.NewReader(file), netip.MustParseAddr("192.168.77.2"), func(at time.Duration, bytes int) {
			if n += 16; at < 0 || bytes < 0 || bytes > pcapRecord || n > len(file) {
				t.Errorf("a packet of %d bytes at %v, want lengths and times that a file of %d bytes can have", bytes, at, len(file))
			}
		})
	})
}
