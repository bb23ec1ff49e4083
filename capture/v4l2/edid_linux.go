package v4l2

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// EDID is what an HDMI receiver tells the device about "its monitor". Receivers on
// boards (TC358743) have none until they are given one, and a source then sends nothing.
type EDID []byte

// mode is a video mode as CTA-861 lists it.
type mode struct {
	name                                   string
	clock                                  int // 10 kHz
	width, hBlank, hFront, hSync           int
	height, vBlank, vFront, vSync, mm, mmV int
}

// modes that an EDID can offer.
func modes() []mode {
	return []mode{
		{"1080p60", 14850, 1920, 280, 88, 44, 1080, 45, 4, 5, 527, 296},
		{"1080p50", 14850, 1920, 720, 528, 44, 1080, 45, 4, 5, 527, 296},
		{"1080p30", 7425, 1920, 280, 88, 44, 1080, 45, 4, 5, 527, 296},
		{"720p60", 7425, 1280, 370, 110, 40, 720, 30, 5, 5, 527, 296},
		{"720p50", 7425, 1280, 700, 440, 40, 720, 30, 5, 5, 527, 296},
	}
}

// NewEDID describes a monitor with one mode, "1080p60" or "720p60", so that a
// source sends this and nothing else. It asks for RGB without scaling. Standard: VESA E-EDID 1.4, release A.
func NewEDID(name string) (EDID, error) {
	var names []string
	for _, m := range modes() {
		if m.name == name {
			return m.edid(), nil
		}
		names = append(names, m.name)
	}
	return nil, fmt.Errorf("EDID: there is no mode %q; there are %v", name, names)
}

func (m mode) edid() EDID {
	e := make(EDID, 128)
	copy(e, "\x00\xff\xff\xff\xff\xff\xff\x00")
	copy(e[8:], "\x15\x24\x01\x00\x01\x00\x00\x00") // maker "EID", product 1, serial 1
	e[16], e[17] = 1, 36                            // week 1 of 2026
	e[18], e[19] = 1, 4                             // version
	e[20] = 0b1010_0010                             // digital, 8 bits a colour, HDMI
	e[21], e[22] = byte(m.mm/10), byte(m.mmV/10)
	e[23] = 120                                                                      // gamma 2.2
	e[24] = 0b0000_0110                                                              // RGB; sRGB; the first mode is the native one
	copy(e[25:], "\xee\x91\xa3\x54\x4c\x99\x26\x0f\x50\x54")                         // sRGB's primaries
	copy(e[38:], "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01") // no standard modes
	d := e[54:]
	d[0], d[1] = byte(m.clock), byte(m.clock>>8)
	d[2], d[3], d[4] = byte(m.width), byte(m.hBlank), byte(m.width>>8<<4|m.hBlank>>8)
	d[5], d[6], d[7] = byte(m.height), byte(m.vBlank), byte(m.height>>8<<4|m.vBlank>>8)
	d[8], d[9], d[10] = byte(m.hFront), byte(m.hSync), byte(m.vFront<<4|m.vSync)
	d[11] = byte(m.hFront>>8<<6 | m.hSync>>8<<4)
	d[12], d[13], d[14] = byte(m.mm), byte(m.mmV), byte(m.mm>>8<<4|m.mmV>>8)
	d[17] = 0b0001_1110 // separate sync, both positive
	copy(e[72:], "\x00\x00\x00\xfc\x00Eidetic\n     ")
	copy(e[90:], "\x00\x00\x00\x10\x00")
	copy(e[108:], "\x00\x00\x00\x10\x00")
	var sum byte
	for _, b := range e {
		sum += b
	}
	e[127] = -sum
	return e
}

// setEDID gives the receiver an EDID, of whole blocks.
func setEDID(dev device, e EDID) error {
	const block, most = 128, 256
	if len(e) == 0 {
		return nil
	}
	if len(e)%block != 0 || len(e) > most*block {
		return fmt.Errorf("an EDID of %d bytes, which are no blocks of %d", len(e), block)
	}
	// Giving it anew would unplug the source for a moment, as a monitor does that is plugged in.
	if has, err := getEDID(dev); err == nil && bytes.Equal(has, e) {
		return nil
	}
	var pin runtime.Pinner
	pin.Pin(&e[0])
	defer pin.Unpin()
	var x edid
	setU32(x[:], 8, uint32(len(e)/block))
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
