package usbgrabber

import (
	"encoding/binary"
	"slices"
	"time"
	"unicode/utf16"

	"eidetic/internal/lab"
)

// Classes and descriptors (USB Video Class 1.1, appendix A).
const (
	classVideo, subControl, subStreaming, subCollection = 0x0e, 1, 2, 3
	csInterface                                         = 0x24
	streamEndpoint                                      = 1
	packet                                              = 1024 // of SuperSpeed's bulk endpoints
	payloadSize                                         = 32 * packet
	clock                                               = 1_000_000 // Hz, of its time stamps
)

// formats lists the device's formats, by their index less one.
func formats() []lab.PixelFormat { return []lab.PixelFormat{lab.MJPEG, lab.YUYV} }

// sizes lists those of each format, the default first.
func sizes() [][2]int { return [][2]int{{1920, 1080}, {1280, 720}, {320, 240}, {640, 480}} }

// rates lists those of each size, the default first.
func rates() []int { return []int{60, 30, 10, 5} }

// interval is USB's word for a rate: in units of 100 ns.
func interval(rate int) uint32 { return uint32(time.Second / 100 / time.Duration(rate)) }

// bytesOf is the largest picture of a size: what YUY2 needs, and more than a JPEG does.
func bytesOf(size [2]int) uint32 { return uint32(2 * size[0] * size[1]) }

// descriptors are those of the device and of its one configuration.
func descriptors() (device, config []byte) {
	le := binary.LittleEndian
	device = []byte{18, 1, 0x00, 0x03, 0xef, 2, 1, 9 /* 512 bytes */, 0x09, 0x12, 0x01, 0x00, 0x00, 0x01, 1, 2, 0, 1}

	inputs := []byte{18, csInterface, 2, 1, 0x01, 0x02 /* camera */, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0}
	outputs := []byte{9, csInterface, 3, 2, 0x01, 0x01 /* streaming */, 0, 1, 0}
	head := []byte{13, csInterface, 1, 0x10, 0x01, 0, 0}
	head = append(le.AppendUint32(head, clock), 1, 1)
	le.PutUint16(head[5:], uint16(len(head)+len(inputs)+len(outputs)))

	var all []byte
	for i, f := range formats() {
		one := byte(i + 1)
		frame := byte(7)
		if f == lab.MJPEG {
			all = append(all, 11, csInterface, 6, one, byte(len(sizes())), 0, 1, 0, 0, 0, 0)
		} else {
			frame = 5
			all = append(all, 27, csInterface, 4, one, byte(len(sizes())))
			all = append(all, "YUY2\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"...)
			all = append(all, 16, 1, 0, 0, 0, 0)
		}
		for n, size := range sizes() {
			all = append(all, byte(26+4*len(rates())), csInterface, frame, byte(n+1), 0)
			all = le.AppendUint16(le.AppendUint16(all, uint16(size[0])), uint16(size[1]))
			bits := bytesOf(size) * 8
			all = le.AppendUint32(le.AppendUint32(all, bits*uint32(slices.Min(rates()))), bits*uint32(slices.Max(rates())))
			all = le.AppendUint32(le.AppendUint32(all, bytesOf(size)), interval(rates()[0]))
			all = append(all, byte(len(rates())))
			for _, r := range rates() {
				all = le.AppendUint32(all, interval(r))
			}
		}
		all = append(all, 6, csInterface, 13, 1, 1, 4) // colours: BT.709 primaries and curve, matrix of SMPTE 170M
	}
	stream := []byte{15, csInterface, 1, byte(len(formats())), 0, 0, 0x80 | streamEndpoint, 0, 2, 0, 0, 0, 1, 0, 0}
	le.PutUint16(stream[4:], uint16(len(stream)+len(all)))

	config = []byte{9, 2, 0, 0, 2, 1, 0, 0x80, 50}
	config = append(config, 8, 11, 0, 2, classVideo, subCollection, 0, 0)
	config = append(config, 9, 4, 0, 0, 0, classVideo, subControl, 0, 0)
	config = slices.Concat(config, head, inputs, outputs)
	config = append(config, 9, 4, 1, 0, 1, classVideo, subStreaming, 0, 0)
	config = slices.Concat(config, stream, all)
	config = append(config, 7, 5, 0x80|streamEndpoint, 2, packet&0xff, packet>>8, 0, 6, 0x30, 15, 0, 0, 0)
	le.PutUint16(config[2:], uint16(len(config)))
	return device, config
}

// Name is what the device calls itself.
const Name = "Eidetic emulated grabber"

// text is a string descriptor; the first names the language, English of the United States.
func text(n byte) ([]byte, bool) {
	content := []byte{0x09, 0x04}
	switch n {
	case 0:
	case 1, 2:
		content = nil
		for _, u := range utf16.Encode([]rune([]string{"Eidetic", Name}[n-1])) {
			content = binary.LittleEndian.AppendUint16(content, u)
		}
	default:
		return nil, false
	}
	return append([]byte{byte(2 + len(content)), 3}, content...), true
}

// Requests and the controls of the stream's interface (USB Video Class 1.1, 4.3.1.1).
const (
	setCurrent, getCurrent, getLeast, getMost, getLength, getInfo, getDefault = 0x01, 0x81, 0x82, 0x83, 0x85, 0x86, 0x87
	controlProbe, controlCommit                                               = 1, 2
	probeSize                                                                 = 34
)

// probe is the block that host and device agree on a stream with.
func probe(m mode) []byte {
	b := make([]byte, probeSize)
	le := binary.LittleEndian
	b[0], b[2], b[3] = 1, byte(m.format+1), byte(m.size+1)
	le.PutUint32(b[4:], interval(rates()[m.rate]))
	le.PutUint32(b[18:], bytesOf(sizes()[m.size]))
	le.PutUint32(b[22:], payloadSize)
	le.PutUint32(b[26:], clock)
	b[30] = 3 // the header's bits for the frame and its end are used
	return b
}

// mode is a stream, by the indices of its parts.
type mode struct{ format, size, rate int }

// understood is the mode that is nearest to what a host asks for.
func understood(b []byte) (m mode, ok bool) {
	if len(b) < 8 {
		return m, false
	}
	m.format = min(max(int(b[2])-1, 0), len(formats())-1)
	m.size = min(max(int(b[3])-1, 0), len(sizes())-1)
	want := binary.LittleEndian.Uint32(b[4:])
	for i, r := range rates() {
		if want >= interval(r) {
			m.rate = i
		}
	}
	return m, true
}

func (m mode) lab() lab.Format {
	s := sizes()[m.size]
	return lab.Format{Pixels: formats()[m.format], Width: s[0], Height: s[1], Rate: float64(rates()[m.rate])}
}
