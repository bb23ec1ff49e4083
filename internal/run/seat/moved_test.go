package seat

import (
	"bytes"
	"context"
	"image"
	"image/draw"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/drive"
)

// scripted is a source of the frames that a test gives it.
type scripted struct {
	format lab.Format
	frames chan []byte
	n      int
}

func (s *scripted) Format() lab.Format { return s.format }
func (s *scripted) Close() error       { return nil }

func (s *scripted) Next(ctx context.Context) (f lab.Frame, err error) {
	select {
	case f.Pix = <-s.frames:
	case <-ctx.Done():
		return f, ctx.Err()
	}
	s.n++
	f.Time, f.Changed = lab.Time(s.n), []image.Rectangle{s.format.Bounds()}
	return f, nil
}

// someColours are few enough for parts that are exact.
const someColours = 128

// page is a frame of some colours.
type page struct {
	pix  []byte
	size image.Point
}

func (p *page) fill(r image.Rectangle, c byte) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			p.pix[4*(y*p.size.X+x)] = c % someColours
		}
	}
}

// scroll moves what a part shows, and draws what comes into it.
func (p *page) scroll(t *rapid.T, r image.Rectangle, by int) {
	old := bytes.Clone(p.pix)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		if from := y + by; from >= r.Min.Y && from < r.Max.Y {
			copy(p.pix[4*(y*p.size.X+r.Min.X):4*(y*p.size.X+r.Max.X)], old[4*(from*p.size.X+r.Min.X):])
		} else {
			p.fill(image.Rect(r.Min.X, y, r.Max.X, y+1), rapid.Byte().Draw(t, "new row"))
		}
	}
}

// TestMovesAreExact: whatever scrolls and changes on a screen, and however many of its pictures each of two people
// misses, what they see is what it showed.
func TestMovesAreExact(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	rapid.Check(t, func(t *rapid.T) {
		size := image.Pt(rapid.IntRange(40, 200).Draw(t, "width"), rapid.IntRange(40, 200).Draw(t, "height"))
		part := func(what string) image.Rectangle {
			x, y := rapid.IntRange(0, size.X-33).Draw(t, what+" x"), rapid.IntRange(0, size.Y-33).Draw(t, what+" y")
			return image.Rect(x, y, rapid.IntRange(x+32, size.X).Draw(t, what+" to x"), rapid.IntRange(y+32, size.Y).Draw(t, what+" to y"))
		}
		src := &scripted{lab.Format{Pixels: lab.BGRX, Width: size.X, Height: size.Y, Rate: 60}, make(chan []byte), 0}
		screen := drive.Watch(ctx, src)
		defer screen.Close()
		p := page{make([]byte, 4*size.X*size.Y), size}
		for y := range size.Y { // no two rows are alike
			for x := range size.X {
				p.pix[4*(y*size.X+x)] = byte(y*(x%5+1)) % someColours
			}
		}
		seat := &Seat{}
		shown, seen := [2]*image.RGBA{}, [2]int{}
		var frames [][]byte
		for n := range rapid.IntRange(2, 12).Draw(t, "frames") {
			if n > 0 && rapid.IntRange(0, 3).Draw(t, "scrolls") > 0 {
				r := part("scrolled")
				p.scroll(t, r, rapid.IntRange(-r.Dy()/3, r.Dy()/3).Draw(t, "by"))
			}
			if rapid.Bool().Draw(t, "changes") {
				p.fill(part("changed"), rapid.Byte().Draw(t, "colour"))
			}
			p.pix[1] = byte(n) // each frame is another one
			frames = append(frames, bytes.Clone(p.pix))
			src.frames <- frames[n]
			if _, err := screen.Changed(ctx, n); err != nil {
				t.Fatal(err)
			}
			for who := range shown {
				if n > 0 && rapid.Bool().Draw(t, "misses") {
					continue
				}
				if rapid.Bool().Draw(t, "later") { // than that another's update serves
					seat.newest.made = time.Time{}
				}
				u, count, err := seat.update(screen, seen[who])
				if err != nil {
					t.Fatal(err)
				}
				if shown[who] == nil {
					shown[who] = image.NewRGBA(image.Rectangle{Max: size})
				}
				apply(t, shown[who], u)
				seen[who] = count
				if got := shown[who].Pix; !bytes.Equal(got, rgbaOf(frames[count-1])) {
					t.Fatalf("%d sees another picture than the screen's %d after %+v and %d parts", who, count, u.Move, len(u.Parts))
				}
			}
		}
	})
}

// TestScrolledIsMoved: of a screen that was scrolled by ten rows, all but what came into it is moved.
func TestScrolledIsMoved(t *testing.T) {
	size, by := image.Pt(100, 90), 10
	src := &scripted{lab.Format{Pixels: lab.BGRX, Width: size.X, Height: size.Y, Rate: 60}, make(chan []byte), 0}
	screen := drive.Watch(t.Context(), src)
	defer screen.Close()
	p := page{make([]byte, 4*size.X*size.Y), size}
	for y := range size.Y {
		p.fill(image.Rect(0, y, size.X, y+1), byte(y))
		p.fill(image.Rect(y, y, y+1, y+1), byte(y+1)) // no row has one colour
	}
	first := bytes.Clone(p.pix)
	copy(p.pix, first[4*by*size.X:])
	seat, seen := &Seat{}, 0
	for n, frame := range [][]byte{first, p.pix} {
		src.frames <- frame
		if _, err := screen.Changed(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		seat.newest.made = time.Time{}
		u, count, err := seat.update(screen, seen)
		if err != nil {
			t.Fatal(err)
		}
		if seen = count; n == 1 && (u.Move == nil || u.Move.DY != by) {
			t.Errorf("the update moves %+v; want rows from %d below", u.Move, by)
		}
	}
}

// fataler is a test, also one of drawn values.
type fataler interface{ Fatalf(string, ...any) }

// apply draws an update as a page does.
func apply(t fataler, on *image.RGBA, u lab.LiveUpdate) {
	if m := u.Move; m != nil {
		before := &image.RGBA{Pix: slices.Clone(on.Pix), Stride: on.Stride, Rect: on.Rect}
		if !m.R.Add(image.Pt(m.DX, m.DY)).In(on.Rect) || !m.R.In(on.Rect) {
			t.Fatalf("the move %+v in a picture of %v", m, on.Rect)
		}
		draw.Draw(on, m.R, before, m.R.Min.Add(image.Pt(m.DX, m.DY)), draw.Src)
	}
	for _, p := range u.Parts {
		img, _, err := image.Decode(bytes.NewReader(p.Bytes))
		if err != nil || img.Bounds().Size() != p.Area.Size() {
			t.Fatalf("a part of %v: %v", p.Area, err)
		}
		draw.Draw(on, p.Area, img, image.Point{}, draw.Src)
	}
}

// rgbaOf are the pixels of a BGRX frame.
func rgbaOf(pix []byte) []byte {
	out := make([]byte, len(pix))
	for i := 0; i < len(pix); i += 4 {
		out[i], out[i+1], out[i+2], out[i+3] = pix[i+2], pix[i+1], pix[i], 255
	}
	return out
}
