package link

import (
	"math/bits"
	"time"
)

// buckets of a Histogram: eight to each power of two of microseconds, up to a minute.
const buckets = 26 * 8

// Histogram counts durations in buckets of 12.5 % width. The zero value is ready.
type Histogram struct {
	Count int64           `json:"count"`
	Max   time.Duration   `json:"max_ns"`
	Early int64           `json:"early"` // below zero
	Cells *[buckets]int64 `json:"-"`
}

// Add counts d.
func (h *Histogram) Add(d time.Duration) {
	h.Count++
	h.Max = max(h.Max, d)
	if d < 0 {
		h.Early++
		d = 0
	}
	if h.Cells == nil {
		h.Cells = new([buckets]int64)
	}
	h.Cells[cell(d)]++
}

// cell returns the bucket of d: linear below 8 µs, then 8 to an octave.
func cell(d time.Duration) int {
	us := uint64(d / time.Microsecond)
	if us < 8 {
		return int(us)
	}
	octave := bits.Len64(us) - 4 // 8…15 µs is octave 0
	return min(8+octave*8+int(us>>octave)-8, buckets-1)
}

// upper returns where bucket i ends.
func upper(i int) time.Duration {
	if i < 8 {
		return time.Duration(i+1) * time.Microsecond
	}
	octave := (i - 8) / 8
	return time.Duration(uint64(8+(i-8)%8+1)<<octave) * time.Microsecond
}

// Quantile returns an upper bound of the quantile q of the counted durations,
// at most 12.5 % too large. It returns 0 when nothing was counted.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.Count == 0 || h.Cells == nil {
		return 0
	}
	need, seen := int64(q*float64(h.Count)), int64(0)
	for i, n := range h.Cells {
		if seen += n; seen > need || seen == h.Count {
			return min(upper(i), h.Max)
		}
	}
	return h.Max
}

// clone returns an independent copy.
func (h Histogram) clone() Histogram {
	if h.Cells != nil {
		c := *h.Cells
		h.Cells = &c
	}
	return h
}
