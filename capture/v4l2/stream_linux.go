package v4l2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"eidetic/internal/lab"
)

// buffers is how many buffers the driver is asked for (the kernel allows 32).
const buffers = 16

// fourccs lists the formats that are understood. Of several codes for one format,
// earlier ones are preferred.
func fourccs() map[lab.PixelFormat][]uint32 {
	return map[lab.PixelFormat][]uint32{
		lab.BGRX:  {fourcc("XR24"), fourcc("BGR4"), fourcc("AR24")},
		lab.BGR24: {fourcc("BGR3")}, lab.YUYV: {fourcc("YUYV")}, lab.UYVY: {fourcc("UYVY")},
		lab.NV12: {fourcc("NV12"), fourcc("NM12")}, // the second in two pieces of memory
		lab.Grey: {fourcc("GREY")}, lab.MJPEG: {fourcc("MJPG"), fourcc("JPEG")},
	}
}

func fourcc(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// known returns the format that a code stands for.
func known(code uint32) (lab.PixelFormat, bool) {
	for name, codes := range fourccs() {
		if slices.Contains(codes, code) {
			return name, true
		}
	}
	return "", false
}

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
		if codes = fourccs()[want.Pixels]; codes == nil {
			return fmt.Errorf("there is no pixel format %q", want.Pixels)
		}
	}
	for _, code := range codes {
		if err := set.setFormat(code, width, height); err != nil {
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
	if got.Pixels, ok = known(s.pad.fourcc); !ok {
		code := binary.LittleEndian.AppendUint32(nil, s.pad.fourcc)
		return fmt.Errorf("the device delivers %q, which is not known here; ask for another pixel format", code)
	}
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
	if err := got.Validate(); err != nil {
		return err
	}
	s.format = got
	return s.checkPlanes()
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

// pieces returns, for each plane of memory, the bytes of a tight row and the rows.
func (s *Source) pieces() []struct{ tight, rows int } {
	f := s.format
	type piece = struct{ tight, rows int }
	switch {
	case f.Pixels != lab.NV12:
		return []piece{{f.Stride(), f.Height}}
	case len(s.pad.planes) > 1:
		return []piece{{f.Width, f.Height}, {2 * ((f.Width + 1) / 2), (f.Height + 1) / 2}}
	default: // the UV plane follows, in rows of the same stride
		return []piece{{f.Width, f.Height + (f.Height+1)/2}}
	}
}

// checkPlanes says whether what the driver grants can hold the picture.
func (s *Source) checkPlanes() error {
	pieces := s.pieces()
	if s.format.Pixels == lab.MJPEG {
		return nil
	}
	if s.format.Pixels == lab.NV12 && s.format.Width%2 == 1 {
		return fmt.Errorf("NV12 with an odd width of %d has no defined layout", s.format.Width)
	}
	if len(s.pad.planes) != len(pieces) {
		return fmt.Errorf("the device delivers %s in %d planes of memory, %d are known", s.format.Pixels, len(s.pad.planes), len(pieces))
	}
	for i, p := range pieces {
		if stride := s.pad.planes[i].stride; stride < uint32(p.tight) {
			return fmt.Errorf("the device claims rows of %d bytes, %d are needed", stride, p.tight)
		}
	}
	return nil
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
