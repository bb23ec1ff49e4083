package through_test

import (
	"context"
	"fmt"
	"image"
	"io"
	"testing"

	"eidetic/capture/mjpeg"
	"eidetic/capture/through"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestParse(t *testing.T) {
	got, err := through.Parse("scale=1920x1080,noise=3,mjpeg=80")
	if want := (through.Way{Width: 1920, Height: 1080, Noise: 3, JPEG: 80}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, text := range []string{"", "noise", "noise=65", "noise=-1", "rotate=45", "scale=0x1", "scale=99999x2", "scale=16384x16384", "blur=2", "420,mjpeg=80", "noise=1,,"} {
		if got, err := through.Parse(text); err == nil {
			t.Errorf("%q: %+v, want an error", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("rotate=90,scale=1920x1080,dither=4,noise=1,420")
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		w, err := through.Parse(text)
		if err == nil && (w.Noise < 0 || w.Noise > 64 || w.Rotate%90 != 0 || w.JPEG < 0 || w.JPEG > 100) {
			t.Errorf("%q: %+v", text, w)
		}
	})
}

// one is a source of one picture: red at the left, green at the right, and a white pixel in the corner.
type one struct{ done bool }

const width, height = 64, 32

func (o *one) Format() lab.Format {
	return lab.Format{Pixels: lab.BGRX, Width: width, Height: height, Rate: 60}
}
func (o *one) Close() error { return nil }
func (o *one) Next(context.Context) (lab.Frame, error) {
	if o.done {
		return lab.Frame{}, io.EOF
	}
	o.done = true
	pix := make([]byte, 4*width*height)
	for i := 0; i < len(pix); i += 4 {
		if i/4%width < width/2 {
			pix[i+2] = 255
		} else {
			pix[i+1] = 255
		}
	}
	pix[0], pix[1], pix[2] = 255, 255, 255
	return lab.Frame{FrameInfo: lab.FrameInfo{Changed: []image.Rectangle{image.Rect(0, 0, width, height)}}, Pix: pix}, nil
}

// TestGeometry: where the halves and the corner are after each way.
func TestGeometry(t *testing.T) {
	for way, want := range map[string]string{
		"rotate=90":               "32x64 red (16,8) green (16,56) white (31,0)",
		"rotate=180":              "64x32 red (56,16) green (8,16) white (63,31)",
		"rotate=270":              "32x64 red (16,56) green (16,8) white (0,63)",
		"scale=128x64,rotate=180": "128x64 red (112,32) green (16,32) white (127,63)",
	} {
		w, err := through.Parse(way)
		if err != nil {
			t.Fatal(err)
		}
		s, err := through.New(&one{}, w, 1)
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var width, height, rx, ry, gx, gy, wx, wy int
		if _, err := fmt.Sscanf(want, "%dx%d red (%d,%d) green (%d,%d) white (%d,%d)", &width, &height, &rx, &ry, &gx, &gy, &wx, &wy); err != nil {
			t.Fatal(err)
		}
		at := func(x, y int) [3]byte { return [3]byte(f.Pix[4*(y*width+x):]) }
		if g := s.Format(); g.Width != width || g.Height != height || at(rx, ry) != [3]byte{0, 0, 255} || at(gx, gy) != [3]byte{0, 255, 0} || at(wx, wy)[0] < 128 {
			t.Errorf("%s: %dx%d with %v, %v, %v; want %s", way, g.Width, g.Height, at(rx, ry), at(gx, gy), at(wx, wy), want)
		}
	}
}

// TestColours: what is compressed, or has its colours at a quarter of the resolution, is as bright as before.
func TestColours(t *testing.T) {
	for way, red := range map[string]byte{"420": 81, "mjpeg=95": 0} { // Y of red by BT.601
		w, err := through.Parse(way)
		if err != nil {
			t.Fatal(err)
		}
		s, err := through.New(&one{}, w, 1)
		if err != nil {
			t.Fatal(err)
		}
		decoded := mjpeg.New(s)
		f, err := decoded.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Pix) != decoded.Format().FrameSize() {
			t.Errorf("%s: %d bytes, want %d", way, len(f.Pix), decoded.Format().FrameSize())
		}
		at := f.Pix[20*width+8]
		if way != "420" {
			at = f.Pix[4*(20*width+8)]
		}
		if d := int(at) - int(red); d < -4 || d > 4 {
			t.Errorf("%s: red is %d, want %d", way, at, red)
		}
	}
}
