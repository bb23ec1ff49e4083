package video_test

import (
	"bytes"
	"image"
	"testing"

	"eidetic/capture/video"
	"eidetic/internal/lab"
)

// list is a recording in memory.
type list struct {
	f     lab.Format
	infos []lab.FrameInfo
	pix   [][]byte
}

func (l list) Format() lab.Format           { return l.f }
func (l list) Len() int                     { return len(l.pix) }
func (l list) Info(i int) lab.FrameInfo     { return l.infos[i] }
func (l list) Pixels(i int) ([]byte, error) { return l.pix[i], nil }

// blinking is a recording of a grey picture in which pixel (1, 0) changes with
// every frame and pixel (2, 1) once.
func blinking(times ...lab.Time) list {
	l := list{f: lab.Format{Pixels: lab.BGRX, Width: 4, Height: 2, Rate: 60}}
	for n, at := range times {
		pix := bytes.Repeat([]byte{100, 100, 100, 0}, 8)
		pix[4] = byte(n * 10)
		changed := []image.Rectangle{image.Rect(1, 0, 2, 1)}
		if n >= 2 {
			pix[4*6] = 200
			changed = append(changed, image.Rect(2, 1, 3, 2))
		}
		l.pix = append(l.pix, pix)
		l.infos = append(l.infos, lab.FrameInfo{Time: at, Changed: changed})
	}
	return l
}

func TestDifference(t *testing.T) {
	l := blinking(0, 10, 20)
	img, n, err := video.Difference(l, 0, l, 2)
	if err != nil || n != 2 {
		t.Fatalf("%d pixels differ, %v", n, err)
	}
	if c := img.RGBAAt(2, 1); c.R != 255 || c.G > 120 {
		t.Errorf("a pixel that differs is %v", c)
	}
	if _, _, err := video.Difference(l, 0, one{lab.Format{Pixels: lab.Grey, Width: 1, Height: 1}, []byte{1}}, 0); err == nil {
		t.Error("pictures of different sizes are compared")
	}
}

func TestSideBySideAlignsTheStarts(t *testing.T) {
	const ms = 1_000_000
	a := blinking(0, 100*ms, 117*ms, 150*ms)
	b := blinking(5000*ms, 5018*ms)
	p, err := video.SideBySide(a, 1, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	if p.Len() != 3 || p.Info(1).Time != 17*ms || p.Info(2).Time != 50*ms {
		t.Fatalf("%d frames: %+v", p.Len(), p.Info(p.Len()-1))
	}
	for n, want := range [][2]byte{{10, 0}, {20, 10}, {30, 10}} {
		pix, err := p.Pixels(n)
		if err != nil {
			t.Fatal(err)
		}
		if left, right := pix[4], pix[4*(1+4+8)]; left != want[0] || right != want[1] {
			t.Errorf("frame %d shows %d and %d, want %v", n, left, right, want)
		}
	}
	if changed := p.Info(2).Changed; len(changed) != 2 || changed[0].Min.X != 1 {
		t.Errorf("frame 2 changed %v", changed)
	}
	if _, err := video.SideBySide(a, 9, b, 0); err == nil {
		t.Error("a frame that is not there is accepted")
	}
}

func TestStampedAndDifferences(t *testing.T) {
	const ms = 1_000_000
	l := list{f: lab.Format{Pixels: lab.BGRX, Width: 260, Height: 40, Rate: 60}}
	for n := range 3 {
		pix := bytes.Repeat([]byte{100, 100, 100, 0}, 260*40)
		pix[4*(260*30+5)] = byte(n)
		l.pix = append(l.pix, pix)
		l.infos = append(l.infos, lab.FrameInfo{Time: lab.Time(n) * 17 * ms, Changed: []image.Rectangle{image.Rect(5, 30, 6, 31)}})
	}
	s, err := video.Stamped(l, 1)
	if err != nil {
		t.Fatal(err)
	}
	var shown [][]byte
	for i := range s.Len() {
		pix, err := s.Pixels(i)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, bytes.Clone(pix))
		if below := 4 * 260 * 17; !bytes.Equal(pix[below:], l.pix[i][below:]) {
			t.Errorf("frame %d is changed below the text", i)
		}
		bright := 0
		for k := 0; k < 4*260*17; k += 4 {
			if pix[k] == 255 {
				bright++
			}
		}
		if bright < 100 {
			t.Errorf("frame %d shows %d bright pixels of text", i, bright)
		}
	}
	if bytes.Equal(shown[0], shown[1]) || len(s.Info(1).Changed) != 2 {
		t.Errorf("the text does not change, or it is not among what changed: %v", s.Info(1).Changed)
	}
	if pix, err := s.Pixels(0); err != nil || !bytes.Equal(pix, shown[0]) {
		t.Errorf("frame 0 is another after frame 2 (%v)", err)
	}
	if _, err := video.Stamped(l, 3); err == nil {
		t.Error("a frame that is not there is accepted")
	}

	other := l
	other.pix = [][]byte{l.pix[0], l.pix[0], l.pix[2]}
	d, err := video.Differences(l, 0, other, 0)
	if err != nil || d.Len() != 3 {
		t.Fatal(err)
	}
	for n, want := range []bool{false, true, false} {
		pix, err := d.Pixels(n)
		if err != nil {
			t.Fatal(err)
		}
		if at := 4 * (260*30 + 5); (pix[at+2] == 255 && pix[at] < 200) != want {
			t.Errorf("frame %d: pixel %v, differing %v", n, pix[at:at+4], want)
		}
	}
	if _, err := video.Differences(l, 0, blinking(0), 0); err == nil {
		t.Error("recordings of different sizes are compared")
	}
}
