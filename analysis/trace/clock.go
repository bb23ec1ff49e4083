package trace

import (
	"math"

	"eidetic/internal/lab"
)

// Clock bounds where a page's clock began on the box's: its instant p, in ms and not rounded, was at a box
// instant in [Low + p, High + p].
type Clock struct {
	Low, High lab.Time
}

// Unbounded is what is known of a clock before anything is.
func Unbounded() Clock { return Clock{Low: math.MinInt64 / 2, High: math.MaxInt64 / 2} }

// How coarsely a page reads its clock: Firefox rounds to whole milliseconds, up or down by lot, Chromium to 0.1 ms.
const (
	grain = lab.Time(1e6)
	fine  = lab.Time(1e5)
)

// Sent says that the page sent something at its time, which came to the box at arrived: the sending was
// not after that.
func (c *Clock) Sent(pageMS float64, arrived lab.Time) {
	c.High = min(c.High, arrived-pageTime(pageMS)+grain)
}

// Heard says that the page had the answer, at its time, to what came to the box at arrived.
func (c *Clock) Heard(pageMS float64, arrived lab.Time) {
	c.Low = max(c.Low, arrived-pageTime(pageMS)-grain)
}

// Began says that the page's clock began at an instant, give or take slack, where both clocks are of one machine.
// What disagrees with what else is known of the clock is not believed.
func (c *Clock) Began(at, slack lab.Time) {
	low, high := max(c.Low, at-slack-grain), min(c.High, at+slack+grain)
	if low <= high {
		c.Low, c.High = low, high
	}
}

// Bounded says whether both sides are known and agree with each other.
func (c Clock) Bounded() bool {
	none := Unbounded()
	return c.Low > none.Low && c.High < none.High && c.Low <= c.High
}

// At returns the interval in which the page's instant was, which the page read no better than rounded.
func (c Clock) At(pageMS float64) (earliest, latest lab.Time) {
	p, rounded := pageTime(pageMS), fine
	if pageMS == math.Trunc(pageMS) {
		rounded = grain
	}
	return c.Low + p - rounded, c.High + p + rounded
}

func pageTime(ms float64) lab.Time { return lab.Time(math.Round(min(max(ms, 0), 1e9) * 1e6)) }
