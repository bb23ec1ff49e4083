// Package v4l2 films what a grabber or a camera delivers through Video4Linux2.
//
// A buffer is dequeued, copied without its padding, and queued again at once; 16
// buffers lie with the driver, a quarter of a second at 60 Hz. Every frame keeps the
// driver's own sequence number and timestamp, so what the hardware dropped shows;
// buffers that the driver marks as damaged, or that are short, are marked.
// A change of resolution, a lost signal and an unplugged device end the source with
// an error that says so.
//
// The ioctls are issued directly: blackjack/webcam, the usual Go library, hides
// sequence, timestamp and flags, and returns memory that is already queued
// again. Standard: Linux Media API, part I (struct v4l2_buffer).
package v4l2

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

// Options of a capture.
type Options struct {
	Path string // default /dev/video0
	// Format asks for a pixel format, size and rate; what is zero is left as
	// the device has it. The granted one is Source.Format.
	Format lab.Format
	// Patience is how long a frame may be missing before the signal counts as
	// lost; default 5 s.
	Patience time.Duration
	// Clock is only used when the driver's timestamps are not CLOCK_MONOTONIC.
	Clock lab.Clock
}

// Errors that end a source; a caller may open it again.
var (
	// ErrResolution: the source of the signal changed its resolution.
	ErrResolution = errors.New("the resolution of the signal changed")
	// ErrUnplugged: the device has gone.
	ErrUnplugged = errors.New("the device was unplugged")
	// ErrSignal: no frame came for Options.Patience.
	ErrSignal = errors.New("the signal is lost")
)

// buffers is how many lie with the driver (the kernel allows 32).
const buffers = 16

// Source is a capture.Source over a V4L2 device.
type Source struct {
	o         Options
	dev       device
	format    lab.Format
	pad       pixFormat
	maps      [][]byte
	pix       []byte
	seq       uint64 // 64-bit continuation of the driver's 32-bit count
	started   bool
	streaming bool
	card      string
}

var fourccs = map[lab.PixelFormat]uint32{
	lab.BGRX: fourcc("XR24"), lab.BGR24: fourcc("BGR3"), lab.YUYV: fourcc("YUYV"),
	lab.UYVY: fourcc("UYVY"), lab.NV12: fourcc("NV12"), lab.Grey: fourcc("GREY"), lab.MJPEG: fourcc("MJPG"),
}

func fourcc(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// Open opens the device, sets the format and starts streaming.
func Open(o Options) (*Source, error) {
	if o.Path == "" {
		o.Path = "/dev/video0"
	}
	n, err := openNode(o.Path)
	if err != nil {
		return nil, fmt.Errorf("v4l2: %w", err)
	}
	return start(n, o)
}

// start sets up an open device; it is closed when that fails.
func start(dev device, o Options) (*Source, error) {
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	if o.Clock == nil {
		o.Clock = lab.Monotonic
	}
	s := &Source{o: o, dev: dev}
	err := s.capabilities()
	if err == nil {
		err = s.negotiate()
	}
	if err == nil {
		err = s.stream()
	}
	if err != nil {
		_ = s.Close() // the first error is the one to tell
		return nil, fmt.Errorf("v4l2: %s: %w", o.Path, err)
	}
	return s, nil
}

func (s *Source) capabilities() error {
	var c capability
	if err := s.dev.ioctl(reqQueryCap, pointer(&c)); err != nil {
		return fmt.Errorf("this is no video device: %w", err)
	}
	caps := u32(c[:], 84)
	if caps&capDevice != 0 {
		caps = u32(c[:], 88)
	}
	if caps&capCapture == 0 || caps&capStreaming == 0 {
		return fmt.Errorf("the device does not stream single-planar pictures (capabilities %#x)", caps)
	}
	s.card = unix.ByteSliceToString(c[16:48])
	return nil
}

// Card is the device's name for itself.
func (s *Source) Card() string { return s.card }

// negotiate takes over the signal's timings, asks for the format, and
// believes only what the driver answers.
func (s *Source) negotiate() error {
	var t timings
	if err := s.dev.ioctl(reqQueryTimings, pointer(&t)); err == nil {
		if err := s.dev.ioctl(reqSetTimings, pointer(&t)); err != nil {
			return fmt.Errorf("set the timings of the signal: %w", err)
		}
	} else if errors.Is(err, unix.ENOLINK) || errors.Is(err, unix.ENOLCK) {
		return fmt.Errorf("%w: nothing is plugged in, or it is asleep", ErrSignal)
	} // cameras and USB grabbers have no timings to ask for

	var f format
	setU32(f[:], 0, typeCapture)
	if err := s.dev.ioctl(reqGetFormat, pointer(&f)); err != nil {
		return fmt.Errorf("get format: %w", err)
	}
	now, want := f.get(), s.o.Format
	width, height, code := int(now.width), int(now.height), now.fourcc
	if want.Width > 0 {
		width, height = want.Width, want.Height
	}
	if want.Pixels != "" {
		code = fourccs[want.Pixels]
	}
	ask := newFormat(width, height, code)
	if err := s.dev.ioctl(reqSetFormat, pointer(ask)); err != nil {
		return fmt.Errorf("set format: %w", err)
	}
	s.pad = ask.get()
	got := lab.Format{Width: int(s.pad.width), Height: int(s.pad.height)}
	for name, c := range fourccs {
		if c == s.pad.fourcc {
			got.Pixels = name
		}
	}
	if got.Pixels == "" {
		c := s.pad.fourcc
		return fmt.Errorf("the device delivers %q, which is not known here; ask for another pixel format", []byte{byte(c), byte(c >> 8), byte(c >> 16), byte(c >> 24)})
	}
	if want.Pixels != "" && got.Pixels != want.Pixels || want.Width > 0 && (got.Width != want.Width || got.Height != want.Height) {
		return fmt.Errorf("%d × %d %s was asked for, the device grants %d × %d %s", want.Width, want.Height, want.Pixels, got.Width, got.Height, got.Pixels)
	}
	var err error
	if got.Rate, err = s.rate(want.Rate); err != nil {
		return err
	}
	if err := got.Validate(); err != nil {
		return err
	}
	if tight := uint32(got.Stride()); got.Pixels != lab.MJPEG && s.pad.stride < tight {
		return fmt.Errorf("the device claims rows of %d bytes, %d are needed", s.pad.stride, tight)
	}
	s.format = got
	return nil
}

// rate asks for a rate and returns the granted one; 60 where the driver does not know.
func (s *Source) rate(want float64) (float64, error) {
	var p parameters
	setU32(p[:], 0, typeCapture)
	if err := s.dev.ioctl(reqGetParm, pointer(&p)); err != nil {
		return 60, nil // HDMI receivers run at the signal's rate and have no parameter
	}
	if want > 0 {
		setU32(p[:], 12, 1000)
		setU32(p[:], 16, uint32(want*1000+0.5))
		if err := s.dev.ioctl(reqSetParm, pointer(&p)); err != nil {
			return 0, fmt.Errorf("set a rate of %g: %w", want, err)
		}
	}
	num, den := u32(p[:], 12), u32(p[:], 16)
	if num == 0 || den == 0 {
		return 60, nil
	}
	return float64(den) / float64(num), nil
}

// stream maps the buffers, gives them to the driver and switches on.
func (s *Source) stream() error {
	var sub subscribe
	setU32(sub[:], 0, eventSource)
	_ = s.dev.ioctl(reqSubscribe, pointer(&sub)) // not every driver has events

	var r requestBuf
	setU32(r[:], 0, buffers)
	setU32(r[:], 4, typeCapture)
	setU32(r[:], 8, memoryMap)
	if err := s.dev.ioctl(reqRequestBufs, pointer(&r)); err != nil {
		return fmt.Errorf("request buffers: %w", err)
	}
	n := u32(r[:], 0)
	if n < 2 {
		return fmt.Errorf("the driver grants %d buffers", n)
	}
	for i := range n {
		b := newBuffer(i)
		if err := s.dev.ioctl(reqQueryBuf, pointer(b)); err != nil {
			return fmt.Errorf("query buffer: %w", err)
		}
		m, err := s.dev.mmap(int64(b.offset()), int(b.length()))
		if err != nil {
			return fmt.Errorf("map buffer: %w", err)
		}
		s.maps = append(s.maps, m)
		if err := s.dev.ioctl(reqQueue, pointer(b)); err != nil {
			return fmt.Errorf("queue buffer: %w", err)
		}
	}
	s.pix = make([]byte, max(s.format.FrameSize(), int(s.pad.size)))
	kind := uint32(typeCapture)
	if err := s.dev.ioctl(reqStreamOn, pointer(&kind)); err != nil {
		return fmt.Errorf("start streaming: %w", err)
	}
	s.streaming = true
	return nil
}

// Format describes the frames as the driver granted them.
func (s *Source) Format() lab.Format { return s.format }

// Next waits for the next frame.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	for {
		isEvent, err := s.dev.wait(ctx, s.o.Patience)
		switch {
		case errors.Is(err, errSilent):
			return lab.Frame{}, fmt.Errorf("v4l2: %w: %w", ErrSignal, err)
		case errors.Is(err, unix.ENODEV):
			return lab.Frame{}, fmt.Errorf("v4l2: %w", ErrUnplugged)
		case err != nil:
			return lab.Frame{}, err
		case isEvent:
			if err := s.event(); err != nil {
				return lab.Frame{}, fmt.Errorf("v4l2: %w", err)
			}
			continue
		}
		b := newBuffer(0)
		err = s.dev.ioctl(reqDequeue, pointer(b))
		if errors.Is(err, unix.EAGAIN) {
			continue
		}
		if errors.Is(err, unix.ENODEV) {
			return lab.Frame{}, fmt.Errorf("v4l2: %w", ErrUnplugged)
		}
		if err != nil {
			return lab.Frame{}, fmt.Errorf("v4l2: dequeue: %w", err)
		}
		f, err := s.take(b)
		if err != nil {
			return lab.Frame{}, fmt.Errorf("v4l2: %w", err)
		}
		if err := s.dev.ioctl(reqQueue, pointer(newBuffer(b.index()))); err != nil {
			return lab.Frame{}, fmt.Errorf("v4l2: queue: %w", err)
		}
		return f, nil
	}
}

// event reads one event and returns an error when it ends the source.
func (s *Source) event() error {
	var e event
	if err := s.dev.ioctl(reqDequeueEvent, pointer(&e)); err != nil {
		return fmt.Errorf("dequeue event: %w", err)
	}
	if u32(e[:], 0) == eventSource && u32(e[:], 8)&changeResolution != 0 {
		return ErrResolution
	}
	return nil
}

// take copies a dequeued buffer and its facts.
func (s *Source) take(b *buffer) (lab.Frame, error) {
	if int(b.index()) >= len(s.maps) {
		return lab.Frame{}, fmt.Errorf("the driver returned buffer %d of %d", b.index(), len(s.maps))
	}
	var f lab.Frame
	// The driver's count has 32 bits: at 60 Hz it wraps after two years of
	// streaming, but a driver may start anywhere.
	if s.started {
		s.seq += uint64(b.sequence() - uint32(s.seq))
	} else {
		s.seq, s.started = uint64(b.sequence()), true
	}
	f.Seq = s.seq
	if b.flags()&flagClock == clockMonotonic {
		f.Time = lab.Time(b.time())
	} else {
		// Not the clock of our logs: the frame was taken at most a period and
		// the driver's queue ago.
		f.Time = s.o.Clock()
		f.Uncertainty = time.Duration(float64(2*time.Second) / s.format.Rate)
	}
	src := s.maps[b.index()]
	src = src[:min(len(src), int(b.used()))]
	if s.format.Pixels == lab.MJPEG {
		f.Pix = s.pix[:copy(s.pix, src)]
	} else {
		f.Pix = s.pix[:s.format.FrameSize()]
		if !unpad(f.Pix, src, s.format, int(s.pad.stride)) {
			f.Flags |= lab.FrameCorrupt
		}
	}
	if b.flags()&flagError != 0 {
		f.Flags |= lab.FrameCorrupt
	}
	f.Changed = append(f.Changed, s.format.Bounds())
	return f, nil
}

// unpad copies rows without the driver's padding; false when src is short.
func unpad(dst, src []byte, f lab.Format, stride int) bool {
	tight, rows := f.Stride(), f.Height
	if f.Pixels == lab.NV12 {
		rows += (f.Height + 1) / 2 // the UV plane follows, in rows of the same stride
		if f.Width%2 == 1 {
			rows = f.Height // its tight rows are longer than Y's: only packed drivers could deliver that
		}
	}
	if stride == tight {
		return copy(dst, src) == len(dst)
	}
	for y := range rows {
		if len(src) < y*stride+tight {
			clear(dst[y*tight:])
			return false
		}
		copy(dst[y*tight:(y+1)*tight], src[y*stride:])
	}
	return rows*tight >= len(dst)
}

// Close stops streaming, then unmaps and closes.
func (s *Source) Close() error {
	var first error
	keep := func(err error) {
		if first == nil && err != nil && !errors.Is(err, unix.ENODEV) {
			first = err
		}
	}
	if s.streaming {
		kind := uint32(typeCapture)
		keep(s.dev.ioctl(reqStreamOff, pointer(&kind)))
		s.streaming = false
	}
	for _, m := range s.maps {
		keep(s.dev.munmap(m))
	}
	s.maps = nil
	keep(s.dev.close())
	return first
}
