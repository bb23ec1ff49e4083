package v4l2

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

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
	script    []delivery
	wrongUse  []string
}

// delivery is what the fake device does next.
type delivery struct {
	sequence uint32
	flags    uint32
	short    int // bytes that are missing
	value    byte
	change   bool // a resolution event instead of a frame
	gone     bool // unplugged instead of a frame
}

func newFake(width, height int, code string, stride uint32, script ...delivery) *fake {
	f := &fake{caps: capCapture | capStreaming, script: script}
	f.format = *newFormat(width, height, fourcc(code))
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
		return unix.ENOTTY
	case reqGetFormat:
		*as[format](arg) = f.format
	case reqSetFormat:
		*as[format](arg) = f.format // grants what it can, as drivers do
	case reqGetParm:
		p := as[parameters](arg)
		setU32(p[:], 12, 1001)
		setU32(p[:], 16, 60000)
	case reqSetParm, reqSubscribe:
	case reqRequestBufs:
		r := as[requestBuf](arg)
		setU32(r[:], 0, 4) // fewer than asked for
		for range 4 {
			f.memory = append(f.memory, make([]byte, f.format.get().size))
		}
	case reqQueryBuf:
		b := as[buffer](arg)
		setU32(b[:], 64, b.index())
		setU32(b[:], 72, f.format.get().size)
	case reqQueue:
		f.queued = append(f.queued, as[buffer](arg).index())
	case reqStreamOn:
		f.streaming = true
	case reqStreamOff:
		f.streaming = false
	case reqDequeueEvent:
		e := as[event](arg)
		setU32(e[:], 0, eventSource)
		setU32(e[:], 8, changeResolution)
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
		stride := int(f.format.get().stride)
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
func (f *fake) wait(context.Context, time.Duration) (bool, error) {
	switch {
	case len(f.script) == 0:
		return false, errSilent
	case f.script[0].gone:
		return false, unix.ENODEV
	}
	return f.script[0].change, nil
}

func TestFramesKeepWhatTheDriverSays(t *testing.T) {
	// Rows of 3 YUYV pairs are padded from 12 to 16 bytes.
	dev := newFake(6, 2, "YUYV", 16,
		delivery{sequence: 4294967294, flags: clockMonotonic, value: 10},
		delivery{sequence: 4294967295, flags: clockMonotonic | flagError, value: 20},
		delivery{sequence: 2, flags: clockMonotonic, value: 30, short: 5},
		delivery{sequence: 3, value: 40},
		delivery{sequence: 4, value: 50}, delivery{sequence: 5, value: 60}, delivery{change: true})
	s, err := start(dev, Options{Clock: func() lab.Time { return 777 }})
	if err != nil {
		t.Fatal(err)
	}
	if f := s.Format(); f.Pixels != lab.YUYV || f.Width != 6 || f.Rate < 59.93 || f.Rate > 59.95 || s.Card() != "A grabber" {
		t.Errorf("%+v of %q", f, s.Card())
	}
	for n, want := range []struct {
		seq   uint64
		flags lab.FrameFlags
		value byte
	}{{4294967294, 0, 10}, {4294967295, lab.FrameCorrupt, 20}, {4294967298, lab.FrameCorrupt, 30}, {4294967299, 0, 40}, {4294967300, 0, 50}, {4294967301, 0, 60}} {
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
		if monotonic := n < 3; monotonic && f.Time != lab.Time(want.seq%(1<<32))*1e9 || !monotonic && (f.Time != 777 || f.Uncertainty == 0) {
			t.Errorf("frame %d: time %d ± %v", n, f.Time, f.Uncertainty)
		}
	}
	if _, err := s.Next(context.Background()); !errors.Is(err, ErrResolution) {
		t.Errorf("a change of resolution: %v", err)
	}
	if err := s.Close(); err != nil || !dev.closed || dev.wrongUse != nil {
		t.Errorf("close: %v, %v", err, dev.wrongUse)
	}
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		script []delivery
		want   error
	}{{"signal", nil, ErrSignal}, {"unplugged", []delivery{{gone: true}}, ErrUnplugged}} {
		s, err := start(newFake(4, 4, "BGR3", 12, c.script...), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(context.Background()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
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
		{"planar", planar, Options{}, "v4l2: : the device does not stream single-planar pictures (capabilities 0x4000000)"},
		{"format", newFake(4, 4, "H264", 12), Options{}, `v4l2: : the device delivers "H264", which is not known here; ask for another pixel format`},
		{"size", newFake(4, 4, "BGR3", 12), Options{Format: lab.Format{Width: 8, Height: 4, Pixels: lab.BGR24}}, "v4l2: : 8 × 4 BGR24 was asked for, the device grants 4 × 4 BGR24"},
		{"stride", newFake(4, 4, "BGR3", 4), Options{}, "v4l2: : the device claims rows of 4 bytes, 12 are needed"},
	} {
		_, err := start(c.dev, c.o)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.dev.closed {
			t.Errorf("%s: the device stays open", c.name)
		}
	}
}
