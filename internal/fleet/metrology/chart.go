package metrology

import (
	"math"
	"slices"
)

// Limits are the parameters of a chart. Sums and deviations are in standard deviations of a reading.
type Limits struct {
	// Baseline is how many readings there must be before anything can be called changed.
	Baseline int
	// Allowance is half of the smallest change that a chart looks for (Page 1954; Moustakides 1986 shows it to be the
	// best).
	Allowance float64
	// BaselineErrors is by how many standard errors of the baseline the allowance is larger.
	BaselineErrors float64
	// LongRun is the variance of a mean of readings, over what it would be if they were independent: (1+φ)÷(1−φ) where
	// neighbours correlate by φ.
	LongRun float64
	// Clip bounds what one reading may add, so that no single one can raise an alarm.
	Clip float64
	// Inflate is by how many of its standard errors the spread of the baseline is taken for larger, as it may be by
	// chance.
	Inflate float64
	// Threshold is the sum at which a change is called.
	Threshold float64
}

// Usual are the limits that Judge has. Allowance is half of two standard deviations, LongRun follows from the
// correlation that steady boxes may have, Clip lets no fewer than four readings call a change. BaselineErrors and
// Threshold are those with which no more than one in 200 steady boxes of any kind is called in 100 readings, and that
// call a slower box soonest: see `make bench-health HEALTH_FLAGS=-derive`.
func Usual() Limits {
	const correlation = 0.3
	return Limits{
		Baseline: Baseline, Allowance: 1, BaselineErrors: 2.5, LongRun: (1 + correlation) / (1 - correlation), Clip: 4, Inflate: 1, Threshold: 11,
	}
}

// Baseline is how many readings a box needs before its health is known.
const Baseline = 10

// chart watches one number of the readings. Values are on a scale on which changes add: logarithms.
type chart struct {
	Limits
	both  bool    // whether it looks for decreases too
	least float64 // smallest standard deviation of a reading that is believed

	values   []float64
	errs     []float64 // standard errors that the readings have by themselves
	readings []int     // index of each value's reading

	base    []float64 // sorted: the values of the baseline
	baseErr []float64 // sorted: their standard errors
	pending []int     // values since the candidate of a change, which are not of the baseline

	up, down, back             float64
	upFrom, downFrom, backFrom int

	drift   int // 1: larger, −1: smaller, 0: as it was
	changed int // index of the first value of the new level
}

// add takes the value of the next reading, with the standard error that it has by itself.
func (c *chart) add(value, err float64, reading int) {
	c.values, c.errs, c.readings = append(c.values, value), append(c.errs, err), append(c.readings, reading)
	c.step(len(c.values) - 1)
}

func (c *chart) known() bool { return len(c.base) >= c.Baseline }

func (c *chart) step(i int) {
	if len(c.base) < c.Baseline {
		c.accept(i)
		return
	}
	if c.drift != 0 {
		c.recover(i)
		return
	}
	centre, deviation := c.level()
	z := (c.values[i] - centre) / deviation
	z = min(max(z, -c.Clip), c.Clip)
	allowance := c.Allowance + float64(c.BaselineErrors*math.Sqrt(c.LongRun/float64(len(c.base))))
	c.up, c.upFrom = sum(c.up, z-allowance, c.upFrom, i)
	if c.both {
		c.down, c.downFrom = sum(c.down, -z-allowance, c.downFrom, i)
	}
	c.pending = append(c.pending, i)
	switch {
	case c.up >= c.Threshold:
		c.begin(1, c.upFrom)
	case c.down >= c.Threshold:
		c.begin(-1, c.downFrom)
	default:
		c.absorb(i)
	}
}

// sum adds to a cumulative sum, which is never negative, and keeps where it left 0: the most likely place of a change.
func sum(old, more float64, from, i int) (now float64, start int) {
	if old == 0 {
		from = i
	}
	return max(old+more, 0), from
}

// begin calls a change.
func (c *chart) begin(drift, from int) {
	for _, i := range c.pending {
		if i < from {
			c.accept(i)
		}
	}
	c.drift, c.changed = drift, from
	c.up, c.down, c.back, c.pending = 0, 0, 0, nil
}

// absorb makes the values before the candidates of a change part of the baseline.
func (c *chart) absorb(i int) {
	until := i + 1
	if c.up > 0 {
		until = min(until, c.upFrom)
	}
	if c.down > 0 {
		until = min(until, c.downFrom)
	}
	n := 0
	for n < len(c.pending) && c.pending[n] < until {
		c.accept(c.pending[n])
		n++
	}
	c.pending = append(c.pending[:0], c.pending[n:]...)
}

// accept makes a value part of the baseline.
func (c *chart) accept(i int) {
	c.base, c.baseErr = insert(c.base, c.values[i]), insert(c.baseErr, c.errs[i])
}

func insert(sorted []float64, v float64) []float64 {
	at, _ := slices.BinarySearch(sorted, v)
	return slices.Insert(sorted, at, v)
}

// recover looks for the end of a change: a sum of the deviations from the middle between the baseline and the level
// that it changed to. The values since then are looked at again, since they may be of a third level.
func (c *chart) recover(i int) {
	centre, deviation := c.level()
	shift := max(float64(c.drift)*(c.now(i)-centre)/deviation, 2*c.Allowance)
	z := float64(c.drift) * (c.values[i] - centre) / deviation
	c.back, c.backFrom = sum(c.back, min(max(shift/2-z, -c.Clip), c.Clip), c.backFrom, i)
	if c.back < c.Threshold {
		return
	}
	c.drift, c.back = 0, 0
	for j := c.backFrom; j <= i; j++ {
		c.step(j)
	}
}

// recent is how many of the newest values tell what a level is now.
const recent = 10

// now is the level since the change, up to the i-th value but not after what may be a recovery.
func (c *chart) now(i int) float64 {
	to := i + 1
	if c.back > 0 {
		to = c.backFrom
	}
	return middle(c.values[max(c.changed, to-recent):to])
}

// level is the baseline's centre, a mean without a fifth of the values at each end, and the standard deviation of a
// reading around it.
func (c *chart) level() (centre, deviation float64) {
	n := len(c.base)
	cut := n / 5
	for _, v := range c.base[cut : n-cut] {
		centre += v
	}
	return centre / float64(n-2*cut), max(giniOfSorted(c.base)*(1+c.Inflate/math.Sqrt(float64(2*n-2))), c.baseErr[n/2], c.least)
}
