// Package cadence says how steadily a screen moved: unique and repeated frames, their
// rate, the gaps between them, missed refreshes and jank. It works on which frames
// changed, in regions and with thresholds that visual.Changes was given, and on the
// frames' times; no pixels are read here.
//
// It follows the Eideticker specification (unique frames over time), Chromium's
// cc/metrics (jank_metrics.cc; dropped frames in windows of one second) and, for
// percentiles, the type 7 of Hyndman and Fan 1996. docs/metrics.md has the formulas.
package cadence

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"eidetic/internal/lab"
)

// Options says what counts. The zero value takes every changed frame.
type Options struct {
	// Refresh is the screen's refresh period; zero: the period of the recording, measured.
	// A screen of 59.94 Hz filmed at 60 repeats a frame every 17 seconds, which is not a
	// missed refresh: with 1/59.94 s here it does not count as one.
	Refresh time.Duration
	// From and To bound the frames that are looked at, as indices of the curve; zero To: all.
	From, To int
}

// Frame is what is needed of one frame.
type Frame struct {
	Index   int // in the recording
	Time    lab.Time
	Seq     uint64
	Changed bool // it is unique: it differs from the frame before
}

// Stall is a gap in which no new picture came, longer than a frame and a half of
// the pace that the animation had.
type Stall struct {
	Frame   int     `json:"frame"`    // that ended it
	AtMS    float64 `json:"at_ms"`    // since the first frame looked at
	GapMS   float64 `json:"gap_ms"`   // between the two unique frames
	ExtraMS float64 `json:"extra_ms"` // longer than the usual interval
}

// Result is how steadily the region moved between the first and the last change.
type Result struct {
	Frames     int `json:"frames"`     // looked at
	Unique     int `json:"unique"`     // that differ from the one before
	Duplicates int `json:"duplicates"` // between the first and the last unique one
	Lost       int `json:"lost"`       // by sequence numbers

	RefreshMS float64 `json:"refresh_ms"`
	// The following are over the intervals between neighbouring unique frames; there is
	// none with fewer than two of them, and all are 0 then.
	Intervals  []float64 `json:"intervals_ms"`
	SpanMS     float64   `json:"span_ms"`
	FPS        float64   `json:"fps"`         // (unique − 1) ÷ span
	LongestMS  float64   `json:"longest_ms"`  // interval
	LongestAt  int       `json:"longest_at"`  // the frame that ended it
	Missed     int       `json:"missed"`      // refreshes without a new picture
	Jank       int       `json:"jank"`        // Chromium's count
	WorstShare float64   `json:"worst_share"` // % of refreshes missed in the worst second
	Stalls     []Stall   `json:"stalls"`
	// First and Last are the frames of the first and the last change, −1 without any.
	First int `json:"first"`
	Last  int `json:"last"`
}

// Measure looks at the frames of one region, in order.
func Measure(frames []Frame, o Options) (*Result, error) {
	if o.To == 0 {
		o.To = len(frames)
	}
	if o.From < 0 || o.From >= o.To || o.To > len(frames) {
		return nil, fmt.Errorf("frame rate: frames %d … %d of %d: from must be before to and both inside", o.From, o.To-1, len(frames))
	}
	frames = frames[o.From:o.To]
	for i := 1; i < len(frames); i++ {
		if frames[i].Time < frames[i-1].Time {
			return nil, fmt.Errorf("frame rate: frame %d is %v earlier than the frame before it", frames[i].Index,
				frames[i-1].Time.Sub(frames[i].Time))
		}
	}
	r := &Result{Frames: len(frames), First: -1, Last: -1, LongestAt: -1, Stalls: []Stall{}, Intervals: []float64{}}
	for i := 1; i < len(frames); i++ {
		if step := frames[i].Seq - frames[i-1].Seq; frames[i].Seq > frames[i-1].Seq+1 {
			r.Lost += int(step - 1)
		}
	}
	refresh := o.Refresh.Seconds() * 1e3
	if refresh <= 0 {
		refresh = period(frames)
	}
	r.RefreshMS = refresh
	var unique []Frame
	for i, f := range frames {
		if i > 0 && f.Changed { // the first is what the second is compared with
			unique = append(unique, f)
		}
	}
	r.Unique = len(unique)
	if len(unique) == 0 {
		return r, nil
	}
	r.First, r.Last = unique[0].Index, unique[len(unique)-1].Index
	r.Duplicates = r.Last - r.First + 1 - r.Unique
	for i := 1; i < len(unique); i++ {
		gap := ms(unique[i].Time.Sub(unique[i-1].Time))
		r.Intervals = append(r.Intervals, gap)
		if gap > r.LongestMS {
			r.LongestMS, r.LongestAt = gap, unique[i].Index
		}
	}
	r.SpanMS = ms(unique[len(unique)-1].Time.Sub(unique[0].Time))
	if len(r.Intervals) == 0 || refresh <= 0 || r.SpanMS <= 0 {
		return r, nil
	}
	r.FPS = float64(len(r.Intervals)) / r.SpanMS * 1e3
	r.refreshes(unique, refresh)
	r.stalls(unique, frames[0].Time)
	return r, nil
}

// period is the recording's own, by times and sequence numbers from end to end.
func period(frames []Frame) float64 {
	if len(frames) < 2 {
		return 0
	}
	a, b := frames[0], frames[len(frames)-1]
	if b.Seq <= a.Seq {
		return 0
	}
	return ms(b.Time.Sub(a.Time)) / float64(b.Seq-a.Seq)
}

// refreshes counts the refreshes of the screen that brought no new picture. Each
// unique frame is placed on the screen's own grid, so that the sum is that of the
// whole span and a beat between screen and camera adds nothing.
func (r *Result) refreshes(unique []Frame, refresh float64) {
	place := onGrid(unique, refresh)
	r.Missed = max(place[len(place)-1]-(len(unique)-1), 0)
	for i := 1; i < len(r.Intervals); i++ {
		if r.Intervals[i] > r.Intervals[i-1]+0.5*refresh {
			r.Jank++
		}
	}
	r.WorstShare = worst(place, int(math.Round(1000/refresh)))
}

// onGrid returns the refresh, from 0, in which each picture was first shown. A frame is
// taken up to a period after its picture came, by how much the first was is unknown:
// of 16 phases the one is taken that puts fewest two pictures into one refresh, then the
// one that leaves the fewest refreshes empty, then the one nearest to the middle.
func onGrid(unique []Frame, refresh float64) []int {
	const phases = 16
	var best []int
	bestShared, bestFar := 0, 0
	for n := range phases {
		phase := (float64(n) + 0.5) / phases
		place, shared := make([]int, len(unique)), 0
		for i := 1; i < len(unique); i++ {
			at := int(math.Floor(ms(unique[i].Time.Sub(unique[0].Time))/refresh + phase))
			if at <= place[i-1] {
				at = place[i-1] + 1
				shared++
			}
			place[i] = at
		}
		far := max(n-phases/2, phases/2-n)
		last := len(place) - 1
		if best == nil || cmp.Or(shared-bestShared, place[last]-best[last], far-bestFar) < 0 {
			best, bestShared, bestFar = place, shared, far
		}
	}
	return best
}

// worst is the largest share, in %, of refreshes without a picture in a window, of all
// windows that end with a picture or just before one. Where there is less than a
// window in all, it is the share of the whole.
func worst(place []int, window int) (most float64) {
	all := place[len(place)-1] + 1
	window = max(min(window, all), 1)
	for i := range place {
		for _, end := range []int{place[i] + 1, place[i]} { // exclusive
			if end < window {
				continue
			}
			from, to := sort.SearchInts(place, end-window), sort.SearchInts(place, end)
			most = max(most, 100*float64(window-(to-from))/float64(window))
		}
	}
	return most
}

// stalls lists the gaps longer than one and a half usual intervals.
func (r *Result) stalls(unique []Frame, start lab.Time) {
	usual := Percentile(r.Intervals, 0.5)
	for i, gap := range r.Intervals {
		if gap > 1.5*usual {
			r.Stalls = append(r.Stalls, Stall{unique[i+1].Index, ms(unique[i].Time.Sub(start)), gap, gap - usual})
		}
	}
}

// Percentile is the type 7 of Hyndman and Fan; 0 of no values.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	at := p * float64(len(s)-1)
	i := int(at)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + float64((at-float64(i))*(s[i+1]-s[i]))
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
