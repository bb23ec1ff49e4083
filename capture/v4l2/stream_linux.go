package v4l2

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

// buffers is how many buffers the driver is asked for (the kernel allows 32).
const buffers = 16

// negotiate asks for a format, and goes by what the driver has granted.
func (s *Source) negotiate(set settings) error {
	now, err := s.granted()
	if err != nil {
		return err
	}
	want := s.o.Format
	width, height, codes := int(now.width), int(now.height), []uint32{now.fourcc}
	if want.Width > 0 {
		width, height = want.Width, want.Height
	}
	if want.Pixels != "" {
		if codes = codesOf(want.Pixels); codes == nil {
			return fmt.Errorf("there is no pixel format %q", want.Pixels)
		}
	}
	if s.o.code != "" {
		codes = []uint32{fourcc(s.o.code)}
	}
	for i, code := range codes {
		err := set.setFormat(code, width, height)
		if errors.Is(err, unix.EINVAL) && i < len(codes)-1 {
			continue // some drivers refuse what they do not have, instead of granting another format
		}
		if err != nil {
			return fmt.Errorf("set format: %w", err)
		}
		if s.pad, err = s.granted(); err != nil {
			return err
		}
		if s.pad.fourcc == code {
			break
		}
	}
	got := lab.Format{Width: int(s.pad.width), Height: int(s.pad.height)}
	var ok bool
	if s.layout, ok = known(s.pad.fourcc); !ok {
		code := binary.LittleEndian.AppendUint32(nil, s.pad.fourcc)
		return fmt.Errorf("the device delivers %q, which is not known here; ask for another pixel format", code)
	}
	got.Pixels = s.layout.pixels
	if want.Pixels != "" && got.Pixels != want.Pixels || want.Width > 0 && (got.Width != want.Width || got.Height != want.Height) {
		return fmt.Errorf("%d × %d %s was asked for, the device grants %d × %d %s", width, height, want.Pixels, got.Width, got.Height,
			got.Pixels)
	}
	if s.pad.field > fieldNone {
		return fmt.Errorf("the device delivers interlaced pictures (field order %d): set it to a progressive mode", s.pad.field)
	}
	if got.Rate, err = s.rate(set, want.Rate); err != nil {
		return err
	}
	if err := s.layout.check(got, s.pad.planes); err != nil {
		return err
	}
	s.setColours(got)
	return s.format.Validate()
}

// granted reads the format that the driver has now.
func (s *Source) granted() (pixFormat, error) {
	var f format
	setU32(f[:], 0, s.kind)
	if err := s.dev.ioctl(reqGetFormat, pointer(&f)); err != nil {
		return pixFormat{}, fmt.Errorf("get format: %w", err)
	}
	return f.get(), nil
}

// rate returns the signal's rate; without timings it asks for the wanted one and
// returns the granted one; 60 where the driver does not know.
func (s *Source) rate(set settings, want float64) (float64, error) {
	if s.timings != nil {
		if r := s.timings.get().Rate; r > 0 {
			return r, nil
		}
	}
	now, err := set.rate()
	if err != nil {
		return 60, nil // HDMI receivers run at the signal's rate and have no parameter
	}
	if want <= 0 {
		return now, nil
	}
	if err := set.setRate(want); err != nil {
		return 0, fmt.Errorf("set a rate of %g: %w", want, err)
	}
	if now, err = set.rate(); err != nil {
		return 0, fmt.Errorf("get the rate: %w", err)
	}
	return now, nil
}

// stream maps the buffers, gives them to the driver and switches on.
func (s *Source) stream() error {
	var sub subscribe
	setU32(sub[:], 0, eventSource)
	_ = s.dev.ioctl(reqSubscribe, pointer(&sub)) // not every driver has events

	var r requestBuf
	setU32(r[:], 0, buffers)
	setU32(r[:], 4, s.kind)
	setU32(r[:], 8, memoryMap)
	if err := s.dev.ioctl(reqRequestBufs, pointer(&r)); err != nil {
		return fmt.Errorf("request buffers: %w", err)
	}
	n := u32(r[:], 0)
	if n < 2 {
		return fmt.Errorf("the driver grants %d buffers", n)
	}
	size := s.format.FrameSize()
	for i := range n {
		b := newBuffer(s.kind, i, s.planes)
		if err := s.dev.ioctl(reqQueryBuf, pointer(b)); err != nil {
			return fmt.Errorf("query buffer: %w", err)
		}
		pieces, err := s.mapBuffer(b)
		s.maps = append(s.maps, pieces)
		if err != nil {
			return err
		}
		if s.format.Pixels == lab.MJPEG {
			size = max(size, len(pieces[0]))
		}
	}
	s.pix = make([]byte, size)
	return s.switchOn()
}

// mapBuffer maps the planes of a queried buffer.
func (s *Source) mapBuffer(b *buffer) (pieces [][]byte, err error) {
	type place struct{ offset, length uint32 }
	places := []place{{b.offset(), b.length()}}
	if s.kind == typePlanes {
		places = places[:0]
		for i := range min(int(b.length()), len(s.pad.planes)) {
			places = append(places, place{u32(s.planes[i][:], 8), u32(s.planes[i][:], 4)})
		}
	}
	for _, p := range places {
		m, err := s.dev.mmap(int64(p.offset), int(p.length))
		if err != nil {
			return pieces, fmt.Errorf("map buffer: %w", err)
		}
		pieces = append(pieces, m)
	}
	if len(pieces) == 0 {
		return nil, errors.New("the driver's buffer has no memory")
	}
	return pieces, nil
}

// switchOn queues every buffer and streams.
func (s *Source) switchOn() error {
	for i := range s.maps {
		if err := s.dev.ioctl(reqQueue, pointer(newBuffer(s.kind, uint32(i), s.planes))); err != nil {
			return fmt.Errorf("queue buffer: %w", err)
		}
	}
	if err := s.dev.ioctl(reqStreamOn, pointer(&s.kind)); err != nil {
		return fmt.Errorf("start streaming: %w", err)
	}
	s.streaming, s.started = true, false
	return nil
}

func (s *Source) switchOff() error {
	s.streaming = false
	return s.dev.ioctl(reqStreamOff, pointer(&s.kind))
}

// restart takes all buffers back and streams anew, in the same format.
func (s *Source) restart() error {
	if err := s.switchOff(); err != nil {
		return fmt.Errorf("stop streaming: %w", err)
	}
	return s.switchOn()
}
