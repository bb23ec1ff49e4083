package qualify_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"strings"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/capture/qualify"
	"eidetic/capture/rfb"
	"eidetic/capture/x11"
	"eidetic/internal/base/rfb/rfbtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

func TestMain(m *testing.M) {
	xtest.Main()
	testlab.NoLeaks(m)
}

const (
	width  = 320
	height = 200
	ms     = lab.Time(time.Millisecond)
)

// convert makes of a BGRX picture one of another format, in limited range as
// grabbers deliver it.
func convert(f lab.Format, pix []byte) []byte {
	out := make([]byte, f.FrameSize())
	for i := range f.Width * f.Height {
		v := pix[4*i+1] // of a grey pixel
		y := byte(16 + (int(v)*219+127)/255)
		switch f.Pixels {
		case lab.BGRX:
			copy(out[4*i:], pix[4*i:4*i+4])
		case lab.BGR24:
			copy(out[3*i:], pix[4*i:4*i+3])
		case lab.YUYV:
			out[2*i], out[2*i+1] = y, 128
		case lab.UYVY:
			out[2*i], out[2*i+1] = 128, y
		case lab.Grey:
			out[i] = v
		case lab.NV12:
			out[i] = y
		}
	}
	return out
}

// film feeds a judge two frames a number, as what does to them.
func film(t *testing.T, pixels lab.PixelFormat, numbers int, alter func(n uint32, pix []byte) [][]byte) qualify.Report {
	t.Helper()
	f := lab.Format{Pixels: pixels, Width: width, Height: height, Rate: 60}
	j, err := qualify.NewJudge(f)
	if err != nil {
		t.Fatal(err)
	}
	return judged(t, j, numbers, alter)
}

func judged(t *testing.T, j *qualify.Judge, numbers int, alter func(n uint32, pix []byte) [][]byte) qualify.Report {
	t.Helper()
	st := capture.Stats{Rate: 60}
	at := lab.Time(0)
	for n := range uint32(numbers) {
		j.Shown(at, at+1*ms)
		for _, pix := range alter(n, qualify.Picture(width, height, n)) {
			info := lab.FrameInfo{Seq: uint64(st.Frames), Time: at + 10*ms, Uncertainty: time.Duration(2 * ms)}
			if err := j.WriteFrame(lab.Frame{FrameInfo: info, Pix: pix}); err != nil {
				t.Fatal(err)
			}
			st.Frames++
			at += 16 * ms
		}
	}
	return j.Report(st, 30)
}

func TestFormatsWithoutLossAreGood(t *testing.T) {
	for _, pixels := range []lab.PixelFormat{lab.BGRX, lab.BGR24, lab.YUYV, lab.UYVY, lab.NV12, lab.Grey} {
		f := lab.Format{Pixels: pixels, Width: width, Height: height}
		r := film(t, pixels, 40, func(_ uint32, pix []byte) [][]byte {
			c := convert(f, pix)
			return [][]byte{c, c}
		})
		if !r.Good || r.Shown != 40 || r.FewestFrames != 2 || r.MostFrames != 2 || r.ExpectedFrames != 2 || r.Fidelity.Compared != 4 {
			t.Errorf("%s: Report() = %+v; want a good one of 40 numbers with 2 frames each, 4 compared", pixels, r)
		}
		// Shown within 1 ms, taken 10 ms later within 2 ms: 8.5 ± 1.5.
		if r.LatencyMedian != 8.5 || r.LatencyBound != 3 {
			t.Errorf("%s: latency %v ± %v", pixels, r.LatencyMedian, r.LatencyBound/2)
		}
	}
}

// RGB of limited range is read as what it stands for; a source that converts is lossy by its own word.
func TestRangesAndConversions(t *testing.T) {
	f := lab.Format{Pixels: lab.BGR24, Width: width, Height: height, Rate: 60, Range: lab.LimitedRange}
	for loses, want := range map[string]string{
		"":                       "lossless: every pixel is as it was shown",
		"NV24, converted to RGB": "lossy: NV24, converted to RGB; no pixel differs by more than 1 levels",
	} {
		j, err := qualify.NewJudge(f)
		if err != nil {
			t.Fatal(err)
		}
		j.Loses(loses)
		r := judged(t, j, 20, func(_ uint32, shown []byte) [][]byte {
			pix := make([]byte, f.FrameSize())
			for i := range pix {
				pix[i] = byte(16 + (int(shown[4*(i/3)+i%3])*219+127)/255)
			}
			return [][]byte{pix, pix}
		})
		if got := r.Fidelity; got.Words != want || got.Lossless != (loses == "") {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

func TestFaultsAreFound(t *testing.T) {
	twice := func(pix []byte) [][]byte { return [][]byte{pix, pix} }
	old := qualify.Picture(width, height, 3)
	for _, c := range []struct {
		name  string
		alter func(n uint32, pix []byte) [][]byte
		want  string
	}{
		{"lost", func(n uint32, pix []byte) [][]byte {
			if n == 7 || n == 8 {
				return nil
			}
			return twice(pix)
		}, "2 of 20 pictures never arrived"},
		{"torn", func(n uint32, pix []byte) [][]byte {
			if n == 9 {
				whole := bytes.Clone(pix)
				other := qualify.Strip(width, 0xfffffff0)
				for y := range 16 { // the right half is another picture's
					at, end := 4*(y*width+width/2), 4*(y+1)*width
					copy(pix[at:end], other[at:end])
				}
				return [][]byte{pix, whole}
			}
			return twice(pix)
		}, "1 frames hold parts of two pictures"},
		{"older", func(n uint32, pix []byte) [][]byte {
			if n == 9 {
				return [][]byte{pix, old, pix}
			}
			return twice(pix)
		}, "1 frames show an older picture"},
		{"one pixel off by one level", func(_ uint32, pix []byte) [][]byte {
			pix[len(pix)-4] ^= 1
			return twice(pix)
		}, "lossy: the grabber compresses, scales or filters"},
		{"shifted", func(_ uint32, pix []byte) [][]byte {
			copy(pix[4*16*width+4:], bytes.Clone(pix[4*16*width:]))
			return twice(pix)
		}, "not the picture that was shown"},
		{"nothing", func(_ uint32, pix []byte) [][]byte {
			return twice(make([]byte, len(pix)))
		}, "no number was seen"},
	} {
		r := film(t, lab.BGRX, 20, c.alter)
		if r.Good || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], c.want) {
			t.Errorf("%s: %q, want %q", c.name, r.Problems, c.want)
		}
	}
}

// TestNothingCompared: that no picture could be read is said only of one whose frames came, and could not be read.
func TestNothingCompared(t *testing.T) {
	for want, alter := range map[string]func(pix []byte) [][]byte{
		"not compared: no frame arrived":      func([]byte) [][]byte { return nil },
		"no picture's number could be read: ": func(pix []byte) [][]byte { return [][]byte{make([]byte, len(pix))} },
		"not compared: 7 frames arrived":      func(pix []byte) [][]byte { return [][]byte{pix} },
	} {
		r := film(t, lab.BGRX, 7, func(_ uint32, pix []byte) [][]byte { return alter(pix) })
		if got := r.Fidelity; !strings.HasPrefix(got.Words, want) || got.Lossless || got.Compared != 0 {
			t.Errorf("Fidelity = %+v; want nothing compared, and %q", got, want)
		}
	}
}

func TestJPEGIsLossy(t *testing.T) {
	r := film(t, lab.MJPEG, 20, func(n uint32, pix []byte) [][]byte {
		m := image.NewRGBA(image.Rect(0, 0, width, height))
		for i := 0; i < len(pix); i += 4 {
			m.Set(i/4%width, i/4/width, color.RGBA{pix[i+2], pix[i+1], pix[i], 255})
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 90}); err != nil {
			t.Fatal(err)
		}
		if n == 5 {
			return [][]byte{b.Bytes(), b.Bytes()[:50]}
		}
		return [][]byte{b.Bytes(), b.Bytes()}
	})
	if r.Missing != 0 || r.Torn != 1 || r.Fidelity.Lossless || !strings.Contains(r.Fidelity.Words, "JPEG") || r.Fidelity.Compared == 0 {
		t.Errorf("a JPEG that is cut off: Report() = %+v; want 1 torn frame, lossy because of JPEG", r)
	}
}

// TestScreens qualifies sources that are lossless by nature, on real screens.
// How many frames a busy machine loses is not this test's matter.
func TestScreens(t *testing.T) {
	server := rfbtest.Xvnc(t, testlab.NeedProgram(t, "Xvnc", "Xtigervnc"), "-geometry", "320x200")
	screen, err := qualify.OpenXScreen(server.Display)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	for name, open := range map[string]func() (capture.Source, error){
		"x11": func() (capture.Source, error) { return x11.Open(x11.Options{Display: server.Display}) },
		"rfb": func() (capture.Source, error) {
			return rfb.Open(t.Context(), rfb.Options{Address: server.Address, Encoding: rfb.ZRLE})
		},
	} {
		var r qualify.Report
		for range 5 { // a machine that stalls just then lets nothing be compared
			src, err := open()
			if err != nil {
				t.Fatal(err)
			}
			r, err = qualify.Run(t.Context(), src, screen, qualify.Options{
				Duration: time.Second, Rate: 10, Patience: 30 * time.Second, Record: capture.Options{NoPriority: true},
			})
			if err != nil {
				t.Fatal(err)
			}
			if r.Missing <= 5 && r.Fidelity.Compared > 0 {
				break
			}
			t.Logf("%s: %+v", name, r)
		}
		if r.Shown != 11 || r.Missing > 5 || r.Torn != 0 || r.Back != 0 || !r.Fidelity.Lossless || r.LatencyMin < 0 {
			t.Errorf("%s: Report() = %+v; want 11 numbers, at most 5 missing, lossless", name, r)
		}
		t.Logf("%s: latency %.1f … %.1f ms, median %.1f ± %.1f", name, r.LatencyMin, r.LatencyMax, r.LatencyMedian, r.LatencyBound/2)
	}
}

// still is a source whose screen has another size.
type still struct{ closed bool }

func (*still) Format() lab.Format {
	return lab.Format{Pixels: lab.Grey, Width: 640, Height: 480, Rate: 60}
}
func (*still) Next(context.Context) (lab.Frame, error) { return lab.Frame{}, io.EOF }
func (s *still) Close() error                          { s.closed = true; return nil }

// board is a screen that nobody films.
type board struct{}

func (board) Size() (int, int)                        { return width, height }
func (board) Show(uint32) (lab.Time, lab.Time, error) { return 0, 0, nil }

func TestSizesMustAgree(t *testing.T) {
	src := &still{}
	_, err := qualify.Run(t.Context(), src, board{}, qualify.Options{})
	if err == nil || !strings.Contains(err.Error(), "320 × 200 pixels, the grabber delivers 640 × 480") || !src.closed {
		t.Errorf("%v, closed %v", err, src.closed)
	}
}
