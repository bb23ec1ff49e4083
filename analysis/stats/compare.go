package stats

import (
	"fmt"
	"math"
	"slices"
)

// Plan fixes how a comparison is computed, before any value is seen.
type Plan struct {
	Permutations int     // of the aligned rank test; zero: 9999
	Seed         uint64  // of permutations and dithering; stored with the result
	Confidence   float64 // of the interval; zero: 0.95
	Family       int     // how many metrics share the level of significance; zero: 1
	Step         float64 // of one frame, in the metric's unit, where values are quantised to frames; zero: they are not
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
	MinimalEffect  float64 `json:"minimal_effect"`
	ModesControl   []Mode  `json:"modes_control"`
	ModesTreatment []Mode  `json:"modes_treatment"`
	// ModeChange is set where the numbers of modes differ: Shift then does not
	// describe what happened.
	ModeChange bool     `json:"mode_change"`
	Warnings   []string `json:"warnings,omitempty"`
}

// Compare compares the arms of blocks of trials. Its test, δ and modes are of
// all values, its shift of pairs within the blocks. The same values and plan give
// the same result on every machine.
func Compare(blocks []Block, p Plan) (Comparison, error) {
	p = p.filled()
	test, err := AlignedRank(blocks, p.Permutations, p.Seed)
	if err != nil {
		return Comparison{}, err
	}
	control, treatment := paired(blocks)
	c := p.describe(blocks)
	c.Pairs, c.Test = len(control), test
	a, b := control, treatment
	if p.Step > 0 {
		a, b = Dither(control, p.Step, p.Seed), Dither(treatment, p.Step, p.Seed+1)
	}
	if c.Shift, err = HodgesLehmann(a, b, p.Confidence); err != nil {
		return Comparison{}, err
	}
	p.conclude(&c)
	return c, nil
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
	c := Comparison{Control: median(every.Control), Treatment: median(every.Treatment), Delta: CliffsDelta(every.Control, every.Treatment),
		ModesControl: Modes(every.Control, p.Step/2), ModesTreatment: Modes(every.Treatment, p.Step/2)}
	c.DeltaSize = DeltaSize(c.Delta)
	c.ModeChange = len(c.ModesControl) != len(c.ModesTreatment)
	return c
}

// conclude adds what follows from the shift.
func (p Plan) conclude(c *Comparison) {
	c.Warnings = append(c.Warnings, c.Shift.Warnings...)
	if base := math.Abs(c.Control); base > 0 {
		c.Percent = Interval{Value: 100 * c.Shift.Value / base, Low: 100 * c.Shift.Low / base, High: 100 * c.Shift.High / base, Confidence: c.Shift.Confidence}
	} else {
		c.Warnings = append(c.Warnings, "the control's median is 0: there is no relative change")
	}
	c.MinimalEffect = MinimalEffect((c.Shift.High-c.Shift.Low)/2, 0.8, p.Family)
	if c.ModeChange {
		c.Warnings = append(c.Warnings, fmt.Sprintf("the control has %d mode(s), the treatment %d: a shift does not describe this change", len(c.ModesControl), len(c.ModesTreatment)))
	}
}

func median(values []float64) float64 {
	return Quantile(slices.Sorted(slices.Values(values)), 0.5)
}
