package usbgrabber

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"eidetic/capture/mjpeg"
	"eidetic/capture/synthetic"
	"eidetic/internal/lab"

	"golang.org/x/sys/unix"
)

// host is a host that speaks USB/IP, as the kernel's does.
type host struct {
	t    *testing.T
	conn net.Conn
	seq  uint32
}

// newHost imports a device.
func newHost(t *testing.T, g *Grabber) *host {
	t.Helper()
	here, there := net.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.Serve(ctx, there) // ends when the host closes
	}()
	t.Cleanup(func() { stop(); <-ended })
	if err := importDevice(here); err != nil {
		t.Fatal(err)
	}
	return &host{t: t, conn: here}
}

// submit sends a transfer, and returns its number.
func (h *host) submit(ep, in uint32, room int, s []byte, data []byte) uint32 {
	h.t.Helper()
	h.seq++
	b := make([]byte, headerSize)
	for i, v := range []uint32{cmdSubmit, h.seq, deviceID, in, ep, 0, uint32(room)} {
		order.PutUint32(b[4*i:], v)
	}
	copy(b[40:], s)
	if _, err := h.conn.Write(append(b, data...)); err != nil {
		h.t.Fatal(err)
	}
	return h.seq
}

// answer reads one answer; data follows those to transfers in.
func (h *host) answer(in bool) (command, seq uint32, status int32, data []byte) {
	h.t.Helper()
	b := make([]byte, headerSize)
	if _, err := io.ReadFull(h.conn, b); err != nil {
		h.t.Fatal(err)
	}
	command, seq, status = order.Uint32(b), order.Uint32(b[4:]), int32(order.Uint32(b[20:]))
	if command == retSubmit && in {
		data = make([]byte, order.Uint32(b[24:]))
		if _, err := io.ReadFull(h.conn, data); err != nil {
			h.t.Fatal(err)
		}
	}
	return command, seq, status, data
}

// control does one control transfer; -32 is a stall.
func (h *host) control(kind, request byte, value, index uint16, room int, data []byte) ([]byte, int32) {
	h.t.Helper()
	s := []byte{kind, request}
	for _, v := range []uint16{value, index, uint16(max(room, len(data)))} {
		s = binary.LittleEndian.AppendUint16(s, v)
	}
	in := uint32(kind >> 7)
	seq := h.submit(0, in, max(room, len(data)), s, data)
	_, got, status, answer := h.answer(in == 1)
	if got != seq {
		h.t.Fatalf("control transfer %d was answered as %d", seq, got)
	}
	return answer, status
}

// stream agrees on a mode and begins it.
func (h *host) stream(m mode) {
	h.t.Helper()
	for _, control := range []uint16{controlProbe, controlCommit} {
		if _, status := h.control(0x21, setCurrent, control<<8, 1, 0, probe(m)); status != 0 {
			h.t.Fatalf("control %d: status %d", control, status)
		}
	}
}

// picture reads one picture, and the bits of all of its payloads' headers.
func (h *host) picture() (pix []byte, fid, bits byte, stamp uint32) {
	h.t.Helper()
	for {
		asked := h.submit(streamEndpoint, directionIn, payloadSize, nil, nil)
		_, seq, status, p := h.answer(true)
		if seq != asked {
			h.t.Fatalf("transfer %d was answered as %d", asked, seq)
		}
		if status != 0 || len(p) < headerBytes || p[0] != headerBytes {
			h.t.Fatalf("a payload of %d bytes with status %d: %.12x", len(p), status, p)
		}
		pix = append(pix, p[headerBytes:]...)
		bits |= p[1]
		if p[1]&frameEnds != 0 {
			return pix, p[1] & 1, bits, binary.LittleEndian.Uint32(p[2:])
		}
	}
}

// TestDescriptors: the descriptors hold together as a host reads them.
func TestDescriptors(t *testing.T) {
	h := newHost(t, New(Options{Film: Scroll}))
	device, _ := h.control(0x80, getDescriptor, 1<<8, 0, 64, nil)
	if len(device) != 18 || int(device[0]) != len(device) {
		t.Fatalf("device descriptor %x", device)
	}
	config, _ := h.control(0x80, getDescriptor, 2<<8, 0, 4096, nil)
	if int(binary.LittleEndian.Uint16(config[2:])) != len(config) {
		t.Fatalf("the configuration says %d bytes and has %d", binary.LittleEndian.Uint16(config[2:]), len(config))
	}
	var modes, frames int
	var inside byte // the interface that the descriptors belong to
	for rest := config; len(rest) > 0; rest = rest[rest[0]:] {
		if rest[0] < 2 || int(rest[0]) > len(rest) {
			t.Fatalf("a descriptor of %d bytes, where %d are left", rest[0], len(rest))
		}
		switch {
		case rest[1] == 4:
			inside = rest[6]
		case rest[1] == csInterface && inside == subStreaming && (rest[2] == 5 || rest[2] == 7):
			frames++
			modes += int(rest[25])
			if int(rest[0]) != 26+4*int(rest[25]) {
				t.Errorf("a frame descriptor of %d bytes with %d rates", rest[0], rest[25])
			}
		}
	}
	if frames != len(formats())*len(sizes()) || modes != frames*len(rates()) {
		t.Errorf("%d sizes with %d rates; want %d, with %d each", frames, modes, len(formats())*len(sizes()), len(rates()))
	}
	for n := range byte(3) {
		if s, status := h.control(0x80, getDescriptor, 3<<8|uint16(n), 0, 255, nil); status != 0 || int(s[0]) != len(s) {
			t.Errorf("text %d: %x, status %d", n, s, status)
		}
	}
	// A host reads less when it does not know the length yet, and asks for what is not there.
	if head, _ := h.control(0x80, getDescriptor, 2<<8, 0, 9, nil); !bytes.Equal(head, config[:9]) {
		t.Errorf("the first nine bytes are %x", head)
	}
	if _, status := h.control(0x80, getDescriptor, 15<<8, 0, 5, nil); status != -32 {
		t.Errorf("a descriptor that is not there: status %d, want a stall", status)
	}
}

// TestListed: the device is listed, and no other one can be imported.
func TestListed(t *testing.T) {
	ask := func(request []byte, size int) []byte {
		t.Helper()
		here, there := net.Pipe()
		defer here.Close()
		go func() { _ = New(Options{Film: Still}).Serve(t.Context(), there) }()
		if _, err := here.Write(request); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, size)
		if n, err := io.ReadFull(here, answer); err != nil {
			t.Fatalf("%d of %d bytes: %v", n, size, err)
		}
		return answer
	}
	list := ask(operation(reqDevices, 0), 12+deviceInfo+2*interfaceInfo)
	if order.Uint32(list[8:]) != 1 || unix.ByteSliceToString(list[12+256:]) != busID || list[12+deviceInfo] != classVideo {
		t.Errorf("list %x", list)
	}
	if answer := ask(append(operation(reqImport, 0), make([]byte, 32)...), 8); order.Uint32(answer[4:]) == 0 {
		t.Errorf("a device without a name was imported: %x", answer)
	}
}

// TestStreams: in each mode whole pictures come, with the numbers of the film, alternating in their headers.
func TestStreams(t *testing.T) {
	for f := range formats() {
		for s := range sizes() {
			h := newHost(t, New(Options{Film: Scroll, Free: true}))
			m := mode{format: f, size: s}
			t.Run(fmt.Sprintf("%s %dx%d", m.lab().Pixels, m.lab().Width, m.lab().Height), func(t *testing.T) {
				h.stream(m)
				for n := range 3 {
					pix, fid, bits, _ := h.picture()
					if number := numberOf(t, m.lab(), pix); number != n || int(fid) != n&1 || bits&hasError != 0 {
						t.Errorf("picture %d has number %d, frame identifier %d, bits %#x", n, number, fid, bits)
					}
				}
			})
		}
	}
}

// numberOf reads a picture's number; −1: there is none.
func numberOf(t *testing.T, f lab.Format, pix []byte) int {
	t.Helper()
	if f.Pixels == lab.MJPEG {
		f.Pixels = lab.BGRX
		decoded := make([]byte, f.FrameSize())
		if err := mjpeg.Decode(decoded, pix, f); err != nil {
			t.Error(err)
			return -1
		}
		pix = decoded
	}
	n, ok := synthetic.ReadCounter(f, pix)
	if !ok {
		return -1
	}
	return int(n)
}

// TestFaults: each fault does to the bytes what it is named for.
func TestFaults(t *testing.T) {
	h := newHost(t, New(Options{Film: Scroll, Free: true, BlueFirst: 1, Faults: map[int]Fault{
		2: Twice, 3: Lost, 4: Torn, 5: Jump, 6: ErrorBit, 7: Short,
	}}))
	m := mode{format: 1, size: 2}
	f := m.lab()
	h.stream(m)
	want := []int{-1, 1, 1, 4, 5, 6, 7, 8} // the numbers, from place 0 on, without that of the lost one; blue has none
	var last uint32
	for i, number := range want {
		pix, fid, bits, stamp := h.picture()
		if int(fid) != i&1 {
			t.Errorf("picture %d has the frame identifier %d", i, fid)
		}
		short := number == 7
		if short != (len(pix) == f.FrameSize()/2) || !short && len(pix) != f.FrameSize() {
			t.Fatalf("picture %d has %d bytes", i, len(pix))
		}
		if got := numberOf(t, f, append(pix, make([]byte, f.FrameSize()-len(pix))...)); got != number {
			t.Errorf("picture %d has number %d, want %d", i, got, number)
		}
		if damaged := bits&hasError != 0; damaged != (number == 6) {
			t.Errorf("picture %d: damaged %v", i, damaged)
		}
		if jumps := stamp-last >= clock; i > 0 && jumps != (number == 5) {
			t.Errorf("picture %d: its time stamp is %d µs after the one before", i, stamp-last)
		}
		last = stamp
		if number < 0 {
			continue
		}
		upper, lower := make([]byte, f.FrameSize()), make([]byte, f.FrameSize())
		Scroll(f, upper, number)
		Scroll(f, lower, number)
		if number == 4 {
			Scroll(f, lower, number+1)
		}
		half := f.FrameSize() / 2
		if !bytes.Equal(pix[:half], upper[:half]) || !short && !bytes.Equal(pix[half:], lower[half:]) {
			t.Errorf("picture %d is not what the film has", i)
		}
	}
}

// TestUnlink: a host that stops takes its transfers back, each with one answer, and can stream anew.
func TestUnlink(t *testing.T) {
	g := New(Options{Film: Still})
	h := newHost(t, g)
	first := h.submit(streamEndpoint, directionIn, payloadSize, nil, nil) // no stream runs: it waits
	b := make([]byte, headerSize)
	for i, v := range []uint32{cmdUnlink, first + 1, deviceID, directionIn, streamEndpoint, first} {
		order.PutUint32(b[4*i:], v)
	}
	for n, want := range []int32{-104, 0} { // the second time there is nothing to take back
		if _, err := h.conn.Write(b); err != nil {
			t.Fatal(err)
		}
		if command, seq, status, _ := h.answer(true); command != retUnlink || seq != first+1 || status != want {
			t.Errorf("unlink %d: command %d of %d with status %d, want %d", n, command, seq, status, want)
		}
	}
	h.seq += 2
	// Linux may take a transfer back before it sends it: then it must have no answer.
	order.PutUint32(b[4:], h.seq)
	order.PutUint32(b[20:], h.seq+1)
	if _, err := h.conn.Write(b); err != nil {
		t.Fatal(err)
	}
	if command, seq, status, _ := h.answer(true); command != retUnlink || seq != h.seq || status != 0 {
		t.Errorf("unlink before its transfer: command %d of %d with status %d, want %d and 0", command, seq, status, retUnlink)
	}
	h.submit(streamEndpoint, directionIn, payloadSize, nil, nil) // picture would see its answer
	for range 2 {
		h.stream(mode{format: 0, size: 2})
		if pix, _, _, _ := h.picture(); len(pix) == 0 {
			t.Error("an empty picture")
		}
		if _, status := h.control(0x02, clearFeature, 0, 0x81, 0, nil); status != 0 {
			t.Errorf("stop: status %d", status)
		}
		if f, sent := g.Sent(); f.Width != 320 || len(sent) > 1 {
			t.Errorf("%d pictures of %d columns were sent before the stop", len(sent), f.Width)
		}
	}
}
