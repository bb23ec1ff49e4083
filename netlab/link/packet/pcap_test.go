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

func TestReadPcap(t *testing.T) {
	ethernet := append(make([]byte, 12), 8, 0)
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
	} {
		n := 0
		err := ReadPcap("f.pcap", bytes.NewReader(test.file), device, func(at time.Duration, bytes int) {
			n++
			if at != test.at || bytes != 1500 {
				t.Errorf("%s: %d bytes at %v, want 1500 at %v", name, bytes, at, test.at)
			}
		})
		if err != nil || n != 1 {
			t.Errorf("%s: %d packets, error %v; want 1 packet", name, n, err)
		}
	}
	good := pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, ethernet)
	huge := slices.Clone(good)
	copy(huge[24+8:], []byte{0xff, 0xff, 0xff, 0x7f})
	for says, file := range map[string][]byte{
		"too short": good[:10], "no pcap file": []byte(strings.Repeat("x", 40)), "convert it with": append([]byte{0x0a,
			0x0d, 0x0d, 0x0a}, make([]byte, 40)...),
		"packet 1 is cut off": good[:30], "packet 2 is cut off": good[:len(good)-1], "packet 1 claims": huge,
		"link type 9": pcapFile(binary.LittleEndian, 0xa1b2c3d4, 9, nil),
	} {
		if err := ReadPcap("f.pcap", bytes.NewReader(file), device, func(time.Duration, int) {}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("ReadPcap() = %v, want an error that says %q", err, says)
		}
	}
}

func FuzzReadPcap(f *testing.F) {
	f.Add(pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, append(make([]byte, 12), 8, 0)))
	f.Add(pcapFile(binary.BigEndian, 0xa1b23c4d, 276, make([]byte, 20)))
	f.Fuzz(func(t *testing.T, file []byte) {
		defer testlab.Input(t)()
		n := 0
		_ = ReadPcap("f", bytes.NewReader(file), netip.MustParseAddr("192.168.77.2"), func(at time.Duration, bytes int) {
			if n += 16; at < 0 || bytes < 0 || bytes > 40+65535 || n > len(file) {
				t.Errorf("a packet of %d bytes at %v, want lengths and times that a file of %d bytes can have", bytes, at, len(file))
			}
		})
	})
}
