package visual

import (
	"image"
	"math"
)

// indices computes what Options.Also asks for while the frames go by.
type indices struct {
	r            *Result
	start, final *histogram
	ssim         *ssim
	edges        *edges
	speedline    *speedline
	// Of the frames that differ from the one before, the start frame first:
	times      []float64 // ms, floored, the first is 0
	similarity []float64
	content    []int
}

func newIndices(r *Result, size image.Point, finalPix []uint32, start, final *histogram) *indices {
	x := &indices{r: r, start: start, final: final}
	if r.opts.Also&WPT != 0 {
		r.ProgressWPT = make([]float64, len(r.Times))
	}
	if r.opts.Also&Perceptual != 0 {
		x.ssim = newSSIM(finalPix, size)
	}
	if r.opts.Also&Contentful != 0 {
		x.edges = newEdges(size)
	}
	if r.opts.Also&Speedline != 0 {
		x.speedline = newSpeedline(finalPix, size)
	}
	return x
}

// still takes in a frame that equals the one before.
func (x *indices) still(i int) {
	if x.r.ProgressWPT != nil {
		x.r.ProgressWPT[i] = x.r.ProgressWPT[i-1]
	}
}

// changed takes in the start frame and each frame that differs from the one before.
func (x *indices) changed(i int, t *thumb) {
	if x.r.ProgressWPT != nil {
		x.r.ProgressWPT[i] = progress(&t.hist, x.start, x.final, 5, 4)
	}
	at := max(math.Floor(x.r.Times[i]), 0)
	if i == 0 {
		at = 0
	}
	x.times = append(x.times, at)
	if x.speedline != nil && i > 0 {
		x.speedline.add(max(x.r.Times[i], 0), t.pix, t.dirty)
	}
	if x.ssim != nil {
		x.similarity = append(x.similarity, x.ssim.index(t.pix, t.dirty))
	}
	if x.edges != nil {
		x.content = append(x.content, x.edges.count(t.pix, t.dirty))
	}
}

func (x *indices) finish() {
	if x.r.ProgressWPT != nil {
		x.r.SpeedIndexWPT = SpeedIndex(x.r.Times, x.r.ProgressWPT)
	}
	if x.ssim != nil {
		x.r.PerceptualIndex = perceptual(x.times, x.similarity)
	}
	if x.speedline != nil {
		x.r.SpeedlineIndex, x.r.SpeedlinePerceptual = x.speedline.indices()
	}
	if x.edges != nil {
		x.r.ContentfulIndex = contentful(x.times, x.content)
	}
}

// perceptual is browsertime's Perceptual Speed Index in ms, truncated: the time
// of the first change, and from there on the area above the curve of
// similarity with the final frame. times and similarity are of the frames
// that differ from the one before them; times[0] is the start.
func perceptual(times, similarity []float64) float64 {
	if len(times) < 2 {
		return 0
	}
	sum := times[1]
	for k := 2; k < len(times); k++ {
		sum += float64((times[k] - times[k-1]) * (1 - similarity[k-1]))
	}
	return math.Trunc(sum)
}

// contentful is browsertime's Contentful Speed Index in ms, truncated: content
// is counted in edge pixels relative to the frame with the most of them, and an
// interval is weighed by the frame that ends it, as the peer does.
func contentful(times []float64, content []int) float64 {
	if len(times) < 2 {
		return 0
	}
	most := 0
	for _, n := range content[1:] {
		most = max(most, n)
	}
	sum := times[1] - times[0]
	for k := 2; k < len(times); k++ {
		share := 0.0
		if most > 0 {
			share = float64(content[k]) / float64(most)
		}
		sum += float64((times[k] - times[k-1]) * (1 - share))
	}
	return math.Trunc(sum)
}
