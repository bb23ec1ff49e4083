package visual

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"
	"time"

	"eidetic/internal/lab"
)

// withDefaults fills in the zero values and checks the rest against the recording.
func (o Options) withDefaults(f lab.Format, n int) (Options, error) {
	if o.End == 0 {
		o.End = n
	}
	if o.Start < 0 || o.Start >= o.End || o.End > n {
		return o, fmt.Errorf("frames %d … %d of a recording of %d: start must be before end and both inside", o.Start, o.End-1, n)
	}
	if o.Content.Empty() {
		o.Content = f.Bounds()
	}
	if !o.Content.In(f.Bounds()) {
		return o, fmt.Errorf("the content area %v is not inside the frame %v", o.Content, f.Bounds())
	}
	if o.Origin.Latest < o.Origin.Earliest {
		return o, fmt.Errorf("origin %q: latest is %v before earliest", o.Origin.Name, o.Origin.Earliest.Sub(o.Origin.Latest))
	}
	return o, nil
}

func analyze(frames Frames, o Options) (*Result, error) {
	f := frames.Format()
	o, err := o.withDefaults(f, frames.Len())
	if err != nil {
		return nil, fmt.Errorf("analyse: %w", err)
	}
	s, err := newScreen(f, o.Content, o.Ignore)
	if err != nil {
		return nil, fmt.Errorf("analyse: %w", err)
	}
	s.tolerance = o.Tolerance
	if o.End, err = s.contentEnd(frames, o); err != nil {
		return nil, fmt.Errorf("analyse %w", err)
	}
	for _, ends := range []struct {
		frame int
		dst   []code
	}{{o.End - 1, s.final}, {o.Start, s.cur}} {
		pix, err := frames.Pixels(ends.frame)
		if err != nil {
			return nil, fmt.Errorf("analyse frame %d: %w", ends.frame, err)
		}
		if err := s.read(ends.dst, pix); err != nil {
			return nil, fmt.Errorf("analyse frame %d: %w", ends.frame, err)
		}
	}
	final := finalHash(s, o.Drawn.Sub(o.Content.Min))
	s.start()

	r := newResult(f, o, frames)
	r.FinalSHA256 = final
	r.Ground, r.Odd = s.ground()
	sync := o.Sync
	if sync == (color.RGBA{}) {
		sync = lab.SyncGreen()
	}
	startsAtSync := s.shows(sync)
	if r.Baseline == BaselineAuto {
		r.Baseline = BaselineStart
		if startsAtSync {
			r.Baseline = BaselineWhite
		}
	}
	flat := s.flat
	if startsAtSync {
		s.learnUneven(sync)
		flat = func() bool { return s.flat() || s.flatBesides(sync) }
	}
	if err := r.walk(frames, s, flat); err != nil {
		return nil, fmt.Errorf("analyse %w", err)
	}
	r.Heat = Heat{Area: o.Content, Counts: s.heat}
	r.summarise()
	return r, nil
}

func newResult(f lab.Format, o Options, frames Frames) *Result {
	n := o.End - o.Start
	r := &Result{
		Format: f, Content: o.Content, Start: o.Start, End: o.End, Origin: o.Origin, Baseline: o.Baseline,
		Times: make([]float64, n), LoadHistogram: make([]float64, n), Progress: make([]float64, n),
		Changed: make([]int, n), LumaChanged: make([]int, n),
		FirstChange: -1, LastChange: -1, FirstContent: -1, Stable: -1,
		infos: make([]frameTime, n), opts: o,
	}
	if r.Origin == (lab.Event{}) {
		t := frames.Info(o.Start).Time
		r.Origin = lab.Event{Name: "start frame", Earliest: t, Latest: t}
	}
	for i := range r.Times {
		info := frames.Info(o.Start + i)
		r.infos[i] = frameTime{info.Time, info.Uncertainty, info.Flags&lab.FrameLook != 0}
		r.Times[i] = milliseconds(info.Time.Sub(r.middle()))
		if i > 0 {
			if before := frames.Info(o.Start + i - 1).Seq; info.Seq > before+1 {
				r.Lost += int(info.Seq - before - 1)
			}
		}
	}
	return r
}

// middle is the best single value for the origin.
func (r *Result) middle() lab.Time {
	return r.Origin.Earliest + (r.Origin.Latest-r.Origin.Earliest)/2
}

// walk reads the frames after the start frame in order and fills in the curves. flat tells a screen without content.
func (r *Result) walk(frames Frames, s *screen, flat func() bool) error {
	size := s.area.Size()
	everything(s.dirty, size.X)
	t := newThumb(size)
	t.update(s.final, s.dirty, s.plane)
	final := t.hist
	finalPix := slices.Clone(t.pix)
	t.update(s.cur, s.dirty, s.plane)
	var start histogram // white: nothing is counted
	if r.Baseline == BaselineStart {
		start = t.hist
	}
	also := newIndices(r, t.size, finalPix, &start, &final)
	for i := range r.Times {
		frame := r.Start + i
		if info := frames.Info(frame); i > 0 && len(info.Changed) > 0 {
			pix, err := frames.Pixels(frame)
			if err != nil {
				return fmt.Errorf("frame %d: %w", frame, err)
			}
			c, err := s.apply(pix, info.Changed)
			if err != nil {
				return fmt.Errorf("frame %d: %w", frame, err)
			}
			t.update(s.cur, s.dirty, s.plane)
			r.Changed[i], r.LumaChanged[i] = c.pixels, c.luma
			r.fresh, r.freshMS = r.fresh+c.fresh, r.freshMS+float64(float64(c.fresh)*r.Times[i])
		}
		r.LoadHistogram[i] = 100 * float64(s.equal) / float64(s.pixels)
		if i > 0 && r.Changed[i] == 0 {
			r.Progress[i] = r.Progress[i-1]
			also.still(i)
			continue
		}
		also.changed(i, t)
		r.Progress[i] = progress(&t.hist, &start, &final, 0, 0)
		if i > 0 && r.FirstContent < 0 && !flat() {
			r.FirstContent = frame
		}
	}
	also.finish()
	if s.equal != s.pixels {
		return fmt.Errorf("frames %d … %d: the changed regions do not lead to the final frame (%d of %d pixels differ): the recording's "+
			"index and pixels disagree, check it with: appliance reel verify",
			r.Start, r.End-1, s.pixels-s.equal, s.pixels)
	}
	return nil
}

// summarise derives the single numbers from the curves.
func (r *Result) summarise() {
	lastLarge := r.Start - 1
	for i := 1; i < len(r.Times); i++ {
		if r.Changed[i] > 0 {
			if r.FirstChange < 0 {
				r.FirstChange = r.Start + i
			}
			r.LastChange = r.Start + i
		}
		if r.LumaChanged[i] > stablePixels {
			lastLarge = r.Start + i
		}
		if r.unique(i) {
			r.Unique++
		}
	}
	if lastLarge+1 < r.End {
		r.Stable = lastLarge + 1
	}
	r.SpeedIndex = SpeedIndex(r.Times, r.Progress)
	r.Complete = map[int]int{}
	for _, c := range r.opts.completeness() {
		r.Complete[c.percent] = -1
		for i := len(r.Progress) - 1; i >= 0 && r.Progress[i] >= float64(c.percent); i-- {
			r.Complete[c.percent] = r.Start + i
		}
	}
}

func (r *Result) unique(i int) bool {
	if r.opts.UniquePixels > 0 {
		return r.LumaChanged[i] >= r.opts.UniquePixels
	}
	return r.Changed[i] > 0
}

// UniqueRate is the rate of unique frames in frames per second while the
// screen was changing: unique frames from the first visual change fs up to,
// and without, the last one fn, ÷ (fn − fs), as the specification has it. It
// is false where nothing changed twice.
func (r *Result) UniqueRate() (float64, bool) {
	first, last, n := -1, -1, 0
	for i := 1; i < len(r.Times); i++ {
		if r.unique(i) {
			if first < 0 {
				first = i
			}
			last = i
			n++
		}
	}
	if n < 2 || r.infos[last].time <= r.infos[first].time {
		return 0, false
	}
	return float64(n-1) / r.infos[last].time.Sub(r.infos[first].time).Seconds(), true
}

// SpeedIndex is browsertime's: the area above the progress curve in ms,
// truncated. Times are in ms and floored, the first is taken as 0; progress is
// in percent. Negative times (before the origin) count as 0.
func SpeedIndex(times, progress []float64) float64 {
	sum, last := 0.0, 0.0
	for i := 1; i < len(times); i++ {
		t := max(math.Floor(times[i]), 0)
		sum += float64((t - last) * (1 - progress[i-1]/100))
		last = t
	}
	return math.Trunc(sum)
}

// shows says whether the content has the colour.
func (s *screen) shows(c color.RGBA) bool {
	n := 0
	for _, v := range s.cur {
		if isNear(s.plane.rgb(v), c) {
			n++
		}
	}
	return isFilled(n, len(s.cur))
}

// finalHash is the SHA-256 of the final frame's content as BGRX, the whole of
// it: what is ignored elsewhere still makes two final frames differ. What was drawn by us is
// black in it.
func finalHash(s *screen, drawn image.Rectangle) string {
	h := sha256.New()
	row := make([]byte, 4*s.area.Dx())
	for at := 0; at < len(s.final); at += s.area.Dx() {
		for x, v := range s.final[at:][:s.area.Dx()] {
			p := s.plane.rgb(v)
			if !drawn.Empty() && image.Pt(x, at/s.area.Dx()).In(drawn) {
				p = 0
			}
			row[4*x], row[4*x+1], row[4*x+2] = byte(p), byte(p>>8), byte(p>>16)
		}
		h.Write(row)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
