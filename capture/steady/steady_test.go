package steady_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"eidetic/capture"
	"eidetic/capture/mjpeg"
	"eidetic/capture/steady"
	"eidetic/capture/synthetic/scene"
	"eidetic/capture/through"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

const width, height = 480, 320

// screen is a source whose frame n is painted by a function, in BGRX.
type screen struct {
	paint func(pix []byte, n int)
	n     int
	last  int
	pix   []byte
}

func (s *screen) Format() lab.Format {
	return lab.Format{Pixels: lab.BGRX, Width: width, Height: height, Rate: 60}
}

func (s *screen) Close() error { return nil }

func (s *screen) Next(context.Context) (lab.Frame, error) {
	if s.n == s.last {
		return lab.Frame{}, io.EOF
	}
	before := bytes.Clone(s.pix)
	if s.pix == nil {
		s.pix = make([]byte, 4*width*height)
	}
	s.paint(s.pix, s.n)
	f := lab.Frame{FrameInfo: lab.FrameInfo{Seq: uint64(s.n), Time: lab.Time(s.n) * 16_666_667, Changed: []image.Rectangle{s.Format().Bounds()}}, Pix: s.pix}
	if bytes.Equal(before, s.pix) {
		f.Flags, f.Changed = lab.FrameRepeat, nil
	}
	s.n++
	return f, nil
}

func fill(pix []byte, r image.Rectangle, c [3]byte) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			copy(pix[4*(y*width+x):], c[:])
		}
	}
}

// The film: the green page, from frame shown on a page with text and pictures, from frame pale on a pale box more.
const (
	shown, pale, end = 40, 90, 130
)

var whole = image.Rect(0, 0, width, height) // constant

func load(tb testing.TB) func(pix []byte, n int) {
	tb.Helper()
	page := make([]byte, 4*width*height)
	scene, err := scene.New(scene.Static, width, height)
	if err != nil {
		tb.Fatal(err)
	}
	scene.Draw(page, 30) // without its caret
	return func(pix []byte, n int) {
		switch {
		case n < shown:
			fill(pix, whole, [3]byte{0, 255, 0})
		default:
			copy(pix, page)
		}
		if n >= pale {
			fill(pix, image.Rect(440, 20, 470, 50), [3]byte{90, 60, 50}) // 20 codes brighter than its ground
		}
	}
}

// changes films and returns the frames in which the held picture changed.
func changes(tb testing.TB, src capture.Source) (frames []int) {
	tb.Helper()
	for n := 0; ; n++ {
		f, err := src.Next(tb.Context())
		if err == io.EOF {
			return frames
		}
		if err != nil {
			tb.Fatal(err)
		}
		if len(f.Changed) > 0 && f.Flags&lab.FrameRepeat == 0 {
			frames = append(frames, n)
		}
	}
}

// TestChangesInNoise: once the noise is known, of a noisy film change the frames that change in the exact one, and no
// others.
func TestChangesInNoise(t *testing.T) {
	for i, way := range []string{
		"noise=3", "noise=2,420", "noise=1,mjpeg=80", "noise=1", "dither=4", "420", "mjpeg=80", "scale=960x640,noise=1", "rotate=90,noise=1",
	} {
		t.Run(way, func(t *testing.T) {
			if i > 1 {
				testlab.Long(t, "another way, as those before it")
			}
			w, err := through.Parse(way)
			if err != nil {
				t.Fatal(err)
			}
			memory := &steady.Memory{}
			var got []int
			for seed := range uint64(2) { // the first film teaches what noise text has
				worn, err := through.New(&screen{paint: load(t), last: end}, w, seed)
				if err != nil {
					t.Fatal(err)
				}
				got = changes(t, steady.New(mjpeg.New(worn), memory))
			}
			for len(got) > 0 && got[0] < 24 { // the first frame, and what there is of the green page before the noise is known
				got = got[1:]
			}
			if want := []int{shown, pale}; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("changes in frames %v, want %v; noise %+v", got, want, memory.Noise())
			}
		})
	}
}

// TestFirstFilmComesToRest: dithering shows first on the page, not on the green page; the film is still a second after.
func TestFirstFilmComesToRest(t *testing.T) {
	w, err := through.Parse("dither=4")
	if err != nil {
		t.Fatal(err)
	}
	worn, err := through.New(&screen{paint: load(t), last: shown + 80}, w, 1)
	if err != nil {
		t.Fatal(err)
	}
	got := changes(t, steady.New(mjpeg.New(worn), &steady.Memory{}))
	if last := got[len(got)-1]; last > shown+60 {
		t.Errorf("the last change is in frame %d, of a page that came in frame %d", last, shown)
	}
}

// TestExactStaysExact: a source without noise learns none, whatever moves on its screen, and one code of one pixel is
// seen.
func TestExactStaysExact(t *testing.T) {
	page := load(t)
	for name, move := range map[string]func(pix []byte, n int){
		"nothing": func([]byte, int) {},
		"a caret": func(pix []byte, n int) {
			if n/30%2 == 0 {
				fill(pix, image.Rect(100, 200, 102, 216), [3]byte{})
			}
		},
		"a spinner": func(pix []byte, n int) {
			a := float64(n) / 10
			x, y := 200+int(20*math.Cos(a)), 200+int(20*math.Sin(a))
			fill(pix, image.Rect(x, y, x+8, y+8), [3]byte{200, 100, 0})
		},
		"a fade": func(pix []byte, n int) {
			v := byte(255 - n%200/10)
			fill(pix, image.Rect(0, 100, width, height), [3]byte{v, v, v})
		},
		"television noise": func(pix []byte, n int) {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			for y := 100; y < 300; y++ {
				for x := 100; x < 400; x++ {
					v := byte(random.IntN(256))
					fill(pix, image.Rect(x, y, x+1, y+1), [3]byte{v, v, v})
				}
			}
		},
	} {
		memory := &steady.Memory{}
		src := steady.New(&screen{last: end, paint: func(pix []byte, n int) {
			page(pix, n)
			move(pix, n)
			if n == end-1 {
				pix[4*(310*width+3)]++
			}
		}}, memory)
		exact := &screen{last: end, paint: func(pix []byte, n int) { page(pix, n); move(pix, n) }}
		var f lab.Frame
		for n := range end {
			var err error
			if f, err = src.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			want, _ := exact.Next(t.Context())
			if n == end-1 {
				want.Pix[4*(310*width+3)]++
			}
			if !bytes.Equal(f.Pix, want.Pix) {
				t.Fatalf("%s: frame %d is not the screen's", name, n)
			}
		}
		if len(f.Changed) == 0 {
			t.Errorf("%s: one code of one pixel was not seen", name)
		}
		if !memory.Noise().Exact() {
			t.Errorf("%s was taken for noise: %+v", name, memory.Noise())
		}
	}
}

// BenchmarkHold is a second of a still screen at 1080p60 in YUYV with noise.
func BenchmarkHold(b *testing.B) {
	for name, codes := range map[string]int{"noise": 3, "film": 256} {
		b.Run(name, func(b *testing.B) {
			f := lab.Format{Pixels: lab.YUYV, Width: 1920, Height: 1080, Rate: 60}
			pictures := make([][]byte, 4)
			for i := range pictures {
				pictures[i] = make([]byte, f.FrameSize())
				for k := range pictures[i] {
					pictures[i][k] = byte(100 + rand.IntN(codes))
				}
			}
			src := steady.New(&turns{f, pictures, 0}, &steady.Memory{})
			b.SetBytes(int64(f.FrameSize()))
			for b.Loop() {
				if _, err := src.Next(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type turns struct {
	format   lab.Format
	pictures [][]byte
	n        int
}

func (t *turns) Format() lab.Format { return t.format }
func (t *turns) Close() error       { return nil }
func (t *turns) Next(context.Context) (lab.Frame, error) {
	t.n++
	return lab.Frame{FrameInfo: lab.FrameInfo{Changed: []image.Rectangle{t.format.Bounds()}}, Pix: t.pictures[t.n%len(t.pictures)]}, nil
}

// TestFewEdges: a page of one short line has few edges to learn from; through noise and JPEG it comes to rest all the
// same.
func TestFewEdges(t *testing.T) {
	for i, letters := range []int{8, 2, 30} {
		line := func(pix []byte, n int) {
			fill(pix, whole, [3]byte{0, 255, 0})
			if n < shown {
				return
			}
			fill(pix, whole, [3]byte{255, 255, 255})
			for i := range letters { // strokes, as of small letters
				x := 12 + 9*i
				fill(pix, image.Rect(x, 20, x+1, 30), [3]byte{20, 20, 20})
				fill(pix, image.Rect(x+1, 24, x+6, 25), [3]byte{20, 20, 20})
				fill(pix, image.Rect(x+5, 25, x+6, 30), [3]byte{90, 90, 90})
			}
		}
		for k, way := range []string{"noise=1,mjpeg=80", "noise=1,mjpeg=60", "noise=3", "dither=4"} {
			t.Run(fmt.Sprintf("%d letters, %s", letters, way), func(t *testing.T) {
				if i > 0 || k > 0 {
					testlab.Long(t, "another length or way, as the one before it")
				}
				w, err := through.Parse(way)
				if err != nil {
					t.Fatal(err)
				}
				worn, err := through.New(&screen{paint: line, last: shown + 200}, w, 1)
				if err != nil {
					t.Fatal(err)
				}
				memory := &steady.Memory{}
				got := changes(t, steady.New(mjpeg.New(worn), memory))
				if last := got[len(got)-1]; last > shown+90 {
					t.Errorf("the last change is in frame %d of %d, of a page that came in frame %d; noise %+v", last, shown+200, shown, memory.Noise())
				}
			})
		}
	}
}
