package trace

import (
	"fmt"
	"math"
	"time"

	"eidetic/internal/lab"
)

// mostApart is by how much a browser's clock may differ from the box's by the wall clock; more is another clock.
const mostApart = 2 * time.Second

// monotonicBound is by how much times of the same clock may differ: Chromium writes whole µs.
const monotonicBound = time.Microsecond

// Join finds what must be added to a profile's times to get the box's, and by how much that may be wrong. pings are
// instants that the browser noted, between two of the box's; wall is the box's wall clock when its CLOCK_MONOTONIC was
// zero, for browsers that note none.
//
// Where the browser says that its clock is CLOCK_MONOTONIC, that is checked and not only believed.
func Join(p *Profile, pings []lab.TracePing, wall time.Time) (offset, bound time.Duration, how string, err error) {
	if len(pings) == 0 {
		return joinWall(p, wall)
	}
	low, high, n := time.Duration(math.MinInt64), time.Duration(math.MaxInt64), 0
	for _, ping := range pings {
		at, ok := p.Synced[ping.Name]
		if !ok {
			continue
		}
		n++
		low, high = max(low, ping.Earliest.Sub(at)), min(high, ping.Latest.Sub(at))
	}
	switch {
	case n == 0:
		return 0, 0, "", fmt.Errorf("%w: it has none of the marks by which its clock is joined to the box's", ErrVoid)
	case low > high:
		return 0, 0, "", fmt.Errorf("%w: its clock was %v ahead of itself between %d marks", ErrVoid, low-high, n)
	case p.Monotonic && low <= 0 && high >= 0:
		return 0, monotonicBound, fmt.Sprintf("the browser's clock is the box's, CLOCK_MONOTONIC: it says so, and %d marks agree within %s ms", n,
			millis(max(high, -low))), nil
	}
	return low + (high-low)/2, (high-low)/2 + monotonicBound, fmt.Sprintf("by %d marks in the trace, between two instants of the box each", n), nil
}

// joinWall joins the clock of a browser that notes no marks.
func joinWall(p *Profile, wall time.Time) (offset, bound time.Duration, how string, err error) {
	if p.Wall.IsZero() {
		return 0, 0, "", fmt.Errorf("%w: it says nothing by which its clock could be joined to the box's", ErrVoid)
	}
	apart := p.Wall.Sub(wall)
	switch {
	case p.Monotonic && apart.Abs() > mostApart:
		return 0, 0, "", fmt.Errorf("%w: its start by CLOCK_MONOTONIC and that by the wall clock are %v apart", ErrVoid, apart)
	case p.Monotonic:
		return 0, apart.Abs() + monotonicBound, fmt.Sprintf("the browser tells its start by the box's clock, CLOCK_MONOTONIC; the wall clock agrees within %s ms",
			millis(apart.Abs())), nil
	}
	const grain = 2 * time.Millisecond // of meta.startTime, and of reading two clocks
	return apart, grain, "by the wall clock, in which the browser tells its start", nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/1e6) }
