package v4l2

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// fake is a driver with state: it queues, fills and returns buffers as the
// kernel's do, and can drop, damage, shorten, and go away.
type fake struct {
	format    format
	caps      uint32
	memory    [][]byte
	queued    []uint32
	streaming bool
	closed    bool
	interval  [8]byte // of frames: numerator, denominator
	script    []delivery
	signal    *signal // nil: a camera, which has no timings
	streams   int     // how often streaming was switched on
	controls  []Control
	open      int // settings that are open
	wrongUse  []string
	most      *limits // of its signal; nil: it does not say
	// edidBlocks is of how many blocks the EDID was that it was given.
	edidBlocks uint32
}

// limits are the most that a receiver takes.
type limits struct {
	width, height uint32
	clock         uint64
}

// fakeLibrary sets a fake as blackjack/webcam sets a device.
type fakeLibrary struct{ f *fake }

// settings is the opener that start takes.
func (f *fake) settings(uint32) (settings, error) {
	f.open++
	return fakeLibrary{f}, nil
}

func (l fakeLibrary) close() error                     { l.f.open--; return nil }
func (l fakeLibrary) setFormat(uint32, int, int) error { return nil } // grants what it can, as drivers do
func (l fakeLibrary) rate() (float64, error)           { return exactRate(60000.0 / 1001), nil }
func (l fakeLibrary) setRate(float64) error            { return nil }
func (l fakeLibrary) modes() []Mode                    { return nil }

func (l fakeLibrary) control(id uint32) (int, error) {
	return l.f.controls[l.f.find(id)].Value, nil
}

func (l fakeLibrary) setControl(id uint32, value int) error {
	l.f.controls[l.f.find(id)].Value = value
	return nil
}

func (f *fake) find(id uint32) int {
	return slices.IndexFunc(f.controls, func(c Control) bool { return c.id == id })
}

// delivery is what the fake device does next.
type delivery struct {
	sequence uint32
	flags    uint32
	short    int // bytes that are missing
	value    byte
	// Instead of a frame:
	change *signal // a source change event, and what there is then
	other  uint32  // such an event of an input without timings, whose quantisation is this then
	gone   bool    // unplugged
	silent bool    // nothing comes in time
	failed bool    // the stream
}

// signal is what the fake's input receives.
type signal struct {
	width, height, clock int // of the picture, in pixels per second; 0: no signal
}

func newFake(width, height int, code string, stride uint32, script ...delivery) *fake {
	f := &fake{caps: capCapture | capStreaming, script: script}
	f.format = *newFormat(typeCapture, width, height, fourcc(code))
	setU32(f.format[:], 24, stride)
	setU32(f.format[:], 28, stride*uint32(height))
	return f
}

// as views an ioctl's argument.
func as[T any](p unsafe.Pointer) *T { return (*T)(p) }

func (f *fake) ioctl(request uint, arg unsafe.Pointer) error {
	switch request {
	case reqQueryCap:
		c := as[capability](arg)
		copy(c[16:], "A grabber")
		setU32(c[:], 84, f.caps)
	case reqQueryTimings:
		if f.signal == nil {
			return unix.ENOTTY
		}
		if f.signal.width == 0 {
			return unix.ENOLINK
		}
		t := as[timings](arg)
		setU32(t[:], 4, uint32(f.signal.width))
		setU32(t[:], 8, uint32(f.signal.height))
		order.PutUint64(t[20:], uint64(f.signal.clock))
	case reqSetTimings:
	case reqTimingsCap:
		if f.most == nil {
			return unix.ENOTTY
		}
		c := as[timingsCap](arg)
		setU32(c[:], 20, f.most.width)
		setU32(c[:], 28, f.most.height)
		order.PutUint64(c[40:], f.most.clock)
	case reqSetEDID:
		f.edidBlocks = u32(as[edid](arg)[:], 8)
	case reqGetEDID:
		return unix.ENODATA
	case reqGetFormat:
		*as[format](arg) = f.format
	case reqSetFormat:
		asked := as[format](arg)
		setU32(f.format[:], 16, asked.get().fourcc)
		setU32(f.format[:], 24, max(asked.get().planes[0].stride, f.format.get().planes[0].stride))
		*asked = f.format
	case reqGetParm:
		copy(as[parameters](arg)[12:20], f.interval[:])
	case reqSetParm:
		copy(f.interval[:], as[parameters](arg)[12:20])
	case reqQueryControl:
		q := as[query](arg)
		for _, c := range f.controls { // the first after the one that is named
			if c.id <= u32(q[:], 0)&^controlNext {
				continue
			}
			*q = query{}
			setU32(q[:], 0, c.id)
			setU32(q[:], 4, controlInteger)
			copy(q[8:], c.Name)
			setU32(q[:], 44, uint32(c.Max))
			setU32(q[:], 52, uint32(c.Default))
			if c.ReadOnly {
				setU32(q[:], 56, controlReadOnly)
			}
			return nil
		}
		return unix.EINVAL
	case reqGetControl:
		v := as[control](arg)
		setU32(v[:], 4, uint32(f.controls[f.find(u32(v[:], 0))].Value))
	case reqSetControl:
		v := as[control](arg)
		f.controls[f.find(u32(v[:], 0))].Value = int(int32(u32(v[:], 4)))
	case reqSubscribe:
	case reqRequestBufs:
		r := as[requestBuf](arg)
		setU32(r[:], 0, 4) // fewer than asked for
		for range 4 {
			f.memory = append(f.memory, make([]byte, f.format.get().planes[0].size))
		}
	case reqQueryBuf:
		b := as[buffer](arg)
		setU32(b[:], 64, b.index())
		setU32(b[:], 72, f.format.get().planes[0].size)
	case reqQueue:
		f.queued = append(f.queued, as[buffer](arg).index())
	case reqStreamOn:
		if f.open > 0 {
			f.wrongUse = append(f.wrongUse, "streams beside open settings, which the driver of USB grabbers refuses")
		}
		f.streaming = true
		f.streams++
	case reqStreamOff:
		f.streaming = false
		f.queued = nil
	case reqDequeueEvent:
		e := as[event](arg)
		setU32(e[:], 0, eventSource)
		setU32(e[:], 8, changeResolution)
		if other := f.script[0].other; other > 0 {
			setU32(f.format[:], 48, other)
		} else {
			f.signal = f.script[0].change
		}
		f.script = f.script[1:]
	case reqDequeue:
		if len(f.queued) == 0 {
			f.wrongUse = append(f.wrongUse, "no buffer is queued")
			return unix.EAGAIN
		}
		d := f.script[0]
		f.script = f.script[1:]
		b := as[buffer](arg)
		index := f.queued[0]
		f.queued = f.queued[1:]
		mem := f.memory[index]
		stride := int(f.format.get().planes[0].stride)
		for i := range mem {
			mem[i] = d.value + byte(i%stride)
		}
		setU32(b[:], 0, index)
		setU32(b[:], 8, uint32(len(mem)-d.short))
		setU32(b[:], 12, d.flags)
		order.PutUint64(b[24:], uint64(d.sequence))
		setU32(b[:], 56, d.sequence)
	default:
		return unix.ENOTTY
	}
	return nil
}

func (f *fake) mmap(offset int64, _ int) ([]byte, error) { return f.memory[offset], nil }
func (f *fake) munmap([]byte) error {
	if f.streaming {
		f.wrongUse = append(f.wrongUse, "unmapped while streaming")
	}
	return nil
}
func (f *fake) close() error { f.closed = true; return nil }
func (f *fake) wait(context.Context, time.Duration) (readiness, error) {
	if len(f.script) == 0 {
		return nothingCame, nil
	}
	switch d := f.script[0]; {
	case d.gone:
		return deviceGone, nil
	case d.silent:
		f.script = f.script[1:]
		return nothingCame, nil
	case d.failed:
		f.script = f.script[1:]
		return streamError, nil
	case d.change != nil || d.other > 0:
		return eventReady, nil
	}
	return frameReady, nil
}

func TestFramesKeepWhatTheDriverSays(t *testing.T) {
	// Rows of 3 YUYV pairs are padded from 12 to 16 bytes.
	dev := newFake(6, 2, "YUYV", 16,
		delivery{sequence: 4294967294, flags: clockMonotonic, value: 10},
		delivery{sequence: 4294967295, flags: clockMonotonic | flagError, value: 20},
		delivery{sequence: 2, flags: clockMonotonic, value: 30, short: 5},
		delivery{sequence: 3, value: 40},
		delivery{sequence: 4, value: 50}, delivery{sequence: 5, value: 60}, delivery{gone: true})
	s, err := start(dev, Options{Clock: func() lab.Time { return 777 }}, dev.settings)
	if err != nil {
		t.Fatal(err)
	}
	if f := s.Format(); f.Pixels != lab.YUYV || f.Width != 6 || f.Rate < 59.93 || f.Rate > 59.95 || s.Card() != "A grabber" {
		t.Errorf("Format() = %+v, Card() = %q; want YUYV, 6 pixels wide, at 59.94/s, of \"A grabber\"", f, s.Card())
	}
	for n, want := range []struct {
		seq   uint64
		flags lab.FrameFlags
		value byte
	}{{4294967294, 0, 10}, {4294967295, lab.FrameCorrupt, 20}, {4294967298, lab.FrameCorrupt | lab.FrameShort, 30},
		{4294967299, 0, 40}, {4294967300, 0, 50}, {4294967301, 0, 60}} {
		f, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if f.Seq != want.seq || f.Flags != want.flags || f.Pix[0] != want.value {
			t.Errorf("frame %d: %+v", n, f.FrameInfo)
		}
		row := make([]byte, 12)
		for i := range row {
			row[i] = want.value + byte(i)
		}
		if !bytes.Equal(f.Pix[:12], row) || n != 2 && !bytes.Equal(f.Pix[12:], row) || len(f.Pix) != 24 {
			t.Errorf("frame %d: rows %v", n, f.Pix)
		}
		if monotonic := n < 3; monotonic && f.Time != lab.Time(want.seq%(1<<32))*1e9 || !monotonic &&
			(f.Time != 777 || f.Uncertainty == 0) {
			t.Errorf("frame %d: time %d ± %v", n, f.Time, f.Uncertainty)
		}
	}
	if _, err := s.Next(context.Background()); !errors.Is(err, ErrUnplugged) {
		t.Errorf("the end: %v", err)
	}
	if err := s.Close(); err != nil || !dev.closed || dev.wrongUse != nil {
		t.Errorf("Close() = %v, device closed: %v; the driver was used wrongly: %q", err, dev.closed, dev.wrongUse)
	}
}

// told takes what Next returns, n times: the sequence numbers of frames, and
// the kinds of interruptions, with a full stop behind the one that ends the source.
func told(t *testing.T, s *Source, n int) (list []string, last error) {
	t.Helper()
	for range n {
		f, err := s.Next(t.Context())
		var i *capture.Interruption
		switch {
		case err == nil:
			list = append(list, strconv.FormatUint(f.Seq, 10))
		case errors.As(err, &i) && i.Ends == nil:
			list = append(list, i.Event.Kind)
		case errors.As(err, &i):
			return append(list, i.Event.Kind+"."), err
		default:
			t.Fatal(err)
		}
	}
	return list, nil
}

func TestInterruptions(t *testing.T) {
	hd := &signal{4, 4, 960}
	frame := func(n uint32) delivery { return delivery{sequence: n} }
	for _, c := range []struct {
		name    string
		signal  *signal
		script  []delivery
		want    string
		ends    error
		streams int
	}{
		{"unplugged", nil, []delivery{frame(0), {gone: true}}, "0 unplugged.", ErrUnplugged, 1},
		{"a camera falls silent", nil, []delivery{frame(5), {silent: true}, {silent: true}, frame(6)},
			"5 signal lost signal back 6", nil, 1},
		{"no signal, and back", hd, []delivery{frame(0), {change: &signal{}}, frame(1), frame(2), {change: hd}, frame(0), frame(2)},
			"0 signal lost signal back 1 3", nil, 2},
		{"silence with timings", hd, []delivery{frame(0), {silent: true}, {silent: true}, frame(0)}, "0 signal lost signal back 1", nil, 2},
		{"other timings", hd, []delivery{frame(0), {change: &signal{8, 4, 960}}}, "0 format changed.", ErrResolution, 1},
		{"other timings after a loss", hd, []delivery{{change: &signal{}}, {change: &signal{8, 4, 960}}},
			"signal lost format changed.", ErrResolution, 1},
		{"another rate", hd, []delivery{frame(0), {change: &signal{4, 4, 800}}}, "0 format changed.", capture.ErrRate, 1},
		{"another range", nil, []delivery{frame(0), {other: 2}}, "0 format changed.", ErrColours, 1},
		{"the same timings", hd, []delivery{frame(0), {change: hd}, frame(1)}, "0 1", nil, 1},
		{"the stream fails once", nil, []delivery{frame(7), {failed: true}, frame(0), frame(1)}, "7 stream failed 8 9", nil, 2},
		{"the stream fails for ever", nil, []delivery{{failed: true}, {failed: true}, {failed: true}, {failed: true}},
			"stream failed stream failed stream failed stream failed.", ErrStream, 4},
	} {
		dev := newFake(4, 4, "BGR3", 12, c.script...)
		dev.signal = c.signal
		s, err := start(dev, Options{}, dev.settings)
		if err != nil {
			t.Fatal(c.name, err)
		}
		got, last := told(t, s, len(strings.Fields(strings.NewReplacer("signal ", "signal", "format ", "format", "stream ",
			"stream").Replace(c.want))))
		if g := strings.Join(got, " "); g != c.want || !errors.Is(last, c.ends) || dev.streams != c.streams {
			t.Errorf("%s: %q after %d streams (%v), want %q after %d", c.name, g, dev.streams, last, c.want, c.streams)
		}
		if err := s.Close(); err != nil || dev.wrongUse != nil {
			t.Errorf("%s: Close() = %v; the driver was used wrongly: %q", c.name, err, dev.wrongUse)
		}
	}
}

// TestResolutionIsTold: the event says what the source delivers from then on.
func TestResolutionIsTold(t *testing.T) {
	dev := newFake(4, 4, "BGR3", 12, delivery{change: &signal{8, 2, 800}})
	dev.signal = &signal{4, 4, 960}
	s, err := start(dev, Options{}, dev.settings)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Format().Rate != 60 || s.Notes()["signal"] != "4 × 4p at 60.00/s" {
		t.Errorf("format %+v, notes %v", s.Format(), s.Notes())
	}
	_, err = s.Next(t.Context())
	var i *capture.Interruption
	if !errors.As(err, &i) || i.Event.Format == nil || *i.Event.Format != (lab.Format{Pixels: lab.BGR24, Width: 8, Height: 2, Rate: 50}) {
		t.Errorf("Next() = %v, want an interruption with 8 × 2 BGR24 at 50/s", err)
	}
}

func TestWhatTheDeviceCannotDoIsSaid(t *testing.T) {
	planar := newFake(4, 4, "BGR3", 12)
	planar.caps = capStreaming
	for _, c := range []struct {
		name string
		dev  *fake
		o    Options
		want string
	}{
		{"output", planar, Options{}, "v4l2: : the device does not stream pictures (capabilities 0x4000000)"},
		{"format", newFake(4, 4, "H264", 12), Options{},
			`v4l2: : the device delivers "H264", which is not known here; ask for another pixel format`},
		{"size", newFake(4, 4, "BGR3", 12), Options{Format: lab.Format{Width: 8, Height: 4, Pixels: lab.BGR24}},
			"v4l2: : 8 × 4 BGR24 was asked for, the device grants 4 × 4 BGR24"},
		{"stride", newFake(4, 4, "BGR3", 4), Options{}, "v4l2: : the device claims rows of 4 bytes, 12 are needed"},
	} {
		_, err := start(c.dev, c.o, c.dev.settings)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: start() = %v, want %s", c.name, err, c.want)
		}
		if !c.dev.closed {
			t.Errorf("%s: the device stays open", c.name)
		}
	}
}

// TestDirectSettings: what a multi-planar device is asked for is what it grants.
func TestDirectSettings(t *testing.T) {
	dev := newFake(4, 4, "BGR3", 12)
	set := direct{dev: dev, kind: typeCapture, stride: 64}
	if _, err := set.rate(); err == nil {
		t.Error("rate() of a driver without an interval gave no error")
	}
	if err := set.setRate(59.94); err != nil {
		t.Fatal(err)
	}
	if r, err := set.rate(); err != nil || r != 59.94 {
		t.Errorf("rate() = %v, %v; want 59.94", r, err)
	}
	if err := set.setFormat(fourcc("RGB3"), 4, 4); err != nil {
		t.Fatal(err)
	}
	if f := dev.format.get(); f.fourcc != fourcc("RGB3") || f.planes[0].stride != 64 {
		t.Errorf("the device has the format %+v, want RGB3 in rows of 64", f)
	}
}

// TestExactRate: the library tells rates as float32.
func TestExactRate(t *testing.T) {
	for rate, want := range map[float32]float64{60: 60, 25: 25, 60000.0 / 1001: 60000.0 / 1001, 30000.0 / 1001: 30000.0 / 1001, 7.5: 7.5} {
		if got := exactRate(rate); got != want {
			t.Errorf("exactRate(%v) = %v, want %v", rate, got, want)
		}
	}
}
