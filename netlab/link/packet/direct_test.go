package packet

import (
	"encoding/binary"
	"testing"
	"time"

	"eidetic/netlab/link"
)

// segment4 returns a frame with a TCP segment between two ports over IPv4.
func segment4(from, to uint16, fragment uint16, id uint32) []byte {
	b := packet(60, 1, id)
	ip := b[vnetHeader+ethernet:]
	ip[0], ip[9] = 0x46, 6 // a header of 24 bytes
	binary.BigEndian.PutUint16(ip[6:], fragment)
	binary.BigEndian.PutUint16(ip[24:], from)
	binary.BigEndian.PutUint16(ip[26:], to)
	return b
}

// segment6 is segment4 over IPv6.
func segment6(from, to uint16) []byte {
	b := make([]byte, vnetHeader+ethernet+60)
	binary.BigEndian.PutUint16(b[vnetHeader+12:], 0x86dd)
	ip := b[vnetHeader+ethernet:]
	ip[0], ip[6] = 0x60, 6
	binary.BigEndian.PutUint16(ip[40:], from)
	binary.BigEndian.PutUint16(ip[42:], to)
	return b
}

func TestHasDevicePort(t *testing.T) {
	udp := segment4(40000, 5900, 0, 0)
	udp[vnetHeader+ethernet+9] = 17
	cut := segment4(40000, 5900, 0, 0)[:vnetHeader+ethernet+26]
	for _, c := range []struct {
		name string
		data []byte
		down bool
		want bool
	}{
		{"to the screen", segment4(40000, 5900, 0, 0), true, true},
		{"from the screen", segment4(5900, 40000, 0, 0), false, true},
		{"to a server's 5900", segment4(40000, 5900, 0, 0), false, false},
		{"from a server's 5900", segment4(5900, 40000, 0, 0), true, false},
		{"another port", segment4(40000, 443, 0, 0), true, false},
		{"first fragment", segment4(40000, 5900, 0x2000, 0), true, true},
		{"later fragment", segment4(40000, 5900, 0x2010, 0), true, false},
		{"UDP", udp, true, false},
		{"cut off", cut, true, false},
		{"IPv6", segment6(40000, 5900), true, true},
		{"IPv6 from", segment6(5900, 40000), false, true},
		{"nothing", make([]byte, vnetHeader+3), true, false},
	} {
		f := &frame{data: c.data}
		if got := f.hasDevicePort([]uint16{5555, 5900}, c.down); got != c.want {
			t.Errorf("%s: hasDevicePort() = %t, want %t", c.name, got, c.want)
		}
	}
}

// TestDirectBypassesTheLink: a segment of a bypassing connection leaves at once,
// although the queue is full, and no other counter than Direct includes it.
func TestDirectBypassesTheLink(t *testing.T) {
	p, err := link.Parse("rtt=400ms,down=10kbit,up=10kbit,loss=50%")
	if err != nil {
		t.Fatal(err)
	}
	s := simOf(p)
	for _, d := range s.directions {
		d.bypass = []uint16{5900}
	}
	s.down(100, 1400, time.Millisecond)
	const at = 50 * time.Millisecond
	s.sides[1].come = append(s.sides[1].come[:50:50], append([]arrival{{s.now.Add(at), segment4(40000, 5900, 0, 7777)}},
		s.sides[1].come[50:]...)...)
	s.until(150 * time.Millisecond)
	var found bool
	for _, d := range s.got() {
		if d.id == 7777 {
			found = true
			if since(d) != at {
				t.Errorf("the segment left after %v, want %v", since(d), at)
			}
		}
	}
	r := s.Report()
	if !found || r.Down.Direct != 1 || r.Down.Packets != 100 {
		t.Errorf("the segment left: %t; Direct = %d, Packets = %d; want true, 1 and 100", found, r.Down.Direct, r.Down.Packets)
	}
}
