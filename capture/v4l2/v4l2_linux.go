// Package v4l2 films what a grabber or a camera delivers through Video4Linux2.
//
// A buffer is dequeued, copied without its padding, and queued again at once; 16
// buffers lie with the driver, a quarter of a second at 60 Hz. Every frame keeps the
// driver's own sequence number and timestamp, so what the hardware dropped shows;
// buffers that the driver marks as damaged, or that are short, are marked.
//
// A driver's layout of the samples becomes one of our formats, most without a loss; their matrix and range are those
// that the driver names.
//
// What happens to the signal is reported in the place of a frame, as a
// capture.Interruption. A signal that is lost can come back; a stream that fails is
// started again; another resolution and an unplugged device end the source.
//
// blackjack/webcam opens a device for its settings, lists its formats, sizes and
// rates, sets format and rate, and reads and sets controls. It is closed again before
// the stream begins: the driver of USB grabbers lets only that handle stream which
// has set the format, until it is closed, and the stream needs a handle of our own,
// because the library shows neither its descriptor nor
//
//   - a buffer's sequence number, timestamp and flags (and the memory that it returns
//     is queued again already);
//   - events, digital video timings and EDID;
//   - what the driver has granted: SetImageFormat returns the size that was asked
//     for, and not the length of rows, the field order and the colour space;
//   - a control's default value, whether it can be written, and buttons, bit masks
//     and menus of numbers;
//   - the capabilities of one node: the node for the metadata of a USB camera passes
//     for one that delivers pictures;
//   - multi-planar devices, which it refuses to open.
//
// For these the ioctls are issued here. Standard: Linux Media API, part I (struct
// v4l2_buffer, digital video timings).
package v4l2

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// Options of a capture.
type Options struct {
	Path string // default /dev/video0
	// Format asks for a pixel format, size and rate; what is zero is left as
	// the device has it. The granted one is Source.Format.
	Format lab.Format
	// Controls are set before filming, by their names: a camera's automatic
	// exposure and gain must not change while it films.
	Controls map[string]int
	// EDID is given to an HDMI receiver before its signal is asked for.
	EDID EDID
	// Patience is how long a frame may be missing before the signal counts as
	// lost; default 5 s.
	Patience time.Duration
	// Clock is only used when the driver's timestamps are not CLOCK_MONOTONIC.
	Clock lab.Clock

	stride uint32 // length of a row that a test asks for, longer than needed
	code   string // fourcc that a test asks for; "": the first that the driver has of those of Format
}

// Errors that end a source, besides capture.ErrRate; a caller may open it again.
var (
	// ErrResolution: the source of the signal changed its resolution.
	ErrResolution = errors.New("the resolution of the signal changed")
	// ErrColours: the driver says that its samples stand for other colours.
	ErrColours = errors.New("the colour space of the signal changed")
	// ErrUnplugged: the device has gone.
	ErrUnplugged = errors.New("the device was unplugged")
	// ErrSignal: there is no signal that could be filmed.
	ErrSignal = errors.New("there is no signal")
	// ErrStream: the driver failed, and goes on failing.
	ErrStream = errors.New("the driver cannot stream")
)

// StreamFailed is the kind of the event after which a stream was started again.
const StreamFailed = "stream failed"

// Source is a capture.Source over a V4L2 device.
type Source struct {
	o       Options
	dev     device
	kind    uint32 // of buffer: typeCapture or typePlanes
	format  lab.Format
	pad     pixFormat
	layout  layout
	told    lab.Format // format with what the driver says of its samples' colours
	convert *lab.YCbCrTables
	strides []int    // of the layout's planes
	timings *timings // nil: the input has none
	card    string
	bus     string

	maps      [][][]byte // of each buffer, its planes
	planes    *planes    // scratch for ioctls
	pin       runtime.Pinner
	pieces    [][]byte // scratch for what the driver has filled
	pix       []byte
	streaming bool

	seq     uint64 // of the last frame, never going back
	driver  uint32 // the driver's count of it
	started bool   // driver holds a count of this stream
	any     bool   // seq holds a number

	lost   bool // the loss of the signal was reported
	blind  bool // the timings say that there is no signal: buffers hold no picture
	failed int  // streams that failed since the last frame
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
	return start(n, o, func(kind uint32) (settings, error) {
		if o.stride > 0 {
			return direct{n, kind, o.stride}, nil // the library cannot ask for it
		}
		return openSettings(o.Path, n, kind)
	})
}

// start sets up an open device; it is closed when that fails.
func start(dev device, o Options, open func(kind uint32) (settings, error)) (*Source, error) {
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	if o.Clock == nil {
		o.Clock = lab.Monotonic
	}
	s := &Source{o: o, dev: dev, planes: new(planes)}
	s.pin.Pin(s.planes)
	for _, step := range []func() error{
		s.capabilities,
		func() error { return setEDID(dev, o.EDID) },
		s.adopt,
		func() error { return s.configure(open) },
		s.stream,
	} {
		if err := step(); err != nil {
			_ = s.Close() // the first error is the one to tell
			return nil, fmt.Errorf("v4l2: %s: %w", o.Path, err)
		}
	}
	return s, nil
}

// configure sets controls, format and rate. The settings are closed before it
// returns, so that the source may stream.
func (s *Source) configure(open func(kind uint32) (settings, error)) (err error) {
	set, err := open(s.kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.close()) }()
	if err := setControls(s.dev, set, s.o.Controls); err != nil {
		return err
	}
	return s.negotiate(set)
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
	switch {
	case caps&capStreaming == 0 || caps&(capCapture|capPlanes) == 0:
		return fmt.Errorf("the device does not stream pictures (capabilities %#x)", caps)
	case caps&capCapture != 0:
		s.kind = typeCapture
	default:
		s.kind = typePlanes
	}
	s.card, s.bus = unix.ByteSliceToString(c[16:48]), unix.ByteSliceToString(c[48:80])
	return nil
}

// Card is the device's name for itself.
func (s *Source) Card() string { return s.card }

// Format describes the frames as the driver granted them.
func (s *Source) Format() lab.Format { return s.format }

// Notes are what a recording should remember of the device.
func (s *Source) Notes() map[string]string {
	notes := map[string]string{"card": s.card, "colour": s.pad.colourWords(s.told, s.layout.isYCbCr())}
	if text := s.layout.told(); text != "" {
		notes["layout"] = text
	}
	if s.timings != nil {
		notes["signal"] = s.timings.get().String()
	}
	return notes
}

// NotLossless says what is lost of the driver's samples.
func (s *Source) NotLossless() string {
	if s.layout.word == "" {
		return ""
	}
	return s.layout.told()
}

// Next waits for the next frame.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	for {
		what, err := s.dev.wait(ctx, s.o.Patience)
		if err != nil {
			return lab.Frame{}, err
		}
		switch what {
		case frameReady:
			f, ok, err := s.frame()
			if err != nil {
				return lab.Frame{}, s.trouble(err)
			}
			if ok {
				return f, nil
			}
		case eventReady:
			err = s.event()
		case nothingCame:
			err = s.silence()
		case streamError:
			err = s.trouble(unix.EIO)
		case deviceGone:
			err = s.trouble(unix.ENODEV)
		}
		if err != nil {
			return lab.Frame{}, err
		}
	}
}

// frame dequeues a buffer, takes its content and queues it again. It returns false
// for a buffer that holds no picture.
func (s *Source) frame() (lab.Frame, bool, error) {
	if s.lost && !s.blind {
		return lab.Frame{}, false, s.back() // the frame waits for the next call
	}
	b := newBuffer(s.kind, 0, s.planes)
	err := s.dev.ioctl(reqDequeue, pointer(b))
	if errors.Is(err, unix.EAGAIN) {
		return lab.Frame{}, false, nil
	}
	if err != nil {
		return lab.Frame{}, false, fmt.Errorf("dequeue: %w", err)
	}
	if int(b.index()) >= len(s.maps) {
		return lab.Frame{}, false, fmt.Errorf("%w: it returned buffer %d of %d", ErrStream, b.index(), len(s.maps))
	}
	var f lab.Frame
	gives := !s.blind && !s.isLate(b.sequence())
	if gives {
		f = s.take(b)
		s.failed = 0
	}
	if err := s.dev.ioctl(reqQueue, pointer(newBuffer(s.kind, b.index(), s.planes))); err != nil {
		return lab.Frame{}, false, fmt.Errorf("queue: %w", err)
	}
	return f, gives, nil
}

// isLate says whether a picture comes after one that was taken later: drivers that fill several buffers side by side, as
// uvcvideo does, hand them over in another order on a busy machine. It counts as lost, because time does not go back. A
// count that goes back by more than there are buffers began anew, and one that stands still is of a driver that does not
// count.
func (s *Source) isLate(sequence uint32) bool {
	back := int64(int32(s.driver - sequence))
	return s.started && back > 0 && back < int64(len(s.maps))
}

// count is the number of a frame from the driver's own, which has 32 bits and begins anew with each stream.
func (s *Source) count(sequence uint32) uint64 {
	switch step := int32(sequence - s.driver); {
	case s.started && step > 0:
		s.seq += uint64(step)
	case s.any:
		s.seq++
	default:
		s.seq = uint64(sequence)
	}
	s.driver, s.started, s.any = sequence, true, true
	return s.seq
}

// take copies a dequeued buffer and its facts.
func (s *Source) take(b *buffer) lab.Frame {
	var f lab.Frame
	f.Seq = s.count(b.sequence())
	if b.flags()&flagClock == clockMonotonic {
		f.Time = lab.Time(b.time())
	} else {
		// Not the clock of our logs: the frame was taken at most a period and
		// the driver's queue ago.
		f.Time = s.o.Clock()
		f.Uncertainty = time.Duration(float64(2*time.Second) / s.format.Rate)
	}
	f.Pix = s.pix
	if n := s.copy(b); s.format.Pixels == lab.MJPEG {
		f.Pix = s.pix[:n]
	} else if n < s.format.FrameSize() {
		clear(s.pix[n:])
		f.Flags |= lab.FrameCorrupt | lab.FrameShort
	}
	if b.flags()&flagError != 0 {
		f.Flags |= lab.FrameCorrupt
	}
	f.Changed = append(f.Changed, s.format.Bounds())
	return f
}

// Close stops streaming, then unmaps and closes. It may be called again.
func (s *Source) Close() error {
	if s.dev == nil {
		return nil
	}
	var first error
	keep := func(err error) {
		if first == nil && err != nil && !errors.Is(err, unix.ENODEV) {
			first = err
		}
	}
	if s.streaming {
		keep(s.switchOff())
	}
	for _, b := range s.maps {
		for _, m := range b {
			keep(s.dev.munmap(m))
		}
	}
	s.maps = nil
	keep(s.dev.close())
	s.dev = nil
	s.pin.Unpin()
	return first
}

var _ capture.Source = (*Source)(nil)
