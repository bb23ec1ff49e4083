package framecode_test

import (
	"errors"
	"image"
	"math/rand/v2"
	"testing"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/framecode"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

const width, height = 420, 30

func paint(pix []byte, c framecode.Code, at image.Point) {
	for i, one := range framecode.Encode(c) {
		v := uint8(0)
		if one {
			v = 255
		}
		x := at.X + i*framecode.Side
		filmtest.Fill(pix, width, image.Rect(x, at.Y, x+framecode.Side, at.Y+framecode.Side), v, v, v)
	}
}

// TestDecode: any code is read back, with noise; a changed cell is told, and so is none.
func TestDecode(t *testing.T) {
	f := lab.Format{Pixels: lab.BGRX, Width: width, Height: height, Rate: 60}
	a, err := visual.NewAccess(f)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	pix := make([]byte, f.FrameSize())
	corner := image.Pt(9, 3)
	for seed := range uint64(200) {
		want := framecode.Code{Counter: r.Uint32N(1 << 20), PageMS: float64(r.Uint32()) / 10, Bits: r.Uint32N(1 << 24)}
		paint(pix, want, corner)
		filmtest.Noise(seed, 25)(pix, int(seed))
		if got, err := framecode.Decode(a, f, visual.Flat(pix), corner); err != nil || got != want {
			t.Fatalf("decoded %+v, %v; want %+v", got, err, want)
		}
		k := 8 + r.IntN(framecode.Cells-8)
		v := uint8(255)
		if framecode.Encode(want)[k] {
			v = 0
		}
		x := corner.X + k*framecode.Side
		filmtest.Fill(pix, width, image.Rect(x, corner.Y, x+framecode.Side, corner.Y+framecode.Side), v, v, v)
		if _, err := framecode.Decode(a, f, visual.Flat(pix), corner); !errors.Is(err, framecode.ErrBroken) {
			t.Fatalf("cell %d changed: %v, want %v", k, err, framecode.ErrBroken)
		}
	}
	clear(pix)
	for _, at := range []image.Point{corner, {30, 3}, {0, 28}, {-1, 0}} {
		if _, err := framecode.Decode(a, f, visual.Flat(pix), at); !errors.Is(err, framecode.ErrNone) {
			t.Errorf("nothing at %v: %v, want %v", at, err, framecode.ErrNone)
		}
	}
	if _, err := framecode.Decode(a, f, visual.Flat(pix[:9]), corner); err == nil {
		t.Error("a short frame: no error")
	}
}

// TestClock: the page's clock is bounded to its true offset, and marks are placed on frames.
func TestClock(t *testing.T) {
	const offset = 400.0 // ms: the page's clock is 0 then
	scene := func(pix []byte, n int) {
		clear(pix)
		page := 1000 + float64(n)*1000/60 - offset - 11 // drawn 11 ms before it is filmed
		paint(pix, framecode.Code{Counter: uint32(n), PageMS: page, Bits: uint32(7 * n)}, image.Point{})
	}
	f := filmtest.New(width, height, 60, scene, filmtest.Beat(50, 60, 30, 0))
	seen, broken, err := framecode.Read(f, 0, 0, image.Point{})
	if err != nil || broken != 0 || len(seen) != 50 {
		t.Fatalf("%d codes, %d broken, %v; want 50", len(seen), broken, err)
	}
	for i, s := range seen {
		if s.Bits != uint32(7*(i/2)) || s.New != (i%2 == 0) {
			t.Errorf("frame %d: %+v", i, s)
		}
	}
	f = filmtest.New(width, height, 60, scene, filmtest.Beat(50, 60, 60, 0))
	if seen, _, err = framecode.Read(f, 0, 0, image.Point{}); err != nil {
		t.Fatal(err)
	}
	c, err := framecode.Relate(f, seen, 50e6)
	if err != nil || c.Low > offset*1e6 || c.High < offset*1e6 || c.High-c.Low > 100e6 {
		t.Errorf("offset in %d … %d ns (%v), want %v ms within", c.Low, c.High, err, offset)
	}
	if got := framecode.FrameOf(seen, seen[20].PageMS-0.05); got != 20 {
		t.Errorf("a mark at frame 20's code is placed on frame %d", got)
	}
	if got := framecode.FrameOf(seen, 1e9); got != -1 {
		t.Errorf("a mark after the film is placed on frame %d", got)
	}
	seen[30].PageMS += 1e6
	if _, err := framecode.Relate(f, seen, 50e6); !errors.Is(err, framecode.ErrClock) {
		t.Errorf("a clock that stepped: %v", err)
	}
}

// FuzzDecode: any pixels give a code or a clear error.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 2, 3}, 0, 0)
	f.Add(make([]byte, 4*width*5), 3, 1)
	f.Fuzz(func(t *testing.T, pix []byte, x, y int) {
		defer testlab.Input(t)()
		format := lab.Format{Pixels: lab.BGRX, Width: width, Height: 5, Rate: 60}
		a, err := visual.NewAccess(format)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := framecode.Decode(a, format, visual.Flat(pix), image.Pt(x, y)); err == nil && c.Counter >= 1<<20 {
			t.Errorf("%+v", c)
		}
	})
}
