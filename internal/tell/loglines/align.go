package loglines

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"eidetic/internal/lab"
)

// drift is by how much two clocks may part, in parts of the time: quartz is within 100 ppm.
const drift = 100e-6

// Pair says that the log's clock showed a time in [Log, Log+Grain] at an instant within [Earliest, Latest] of the
// box's.
type Pair struct {
	Log              time.Time
	Grain            time.Duration
	Earliest, Latest lab.Time
}

// Clock joins the clock of a log to the box's by pairs. Between two pairs the offset is between theirs; beyond them it
// may drift.
type Clock struct {
	pairs []Pair
	// SameBoot says that the log's monotonic stamps are of the box's own clock.
	SameBoot bool
}

// ErrNoClock says that nothing tells how a log's clock lies to the box's.
var ErrNoClock = errors.New("nothing tells how the log's clock lies to the box's") // constant

// NewClock joins the clocks. A pair whose interval is none is left out.
func NewClock(pairs []Pair, sameBoot bool) *Clock {
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool { return p.Latest < p.Earliest })
	slices.SortFunc(pairs, func(a, b Pair) int { return a.Log.Compare(b.Log) })
	return &Clock{pairs, sameBoot}
}

// offset is by how much the box's clock is ahead of the log's at a time near a pair.
func (p Pair) offset(at time.Time) (low, high lab.Time) {
	slack := lab.Time(float64(at.Sub(p.Log).Abs()) * drift)
	base := lab.Time(p.Log.UnixNano())
	return p.Earliest - base - lab.Time(p.Grain) - slack, p.Latest - base + slack
}

// At is where on the box's clock an entry lies.
func (c *Clock) At(e Entry) (earliest, latest lab.Time, err error) {
	if e.Monotonic >= 0 && c.SameBoot {
		return lab.Time(e.Monotonic), lab.Time(e.Monotonic + e.Grain), nil
	}
	if e.At.IsZero() {
		return 0, 0, fmt.Errorf("%w: its stamps are of a monotonic clock, which is only known to be the box's where the log is of this machine since it started", ErrNoClock)
	}
	if len(c.pairs) == 0 {
		return 0, 0, ErrNoClock
	}
	n, _ := slices.BinarySearchFunc(c.pairs, e.At, func(p Pair, at time.Time) int { return p.Log.Compare(at) })
	before, after := c.pairs[max(n-1, 0)], c.pairs[min(n, len(c.pairs)-1)]
	low, high := before.offset(e.At)
	if before != after {
		low2, high2 := after.offset(e.At)
		if both, top := max(low, low2), min(high, high2); both <= top {
			low, high = both, top // the clocks kept together: each says where the other may be
		} else {
			low, high = min(low, low2), max(high, high2) // one was set between the two
		}
	}
	at := lab.Time(e.At.UnixNano())
	return at + low, at + lab.Time(e.Grain) + high, nil
}
