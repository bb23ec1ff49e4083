package v4l2

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// EDID is what an HDMI receiver tells the device about "its monitor". Receivers on
// boards (TC358743) have none until they are given one, and a source then sends nothing.
type EDID []byte

// mode is a video mode as CTA-861 lists it, with the number that it has there.
type mode struct {
	name                          string
	vic, hdmi                     int // hdmi is its number in the HDMI block, which modes of 2160 rows have
	clock                         int // 10 kHz
	width, hBlank, hFront, hSync  int
	height, vBlank, vFront, vSync int
}

// modes that an EDID can offer: those of 16:9 whose blanking the base block can hold.
func modes() []mode {
	return []mode{
		{"1080p60", 16, 0, 14850, 1920, 280, 88, 44, 1080, 45, 4, 5},
		{"1080p50", 31, 0, 14850, 1920, 720, 528, 44, 1080, 45, 4, 5},
		{"1080p30", 34, 0, 7425, 1920, 280, 88, 44, 1080, 45, 4, 5},
		{"1080p25", 33, 0, 7425, 1920, 720, 528, 44, 1080, 45, 4, 5},
		{"1080p24", 32, 0, 7425, 1920, 830, 638, 44, 1080, 45, 4, 5},
		{"1080p100", 64, 0, 29700, 1920, 720, 528, 44, 1080, 45, 4, 5},
		{"1080p120", 63, 0, 29700, 1920, 280, 88, 44, 1080, 45, 4, 5},
		{"720p60", 4, 0, 7425, 1280, 370, 110, 40, 720, 30, 5, 5},
		{"720p50", 19, 0, 7425, 1280, 700, 440, 40, 720, 30, 5, 5},
		{"720p100", 41, 0, 14850, 1280, 700, 440, 40, 720, 30, 5, 5},
		{"720p120", 47, 0, 14850, 1280, 370, 110, 40, 720, 30, 5, 5},
		{"2160p30", 95, 1, 29700, 3840, 560, 176, 88, 2160, 90, 8, 10},
	}
}

// Wishes that may follow a mode, each after a plus sign.
const (
	withAudio = "audio" // two channels of PCM: without it a source sends no sound
	withYCbCr = "ycbcr" // brightness and colour apart besides RGB, which is what a source sends otherwise
)

// NewEDID describes a monitor with one mode, "1080p60", so that a source sends this and nothing else but, at its start,
// 640 × 480, which every monitor has. It asks for RGB without sound; "1080p60+ycbcr+audio" allows both. Standards: VESA
// E-EDID 1.3, release A; CTA-861-G with the block of HDMI 1.4b.
func NewEDID(name string) (EDID, error) {
	name, wishes, _ := strings.Cut(name, "+")
	var audio, ycbcr bool
	for wish := range strings.SplitSeq(wishes, "+") {
		switch wish {
		case withAudio:
			audio = true
		case withYCbCr:
			ycbcr = true
		case "":
		default:
			return nil, fmt.Errorf("EDID: there is no %q: after the mode come +%s and +%s", wish, withAudio, withYCbCr)
		}
	}
	var names []string
	for _, m := range modes() {
		if m.name == name {
			return append(m.base(), m.extension(audio, ycbcr)...), nil
		}
		names = append(names, m.name)
	}
	return nil, fmt.Errorf("EDID: there is no mode %q; there are %v", name, names)
}

const (
	blockSize      = 128
	mmWide, mmHigh = 527, 296 // of a screen of 24 inches
)

// base is the first block.
func (m mode) base() EDID {
	e := make(EDID, blockSize)
	copy(e, "\x00\xff\xff\xff\xff\xff\xff\x00")
	copy(e[8:], "\x15\x24\x01\x00\x01\x00\x00\x00") // maker "EID", product 1, serial 1
	e[16], e[17] = 1, 36                            // week 1 of 2026
	e[18], e[19] = 1, 3                             // version, which HDMI asks for
	e[20] = 0b1000_0000                             // digital
	e[21], e[22] = mmWide/10, mmHigh/10
	e[23] = 120                                                                      // gamma 2.2
	e[24] = 0b0000_1110                                                              // colour; sRGB; the first mode is the preferred one
	copy(e[25:], "\xee\x91\xa3\x54\x4c\x99\x26\x0f\x50\x54")                         // sRGB's primaries
	e[35] = 0b0010_0000                                                              // 640 × 480 at 60/s, which CTA-861 requires
	copy(e[38:], "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01") // no standard modes
	d := e[54:]
	d[0], d[1] = byte(m.clock), byte(m.clock>>8)
	d[2], d[3], d[4] = byte(m.width), byte(m.hBlank), byte(m.width>>8<<4|m.hBlank>>8)
	d[5], d[6], d[7] = byte(m.height), byte(m.vBlank), byte(m.height>>8<<4|m.vBlank>>8)
	d[8], d[9], d[10] = byte(m.hFront), byte(m.hSync), byte(m.vFront<<4|m.vSync)
	d[11] = byte(m.hFront>>8<<6 | m.hSync>>8<<4)
	d[12], d[13], d[14] = mmWide&0xff, mmHigh&0xff, mmWide>>8<<4|mmHigh>>8
	d[17] = 0b0001_1110 // separate sync, both positive
	copy(e[72:], "\x00\x00\x00\xfc\x00Eidetic\n     ")
	copy(e[90:], m.ranges())
	copy(e[108:], "\x00\x00\x00\x10\x00")
	e[126] = 1 // a block follows
	e.seal()
	return e
}

// ranges is the descriptor of what the monitor takes: this mode, and 640 × 480 at 59.94/s.
func (m mode) ranges() []byte {
	lines := float64(m.clock) * 10 / float64(m.width+m.hBlank) // kHz
	rate := 1000 * lines / float64(m.height+m.vBlank)
	return []byte{
		0, 0, 0, 0xfd, 0, byte(min(59, rate)), byte(math.Ceil(max(60, rate))), byte(min(31, lines)), byte(math.Ceil(max(32, lines))),
		byte((m.clock + 999) / 1000), 0, '\n', ' ', ' ', ' ', ' ', ' ', ' ',
	}
}

// extension is the second block, of CTA-861.
func (m mode) extension(audio, ycbcr bool) EDID {
	e := make(EDID, 4, blockSize)
	e[0], e[1], e[3] = 2, 3, 0b1000_0001 // revision 3; shown without overscan; one native mode
	data := func(tag int, b ...byte) { e = append(append(e, byte(tag<<5|len(b))), b...) }
	data(2, byte(m.vic)) // the base block says that it is the native one
	if audio {
		e[3] |= 0b0100_0000
		data(1, 0x09, 0x07, 0x07) // PCM, 2 channels; 32, 44.1, 48 kHz; 16, 20, 24 bits
		data(4, 0x01, 0x00, 0x00) // front left and right
	}
	capability := byte(0b0100_1010) // a source may choose RGB's range, and says which; never overscan
	if ycbcr {
		e[3] |= 0b0011_0000 // 4:4:4 and 4:2:2
		capability |= 0b1000_0000
	}
	// The HDMI block: its number, address 1.0.0.0, no deep colour, the fastest clock in steps of 5 MHz.
	hdmi := []byte{0x03, 0x0c, 0x00, 0x10, 0x00, 0x00, byte((m.clock + 499) / 500)}
	if m.hdmi > 0 {
		hdmi = append(hdmi, 0x20, 0x00, 0x20, byte(m.hdmi))
	}
	data(3, hdmi...)
	data(7, 0x00, capability)
	e[2] = byte(len(e)) // no further modes
	e = e[:blockSize]
	e.seal()
	return e
}

// seal makes the sum of a block's bytes 0.
func (e EDID) seal() {
	e[blockSize-1] = 0
	for _, b := range e[:blockSize-1] {
		e[blockSize-1] -= b
	}
}

// checkCan returns an error if the receiver says that it cannot take the EDID's mode.
func (e EDID) checkCan(dev device) error {
	var c timingsCap
	if len(e) < blockSize || dev.ioctl(reqTimingsCap, pointer(&c)) != nil {
		return nil // it does not say
	}
	d := e[54:]
	clock := 10_000 * (uint64(d[0]) | uint64(d[1])<<8)
	width, height := uint32(d[2])|uint32(d[4]>>4)<<8, uint32(d[5])|uint32(d[7]>>4)<<8
	maxWidth, maxHeight, maxClock := u32(c[:], 20), u32(c[:], 28), order.Uint64(c[40:])
	if width > maxWidth || height > maxHeight || clock > maxClock {
		return fmt.Errorf("the EDID asks for %d × %d at a clock of %.1f MHz, and the receiver takes at most %d × %d and %.1f MHz: "+
			"choose a smaller or slower mode", width, height, float64(clock)/1e6, maxWidth, maxHeight, float64(maxClock)/1e6)
	}
	return nil
}

// setEDID gives the receiver an EDID, of whole blocks.
func setEDID(dev device, e EDID) error {
	const most = 256
	if len(e) == 0 {
		return nil
	}
	if len(e)%blockSize != 0 || len(e) > most*blockSize {
		return fmt.Errorf("an EDID of %d bytes, which are no blocks of %d", len(e), blockSize)
	}
	if err := e.checkCan(dev); err != nil {
		return err
	}
	// Giving it anew would unplug the source for a moment, as a monitor does that is plugged in.
	if has, err := getEDID(dev); err == nil && bytes.Equal(has, e) {
		return nil
	}
	var pin runtime.Pinner
	pin.Pin(&e[0])
	defer pin.Unpin()
	var x edid
	setU32(x[:], 8, uint32(len(e)/blockSize))
	order.PutUint64(x[32:], uint64(uintptr(unsafe.Pointer(&e[0]))))
	err := dev.ioctl(reqSetEDID, pointer(&x))
	if errors.Is(err, unix.ENOTTY) {
		return errors.New("the device takes no EDID: it brings its own")
	}
	if err != nil {
		return fmt.Errorf("set the EDID: %w", err)
	}
	return nil
}

// getEDID reads the receiver's EDID; nil when it has none.
func getEDID(dev device) (EDID, error) {
	e := make(EDID, 256*128)
	var pin runtime.Pinner
	pin.Pin(&e[0])
	defer pin.Unpin()
	var x edid
	setU32(x[:], 8, 256)
	order.PutUint64(x[32:], uint64(uintptr(unsafe.Pointer(&e[0]))))
	err := dev.ioctl(reqGetEDID, pointer(&x))
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.ENODATA) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the EDID: %w", err)
	}
	return e[:min(len(e), 128*int(u32(x[:], 8)))], nil
}
