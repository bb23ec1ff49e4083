package video

import (
	"fmt"
	"image"
	"slices"

	"eidetic/internal/lab"
)

// pairGap is the space between two recordings side by side, in pixels.
const pairGap = 8

// pair shows two recordings side by side, aligned at a frame of each.
type pair struct {
	a, b   Frames
	format lab.Format
	steps  []step
	canvas *image.RGBA
	pix    []byte
	shown  [2]int
}

// step is one frame of a pair: which frame of each is on the screen.
type step struct {
	at     lab.Time // since the alignment
	frames [2]int
}

// SideBySide returns the recordings a and b beside each other, a on the left,
// so that frame startA of a and startB of b coincide and come first. It has a frame
// wherever one of them has one; when one ends before the other, its last picture
// stays. The result is BGRX, and is not safe for use by several goroutines.
func SideBySide(a Frames, startA int, b Frames, startB int) (Frames, error) {
	if err := starts(a, startA, b, startB); err != nil {
		return nil, fmt.Errorf("side by side: %w", err)
	}
	fa, fb := a.Format(), b.Format()
	p := &pair{a: a, b: b, shown: [2]int{-1, -1}, format: lab.Format{
		Pixels: lab.BGRX, Width: fa.Width + pairGap + fb.Width, Height: max(fa.Height, fb.Height), Rate: max(fa.Rate, fb.Rate),
	}}
	if err := p.format.Validate(); err != nil {
		return nil, fmt.Errorf("side by side: %w", err)
	}
	p.merge(startA, startB)
	p.canvas = image.NewRGBA(p.format.Bounds())
	p.pix = make([]byte, p.format.FrameSize())
	for i := range p.pix {
		p.pix[i] = 0x60 // the gap, and what is below the lower picture
	}
	return p, nil
}

// starts checks the frames at which two recordings are aligned.
func starts(a Frames, startA int, b Frames, startB int) error {
	for _, s := range []struct {
		f     Frames
		start int
	}{{a, startA}, {b, startB}} {
		if s.start < 0 || s.start >= s.f.Len() {
			return fmt.Errorf("frame %d is not among 0 … %d", s.start, s.f.Len()-1)
		}
	}
	return nil
}

// differing shows where two recordings differ over time.
type differing struct{ pair }

// Differences returns a recording that shows at each instant where the frame of b
// differs from that of a, as [Difference] draws it, aligned as in [SideBySide].
// Both must have one size. The result is BGRX, and is not safe for use by several
// goroutines.
func Differences(a Frames, startA int, b Frames, startB int) (Frames, error) {
	if err := starts(a, startA, b, startB); err != nil {
		return nil, fmt.Errorf("differences: %w", err)
	}
	fa, fb := a.Format(), b.Format()
	if fa.Bounds() != fb.Bounds() {
		return nil, fmt.Errorf("differences: pictures of %v and %v", fa.Bounds().Size(), fb.Bounds().Size())
	}
	d := &differing{pair{a: a, b: b, format: lab.Format{Pixels: lab.BGRX, Width: fa.Width, Height: fa.Height, Rate: max(fa.Rate, fb.Rate)}}}
	d.merge(startA, startB)
	d.pix = make([]byte, d.format.FrameSize())
	return d, nil
}

// Info says that all may have changed: what differs is known when it is drawn.
func (d *differing) Info(n int) lab.FrameInfo {
	info := d.pair.Info(n)
	if len(info.Changed) > 0 {
		info.Changed = []image.Rectangle{d.format.Bounds()}
	}
	return info
}

// Pixels draws the difference.
func (d *differing) Pixels(n int) ([]byte, error) {
	img, _, err := Difference(d.a, d.steps[n].frames[0], d.b, d.steps[n].frames[1])
	if err != nil {
		return nil, err
	}
	toBGRX(d.pix, d.format, img, img.Rect)
	return d.pix, nil
}

// merge builds the common timeline. Frames closer than half a period fall together.
func (p *pair) merge(i, j int) {
	zeroA, zeroB := p.a.Info(i).Time, p.b.Info(j).Time
	half := lab.Time(0.5e9 / p.format.Rate)
	p.steps = append(p.steps, step{0, [2]int{i, j}})
	for {
		moreA, moreB := i+1 < p.a.Len(), j+1 < p.b.Len()
		if !moreA && !moreB {
			return
		}
		var ta, tb lab.Time
		if moreA {
			ta = p.a.Info(i+1).Time - zeroA
		}
		if moreB {
			tb = p.b.Info(j+1).Time - zeroB
		}
		switch {
		case moreA && (!moreB || ta < tb-half):
			i++
			p.steps = append(p.steps, step{ta, [2]int{i, j}})
		case moreB && (!moreA || tb < ta-half):
			j++
			p.steps = append(p.steps, step{tb, [2]int{i, j}})
		default:
			i++
			j++
			p.steps = append(p.steps, step{min(ta, tb), [2]int{i, j}})
		}
	}
}

func (p *pair) Format() lab.Format { return p.format }
func (p *pair) Len() int           { return len(p.steps) }

// Info returns the changes of both, moved to their places.
func (p *pair) Info(n int) lab.FrameInfo {
	s := p.steps[n]
	info := lab.FrameInfo{Seq: uint64(n), Time: s.at}
	if n == 0 {
		info.Changed = []image.Rectangle{p.format.Bounds()}
		return info
	}
	if s.frames[0] != p.steps[n-1].frames[0] {
		info.Changed = slices.Clone(p.a.Info(s.frames[0]).Changed)
	}
	if s.frames[1] != p.steps[n-1].frames[1] {
		for _, r := range p.b.Info(s.frames[1]).Changed {
			info.Changed = append(info.Changed, r.Add(image.Pt(p.a.Format().Width+pairGap, 0)))
		}
	}
	return info
}

// Pixels draws the two pictures, those that are not there yet.
func (p *pair) Pixels(n int) ([]byte, error) {
	at := 0
	for k, f := range []Frames{p.a, p.b} {
		want := p.steps[n].frames[k]
		if p.shown[k] != want {
			if err := p.draw(f, want, at); err != nil {
				return nil, fmt.Errorf("side by side: %w", err)
			}
			p.shown[k] = want
		}
		at = p.a.Format().Width + pairGap
	}
	return p.pix, nil
}

func (p *pair) draw(f Frames, i, at int) error {
	pix, err := f.Pixels(i)
	if err != nil {
		return err
	}
	bounds := f.Format().Bounds()
	if err := ToRGBA(p.canvas, f.Format(), pix, bounds); err != nil {
		return err
	}
	for y := range bounds.Dy() {
		in := p.canvas.Pix[p.canvas.PixOffset(0, y):][:4*bounds.Dx()]
		out := p.pix[4*(y*p.format.Width+at):][:4*bounds.Dx()]
		for k := 0; k < len(in); k += 4 {
			out[k], out[k+1], out[k+2], out[k+3] = in[k+2], in[k+1], in[k], 0
		}
	}
	return nil
}
