package find

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"eidetic/analysis/visual"
	"eidetic/internal/rigs/testlab"
)

// screen is a picture of noise over a gradient.
func screen(w, h int, area image.Point) *visual.Picture {
	random := rand.New(rand.NewPCG(1, 2))
	p := &visual.Picture{Area: image.Rectangle{area, area.Add(image.Pt(w, h))}, Pix: make([]uint32, w*h)}
	for i := range p.Pix {
		p.Pix[i] = uint32(random.IntN(256))<<16 | uint32(i%w*255/w)<<8 | uint32(i/w*255/h)
	}
	return p
}

func cut(p *visual.Picture, r image.Rectangle) *image.NRGBA {
	img := image.NewNRGBA(image.Rectangle{Max: r.Size()})
	for y := range r.Dy() {
		for x, v := range p.Row(r.Min.Y+y, r.Min.X, r.Max.X) {
			img.SetNRGBA(x, y, color.NRGBA{byte(v >> 16), byte(v >> 8), byte(v), 255})
		}
	}
	return img
}

func TestIn(t *testing.T) {
	p := screen(320, 200, image.Pt(40, 10))
	want := image.Rect(200, 90, 240, 120)
	img := cut(p, want)
	find := func(tolerance int) (image.Rectangle, error) {
		t.Helper()
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		template, err := Read(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		m, err := template.In(p, p.Area, tolerance)
		return m.Area, err
	}
	if got, err := find(0); err != nil || got != want {
		t.Errorf("exact: %v %v; want %v", got, err, want)
	}
	for i := range img.Pix {
		if i%4 != 3 {
			img.Pix[i] = byte(min(255, int(img.Pix[i])+9)) // another browser's decoder
		}
	}
	if _, err := find(8); !errors.Is(err, ErrNotFound) {
		t.Errorf("brighter by 9 with a tolerance of 8: %v; want ErrNotFound", err)
	}
	if got, err := find(9); err != nil || got != want {
		t.Errorf("brighter by 9 with a tolerance of 9: %v %v; want %v", got, err, want)
	}
	for i := 3; i < 4*40*10; i += 4 { // the upper third is transparent, and has another colour
		img.Pix[i], img.Pix[i-1] = 0, 255-img.Pix[i-1]
	}
	if got, err := find(9); err != nil || got != want {
		t.Errorf("with a transparent part: %v %v; want %v", got, err, want)
	}
}

func TestInRefuses(t *testing.T) {
	p := screen(100, 80, image.Point{})
	flat := image.NewNRGBA(image.Rect(0, 0, 10, 10))
	for i := range flat.Pix {
		flat.Pix[i] = 255
	}
	template, err := New(flat)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := template.In(p, p.Area, 10); err == nil || !strings.Contains(err.Error(), "contrast") {
		t.Errorf("a flat picture: %v", err)
	}
	template, err = New(cut(screen(200, 100, image.Point{}), image.Rect(0, 0, 150, 20)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := template.In(p, p.Area, 10); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a large picture: %v", err)
	}
	for name, content := range map[string][]byte{"nothing": nil, "text": []byte("hello"), "much": make([]byte, MaxBytes+1)} {
		if _, err := Read(content); err == nil {
			t.Errorf("%s is a template", name)
		}
	}
}

// A screen of one colour with a template of almost that colour is the slowest search; it is
// bounded, and ends with advice.
func TestInIsBounded(t *testing.T) {
	p := &visual.Picture{Area: image.Rect(0, 0, 2000, 1000), Pix: make([]uint32, 2000*1000)}
	img := image.NewNRGBA(image.Rect(0, 0, 400, 400))
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 255
	}
	for i := range 399 { // one line at the bottom, below the limit of wrong pixels
		img.Pix[4*(399*400+i)] = 255
	}
	template, err := New(img)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := template.In(p, p.Area, 10); err == nil || !strings.Contains(err.Error(), "too many places") {
		t.Errorf("a monotonous screen: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := png.Encode(&b, cut(screen(20, 20, image.Point{}), image.Rect(0, 0, 8, 8))); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	p := screen(40, 30, image.Point{})
	f.Fuzz(func(t *testing.T, content []byte) {
		defer testlab.Input(t)()
		template, err := Read(content)
		if err != nil {
			return
		}
		if m, err := template.In(p, p.Area, 24); err == nil && !m.Area.In(p.Area) {
			t.Errorf("found at %v, outside %v", m.Area, p.Area)
		}
	})
}
