package visual

import (
	"image"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"eidetic/internal/lab"
)

// The twin computes the same from the specification's declarative formulas:
// every frame whole, nothing kept from one to the next.
type twin struct {
	Load          []float64
	Changed, Luma []int
	Heat          []uint16
	Progress      []float64
}

func bruteForce(m *film, o Options) twin {
	f := m.format
	p, _ := newPlane(f)
	ignored := func(x, y int) bool {
		for _, r := range o.Ignore {
			if image.Pt(x, y).In(r) {
				return true
			}
		}
		return false
	}
	content := func(i int) (out []code) {
		start, all := codes(f, m.pix[o.Start]), codes(f, m.pix[i])
		for y := o.Content.Min.Y; y < o.Content.Max.Y; y++ {
			for x := o.Content.Min.X; x < o.Content.Max.X; x++ {
				if ignored(x, y) {
					out = append(out, start[y*f.Width+x])
				} else {
					out = append(out, all[y*f.Width+x])
				}
			}
		}
		return out
	}
	total, n := 0, o.Content.Dx()*o.Content.Dy()
	for y := o.Content.Min.Y; y < o.Content.Max.Y; y++ {
		for x := o.Content.Min.X; x < o.Content.Max.X; x++ {
			if !ignored(x, y) {
				total++
			}
		}
	}
	histogramOf := func(cs []code) *histogram {
		h := &histogram{}
		for _, v := range meanScale(cs, o.Content.Size(), thumbSize(o.Content.Size()), p.rgb) {
			h.add([]uint32{v}, 1)
		}
		return h
	}
	first, final := content(o.Start), content(o.End-1)
	hs, hf := histogramOf(first), histogramOf(final)
	w := twin{Heat: make([]uint16, n)}
	before := first
	for i := o.Start; i < o.End; i++ {
		now := content(i)
		equal, changed, large := total-n, 0, 0
		for k := range now {
			if now[k] == final[k] {
				equal++
			}
			if now[k] != before[k] {
				changed++
				w.Heat[k]++
				if math.Abs(float64(luma(p.rgb(now[k]))-luma(p.rgb(before[k])))) >= 5 {
					large++
				}
			}
		}
		w.Load = append(w.Load, 100*float64(equal)/float64(total))
		w.Changed, w.Luma = append(w.Changed, changed), append(w.Luma, large)
		w.Progress = append(w.Progress, progress(histogramOf(now), hs, hf, 0, 0))
		before = now
	}
	return w
}

// meanScale is the area mean by sampling every unit of the common grid.
func meanScale(cs []code, src, dst image.Point, rgb func(code) uint32) []uint32 {
	out := make([]uint32, dst.X*dst.Y)
	for ty := range dst.Y {
		for tx := range dst.X {
			var sum [3]uint64
			for uy := ty * src.Y; uy < (ty+1)*src.Y; uy++ {
				for ux := tx * src.X; ux < (tx+1)*src.X; ux++ {
					v := rgb(cs[uy/dst.Y*src.X+ux/dst.X])
					for c := range sum {
						sum[c] += uint64(v >> (16 - 8*c) & 255)
					}
				}
			}
			for c := range sum {
				area := uint64(src.X * src.Y)
				out[ty*dst.X+tx] |= uint32((sum[c]+area/2)/area) << (16 - 8*c)
			}
		}
	}
	return out
}

// TestTwin: on any film, in any format, with any options, the incremental
// analysis says what the formulas say.
func TestTwin(t *testing.T) {
	formats := []lab.PixelFormat{lab.BGRX, lab.BGR24, lab.Grey, lab.YUYV, lab.UYVY, lab.NV12}
	rapid.Check(t, func(t *rapid.T) {
		f := lab.Format{Pixels: rapid.SampledFrom(formats).Draw(t, "format"), Rate: 60,
			Width: 2 * rapid.IntRange(1, 8).Draw(t, "half width"), Height: rapid.IntRange(1, 12).Draw(t, "height")}
		n := rapid.IntRange(1, 7).Draw(t, "frames")
		var frames [][]byte
		for i := range n {
			pix := make([]byte, f.FrameSize())
			if i > 0 {
				copy(pix, frames[i-1])
			}
			for range rapid.IntRange(0, 3).Draw(t, "edits") {
				at := rapid.IntRange(0, len(pix)-1).Draw(t, "at")
				end := min(at+rapid.IntRange(1, 9).Draw(t, "length"), len(pix))
				value := rapid.Byte().Draw(t, "value")
				for k := at; k < end; k++ {
					pix[k] = value
				}
			}
			frames = append(frames, pix)
		}
		rect := func(label string) image.Rectangle {
			x, y := rapid.IntRange(0, f.Width-1).Draw(t, label+" x"), rapid.IntRange(0, f.Height-1).Draw(t, label+" y")
			return image.Rect(x, y, rapid.IntRange(x+1, f.Width).Draw(t, label+" x1"), rapid.IntRange(y+1, f.Height).Draw(t, label+" y1"))
		}
		o := Options{Content: rect("content"), Baseline: BaselineStart}
		o.Start = rapid.IntRange(0, n-1).Draw(t, "start")
		o.End = rapid.IntRange(o.Start+1, n).Draw(t, "end")
		for range rapid.IntRange(0, 2).Draw(t, "ignored") {
			o.Ignore = append(o.Ignore, rect("ignore"))
		}
		m := newFilm(f, frames...)
		for i := range m.infos { // regions may cover more, and overlap
			if len(m.infos[i].Changed) > 0 && rapid.Bool().Draw(t, "more") {
				m.infos[i].Changed = append(m.infos[i].Changed, rect("more"))
			}
		}
		if left := subtractAll(o.Content, o.Ignore); left == 0 {
			return
		}
		r, err := Analyze(m, o)
		if err != nil {
			t.Fatal(err)
		}
		got := twin{r.LoadHistogram, r.Changed, r.LumaChanged, r.Heat.Counts, r.Progress}
		if d := cmp.Diff(bruteForce(m, o), got); d != "" {
			t.Fatal("-formulas +analysis\n", d)
		}
	})
}

func subtractAll(area image.Rectangle, ignore []image.Rectangle) (left int) {
	rs := []image.Rectangle{area}
	for _, r := range ignore {
		rs = subtract(rs, r)
	}
	for _, r := range rs {
		left += r.Dx() * r.Dy()
	}
	return left
}

// TestThumb: after any updates the thumbnail is the mean of what it covers.
func TestThumb(t *testing.T) {
	same := plane{rgb: func(c code) uint32 { return c }, same: true}
	for _, src := range []image.Point{{417, 31}, {1280, 720}, {50, 903}, {400, 400}, {401, 400}, {4001, 3}} {
		th := newThumb(src)
		cs := make([]code, src.X*src.Y)
		stretches := make([]span, src.Y)
		everything(stretches, src.X)
		th.update(cs, stretches, same)
		for i := range 6 {
			x, y := (i*7919)%src.X, (i*104729)%src.Y
			dirty := image.Rect(x, y, min(x+1+i*37, src.X), min(y+1+i*11, src.Y))
			clear(stretches)
			for y := dirty.Min.Y; y < dirty.Max.Y; y++ {
				stretches[y] = span{dirty.Min.X, dirty.Max.X}
				for x := dirty.Min.X; x < dirty.Max.X; x++ {
					cs[y*src.X+x] = code((x*y*31 + i*9973) & 0xffffff)
				}
			}
			th.update(cs, stretches, same)
		}
		// The slow mean takes src.X·src.Y steps a pixel: look at some of them.
		var want histogram
		want.add(th.pix, 1)
		if want != th.hist {
			t.Errorf("%v: the histogram is not that of the thumbnail", src)
		}
		whole := newThumb(src)
		everything(stretches, src.X)
		whole.update(cs, stretches, same)
		if d := cmp.Diff(whole.pix, th.pix); d != "" {
			t.Errorf("%v: updated in parts and at once differ\n%s", src, d)
		}
	}
	small := image.Pt(13, 7)
	cs := make([]code, small.X*small.Y)
	for i := range cs {
		cs[i] = code(i * 0x020305 & 0xffffff)
	}
	th := &thumb{src: small, size: image.Pt(5, 3), pix: make([]uint32, 15), sums: make([]uint64, 15)}
	for ty := range 3 {
		th.scaleRow(cs, ty, 0, 5, same)
	}
	if d := cmp.Diff(meanScale(cs, small, image.Pt(5, 3), same.rgb), th.pix); d != "" {
		t.Error("area mean\n", d)
	}
}
