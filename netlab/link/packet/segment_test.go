package packet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/link"
	"eidetic/netlab/nstest"
)

// opening returns a frame that opens a TCP connection, with a right checksum and the options given.
func opening(six bool, flags byte, options []byte) []byte {
	for len(options)%4 != 0 {
		options = append(options, 0)
	}
	segment := make([]byte, 20+len(options), 20+len(options)+4)
	binary.BigEndian.PutUint16(segment, 40000)
	binary.BigEndian.PutUint16(segment[2:], 443)
	segment[12], segment[13] = byte(len(segment)/4)<<4, flags
	copy(segment[20:], options)
	ip := make([]byte, 20)
	if ip[0], ip[9] = 0x45, 6; six {
		ip = make([]byte, 40)
		ip[0], ip[6] = 0x60, 6
	}
	binary.BigEndian.PutUint16(segment[16:], ^sumOf(segment))
	b := make([]byte, vnetHeader+ethernet)
	binary.BigEndian.PutUint16(b[vnetHeader+12:], map[bool]uint16{false: 0x0800, true: 0x86dd}[six])
	return append(append(b, ip...), segment...)
}

// sumOf is the Internet checksum's sum of a segment; that of the addresses, which stay, is left out.
func sumOf(segment []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(segment); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(segment[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// TestSegmentsFitTheMTU: the segment size in a SYN fits the MTU, and nothing else of the packet changes.
func TestSegmentsFitTheMTU(t *testing.T) {
	size := func(n uint16) []byte { return []byte{2, 4, byte(n >> 8), byte(n)} }
	for _, c := range []struct {
		six     bool
		flags   byte
		options []byte
		at      int // of the size within the options; -1 for none
		want    uint16
	}{
		{false, 0x02, append(size(1460), 4, 2, 1, 3, 3, 7), 2, 1360},
		{true, 0x12, append([]byte{4, 2}, size(1440)...), 4, 1340},
		{false, 0x12, append([]byte{1, 3, 3, 7, 1}, size(1460)...), 7, 1360}, // in two words of the checksum
		{false, 0x02, append([]byte{1}, size(1460)...), 3, 1360},
		{false, 0x02, size(1200), 2, 1200},
		{false, 0x10, size(1460), 2, 1460}, // opens nothing
		{false, 0x02, []byte{3, 0, 2, 4}, -1, 0},
		{false, 0x02, []byte{0, 2, 4, 5}, -1, 0},
		{false, 0x02, nil, -1, 0},
	} {
		t.Run(fmt.Sprint(c.six, c.flags, c.options), func(t *testing.T) {
			sent := opening(c.six, c.flags, c.options)
			f := &frame{data: bytes.Clone(sent)}
			f.clampSegments(1400)
			_, p := f.payload()
			segment := p[map[bool]int{false: 20, true: 40}[c.six]:]
			if got := sumOf(segment); got != 0xffff {
				t.Errorf("the checksum is wrong by %#x", got)
			}
			if c.at >= 0 {
				if got := binary.BigEndian.Uint16(segment[20+c.at:]); got != c.want {
					t.Errorf("segments of %d bytes; want %d", got, c.want)
				}
				copy(segment[20+c.at:][:2], c.options[c.at:])
				copy(segment[16:18], sent[len(sent)-len(segment)+16:])
			}
			if string(f.data) != string(sent) {
				t.Errorf("the frame is % x; want % x, but for size and checksum", f.data, sent)
			}
		})
	}
	late := &frame{data: opening(false, 2, size(1460))}
	late.data[0] = 1 // the checksum is still to be computed
	before := string(late.data[len(late.data)-8:][:2])
	late.clampSegments(1400)
	if after := string(late.data[len(late.data)-8:][:2]); after != before {
		t.Errorf("a checksum that is still to be computed is % x; want % x", after, before)
	}
	for n := range 60 { // frames that end early
		(&frame{data: opening(false, 2, size(1460))[:vnetHeader+n]}).clampSegments(1400)
	}
	s := newSim(t, "mtu=1400")
	s.sides[1].come = append(s.sides[1].come, arrival{s.now, opening(false, 0x12, size(1460))})
	s.until(time.Second)
	if r := s.Report(); r.Down.Packets != 1 || r.Down.Drops[link.DropMTU] != 0 || s.sides[0].left[0].id != 0x02040550 {
		t.Errorf("through a link the segment's end is %#x, %+v; want 0x2040550", s.sides[0].left[0].id, r.Down)
	}
}

// TestConnectionsFitTheMTU: the kernels at both ends of a connection through a link with a small MTU send packets that
// fit, and lose none.
func TestConnectionsFitTheMTU(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	c := newCable(t, "mtu=1400")
	l, err := net.Listen("tcp", gatewayAddr+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const size = 200_000 // each way
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return // the test has ended
		}
		defer conn.Close()
		_, _ = io.CopyN(conn, conn, size) // the client tells how much came
	}()
	var conn net.Conn
	if err := c.device.Do(func() (err error) { conn, err = net.Dial("tcp", l.Addr().String()); return err }); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(testlab.Hang)); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(make([]byte, size))
		sent <- err
	}()
	n, err := io.Copy(io.Discard, conn)
	r := c.link.Report()
	if err = errors.Join(err, <-sent); n != size || err != nil || r.Up.Drops[link.DropMTU]+r.Down.Drops[link.DropMTU] > 0 {
		t.Errorf("%d bytes came back, %v, lost %v and %v; want %d and none lost", n, err, r.Up.Drops, r.Down.Drops, size)
	}
}

// FuzzSegments: whatever a device sends, a frame keeps its checksum.
func FuzzSegments(f *testing.F) {
	f.Add(opening(false, 2, []byte{2, 4, 5, 180}), uint16(1400))
	f.Add(opening(true, 18, []byte{1, 2, 4, 5, 160}), uint16(576))
	f.Add(opening(true, 2, []byte{2, 0}), uint16(9000))
	f.Fuzz(func(t *testing.T, data []byte, mtu uint16) {
		defer testlab.Input(t)()
		if len(data) < vnetHeader {
			return
		}
		data = append(bytes.Clone(data), make([]byte, len(data)%2)...)
		data[0] = 0 // the checksum is complete
		want := sumOf(data) % 0xffff
		(&frame{data: data}).clampSegments(max(576, int(mtu)))
		if got := sumOf(data) % 0xffff; got != want {
			t.Errorf("the sum of % x is %#x; want %#x as before", data, got, want)
		}
	})
}
