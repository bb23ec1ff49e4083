package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// The permeability of the chorioamnion of Hollander and Wolfe, §4.1, as in the
// manual of R's wilcox.test: estimate 0.305 and 95 % interval −0.15 to 0.76 of
// the first less the second, W = 35, one-sided p 0.1272.
func TestIndependentKnown(t *testing.T) {
	term := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	early := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	c, err := Independent(early, term, 0, Plan{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		name      string
		got, want float64
	}{
		{"shift", c.Shift.Value, 0.305}, {"low", c.Shift.Low, -0.15}, {"high", c.Shift.High, 0.76},
		{"p", c.Test.P, 2 * 0.1272}, {"pairs", float64(c.Pairs), 5}, {"permutations", float64(c.Test.Permutations), 0},
	} {
		if math.Abs(v.got-v.want) > 1e-4 {
			t.Errorf("%s: %v, want %v", v.name, v.got, v.want)
		}
	}
}

// The counts are those of all orders, tried one by one.
func TestMannWhitneyCounts(t *testing.T) {
	for m := 1; m <= 6; m++ {
		for n := 1; n <= 6; n++ {
			want := make([]float64, m*n+1)
			for set := range 1 << (m + n) {
				u, ones := 0, 0
				for i := range m + n {
					if set>>i&1 == 1 {
						ones++
					} else {
						u += ones
					}
				}
				if ones == m {
					want[u]++
				}
			}
			for u, ways := range mannWhitney(m, n) {
				if ways != want[u] {
					t.Fatalf("%d and %d values, U = %d: %v orders, want %v", m, n, u, ways, want[u])
				}
			}
		}
	}
}

// The interval holds the true shift as often as it says, also where the samples
// differ in size and beyond the exact distribution.
func TestShiftOfTwoCovers(t *testing.T) {
	for _, size := range [][2]int{{6, 6}, {10, 15}, {60, 50}} {
		rng := rand.New(rand.NewPCG(1, uint64(size[0])))
		covered, runs := 0, 2000
		for range runs {
			control, treatment := skewed(rng, size[0], 0), skewed(rng, size[1], 30)
			i, err := ShiftOfTwo(control, treatment, 0.95)
			if err != nil || i.Confidence < 0.95 {
				t.Fatal(i, err)
			}
			if i.Low <= 30 && 30 <= i.High {
				covered++
			}
		}
		if share := float64(covered) / float64(runs); share < 0.935 {
			t.Errorf("%v values: the interval holds the shift in %.1f %%", size, 100*share)
		}
	}
}

func skewed(rng *rand.Rand, n int, shift float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1000 + shift + 40*rng.ExpFloat64()
	}
	return out
}

// A difference within the margin is found as seldom as the level says, at its
// edge as well, and one beyond it is.
func TestMargin(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	share := func(shift, margin float64) float64 {
		found, runs := 0, testlab.Repeat(400, 1500)
		for range runs {
			c, err := Independent(skewed(rng, 10, 0), skewed(rng, 10, shift), margin, Plan{Permutations: 999})
			if err != nil {
				t.Fatal(err)
			}
			if c.Test.P <= 0.05 {
				found++
			}
		}
		return float64(found) / float64(runs)
	}
	for _, v := range []struct{ shift, margin, least, most float64 }{
		{0, 0, 0, 0.065}, {0, 50, 0, 0.001}, {50, 50, 0, 0.065}, {-50, 50, 0, 0.065}, {150, 50, 0.9, 1}, {-150, 50, 0.9, 1},
	} {
		if got := share(v.shift, v.margin); got < v.least || got > v.most {
			t.Errorf("shift %v, margin %v: found in %.3f, want %v to %v", v.shift, v.margin, got, v.least, v.most)
		}
	}
}

func TestIndependentRefuses(t *testing.T) {
	good := []float64{1, 2, 3}
	for name, c := range map[string]struct {
		a, b   []float64
		margin float64
	}{
		"one value": {good[:1], good, 0}, "none": {nil, good, 0}, "not a number": {[]float64{1, math.NaN()}, good, 0},
		"infinite": {good, []float64{1, math.Inf(1)}, 0}, "overflow": {[]float64{-math.MaxFloat64, 1}, []float64{math.MaxFloat64, 2}, 0},
	} {
		if _, err := Independent(c.a, c.b, c.margin, Plan{}); !errors.Is(err, ErrPairs) {
			t.Errorf("%s: error %v, want %v", name, err, ErrPairs)
		}
	}
	for _, margin := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := Independent(good, good, margin, Plan{}); err == nil {
			t.Errorf("margin %v is taken", margin)
		}
	}
	if _, err := ShiftOfTwo(make([]float64, 3000), make([]float64, 3000), 0.95); err == nil {
		t.Error("nine million differences are made")
	}
}

// A sample does not differ from itself, whatever the dither within its frames.
func TestIndependentOfItself(t *testing.T) {
	const frame = 1000.0 / 60
	values := []float64{40 * frame, 40 * frame, 41 * frame, 42 * frame, 44 * frame, 44 * frame, 44 * frame, 47 * frame}
	for seed := range uint64(20) {
		c, err := Independent(values, values, 0, Plan{Step: frame, Seed: seed})
		if err != nil || c.Shift.Value != 0 || c.Shift.Low != -c.Shift.High {
			t.Fatalf("seed %d: shift of a sample from itself = %+v, %v; want 0", seed, c.Shift, err)
		}
	}
}
