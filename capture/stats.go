package capture

import (
	"fmt"
	"math"
	"slices"

	"eidetic/internal/lab"
)

// Stats is what a finished recording was like.
type Stats struct {
	Frames  int            `json:"frames"`            // in the sink
	Repeats int            `json:"repeats"`           // of them equal to the frame before
	Corrupt int            `json:"corrupt"`           // of them marked as damaged by the source
	Short   int            `json:"short"`             // of the corrupt ones, those with bytes missing
	Lost    int            `json:"lost"`              // frames that are not in the sink
	Reasons map[string]int `json:"reasons,omitempty"` // why, as in lab.Gap
	// Ticks at which the source did not look at the screen: MissedProven with nothing
	// drawn meanwhile, so that the picture is known; MissedDrawn with something drawn,
	// so that the time of a change is known less well. Neither is lost.
	MissedProven int `json:"missed_proven"`
	MissedDrawn  int `json:"missed_drawn"`
	// NormalBound is how well the time of a change is known usually: a period and the
	// median of the frames' uncertainty; WorstBound how well that of the worst change is.
	// Unseen are the changes that are known worse than normal by half a period or more.
	NormalBound float64      `json:"normal_bound_ms"`
	WorstBound  float64      `json:"worst_bound_ms"`
	Unseen      []lab.Unseen `json:"-"`
	// Blue are the stretches in which a grabber showed one blue (Options.Card).
	Blue []lab.Blue `json:"blue,omitempty"`
	// Irregular frames have a time that does not fit their sequence number;
	// Interruptions are events of the source other than these.
	Irregular     int     `json:"irregular"`
	Interruptions int     `json:"interruptions"`
	Nominal       float64 `json:"nominal_rate"` // frames per second that the source claims
	Elapsed       float64 `json:"elapsed_s"`    // from the first to the last frame
	Rate          float64 `json:"rate"`         // measured frames per second, lost and missed ones included
	// Intervals between neighbouring frames' times, in milliseconds: median,
	// 99th percentile, longest, and the root mean square deviation from the
	// nominal period (of the sequence step, where frames were lost or ticks missed).
	IntervalP50 float64 `json:"interval_p50_ms"`
	IntervalP99 float64 `json:"interval_p99_ms"`
	IntervalMax float64 `json:"interval_max_ms"`
	Jitter      float64 `json:"jitter_ms"`
	RingPeak    int     `json:"ring_peak"`  // most buffers in use at once
	Scheduling  string  `json:"scheduling"` // "SCHED_FIFO", "nice -10" or "normal"
}

// meter gathers what Stats says of times.
type meter struct {
	period      float64 // nominal, seconds
	scheduling  string
	repeats     int
	corrupt     int
	short       int
	irregular   int
	first, last lab.FrameInfo
	n           int
	missed      int       // ticks for which no frame stands
	intervals   []float32 // ms
	deviation   float64   // sum of squares, ms²
}

func (m *meter) add(info lab.FrameInfo) {
	if len(info.Changed) == 0 {
		m.repeats++
	}
	if info.Flags&lab.FrameCorrupt != 0 {
		m.corrupt++
	}
	if info.Flags&lab.FrameShort != 0 {
		m.short++
	}
	if m.n > 0 {
		ms := info.Time.Sub(m.last.Time).Seconds() * 1e3
		m.intervals = append(m.intervals, float32(ms))
		m.missed += info.Missed
		d := ms - 1e3*m.period*float64(info.Seq-m.last.Seq+uint64(info.Missed))
		m.deviation += float64(d * d)
	} else {
		m.first = info
	}
	m.last = info
	m.n++
}

// stats returns the times' part of Stats.
func (m *meter) stats() Stats {
	st := Stats{
		Repeats: m.repeats, Corrupt: m.corrupt, Short: m.short, Irregular: m.irregular,
		Nominal: 1 / m.period, Scheduling: m.scheduling,
	}
	if m.n < 2 {
		return st
	}
	st.Elapsed = m.last.Time.Sub(m.first.Time).Seconds()
	if st.Elapsed > 0 {
		st.Rate = float64(m.last.Seq-m.first.Seq+uint64(m.missed)) / st.Elapsed
	}
	sorted := slices.Clone(m.intervals)
	slices.Sort(sorted)
	at := func(q float64) float64 { return float64(sorted[int(q*float64(len(sorted)-1))]) }
	st.IntervalP50, st.IntervalP99, st.IntervalMax = at(0.5), at(0.99), at(1)
	st.Jitter = math.Sqrt(m.deviation / float64(len(sorted)))
	return st
}

// RateText says a measured rate beside the nominal one, in frames per second,
// and names the standard rate that it is: grabbers report 60 while a device sends 59.94.
func RateText(measured, nominal float64) string {
	text := fmt.Sprintf("%.3f/s measured, %g nominal", measured, nominal)
	best := 0.0
	for _, whole := range []float64{24, 25, 30, 50, 60, 75, 90, 120, 144} {
		for _, rate := range []float64{whole, whole * 1000 / 1001} {
			if math.Abs(rate-measured) < math.Abs(best-measured) {
				best = rate
			}
		}
	}
	// The two sides of a pair are a thousandth apart: nearer than a quarter of that is a match.
	if math.Abs(best-measured) < measured/4000 {
		text += fmt.Sprintf(": the standard rate %.4g", best)
	}
	return text
}
