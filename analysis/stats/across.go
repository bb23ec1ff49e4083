package stats

import (
	"fmt"
	"math"

	moremath "github.com/aclements/go-moremath/stats"
)

// Scale is by how much larger one instrument reads than another, as far as it is known.
type Scale struct {
	Ratio   float64 // of what the treatment's instrument reads to what the control's reads
	Error   float64 // standard error of the ratio's logarithm
	Degrees float64 // of freedom that the standard error rests on; may be infinite
}

// Across is [Independent] where two instruments measured the samples, whose ratio is in the plan's Scale: the treatment
// is divided by it, and the ratio's uncertainty is in the interval, the p-value and the minimal effect.
//
// The shift is that of the logarithms, by the Hodges–Lehmann estimate with the interval of Wilcoxon's rank sum test.
// The interval of the ratio, by Student's t, is added to it as in Zou and Donner (2008, Statistics in Medicine 27,
// "Construction of confidence limits about effect measures: a general approach"): each limit is as far from the
// estimate as the root of the sum of the squares of both limits' distances. That needs no symmetry of the rank test's
// interval. P is the level at which the interval reaches the margin, or that of Independent's rank test, whichever is
// larger. The result's unit is that of the control's instrument. margin is a share of the control, such as 0.05.
func Across(control, treatment []float64, margin float64, p Plan) (Comparison, error) {
	s := p.Scale
	switch {
	case s == nil || !(s.Ratio > 0) || math.IsInf(s.Ratio, 1) || !(s.Error >= 0) || math.IsInf(s.Error, 1) || !(s.Degrees >= 1):
		return Comparison{}, fmt.Errorf("across instruments: scale %+v: a ratio and its standard error with at least one degree of freedom", s)
	case !(margin >= 0) || math.IsInf(margin, 1):
		return Comparison{}, fmt.Errorf("across instruments: margin %v: a number of at least 0", margin)
	}
	p = p.filled()
	if err := checkBlocks([]Block{{control, treatment}}, 2); err != nil {
		return Comparison{}, fmt.Errorf("across instruments: %w", err)
	}
	read := make([]float64, len(treatment))
	for i, v := range treatment {
		read[i] = v / s.Ratio
	}
	c := p.describe([]Block{{control, read}})
	c.Pairs = min(len(control), len(treatment))
	a, b := control, read
	if p.Step > 0 {
		a, b = ditherByValue(control, p.Step, p.Seed), ditherByValue(read, p.Step/s.Ratio, p.Seed)
	}
	a, errA := logs(a)
	b, errB := logs(b)
	if errA != nil || errB != nil || !(c.Control > 0) {
		return Comparison{}, fmt.Errorf("across instruments: %w: a value is 0 or less, and has no ratio", ErrPairs)
	}
	shift, err := ShiftOfTwo(a, b, p.Confidence)
	if err != nil {
		return Comparison{}, err
	}
	w := widened{shift: shift, scale: *s}
	low, high := w.limits()
	c.Shift = Interval{Value: c.Control * math.Expm1(shift.Value), Low: c.Control * math.Expm1(low), High: c.Control * math.Expm1(high),
		Confidence: shift.Confidence, Warnings: shift.Warnings}
	up, down := math.Log1p(margin), math.Inf(-1)
	if margin < 1 {
		down = math.Log1p(-margin)
	}
	allowed := min(max(shift.Value, down), up)
	if c.Test, err = AlignedRank([]Block{{moved(a, allowed), b}}, p.Permutations, p.Seed); err != nil {
		return Comparison{}, err
	}
	if shift.Value == allowed && margin > 0 {
		c.Test.P = 1
	} else {
		c.Test.P = max(c.Test.P, w.p(shift.Value-allowed))
	}
	p.conclude(&c)
	c.MinimalEffect += margin * c.Control
	return c, nil
}

func logs(values []float64) ([]float64, error) {
	out := make([]float64, len(values))
	for i, v := range values {
		if !(v > 0) {
			return nil, ErrPairs
		}
		out[i] = math.Log(v)
	}
	return out, nil
}

func moved(values []float64, by float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v + by
	}
	return out
}

// widened is a shift of logarithms whose interval takes the scale's uncertainty into account.
type widened struct {
	shift Interval
	scale Scale
}

func (w widened) limits() (low, high float64) {
	more := w.scale.quantile(1-w.shift.Confidence) * w.scale.Error
	return w.shift.Value - math.Hypot(w.shift.Value-w.shift.Low, more), w.shift.Value + math.Hypot(w.shift.High-w.shift.Value, more)
}

// p is the level at which the interval ends at a distance from the shift, towards it. The rank test's part of the
// interval grows with the level as that of a normal distribution does.
func (w widened) p(distance float64) float64 {
	width := w.shift.Value - w.shift.Low
	if distance < 0 {
		width = w.shift.High - w.shift.Value
	}
	of := width / normalQuantile((1+w.shift.Confidence)/2)
	low, high := -40.0, 0.0 // logarithms of the level, to base e
	for range 60 {
		middle := (low + high) / 2
		level := math.Exp(middle)
		if math.Hypot(of*normalQuantile(1-level/2), w.scale.quantile(level)*w.scale.Error) > math.Abs(distance) {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp(high)
}

// quantile is the two-sided quantile of Student's t at a level.
func (s Scale) quantile(level float64) float64 {
	if s.Error == 0 {
		return 0
	}
	return StudentQuantile(s.Degrees, level)
}

// manyDegrees of freedom make Student's t a normal distribution.
const manyDegrees = 1000

// StudentQuantile is the two-sided quantile of Student's t at a level.
func StudentQuantile(degrees, level float64) float64 {
	if degrees > manyDegrees {
		return normalQuantile(1 - level/2)
	}
	high := 1.0
	for StudentP(high, degrees) > level && high < 1e9 {
		high *= 2
	}
	return bisect(0, high, func(x float64) bool { return StudentP(x, degrees) > level })
}

// StudentP is the two-sided p of a t.
func StudentP(t, degrees float64) float64 {
	if degrees > manyDegrees {
		return math.Erfc(math.Abs(t) / math.Sqrt2)
	}
	return 2 * moremath.TDist{V: degrees}.CDF(-math.Abs(t))
}
