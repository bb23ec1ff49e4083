package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"eidetic/analysis/stats"
	"eidetic/analysis/stats/simulate"
	"eidetic/internal/rigs/testlab"
)

// tally is what came of simulated experiments.
type tally struct {
	done, alarms, covered, found, foundRaw int
	width, widthRaw                        float64 // sums
}

// adjustedRuns simulates experiments: those of even numbers have no shift.
func adjustedRuns(t *testing.T, m simulate.Machine, pairs, runs int, shift float64, seed uint64) (all tally) {
	t.Helper()
	for n := range 2 * runs {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		now := shift * float64(n%2)
		blocks, covariates := m.Adjusted(r, pairs, now)
		c, err := stats.Compare(blocks, stats.Plan{Seed: r.Uint64(), Step: m.Frame, Covariates: covariates})
		if err != nil {
			t.Fatal(err)
		}
		i, raw := c.Shift, c.Shift
		rawP := c.Test.P
		if c.Adjustment != nil {
			raw, rawP = c.Adjustment.Raw, c.Adjustment.RawTest.P
		}
		if len(i.Warnings) > 0 {
			continue
		}
		if excluded := i.Low > 0 || i.High < 0; excluded != (c.Test.P <= 0.05) || !(i.Low <= i.Value && i.Value <= i.High) {
			t.Fatalf("p = %v, but the interval is %+v", c.Test.P, i)
		}
		all.done++
		if i.Low <= now && now <= i.High {
			all.covered++
		}
		all.width, all.widthRaw = all.width+i.High-i.Low, all.widthRaw+raw.High-raw.Low
		for _, one := range []struct {
			p  float64
			to *int
		}{{c.Test.P, &all.found}, {rawP, &all.foundRaw}} {
			if now != 0 && one.p <= 0.05 {
				*one.to++
			}
		}
		if now == 0 && c.Test.P <= 0.05 {
			all.alarms++
		}
	}
	return all
}

// TestAdjustedIntervalsHold: with covariates that tell half of the noise's variance, and with useless ones, in drift,
// heavy tails, outliers and with trials missing, 5 % of the equal arms differ and 95 % of the intervals hold the shift,
// within 3.3 standard deviations. Where covariates tell much, intervals are narrower; where they tell nothing, hardly
// wider.
func TestAdjustedIntervalsHold(t *testing.T) {
	testlab.Long(t, "thousands of simulated runs")
	usual := simulate.Usual()
	usual.Outliers, usual.Moving = 0.02, true // times count from a key at any moment of a frame
	for _, c := range []struct {
		name            string
		change          func(*simulate.Machine)
		known           float64
		useless         int
		narrower, wider float64 // the mean width over the raw one lies between
	}{
		{"half is known", func(*simulate.Machine) {}, 0.5, 1, 0, 0.9},
		{"in drift", func(m *simulate.Machine) { m.Drift = 400 }, 0.5, 1, 0, 0.95},
		{"heavy tails", func(m *simulate.Machine) { m.Tails = 3 }, 0.5, 1, 0, 0.95},
		{"trials are missing", func(m *simulate.Machine) { m.Invalid = 0.15 }, 0.5, 1, 0, 0.95},
		{"all useless", func(*simulate.Machine) {}, 0, 3, 0.9, 1.06},
		{"useless in drift and heavy tails", func(m *simulate.Machine) { m.Drift, m.Tails, m.Outliers = 400, 3, 0.05 }, 0, 3, 0.9, 1.06},
	} {
		for _, pairs := range []int{8, 20, 40} {
			t.Run(fmt.Sprintf("%s, %d pairs", c.name, pairs), func(t *testing.T) {
				m := usual
				c.change(&m)
				m.Known, m.Useless = c.known, c.useless
				got := adjustedRuns(t, m, pairs, 60, 35, 7)
				n := float64(got.done)
				band := func(n float64) float64 { return 3.3 * math.Sqrt(0.05*0.95*n) }
				if missed := n - float64(got.covered); missed > 0.05*n+band(n) {
					t.Errorf("%d of %d intervals hold the shift, want 95 %%", got.covered, got.done)
				}
				if float64(got.alarms) > 0.05*n/2+band(n/2) {
					t.Errorf("%d alarms in about %v experiments without a shift", got.alarms, n/2)
				}
				ratio := got.width / got.widthRaw
				t.Logf("%d experiments: %d alarms, %d covered, width %.3f of the raw one, found %d, raw %d", got.done, got.alarms, got.covered, ratio,
					got.found, got.foundRaw)
				if pairs >= 20 && (ratio < c.narrower || ratio > c.wider) {
					t.Errorf("intervals are %.3f as wide as raw ones; want %v to %v", ratio, c.narrower, c.wider)
				}
			})
		}
	}
}

// A covariate is worth most where nothing else varies: a difference that the raw test misses is found, and the numbers
// say why.
func TestCovariateExplains(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	blocks, covariate := make([]stats.Block, 4), stats.Covariate{Name: "speed", Blocks: make([]stats.Block, 4)}
	for i := range blocks {
		for range 5 {
			for arm, to := range []struct{ values, speeds *[]float64 }{
				{&blocks[i].Control, &covariate.Blocks[i].Control}, {&blocks[i].Treatment, &covariate.Blocks[i].Treatment},
			} {
				x := 30 * r.NormFloat64()
				*to.speeds, *to.values = append(*to.speeds, 200+x), append(*to.values, 500+x+3*r.NormFloat64()+8*float64(arm))
			}
		}
	}
	c, err := stats.Compare(blocks, stats.Plan{Seed: 1, Covariates: []stats.Covariate{covariate}})
	if err != nil || c.Adjustment == nil {
		t.Fatalf("Compare() = %+v, %v; want an adjustment", c, err)
	}
	a := c.Adjustment
	if c.Test.P > 0.001 || a.RawTest.P < 0.05 || math.Abs(c.Shift.Value-8) > 3 || a.Explained < 0.95 || a.Spread > 5 || a.RawSpread < 20 ||
		!slices.Equal(a.Names, []string{"speed"}) || c.MinimalEffect > a.MinimalEffect/4 {
		t.Errorf("Compare() = shift %+v, p %v, adjustment %+v; want about 8 with p below 0.001, and 95 %% explained", c.Shift, c.Test.P, a)
	}
	// Covariates that do not vary, that nobody knows, or of too few pairs, leave the raw test.
	for name, change := range map[string]func(v *float64){"constant": func(v *float64) { *v = 1 }, "unknown": func(v *float64) { *v = math.NaN() }} {
		none := stats.Covariate{Name: name, Blocks: make([]stats.Block, 4)}
		for i, b := range covariate.Blocks {
			none.Blocks[i] = stats.Block{Control: slices.Clone(b.Control), Treatment: slices.Clone(b.Treatment)}
			for k := range b.Control {
				change(&none.Blocks[i].Control[k])
				change(&none.Blocks[i].Treatment[k])
			}
		}
		if got, err := stats.Compare(blocks, stats.Plan{Seed: 1, Covariates: []stats.Covariate{none}}); err != nil || got.Adjustment != nil ||
			got.Test != a.RawTest {
			t.Errorf("Compare() with a covariate that is %s = %+v, %v; want the raw test %+v", name, got, err, a.RawTest)
		}
	}
	few, err := stats.Compare(blocks[:1], stats.Plan{Seed: 1, Covariates: []stats.Covariate{{Name: "speed", Blocks: covariate.Blocks[:1]}}})
	if err != nil || few.Adjustment != nil {
		t.Errorf("Compare() of five pairs = %+v, %v; want no adjustment", few, err)
	}
}
