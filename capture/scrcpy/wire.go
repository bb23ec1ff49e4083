package scrcpy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"eidetic/internal/lab"
)

// Bounds of what a phone sends.
const (
	maxPacket = 16 << 20 // a picture of which nothing is known from others has less than 1 MB
	maxConfig = 64 << 10 // parameter sets
	maxPixels = 16 << 20 // of a picture
)

// codecH264 is the codec's number: its name.
const codecH264 = 0x68323634

// hello is what the server says before its packets.
type hello struct {
	phone         string
	width, height int // 0, 0 where it does not say
}

// readHello reads the byte that proves that the server listens, the phone's name, and the codec.
func readHello(r io.Reader, d dialect) (h hello, err error) {
	head := make([]byte, 1+d.meta+d.codec)
	if _, err := io.ReadFull(r, head); err != nil {
		return h, err
	}
	if head[0] != 0 {
		return h, fmt.Errorf("the server's first byte is %d in place of 0", head[0])
	}
	name, rest := head[1:][:64], head[65:]
	name, _, _ = bytes.Cut(name, []byte{0})
	h.phone = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, string(name))
	size := func(width, height int) error {
		if width < 1 || height < 1 || width > lab.MaxSide || height > lab.MaxSide || width*height > maxPixels {
			return fmt.Errorf("the server announces pictures of %d × %d", width, height)
		}
		h.width, h.height = width, height
		return nil
	}
	if d.codec == 0 {
		return h, size(int(binary.BigEndian.Uint16(rest)), int(binary.BigEndian.Uint16(rest[2:])))
	}
	switch codec := binary.BigEndian.Uint32(rest); codec {
	case codecH264:
	case 0, 1: // as the server ends a stream
		return h, errors.New("the phone cannot film its screen")
	default:
		return h, fmt.Errorf("the server sends the codec %#x in place of H.264", codec)
	}
	if d.codec == 12 {
		return h, size(int(int32(binary.BigEndian.Uint32(rest[4:]))), int(int32(binary.BigEndian.Uint32(rest[8:]))))
	}
	return h, nil
}

// packet is a packet of the stream.
type packet struct {
	isConfig bool // parameter sets, which belong before the next picture
	// width and height, if not 0, are those of the pictures that follow; the packet has nothing else.
	width, height int
	pts           time.Duration // on the phone's clock
	arrived       lab.Time      // of its head
	data          []byte
}

// readPacket reads a packet.
func readPacket(r io.Reader, d dialect, clock lab.Clock) (p packet, err error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return p, err
	}
	p.arrived = clock()
	flags := binary.BigEndian.Uint64(head[:])
	n := binary.BigEndian.Uint32(head[8:])
	if d.sessions {
		if flags>>63 != 0 {
			p.width, p.height = int(uint32(flags)), int(n)
			if p.width < 1 || p.height < 1 || p.width > lab.MaxSide || p.height > lab.MaxSide || p.width*p.height > maxPixels {
				return p, fmt.Errorf("the server announces pictures of %d × %d", p.width, p.height)
			}
			return p, nil
		}
		flags <<= 1
	}
	p.isConfig = flags>>63 != 0 // the bit below says that it can be decoded alone, which its slices say themselves
	micro := flags << 2 >> 2
	if d.sessions {
		micro >>= 1
	}
	const most = uint64(1<<63-1) / 1000 // in nanoseconds; 292 years
	switch {
	case !p.isConfig && micro > most:
		return p, fmt.Errorf("a picture is stamped %d µs", micro)
	case n == 0 || n > maxPacket || p.isConfig && n > maxConfig:
		return p, fmt.Errorf("a packet of %d bytes", n)
	case !p.isConfig:
		p.pts = time.Duration(micro) * time.Microsecond
	}
	// What is said of the length is believed as far as bytes come.
	var data bytes.Buffer
	if _, err := io.CopyN(&data, r, int64(n)); err != nil {
		return p, fmt.Errorf("a packet of %d bytes was cut off: %w", n, err)
	}
	p.data = data.Bytes()
	return p, nil
}
