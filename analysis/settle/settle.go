// Package settle finds the frame from which a screen is stable, in three ways: by
// changed pixels (Eideticker's 2048 and 4096, or any number with a tolerance), by the
// entropy rule with which Eideticker judged cameras in 2013, and by a detector for
// cameras of our own. Each returns its curve, so that a person can look at what it saw.
package settle

import (
	"fmt"
	"image"
	"math"
	"slices"

	"eidetic/analysis/stats"
	"eidetic/analysis/visual"
)

// ByPixels is the frame after the last one with more than most changed pixels (by
// luma), −1 if that is the last frame. It is the first frame if none has.
func ByPixels(c *visual.Curves, region, most int) int {
	last := -1
	for i, n := range c.Regions[region].LumaChanged {
		if n > most {
			last = i
		}
	}
	return after(c.Start, last, len(c.Regions[region].LumaChanged))
}

func after(start, last, n int) int {
	if last+1 >= n && last >= 0 {
		return -1
	}
	return start + last + 1
}

// Options says which part of a recording is looked at.
type Options struct {
	Start, End int               // frames; zero End: all
	Area       image.Rectangle   // empty: the whole frame
	Ignore     []image.Rectangle // is black in every frame
}

// Curve is what a rule saw in each frame from Start on.
type Curve struct {
	Start  int
	Values []float64
	// Limit is what a value has to exceed to count as change.
	Limit  float64
	Stable int // the frame after the last that exceeds it, −1 for none
}

// EntropyLimit is the threshold of the published rule.
const EntropyLimit = 0.05

// Entropy is Eideticker's rule of 2013 for cameras: the entropy, in bits, of a frame's
// histogram of 768 bins (256 each of R, G and B) is compared with the mean of it and the
// 5 frames before. Its code divides by 6, so 0.05 there is 0.06 of a true mean of 5.
func Entropy(frames visual.Frames, o Options) (*Curve, error) {
	w, err := newWalk(frames, o)
	if err != nil {
		return nil, fmt.Errorf("entropy: %w", err)
	}
	var entropies []float64
	err = w.each(func(rows func(func([]uint32))) {
		var bins [768]int
		n := 0
		rows(func(row []uint32) {
			for _, c := range row {
				v := w.access.RGB(c)
				bins[v>>16&255]++
				bins[256+v>>8&255]++
				bins[512+v&255]++
			}
			n += 3 * len(row)
		})
		e := 0.0
		for _, b := range bins {
			if b > 0 {
				p := float64(b) / float64(n)
				e -= float64(p * math.Log2(p))
			}
		}
		entropies = append(entropies, e)
	}, func() { entropies = append(entropies, entropies[len(entropies)-1]) })
	if err != nil {
		return nil, fmt.Errorf("entropy: %w", err)
	}
	const before = 5
	c := &Curve{Start: w.o.Start, Limit: EntropyLimit, Values: make([]float64, len(entropies))}
	last := -1
	for i := before; i < len(entropies); i++ {
		sum := 0.0
		for _, e := range entropies[i-before : i+1] {
			sum += e
		}
		c.Values[i] = math.Abs(entropies[i] - sum/(before+1))
		if c.Values[i] > c.Limit {
			last = i
		}
	}
	c.Stable = after(c.Start, last, len(entropies))
	return c, nil
}

// walk reads the frames that may have changed.
type walk struct {
	frames visual.Frames
	access visual.Access
	o      Options
}

func newWalk(frames visual.Frames, o Options) (*walk, error) {
	f := frames.Format()
	if o.End == 0 {
		o.End = frames.Len()
	}
	if o.Start < 0 || o.Start >= o.End || o.End > frames.Len() {
		return nil, fmt.Errorf("frames %d … %d of a recording of %d: start must be before end and both inside", o.Start, o.End-1, frames.Len())
	}
	if o.Area.Empty() {
		o.Area = f.Bounds()
	}
	if !o.Area.In(f.Bounds()) {
		return nil, fmt.Errorf("the area %v is not inside the frame %v", o.Area, f.Bounds())
	}
	access, err := visual.NewAccess(f)
	return &walk{frames, access, o}, err
}

func (w *walk) each(frame func(rows func(func([]uint32))), same func()) error {
	row := make([]uint32, w.o.Area.Dx())
	black := uint32(0)
	if w.access.RGB(black) != 0 {
		black = 0x108080 // in Y, U, V
	}
	for i := w.o.Start; i < w.o.End; i++ {
		if i > w.o.Start && len(w.frames.Info(i).Changed) == 0 {
			same()
			continue
		}
		pix, err := w.access.Read(w.frames, i)
		if err != nil {
			return fmt.Errorf("frame %d: %w", i, err)
		}
		frame(func(visit func([]uint32)) {
			for y := w.o.Area.Min.Y; y < w.o.Area.Max.Y; y++ {
				w.access.Row(row, pix, y, w.o.Area.Min.X)
				for _, r := range w.o.Ignore {
					if r = r.Intersect(w.o.Area).Sub(w.o.Area.Min); y-w.o.Area.Min.Y >= r.Min.Y && y-w.o.Area.Min.Y < r.Max.Y {
						for x := r.Min.X; x < r.Max.X; x++ {
							row[x] = black
						}
					}
				}
				visit(row)
			}
		})
	}
	return nil
}

// Cells of the camera's detector: enough to see a line of text appear, large enough that the
// noise of a thousand pixels averages out.
const (
	cellsAcross = 48
	cellsDown   = 36
	settledFor  = 30   // frames at the end from which the final picture and the noise are taken
	flicker     = 0.12 // of brightness, from row to row and frame to frame
	slowReach   = 7    // frames before and after, of which exposure is the median
	leastStep   = 1.2  // grey levels of a cell's mean
	sigmas      = 7.0
)

// Camera finds the stable frame of a camera's recording. The picture is reduced to the
// means of 48 × 36 cells, and each frame is held against the mean of the last 30. What
// makes a camera's picture move without its subject moving is taken out: exposure that
// drifts, by the median ratio of all cells over 15 frames; flicker of the light, which
// runs through the rows of a rolling shutter, by the median ratio of each row of cells
// up to 12 %; noise, by a limit of seven times each cell's own deviation at the end.
// A vignette is in both and cancels. The value of a frame is that of the cell that exceeds
// its limit the most, in limits.
func Camera(frames visual.Frames, o Options) (*Curve, error) {
	w, err := newWalk(frames, o)
	if err != nil {
		return nil, fmt.Errorf("camera: %w", err)
	}
	nx, ny := min(cellsAcross, w.o.Area.Dx()), min(cellsDown, w.o.Area.Dy())
	var pictures [][]float64
	counts := make([]float64, nx*ny)
	err = w.each(func(rows func(func([]uint32))) {
		cells := make([]float64, nx*ny)
		clear(counts)
		y := 0
		rows(func(row []uint32) {
			at := y * ny / w.o.Area.Dy() * nx
			for x, c := range row {
				k := at + x*nx/len(row)
				cells[k] += float64(w.access.Luma(c))
				counts[k]++
			}
			y++
		})
		for k := range cells {
			cells[k] /= counts[k]
		}
		pictures = append(pictures, cells)
	}, func() { pictures = append(pictures, pictures[len(pictures)-1]) })
	if err != nil {
		return nil, fmt.Errorf("camera: %w", err)
	}
	return judge(pictures, nx, w.o.Start), nil
}

// judge takes out exposure and flicker, and finds the last frame that differs.
func judge(pictures [][]float64, nx, start int) *Curve {
	n := len(pictures)
	c := &Curve{Start: start, Limit: 1, Values: make([]float64, n)}
	tail := pictures[max(n-settledFor, 0):]
	cells := len(pictures[0])
	final := make([]float64, cells)
	for _, p := range tail {
		for k, v := range p {
			final[k] += v / float64(len(tail))
		}
	}
	gains := make([]float64, n)
	for i, p := range pictures {
		gains[i] = ratio(p, final)
	}
	slow := make([]float64, n)
	for i := range slow {
		slow[i] = stats.Median(slices.Clone(gains[max(i-slowReach, 0):min(i+slowReach+1, n)]))
	}
	rest := make([][]float64, n)
	for i, p := range pictures {
		rest[i] = residual(p, final, nx, slow[i])
	}
	limits := make([]float64, cells)
	for k := range limits {
		sum := 0.0
		for _, r := range rest[max(n-settledFor, 0):] {
			sum += r[k] * r[k]
		}
		limits[k] = max(sigmas*math.Sqrt(sum/float64(len(tail))), leastStep)
	}
	last := -1
	for i, r := range rest {
		for k, v := range r {
			c.Values[i] = max(c.Values[i], math.Abs(v)/limits[k])
		}
		if c.Values[i] > c.Limit {
			last = i
		}
	}
	c.Stable = after(start, last, n)
	return c
}

// residual is what is left of a picture's difference from the final one.
func residual(p, final []float64, nx int, slow float64) []float64 {
	out := make([]float64, len(p))
	for at := 0; at < len(p); at += nx {
		gain := ratio(p[at:at+nx], final[at:at+nx])
		if math.Abs(gain/slow-1) > flicker {
			gain = slow
		}
		for k := at; k < at+nx; k++ {
			out[k] = p[k] - gain*final[k]
		}
	}
	return out
}

// ratio is the median over cells of how much brighter one picture is than another; dark
// cells tell nothing.
func ratio(p, final []float64) float64 {
	var r []float64
	for k, v := range p {
		if final[k] >= 8 && v > 0 {
			r = append(r, v/final[k])
		}
	}
	if len(r) == 0 {
		return 1
	}
	return stats.Median(r)
}
