//go:build guest

package v4l2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
)

// The tests in this file run on the box in its virtual machine, where the
// kernel's virtual video driver stands in for grabbers. They load vivid anew,
// so they run one after another.

// Kinds of inputs, as vivid's parameter input_types has them.
const (
	onWebcam = "0"
	onHDMI   = "3"
)

// Values of vivid's control "Test Pattern".
const (
	black = 5
	white = 6
	red   = 7
)

// vivid loads the driver with one capture device and returns its path.
func vivid(t *testing.T, input string, more ...string) string {
	t.Helper()
	unload := func() {
		for range 600 {
			if _, err := os.Stat("/sys/module/vivid"); err != nil {
				return
			}
			_ = exec.Command("modprobe", "-r", "vivid").Run() // the file says whether it did
			<-time.After(100 * time.Millisecond)              // the kernel closes a device a little later than we do
		}
		t.Error("vivid stays in use")
	}
	unload()
	args := append([]string{"vivid", "n_devs=1", "num_inputs=1", "input_types=" + input, "node_types=1"}, more...)
	if out, err := exec.Command("modprobe", args...).CombinedOutput(); err != nil {
		t.Fatalf("modprobe %v: %v: %s", args, err, out)
	}
	t.Cleanup(unload)
	names, err := filepath.Glob("/sys/class/video4linux/*/name")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err == nil && strings.HasSuffix(strings.TrimSpace(string(b)), "vid-cap") {
			path := "/dev/" + filepath.Base(filepath.Dir(name))
			waitForFile(t, path)
			return path
		}
	}
	t.Fatalf("vivid made no capture device: %v", names)
	return ""
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	for range 1200 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		<-time.After(50 * time.Millisecond) // udev is at work
	}
	t.Fatalf("there is no %s", path)
}

// opened opens a source without vivid's text in the picture.
func opened(t *testing.T, o Options) *Source {
	t.Helper()
	if o.Controls == nil {
		o.Controls = map[string]int{}
	}
	o.Controls["OSD Text Mode"] = 2
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// set turns knobs while the device streams.
func set(t *testing.T, s *Source, name string, value int) {
	t.Helper()
	turn(t, s.o.Path, s.dev, s.kind, name, value)
}

// turn turns a knob of the device at path, which is open as dev.
func turn(t *testing.T, path string, dev device, kind uint32, name string, value int) {
	t.Helper()
	knobs, err := openSettings(path, dev, kind)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = knobs.close() }() // a device that was told to disconnect is gone
	if err := setControls(dev, knobs, map[string]int{name: value}); err != nil {
		t.Fatal(err)
	}
}

// next returns the next frame.
func next(t *testing.T, s *Source) lab.Frame {
	t.Helper()
	f, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// interrupted takes frames until something else comes, which must be of a kind.
func interrupted(t *testing.T, s *Source, kind string) *capture.Interruption {
	t.Helper()
	const most = 1000
	for range most {
		_, err := s.Next(t.Context())
		var i *capture.Interruption
		if errors.As(err, &i) {
			if i.Event.Kind != kind {
				t.Fatalf("%q came instead of %q: %v", i.Event.Kind, kind, err)
			}
			return i
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("%q did not come within %d frames", kind, most)
	return nil
}

// TestVividFormats: every format that is known comes out as it should, in one
// and in several pieces of memory, with and without padding.
func TestVividFormats(t *testing.T) {
	// What a white, a black and a red pixel (two, for 4:2:2) look like.
	type look struct{ white, black, red []byte }
	rgb := look{[]byte{255, 255, 255}, []byte{0, 0, 0}, []byte{0, 0, 255}}
	looks := map[lab.PixelFormat]look{
		lab.BGRX:  {append(bytes.Clone(rgb.white), 0), append(bytes.Clone(rgb.black), 0), append(bytes.Clone(rgb.red), 0)},
		lab.BGR24: rgb,
		// Rec. 709 or 601 weigh red differently: only white and black are exact.
		lab.YUYV: {[]byte{235, 128, 235, 128}, []byte{16, 128, 16, 128}, nil},
		lab.UYVY: {[]byte{128, 235, 128, 235}, []byte{128, 16, 128, 16}, nil},
		lab.NV12: {[]byte{235}, []byte{16}, nil},
		lab.Grey: {nil, nil, nil}, // the range of grey is the driver's choice
	}
	for _, planes := range []string{"1", "2"} {
		path := vivid(t, onWebcam, "multiplanar="+planes)
		for pixels, want := range looks {
			for _, stride := range []uint32{0, 4096} {
				name := fmt.Sprintf("%s in %s, rows of %d", pixels, planes, stride)
				for pattern, pixel := range map[int][]byte{white: want.white, black: want.black, red: want.red} {
					s, err := Open(Options{
						Path: path, Format: lab.Format{Pixels: pixels, Width: 320, Height: 180, Rate: 30}, stride: stride,
						Controls: map[string]int{"OSD Text Mode": 2, "Test Pattern": pattern},
					})
					if err != nil {
						t.Errorf("%s: %v", name, err)
						break
					}
					if padded := s.pad.planes[0].stride == 4096; padded != (stride > 0) {
						t.Errorf("%s: the driver has rows of %d", name, s.pad.planes[0].stride)
					}
					f := next(t, s)
					if f.Flags != 0 || len(f.Pix) != s.Format().FrameSize() {
						t.Errorf("%s: flags %d, %d bytes", name, f.Flags, len(f.Pix))
					}
					checkColour(t, name, s.Format(), f.Pix, pixel, pattern)
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}

// checkColour checks that a picture is all of one colour.
func checkColour(t *testing.T, name string, f lab.Format, pix, pixel []byte, pattern int) {
	t.Helper()
	luma := pix
	if f.Pixels == lab.NV12 {
		luma = pix[:f.Width*f.Height]
		chroma := pix[f.Width*f.Height:]
		want := []byte{128, 128}
		if pattern == red {
			want = chroma[:2]
			if want[0] > 120 || want[1] < 220 {
				t.Errorf("%s: red has the chroma %v", name, want)
			}
		}
		if !bytes.Equal(chroma, bytes.Repeat(want, len(chroma)/2)) {
			t.Errorf("%s: the chroma is not all %v", name, want)
		}
	}
	if pixel == nil && f.Pixels == lab.Grey {
		pixel = luma[:1]
		if y := pixel[0]; pattern == white && y < 235 || pattern == black && y > 16 {
			t.Errorf("%s: test picture %d has the grey %d", name, pattern, y)
		}
	} else if pixel == nil {
		pixel = luma[:4]
		switch y, v := pixel[0], pixel[3]; {
		case f.Pixels == lab.YUYV && (y < 40 || y > 110 || v < 220), f.Pixels == lab.UYVY &&
			(pixel[1] < 40 || pixel[1] > 110 || pixel[2] < 220):
			t.Errorf("%s: red is %v", name, pixel)
		}
	}
	// Vivid computes with 12 bits and cuts them: its white may be 234.
	first := luma[:len(pixel)]
	for i := range pixel {
		if d := int(first[i]) - int(pixel[i]); d < -1 || d > 1 {
			t.Errorf("%s: the picture begins with %v, want %v", name, first, pixel)
			break
		}
	}
	if !bytes.Equal(luma, bytes.Repeat(first, len(luma)/len(pixel))) {
		t.Errorf("%s: the picture is not all %v", name, first)
	}
}

// TestVividSignal: a signal that goes, in each way in which it can, and comes
// back; then another resolution.
func TestVividSignal(t *testing.T) {
	const mode = "DV Timings Signal Mode"
	path := vivid(t, onHDMI)
	s := opened(t, Options{Path: path})
	if s.timings == nil || s.Format().Width != s.timings.get().Width || s.Format().Rate != s.timings.get().Rate {
		t.Fatalf("format %+v, notes %v", s.Format(), s.Notes())
	}
	t.Log(s.Notes())
	last := next(t, s).Seq
	for value, words := range map[int]string{1: "nothing is plugged in", 2: "cannot lock", 3: "beyond what the receiver can take"} {
		set(t, s, mode, value)
		if i := interrupted(t, s, lab.SourceSignalLost); !strings.Contains(i.Event.Detail, words) {
			t.Errorf("mode %d: %v", value, i)
		}
		if _, err := Open(Options{Path: path}); err == nil {
			t.Error("a second source was opened while the first streams")
		}
		set(t, s, mode, 0)
		interrupted(t, s, lab.SourceSignalBack)
		if f := next(t, s); f.Seq <= last {
			t.Errorf("frame %d follows %d", f.Seq, last)
		} else {
			last = f.Seq
		}
	}
	before := s.timings.get()
	const selected = 4
	for index := 0; ; index++ { // vivid's list begins with the smallest
		set(t, s, "DV Timings", index)
		set(t, s, mode, selected)
		_, err := s.Next(t.Context())
		var i *capture.Interruption
		if err == nil || errors.As(err, &i) && i.Ends == nil {
			set(t, s, mode, 0)
			continue // the same timings, or interlaced ones of the same size
		}
		if !errors.Is(err, ErrResolution) || i.Event.Format == nil || i.Event.Format.Width == before.Width {
			t.Errorf("Next() = %v, %+v; want %v and the new format", err, i, ErrResolution)
		}
		t.Log(err)
		break
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	// The new signal can be filmed as soon as the device is opened again.
	again, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if got := again.timings.get(); got == before || next(t, again).Pix == nil {
		t.Errorf("opened again: %v", got)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestVividNoSignal: there is nothing to film, and the error says so.
func TestVividNoSignal(t *testing.T) {
	path := vivid(t, onHDMI)
	n, err := openNode(path)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	turn(t, path, n, typeCapture, "DV Timings Signal Mode", 1)
	if _, err := Open(Options{Path: path}); !errors.Is(err, ErrSignal) {
		t.Error(err)
	}
	list, err := List(path)
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Signal, "nothing is plugged in") || len(list[0].Modes) == 0 ||
		len(list[0].Controls) == 0 {
		t.Errorf("List() = %+v, %v; want one device without a signal, with modes and controls", list, err)
	}
}

// TestVividUnplug: a device that goes away while it is filmed.
func TestVividUnplug(t *testing.T) {
	s := opened(t, Options{Path: vivid(t, onWebcam)})
	next(t, s)
	set(t, s, "Disconnect", 0)
	if i := interrupted(t, s, lab.SourceUnplugged); !errors.Is(i, ErrUnplugged) {
		t.Error(i)
	}
}

// TestVividDamage: buffers with an injected error are found, every one.
func TestVividDamage(t *testing.T) {
	s := opened(t, Options{Path: vivid(t, onWebcam), Format: lab.Format{Pixels: lab.YUYV, Width: 320, Height: 180, Rate: 30}})
	const injected = 20
	var found int
	for range injected {
		if f := next(t, s); f.Flags != 0 {
			t.Errorf("frame %d has flags %d, and nothing was injected", f.Seq, f.Flags)
		}
		set(t, s, "Inject V4L2_BUF_FLAG_ERROR", 0)
		// Buffers that were filled before come first.
		for n := 0; n < 2*buffers; n++ {
			if next(t, s).Flags&lab.FrameCorrupt != 0 {
				found++
				break
			}
		}
	}
	if found != injected {
		t.Errorf("%d errors were injected, %d found", injected, found)
	}
}

// TestVividFailure: a stream that fails is started again, and its frames go on.
func TestVividFailure(t *testing.T) {
	s := opened(t, Options{Path: vivid(t, onWebcam)})
	last := next(t, s).Seq
	set(t, s, "Inject Fatal Streaming Error", 0)
	if i := interrupted(t, s, StreamFailed); i.Ends != nil {
		t.Fatal(i)
	}
	if f := next(t, s); f.Seq <= last {
		t.Errorf("frame %d follows %d", f.Seq, last)
	}
}

// TestVividDrops: the recording names as missing exactly those buffers that
// the driver's count skips, and its clock agrees that so many were due.
func TestVividDrops(t *testing.T) {
	const rate, frames = 30, 150
	for _, c := range []struct{ share, least, most int }{{0, 0, 1000}, {30, 15, 1000}} {
		s, err := Open(Options{
			Path: vivid(t, onWebcam), Format: lab.Format{Pixels: lab.Grey, Width: 320, Height: 180, Rate: rate},
			Controls: map[string]int{"OSD Text Mode": 2, "Percentage of Dropped Buffers": c.share},
		})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "drops.reel")
		w, err := reel.Create(path, reel.Header{Format: s.Format(), Source: "vivid"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := capture.Start(t.Context(), &finite{s, frames}, w, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		<-r.Done()
		st, err := r.Stop()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		due, twice := accounted(t, path, st)
		t.Logf("%d %% dropped: %d frames, %d with the number of the one before, %d lost by number, %d by time", c.share, st.Frames, twice, st.Lost, due)
		if st.Frames != frames {
			t.Errorf("%d %% dropped: %d frames; want %d", c.share, st.Frames, frames)
		}
		if due < c.least || due > c.most {
			t.Errorf("%d %% dropped: %d of %d are missing", c.share, due, frames+due)
		}
	}
}

// clockStamps is by so many periods that the first and the last stamp may be late.
const clockStamps = 2

// accounted checks that the reel names each picture that is missing by its clock, and no other, and counts those, and the
// pictures that have the number of the one before (TestVividCountWraps).
func accounted(t *testing.T, path string, st capture.Stats) (due, twice int) {
	t.Helper()
	due, twice = named(t, path, st)
	if max(due-st.Lost, st.Lost-due) > clockStamps {
		t.Errorf("%+v; the clock says that %d are missing", st, due)
	}
	return due, twice
}

// named checks that the reel names each picture that is missing by its number, and counts those that are by its clock.
func named(t *testing.T, path string, st capture.Stats) (due, twice int) {
	t.Helper()
	film, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer film.Close()
	written := 0
	for _, g := range film.Gaps() {
		written += g.Count
	}
	for i := 1; i < film.Len(); i++ {
		if film.Info(i).Seq == film.Info(i-1).Seq {
			twice++
		}
	}
	// One stamp may be late by as much as this machine is: the whole span counts.
	span := float64(film.Info(film.Len()-1).Time - film.Info(0).Time)
	due = int(span*film.Format().Rate/float64(time.Second)+0.5) - (film.Len() - 1) + twice
	if written != st.Lost || st.Reasons[lab.GapSource] != st.Lost || st.Corrupt != 0 {
		t.Errorf("%+v; the reel says that %d are missing", st, written)
	}
	return due, twice
}

// finite ends a source after a number of frames.
type finite struct {
	*Source
	left int
}

func (f *finite) Next(ctx context.Context) (lab.Frame, error) {
	if f.left == 0 {
		return lab.Frame{}, io.EOF
	}
	f.left--
	return f.Source.Next(ctx)
}

// TestVividCountWraps: the driver's 32-bit count begins anew, ours goes on.
//
// Vivid gives two frames the same number if it draws the first for longer than half a period and shorter than a whole
// one, as an emulated machine does: it computes how long to wait when it has drawn, waits that long from when it began
// to draw, and so looks at the clock for the next number too early (vivid_thread_vid_cap of Linux 6.1). Our number
// is then the same too, and the recorder reports it as irregular.
func TestVividCountWraps(t *testing.T) {
	s := opened(t, Options{Path: vivid(t, onWebcam), Format: lab.Format{Pixels: lab.Grey, Width: 320, Height: 180, Rate: 30},
		Controls: map[string]int{"Wrap Sequence Number": 1}})
	first := next(t, s)
	if first.Seq < 1<<31 {
		t.Fatalf("vivid was told to begin near its count's end, and begins with %d", first.Seq)
	}
	twice := 0
	for last, of := first.Seq, s.driver; last < 1<<32; {
		f := next(t, s)
		if step := s.driver - of; step > 100 || f.Seq != last+uint64(step) || uint32(f.Seq) != s.driver {
			t.Fatalf("frame %d, the driver's %d, follows %d, the driver's %d", f.Seq, s.driver, last, of)
		}
		if s.driver == of {
			twice++
		}
		last, of = f.Seq, s.driver
	}
	t.Logf("vivid gave %d frames the number of the frame before", twice)
}

// TestVividEDID: the receiver takes an EDID and gives it back, with the address that it has in its tree of HDMI
// devices.
func TestVividEDID(t *testing.T) {
	e, err := NewEDID("720p60")
	if err != nil {
		t.Fatal(err)
	}
	s := opened(t, Options{Path: vivid(t, onHDMI), EDID: e})
	got, err := getEDID(s.dev)
	if err != nil || !bytes.Equal(withoutAddress(t, got), withoutAddress(t, e)) {
		t.Errorf("%v: it gives back\n%x\nwant\n%x", err, got, e)
	}
}

// withoutAddress is an EDID of two blocks without the physical address of its HDMI block, and the sum that follows from
// it.
func withoutAddress(t *testing.T, e []byte) []byte {
	t.Helper()
	e = bytes.Clone(e)
	at := bytes.Index(e, []byte{0x03, 0x0c, 0x00}) // HDMI's identifier (HDMI 1.4, 8.3.2)
	if len(e) != 256 || at < 128 {
		t.Fatalf("%d bytes with HDMI's block at %d; want two blocks, and it in the second", len(e), at)
	}
	e[at+3], e[at+4], e[255] = 0, 0, 0
	return e
}
