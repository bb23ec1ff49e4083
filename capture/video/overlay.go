package video

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// Heat draws how often each pixel changed in frames first … last (last 0: the
// last one) over a grey copy of the last frame: blue for once, through yellow to
// red for the most. It returns the largest count too.
func Heat(ctx context.Context, f Frames, first, last int) (*image.RGBA, int, error) {
	first, last, err := span(f, first, last)
	if err != nil {
		return nil, 0, fmt.Errorf("heat map: %w", err)
	}
	format := f.Format()
	if format.Pixels == lab.MJPEG {
		return nil, 0, fmt.Errorf("heat map: MJPEG has no exact changes")
	}
	counts := make([]int, format.Width*format.Height)
	var prev []byte
	for i := first; i <= last; i++ {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		changed := f.Info(i).Changed
		if i > first && len(changed) == 0 {
			continue
		}
		pix, err := f.Pixels(i)
		if err != nil {
			return nil, 0, fmt.Errorf("heat map: %w", err)
		}
		if i == first {
			prev = bytes.Clone(pix)
			continue
		}
		for n, p := range diff.Planes(format) {
			for _, r := range changed {
				count(counts, format, p, n == 0, prev, pix, p.FromPixels(r))
			}
		}
	}
	img, err := Still(f, last)
	if err != nil {
		return nil, 0, fmt.Errorf("heat map: %w", err)
	}
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	for i, n := range counts {
		px := img.Pix[4*i : 4*i+4 : 4*i+4]
		grey := byte((int(px[0])*19 + int(px[1])*37 + int(px[2])*8) >> 6)
		px[0], px[1], px[2] = grey, grey, grey
		if n > 0 {
			c := heatColour(n, most)
			for k, v := range []byte{c.R, c.G, c.B} {
				px[k] = byte((int(px[k]) + 3*int(v)) / 4)
			}
		}
	}
	return img, most, nil
}

// count adds one for every pixel of r that differs, and takes r over into prev.
// Chroma planes are only taken over: luma shows nearly every change.
func count(counts []int, f lab.Format, p diff.Plane, luma bool, prev, pix []byte, r image.Rectangle) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		a, b := p.Row(prev, y, r.Min.X, r.Max.X), p.Row(pix, y, r.Min.X, r.Max.X)
		if bytes.Equal(a, b) {
			continue
		}
		for x := 0; luma && x < r.Dx(); x++ {
			if !bytes.Equal(a[x*p.Unit:(x+1)*p.Unit], b[x*p.Unit:(x+1)*p.Unit]) {
				for k := range p.SX {
					counts[y*f.Width+min((r.Min.X+x)*p.SX+k, f.Width-1)]++
				}
			}
		}
		copy(a, b)
	}
}

// heatColour is the colour of n of at most most.
func heatColour(n, most int) color.RGBA {
	v := 0.0
	if most > 1 {
		v = float64(n-1) / float64(most-1)
	}
	if v < 0.5 { // blue to yellow
		return color.RGBA{byte(510 * v), byte(80 + 350*v), byte(255 - 510*v), 255}
	}
	return color.RGBA{255, byte(255 - 510*(v-0.5)), 0, 255} // to red
}

// Difference shows where frame i of a and frame j of b differ: differing pixels
// red, the stronger the more they differ, over a pale copy of a's. It returns
// the number of pixels that differ. Both must have one size.
func Difference(a Frames, i int, b Frames, j int) (*image.RGBA, int, error) {
	x, err := Still(a, i)
	if err != nil {
		return nil, 0, fmt.Errorf("difference: %w", err)
	}
	y, err := Still(b, j)
	if err != nil {
		return nil, 0, fmt.Errorf("difference: %w", err)
	}
	if x.Rect != y.Rect {
		return nil, 0, fmt.Errorf("difference: pictures of %v and %v", x.Rect.Size(), y.Rect.Size())
	}
	differ := 0
	for k := 0; k < len(x.Pix); k += 4 {
		p, q := x.Pix[k:k+4:k+4], y.Pix[k:k+4:k+4]
		largest := 0
		for c := range 3 {
			largest = max(largest, int(p[c])-int(q[c]), int(q[c])-int(p[c]))
		}
		pale := byte(190 + (int(p[0])+int(p[1])+int(p[2]))/12)
		p[0], p[1], p[2] = pale, pale, pale
		if largest > 0 {
			differ++
			p[0], p[1], p[2] = 255, byte(160-largest*160/255), byte(160-largest*160/255)
		}
	}
	return x, differ, nil
}
