package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestShiftByHand: one block of five pairs is Wilcoxon's rank sum test, whose interval
// ends at differences of two values: R's wilcox.test(y, x, conf.int = TRUE) has
// D(3) … D(23) of the 25, with 96.8 %, as P(U ≤ 2) = 4/252.
func TestShiftByHand(t *testing.T) {
	x, y := []float64{1.1, 2.3, 3.2, 4.9, 7.4}, []float64{5.2, 6.6, 8.9, 9.7, 12.1}
	got, test, err := ShiftInBlocks([]Block{{x, y}}, 0.95, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var differences []float64
	for _, a := range x {
		for _, b := range y {
			differences = append(differences, b-a)
		}
	}
	slices.Sort(differences)
	near(t, "value", got.Value, differences[12], 1e-9)
	near(t, "low", got.Low, differences[2], 1e-9)
	near(t, "high", got.High, differences[22], 1e-9)
	near(t, "confidence", got.Confidence, 1-8.0/252, 1e-12)
	// U = 2: 5.2 and 6.6 lie below 7.4 alone.
	near(t, "p", test.P, 8.0/252, 1e-12)
}

// TestFewBlocks: what cannot have the confidence says so, and has what there is.
func TestFewBlocks(t *testing.T) {
	got, test, err := ShiftInBlocks([]Block{{[]float64{0, 0.5, 1}, []float64{10, 12, 16}}}, 0.95, 9, 1)
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "3 pairs are too few for 95 % confidence: the interval has 90 %") {
		t.Fatalf("three pairs: %+v %v", got, err)
	}
	near(t, "p", test.P, 0.1, 1e-12)
	near(t, "confidence", got.Confidence, 0.9, 1e-12)
	near(t, "low", got.Low, 9, 1e-9) // the least and the greatest difference
	near(t, "high", got.High, 16, 1e-9)
	equal := []float64{7, 7, 7, 7, 7, 7}
	got, test, err = ShiftInBlocks([]Block{{equal, equal}}, 0.95, 9, 1)
	if err != nil || got.Value != 0 || got.Low != 0 || got.High != 0 || got.Confidence < 0.95 || test.P != 1 {
		t.Errorf("equal values: %+v %+v %v", got, test, err)
	}
}

// TestShiftProperties: of any blocks, also with arms of unequal size and with ties, 0 is
// outside the interval if and only if p is at most the level, and the bounds hold the
// estimate.
func TestShiftProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.IntRange(0, 40), func(v int) float64 { return float64(v) })
		moved := float64(rapid.SampledFrom([]int{-32, -8, 0, 4, 16, 64}).Draw(t, "moved"))
		var all []Block
		for range rapid.IntRange(1, 4).Draw(t, "blocks") {
			b := Block{rapid.SliceOfN(value, 1, 6).Draw(t, "control"), rapid.SliceOfN(value, 1, 6).Draw(t, "treatment")}
			for i := range b.Treatment {
				b.Treatment[i] += moved
			}
			all = append(all, b)
		}
		if control, _ := paired(all); len(control) < 2 {
			return
		}
		p := Plan{Seed: rapid.Uint64().Draw(t, "seed"), Step: 1}
		c, err := Compare(all, p)
		if err != nil {
			t.Fatal(err)
		}
		i := c.Shift
		if !(i.Low <= i.Value && i.Value <= i.High) || math.IsInf(i.High-i.Low, 0) {
			t.Fatalf("%+v is out of order", i)
		}
		// Few blocks have an interval of less confidence.
		level := max(0.05, 1-i.Confidence)
		if excluded := i.Low > 0 || i.High < 0; len(i.Warnings) == 0 && excluded != (c.Test.P <= level) {
			t.Fatalf("p = %v, %+v", c.Test.P, i)
		}
	})
}

// TestEqualCountsAreSpread: values that are rounded to whole numbers are spread for the
// comparison, so that an estimate lies between them; values that differ are left alone.
func TestEqualCountsAreSpread(t *testing.T) {
	var control, treatment []float64
	for i := range 40 {
		control, treatment = append(control, 60+float64(i%2)), append(treatment, 60+min(float64(i%10), 1))
	}
	c, err := Compare(inBlocks(control, treatment), Plan{Seed: 4})
	if err != nil || c.Shift.Value < 0.1 || c.Shift.Value > 0.7 || (c.Shift.Low > 0) != (c.Test.P <= 0.05) {
		t.Errorf("half against nine tenths of 61: %+v, p = %v, %v", c.Shift, c.Test.P, err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range control {
		control[i], treatment[i] = r.Float64(), r.Float64()
	}
	blocks := inBlocks(control, treatment)
	if resolution(blocks) != 0 {
		t.Errorf("values without ties have a resolution of %v", resolution(blocks))
	}
	blocks[0].Control[0] = blocks[3].Control[1]
	if step := resolution(blocks); step <= 0 || step > 0.1 {
		t.Errorf("resolution %v", step)
	}
	if step := resolution([]Block{{[]float64{2, 2}, []float64{2, 2}}}); step != 0 {
		t.Errorf("of equal values: %v", step)
	}
}

// TestShiftMoves: estimate and bounds move with the treatment, and change sides with
// the arms.
func TestShiftMoves(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	var control, treatment, moved []float64
	for range 20 {
		control, treatment = append(control, 10*r.NormFloat64()), append(treatment, 10*r.NormFloat64())
		moved = append(moved, treatment[len(treatment)-1]+64)
	}
	a, _, err := ShiftInBlocks(inBlocks(control, treatment), 0.95, 9, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, _, _ := ShiftInBlocks(inBlocks(control, moved), 0.95, 9, 1)
	c, _, _ := ShiftInBlocks(inBlocks(treatment, control), 0.95, 9, 1)
	for _, v := range [][2]float64{{a.Value + 64, b.Value}, {a.Low + 64, b.Low}, {a.High + 64, b.High}, {-a.Value, c.Value}, {-a.Low, c.High}, {-a.High, c.Low}} {
		near(t, "bound", v[1], v[0], 1e-6)
	}
}

func BenchmarkShiftInBlocks(b *testing.B) {
	for _, pairs := range []int{10, 50, 100, 200} {
		b.Run(map[int]string{10: "10", 50: "50", 100: "100", 200: "200 sampled"}[pairs], func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			var control, treatment []float64
			for range pairs {
				control, treatment = append(control, r.NormFloat64()), append(treatment, 0.2+r.NormFloat64())
			}
			blocks := inBlocks(control, treatment)
			for b.Loop() {
				if _, _, err := ShiftInBlocks(blocks, 0.95, 9999, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
