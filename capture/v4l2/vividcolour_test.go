//go:build guest

package v4l2

import (
	"errors"
	"fmt"
	"image"
	"testing"

	"eidetic/capture/video"
	"eidetic/internal/lab"
)

// How vivid's controls call the colours that it is told to deliver.
var (
	vividMatrices = map[lab.Matrix]int{lab.BT601: 1, lab.BT709: 2, lab.BT2020: 6}  // "Y'CbCr Encoding"
	vividRanges   = map[lab.ColourRange]int{lab.FullRange: 1, lab.LimitedRange: 2} // "Quantization"
)

// TestVividColours: the colour bars come out in their colours in every layout that vivid has, each in one matrix and
// range.
func TestVividColours(t *testing.T) {
	ways := allColours()
	for _, planes := range []string{"1", "2"} {
		path := vivid(t, onWebcam, "multiplanar="+planes)
		for i, l := range vividLayouts(planes) {
			checkBars(t, path, l, ways[i%len(ways)])
		}
	}
}

// TestEveryVividColour: the same in each matrix and range.
func TestEveryVividColour(t *testing.T) {
	for _, planes := range []string{"1", "2"} {
		path := vivid(t, onWebcam, "multiplanar="+planes)
		for _, l := range vividLayouts(planes) {
			for _, way := range allColours() {
				checkBars(t, path, l, way)
			}
		}
	}
}

func allColours() (all []lab.Format) {
	for _, m := range []lab.Matrix{lab.BT601, lab.BT709, lab.BT2020} {
		for _, r := range []lab.ColourRange{lab.FullRange, lab.LimitedRange} {
			all = append(all, lab.Format{Matrix: m, Range: r})
		}
	}
	return all
}

// vividLayouts are those that vivid has: all but P010 and JPEG, and the multi-planar ones if it is told so.
func vividLayouts(planes string) (list []layout) {
	for _, l := range layouts() {
		if l.pixels != lab.MJPEG && l.code != "P010" && (planes == "2" || !l.apart) {
			list = append(list, l)
		}
	}
	return list
}

// checkBars films the bars of 75 % in a layout and colours.
func checkBars(t *testing.T, path string, l layout, way lab.Format) {
	t.Helper()
	name := fmt.Sprintf("%s, matrix %s, %s range", l.code, way.Matrix, way.Range)
	s, err := Open(Options{
		Path: path, code: l.code, Format: lab.Format{Pixels: l.pixels, Width: 320, Height: 180, Rate: 30},
		Controls: map[string]int{
			"OSD Text Mode": 2, "Test Pattern": 0, "Y'CbCr Encoding": vividMatrices[way.Matrix], "Quantization": vividRanges[way.Range],
		},
	})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}()
	if got := s.pad.fourcc; got != fourcc(l.code) {
		t.Errorf("%s: vivid grants another layout, %#x", name, got)
		return
	}
	f, format := next(t, s), s.Format()
	if f.Flags != 0 {
		t.Errorf("%s: the frame has flags %d", name, f.Flags)
	}
	if l.isYCbCr() && (s.told.Matrix != way.Matrix || s.told.Range != way.Range) {
		t.Errorf("%s: the driver says matrix %q, range %q", name, s.told.Matrix, s.told.Range)
	}
	picture := image.NewRGBA(format.Bounds())
	if err := video.ToRGBA(picture, format, f.Pix, format.Bounds()); err != nil {
		t.Fatal(err)
	}
	const on, off, bars = 191, 0, 8
	wants := [bars][3]uint8{
		{on, on, on}, {on, on, off}, {off, on, on}, {off, on, off}, {on, off, on}, {on, off, off}, {off, off, on}, {off, off, off},
	}
	before := 256
	for i, want := range wants {
		got := picture.RGBAAt((2*i+1)*format.Width/bars/2, format.Height/2)
		if l.pixels == lab.Grey {
			if int(got.R) >= before || got.R != got.G || got.G != got.B {
				t.Errorf("%s: bar %d has the grey %v, the one before %d", name, i, got, before)
			}
			before = int(got.R)
			continue
		}
		const rounding = 5 // of vivid, which cuts its samples off, times the gain of the colour differences
		for k, v := range []uint8{got.R, got.G, got.B} {
			if d := int(v) - int(want[k]); d > rounding || d < -rounding {
				t.Errorf("%s: bar %d is %v, want %v", name, i, got, want)
				break
			}
		}
	}
}

// TestVividOtherColours: samples that stand for other colours than before end the film.
func TestVividOtherColours(t *testing.T) {
	s := opened(t, Options{Path: vivid(t, onWebcam), Format: lab.Format{Pixels: lab.YUYV, Width: 320, Height: 180, Rate: 30}})
	before := s.Format()
	next(t, s)
	set(t, s, "Quantization", vividRanges[lab.FullRange])
	i := interrupted(t, s, lab.SourceResized)
	if before.Range != lab.LimitedRange || !errors.Is(i, ErrColours) || i.Event.Format == nil || i.Event.Format.Range != lab.FullRange {
		t.Errorf("%+v became %+v (%v), want limited range to become full, and %v", before, i.Event.Format, i, ErrColours)
	}
}
