package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
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
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0],
		"3 pairs are too few for 95 % confidence: the interval has 90 %") {
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
// outside the interval if and only if p is at most the level; the bounds hold the
// estimate; and both move with the treatment, also where p rises again further out.
func TestShiftProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.IntRange(0, 40), func(v int) float64 { return float64(v) })
		moved := float64(rapid.SampledFrom([]int{-32, -8, 0, 4, 16, 64}).Draw(t, "moved"))
		var all, further []Block
		for range rapid.IntRange(1, 4).Draw(t, "blocks") {
			b := Block{rapid.SliceOfN(value, 1, 6).Draw(t, "control"), rapid.SliceOfN(value, 1, 6).Draw(t, "treatment")}
			more := Block{Control: b.Control}
			for _, v := range b.Treatment {
				more.Treatment = append(more.Treatment, v+moved)
			}
			all, further = append(all, b), append(further, more)
		}
		if control, _ := paired(all); len(control) < 2 {
			return
		}
		p := Plan{Seed: rapid.Uint64().Draw(t, "seed"), Step: 1}
		a, err := Compare(all, p)
		b, err2 := Compare(further, p)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for _, c := range []Comparison{a, b} {
			i := c.Shift
			if !(i.Low <= i.Value && i.Value <= i.High) || math.IsInf(i.High-i.Low, 0) {
				t.Fatalf("%+v is out of order", i)
			}
			// Few blocks have an interval of less confidence.
			if excluded := i.Low > 0 || i.High < 0; len(i.Warnings) == 0 && excluded != (c.Test.P <= 0.05) {
				t.Fatalf("p = %v, %+v", c.Test.P, i)
			}
		}
		for _, v := range [][2]float64{{a.Shift.Value, b.Shift.Value}, {a.Shift.Low, b.Shift.Low}, {a.Shift.High, b.Shift.High}} {
			if math.Abs(v[0]+moved-v[1]) > 1e-6 {
				t.Fatalf("moved by %v, from %+v to %+v", moved, a.Shift, b.Shift)
			}
		}
	})
}

// TestShiftHull: no shift outside the interval is kept by the test, by trial of many:
// in blocks so few and uneven that it rejects some within, and in so many that not all
// shifts are looked at. Where 0 is rejected within, p is that of no difference.
func TestShiftHull(t *testing.T) {
	few := [][2]int{{1, 3}, {4, 1}, {2, 5}, {3, 3}}
	many := slices.Concat(few, few, few, [][2]int{{5, 4}, {2, 3}})
	for _, c := range []struct {
		sizes       [][2]int
		experiments int
		gaps        bool
	}{{few, 60, true}, {many, 5, false}, {many[2:], 5, false}} {
		r := rand.New(rand.NewPCG(5, 5))
		gaps := 0
		for range c.experiments {
			var all []Block
			for _, size := range c.sizes {
				var b Block
				for range size[0] {
					b.Control = append(b.Control, r.ExpFloat64())
				}
				for range size[1] {
					b.Treatment = append(b.Treatment, 1+r.ExpFloat64())
				}
				all = append(all, b)
			}
			got, _, err := ShiftInBlocks(all, 0.95, 9, 1)
			if err != nil || len(got.Warnings) > 0 {
				t.Fatal(got, err)
			}
			i := inversion{blocks: all, permutations: 9, seed: 1, alpha: 0.05, span: spread(all)}
			held := func(shift float64) bool { return i.p(i.ranks(shift)) > i.alpha }
			width := got.High - got.Low
			gap := math.NaN()
			for range 60 {
				near := width * r.Float64() * r.Float64()
				for _, outside := range []float64{got.Low - 1e-9 - near, got.High + 1e-9 + near} {
					if held(outside) {
						t.Fatalf("%v is not rejected, but outside of %+v", outside, got)
					}
				}
				for _, inside := range []float64{got.Low + near, got.High - near} {
					if !held(inside) {
						gap = inside
					}
				}
			}
			if !math.IsNaN(gap) {
				gaps++
				for _, b := range all {
					for n := range b.Treatment {
						b.Treatment[n] -= gap
					}
				}
				alone, _ := AlignedRank(all, 9, 1)
				if i, test, _ := ShiftInBlocks(all, 0.95, 9, 1); alone.P > 0.05 || test.P <= 0.05 || i.Low > 0 || i.High < 0 {
					t.Errorf("0 is rejected within %+v: p = %v, and with the interval %v", i, alone.P, test.P)
				}
				continue
			}
			if !held(got.Low+1e-9) || !held(got.High-1e-9) {
				t.Fatalf("an end of %+v is rejected", got)
			}
		}
		if c.gaps && gaps == 0 {
			t.Error("no interval holds shifts that are rejected: the test shows nothing")
		}
	}
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
	for _, v := range [][2]float64{{a.Value + 64, b.Value}, {a.Low + 64, b.Low}, {a.High + 64, b.High}, {-a.Value, c.Value},
		{-a.Low, c.High}, {-a.High, c.Low}} {
		near(t, "bound", v[1], v[0], 1e-6)
	}
}

func BenchmarkShiftInBlocks(b *testing.B) {
	for _, pairs := range []int{10, 20, 50, 100, 200} {
		b.Run(strconv.Itoa(pairs), func(b *testing.B) {
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

// TestEqualDifferences: where all pairs differ by the same, the interval is that one value, and not everything.
func TestEqualDifferences(t *testing.T) {
	for _, n := range []int{8, 12, 30, 60} {
		for _, shift := range []float64{0, 30, -0.5, 1e6} {
			for _, spread := range []float64{0, 3} {
				var blocks []Block
				for i := range n {
					level := 40 + spread*float64(i%3)
					blocks = append(blocks, Block{[]float64{level}, []float64{level + shift}})
				}
				got, test, err := ShiftInBlocks(blocks, 0.95, 2000, 1)
				if err != nil {
					t.Fatal(err)
				}
				near := func(v float64) bool { return math.Abs(v-shift) <= 1e-9*(1+math.Abs(shift)) }
				if !near(got.Value) || !near(got.Low) || !near(got.High) || got.Confidence < 0.95 || got.Confidence > 1 {
					t.Errorf("%d pairs, spread %v: %+v, want %v alone", n, spread, got, shift)
				}
				if (test.P <= 0.05) != (shift != 0) {
					t.Errorf("%d pairs that differ by %v: p = %v", n, shift, test.P)
				}
			}
		}
	}
}

// TestWholeNumbers: among few whole numbers, where most differences are equal, interval and test agree, and the
// interval is no wider than the values can tell.
func TestWholeNumbers(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		pairs, kinds := 6+r.IntN(24), 1+r.IntN(3)
		apart := []float64{0, 1, 5, 1e7}[r.IntN(4)]
		var blocks []Block
		for range pairs {
			level := float64(r.IntN(kinds))
			blocks = append(blocks, Block{[]float64{level + float64(r.IntN(kinds))}, []float64{level + apart + float64(r.IntN(kinds))}})
		}
		got, test, err := ShiftInBlocks(blocks, 0.95, 500, seed)
		if err != nil {
			t.Fatal(err)
		}
		if got.Confidence < 0.95 { // too few pairs, which it says
			continue
		}
		size, room := spread(blocks), 1e-6*(1+spread(blocks))
		if got.Low > got.Value+room || got.High < got.Value-room || got.High-got.Low > 4*size+room {
			t.Errorf("seed %d: %+v of values %v apart", seed, got, size)
		}
		if excludes := got.Low > 0 || got.High < 0; excludes != (test.P <= 0.05) {
			t.Errorf("seed %d: %+v, but p = %v", seed, got, test.P)
		}
	}
}
