package stats

import (
	"fmt"
	"math"
	"slices"
)

// Plan fixes how a comparison is computed, before any value is seen.
type Plan struct {
	Permutations int     // of the aligned rank test where it is not exact; zero: 9999
	Seed         uint64  // of permutations and dithering; stored with the result
	Confidence   float64 // of the interval; zero: 0.95
	Family       int     // how many metrics share the level of significance; zero: 1
	Step         float64 // of one frame, in the metric's unit, where values are quantised to frames; zero: they are not
	// Covariates are declared before any value is seen, those that tell most first; as many are used as the pairs
	// allow.
	Covariates []Covariate
	Scale      *Scale // of the two instruments that measured the arms, for Across; nil where it was one
}

// Comparison is what one metric says about two arms.
type Comparison struct {
	Pairs int  `json:"pairs"`
	Test  Test `json:"test"`
	// Control and Treatment are the arms' medians.
	Control   float64 `json:"control"`
	Treatment float64 `json:"treatment"`
	// Shift is how much larger the treatment is, in the metric's unit;
	// Percent is the same relative to the control's median.
	Shift   Interval `json:"shift"`
	Percent Interval `json:"percent"`
	// Delta is Cliff's δ: 1 if every value of the treatment is larger.
	Delta     float64 `json:"delta"`
	DeltaSize string  `json:"delta_size"`
	// MinimalEffect is the smallest true shift that these pairs would have shown
	// four times of five, at the level that Family leaves.
	MinimalEffect float64 `json:"minimal_effect"`
	// Adjustment is set if covariates were taken out: then Test, Shift, Percent and MinimalEffect are of what is left.
	Adjustment     *Adjustment `json:"adjustment,omitempty"`
	ModesControl   []Mode      `json:"modes_control"`
	ModesTreatment []Mode      `json:"modes_treatment"`
	// ModeChange is set where the numbers of modes differ: Shift then does not
	// describe what happened.
	ModeChange bool     `json:"mode_change"`
	Warnings   []string `json:"warnings,omitempty"`
}

// Compare compares the arms of blocks of trials: with ShiftInBlocks, on values that are spread within the step to which
// they were rounded, so that shift, interval and test tell of the same numbers. With covariates both are of the values
// that regression on them leaves (Rosenbaum 2002, "Covariance adjustment in randomized experiments"): the slopes are
// fitted within blocks and without the arms, so that they are the same for every order of the arms that could have been
// drawn, and P stays exact. δ, medians and modes are of the values as they are. The same values and plan give the same
// result on every machine.
func Compare(blocks []Block, p Plan) (Comparison, error) {
	p = p.filled()
	if err := checkBlocks(blocks, 2); err != nil {
		return Comparison{}, err
	}
	step := p.Step
	if step == 0 {
		step = resolution(blocks)
	}
	dithered := ditherBlocks(blocks, step, p.Seed)
	shift, test, err := ShiftInBlocks(dithered, p.Confidence, p.Permutations, p.Seed)
	if err != nil {
		return Comparison{}, err
	}
	control, _ := paired(blocks)
	c := p.describe(blocks)
	c.Pairs, c.Test, c.Shift = len(control), test, shift
	if r := newRegression(dithered, p.Covariates); r != nil {
		a := &Adjustment{Names: r.names, Raw: shift, RawTest: test, MinimalEffect: minimalEffect(shift, p.Family)}
		at := func(shift float64) [][]Block { return [][]Block{r.at(shift)} }
		if c.Shift, c.Test, err = p.adjusted(at, nil); err != nil {
			return Comparison{}, err
		}
		a.explained(dithered, r.at(c.Shift.Value))
		c.Adjustment = a
	}
	p.conclude(&c)
	return c, nil
}

// adjusted is the comparison of values that covariates were taken out of, with what DropShare leaves of the level.
func (p Plan) adjusted(at func(shift float64) [][]Block, weights []float64) (Interval, Test, error) {
	shift, test, err := shiftOf(at, weights, true, 1-(1-p.Confidence)*(1-DropShare), p.Permutations, p.Seed)
	test.P = settled(min(1, test.P/(1-DropShare)))
	return shift, test, err
}

func minimalEffect(shift Interval, family int) float64 {
	return MinimalEffect((shift.High-shift.Low)/2, 0.8, family)
}

// resolution is the least distance of two values if some are equal, as whole
// milliseconds and counts are; zero if none are, or all.
func resolution(blocks []Block) float64 {
	var all []float64
	for _, b := range blocks {
		all = append(append(all, b.Control...), b.Treatment...)
	}
	slices.Sort(all)
	least, ties := math.Inf(1), false
	for i := 1; i < len(all); i++ {
		if gap := all[i] - all[i-1]; gap > 0 {
			least = min(least, gap)
		} else {
			ties = true
		}
	}
	if !ties || math.IsInf(least, 1) {
		return 0
	}
	return least
}

// ditherBlocks spreads the values of both arms within a step.
func ditherBlocks(blocks []Block, step float64, seed uint64) []Block {
	if step == 0 {
		return blocks
	}
	var control, treatment []float64
	for _, b := range blocks {
		control, treatment = append(control, b.Control...), append(treatment, b.Treatment...)
	}
	control, treatment = Dither(control, step, seed), Dither(treatment, step, seed+1)
	out := make([]Block, len(blocks))
	for i, b := range blocks {
		m, n := len(b.Control), len(b.Treatment)
		out[i] = Block{control[:m:m], treatment[:n:n]}
		control, treatment = control[m:], treatment[n:]
	}
	return out
}

// filled is the plan with its defaults.
func (p Plan) filled() Plan {
	if p.Permutations == 0 {
		p.Permutations = 9999
	}
	if p.Confidence == 0 {
		p.Confidence = 0.95
	}
	return p
}

// describe says of all values what needs no pairs.
func (p Plan) describe(blocks []Block) Comparison {
	var every Block
	for _, b := range blocks {
		every.Control, every.Treatment = append(every.Control, b.Control...), append(every.Treatment, b.Treatment...)
	}
	c := Comparison{Control: Median(every.Control), Treatment: Median(every.Treatment), Delta: CliffsDelta(every.Control, every.Treatment),
		ModesControl: Modes(every.Control, p.Step/2), ModesTreatment: Modes(every.Treatment, p.Step/2)}
	c.DeltaSize = DeltaSize(c.Delta)
	c.ModeChange = len(c.ModesControl) != len(c.ModesTreatment)
	return c
}

// conclude adds what follows from the shift.
func (p Plan) conclude(c *Comparison) {
	c.Warnings = append(c.Warnings, c.Shift.Warnings...)
	if base := math.Abs(c.Control); base > 0 {
		c.Percent = Interval{Value: 100 * c.Shift.Value / base, Low: 100 * c.Shift.Low / base, High: 100 * c.Shift.High / base,
			Confidence: c.Shift.Confidence}
	} else {
		c.Warnings = append(c.Warnings, "the control's median is 0: there is no relative change")
	}
	c.MinimalEffect = minimalEffect(c.Shift, p.Family)
	if c.ModeChange {
		c.Warnings = append(c.Warnings, fmt.Sprintf("the control has %d mode(s), the treatment %d: a shift does not describe this change",
			len(c.ModesControl), len(c.ModesTreatment)))
	}
}
