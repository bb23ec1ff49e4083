package stats

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance || math.IsNaN(got) != math.IsNaN(want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestRanks(t *testing.T) {
	got := Ranks([]float64{30, 10, 20, 20, -1})
	if d := cmp.Diff([]float64{5, 2, 3.5, 3.5, 1}, got); d != "" {
		t.Error(d)
	}
}

// TestAlignedRankByHand: one block of two pairs, 1 2 | 3 4. Aligned by the
// median 2.5, ranks 1 2 3 4; the treatment's sum is 7; of the 6 halves
// {3,4} and {1,2} are as extreme.
func TestAlignedRankByHand(t *testing.T) {
	got, err := AlignedRank([]Block{{[]float64{1, 2}, []float64{3, 4}}}, 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "p", got.P, 2.0/6, 1e-12)
	// Mean 5, variance 4/4/3·5 = 5/3.
	near(t, "z", got.Z, 2/math.Sqrt(5.0/3), 1e-12)
	if got.Permutations != 0 {
		t.Error("six reassignments were sampled")
	}
}

// TestAlignedRankTwin: against every subset of every block by bit masks.
func TestAlignedRankTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.IntRange(0, 4), func(v int) float64 { return float64(v) }) // ties
		arm := rapid.SliceOfN(value, 0, 4)
		all := []Block{{[]float64{1}, []float64{2}}, {[]float64{2}, []float64{2}}}
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			all = append(all, Block{arm.Draw(t, "control"), arm.Draw(t, "treatment")})
		}
		got, err := AlignedRank(all, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		blocks := alignedRanks(all, 0)
		observed, mean := 0.0, 0.0
		sums := []float64{0}
		for _, b := range blocks {
			m, _ := b.moments()
			observed, mean = observed+b.sum(), mean+m
			var next []float64
			for mask := range 1 << len(b.ranks) {
				if bits.OnesCount(uint(mask)) != b.treatment {
					continue
				}
				s := 0.0
				for i, r := range b.ranks {
					if mask>>i&1 == 1 {
						s += r
					}
				}
				for _, before := range sums {
					next = append(next, before+s)
				}
			}
			sums = next
		}
		extreme := 0
		for _, s := range sums {
			if math.Abs(s-mean) >= math.Abs(observed-mean)-1e-9 {
				extreme++
			}
		}
		if want := float64(extreme) / float64(len(sums)); math.Abs(got.P-want) > 1e-12 {
			t.Fatalf("p = %v, want %v", got.P, want)
		}
	})
}

// TestDriftHidesNothing: of a machine that gets half a second slower, 20 ms are seen,
// with an exact p.
func TestDriftHidesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var control, treatment []float64
	for i := range 50 {
		drift := 10 * float64(i)
		control = append(control, 1500+drift+20*r.NormFloat64())
		treatment = append(treatment, 1520+drift+20*r.NormFloat64())
	}
	got, err := AlignedRank(inBlocks(control, treatment), 9, 42)
	if err != nil || got.P > 0.01 || got.Z < 2.5 || got.Permutations != 0 {
		t.Errorf("AlignedRank() = %+v, %v; want an exact p ≤ 0.01 and z ≥ 2.5", got, err)
	}
}

// TestThreeWays: P from the characteristic function is that of counting, and the one of
// drawn permutations is near both. Those take their place where neither is feasible.
func TestThreeWays(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, n := range []int{15, 20, 50, 80} {
		for uneven := range 2 {
			var control, treatment []float64
			for range n {
				control, treatment = append(control, r.NormFloat64()), append(treatment, 0.8*r.Float64()+r.NormFloat64())
			}
			all := inBlocks(control, treatment)
			for i := range all[:uneven*len(all)/2] { // two and three trials were not valid
				all[i].Control, all[i].Treatment = all[i].Control[2:], all[i].Treatment[3:]
			}
			blocks := alignedRanks(all, 0)
			statistic, mean, variance := score(blocks)
			for _, share := range []float64{1, 0.5, 2} {
				observed := share * math.Abs(statistic-mean)
				exact, ok := exactP(blocks, mean, observed, maxExact)
				smooth, faded := smoothP(blocks, mean, observed, variance)
				if !ok || faded && math.Abs(smooth-exact) > 1e-8 || !faded && n >= 50 {
					t.Errorf("%d pairs: exact %v (%v), smooth %v (%v)", n, exact, ok, smooth, faded)
				}
				if sampled := sampledP(blocks, mean, observed, 9999, 1); math.Abs(sampled-exact) > 0.02 {
					t.Errorf("%d pairs: exact %v, sampled %v", n, exact, sampled)
				}
			}
		}
	}
	few := make([]float64, 300) // counts, and two blocks' ranks are no spread
	for i := range few {
		few[i] = float64(i % 2)
	}
	blocks := alignedRanks([]Block{{few, few[1:]}}, 0)
	_, mean, variance := score(blocks)
	if _, ok := smoothP(blocks, mean, 100, variance); ok {
		t.Error("a function that does not fade was taken for one")
	}
	a, b := testRanks(blocks, 999, 42), testRanks(blocks, 999, 42)
	if a != b || a.Permutations != 999 {
		t.Errorf("300 counts: %+v and %+v", a, b)
	}
}

// inBlocks puts as many trials of each arm into blocks of five of each.
func inBlocks(control, treatment []float64) (all []Block) {
	for from := 0; from < len(control); from += 5 {
		to := min(from+5, len(control))
		all = append(all, Block{control[from:to], treatment[from:to]})
	}
	return all
}

// machines are what may go on while trials run; none of it may make an alarm of
// equal arms. Each gives the n-th trial's value, from 0, after the last.
var machines = map[string]func(r *rand.Rand, n int, last float64) float64{
	"heavy tails and drift": func(r *rand.Rand, n int, _ float64) float64 {
		v := 1500 * math.Exp(0.03*r.NormFloat64())
		if r.IntN(20) == 0 {
			v += 800
		}
		return math.Round((v+2.5*float64(n))/16.667) * 16.667
	},
	"every other load is slow": func(r *rand.Rand, n int, _ float64) float64 { return 1500 + 60*float64(n%2) + 10*r.NormFloat64() },
	"slow begets fast":         func(r *rand.Rand, _ int, last float64) float64 { return 1500 - 0.9*(last-1500) + 10*r.NormFloat64() },
	"slow begets slow":         func(r *rand.Rand, _ int, last float64) float64 { return 1500 + 0.9*(last-1500) + 10*r.NormFloat64() },
}

// TestAlignedRankLevel: of A/A experiments whose order was drawn by lot, one in
// twenty is "significant", within the binomial's 99.9 % band, whatever the machine
// does and though one trial in ten is left out.
func TestAlignedRankLevel(t *testing.T) {
	for name, next := range machines {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 9))
			alarms := 0
			const experiments = 1000
			for range experiments {
				var all []Block
				n, last := 0, 1500.0
				for range 4 {
					const size = 5
					var b Block
					for _, place := range r.Perm(2 * size) {
						last = next(r, n, last)
						n++
						switch {
						case r.IntN(10) == 0:
						case place < size:
							b.Control = append(b.Control, last)
						default:
							b.Treatment = append(b.Treatment, last)
						}
					}
					all = append(all, b)
				}
				test, err := AlignedRank(all, 199, r.Uint64())
				if err != nil {
					t.Fatal(err)
				}
				if test.P <= 0.05 {
					alarms++
				}
			}
			if alarms < 28 || alarms > 75 { // 50 ± 3.3·√47.5, rounded outwards
				t.Errorf("%d alarms in %d A/A experiments, about 50 were expected", alarms, experiments)
			}
		})
	}
}

func TestPairErrors(t *testing.T) {
	one := []float64{1}
	for name, f := range map[string]func() error{
		"one pair":  func() error { _, err := AlignedRank([]Block{{one, []float64{1, 2}}}, 9, 1); return err },
		"no number": func() error { _, err := AlignedRank([]Block{{one, []float64{1, math.NaN()}}}, 9, 1); return err },
		"unequal":   func() error { _, _, err := ShiftInBlocks([]Block{{one, []float64{1, 2}}}, 0.95, 9, 1); return err },
		"infinity": func() error {
			_, _, err := ShiftInBlocks([]Block{{[]float64{1, math.Inf(1)}, []float64{1, 2}}}, 0.95, 9, 1)
			return err
		},
		"too far": func() error {
			_, _, err := ShiftInBlocks([]Block{{[]float64{1, 1e308}, []float64{1, 2}}}, 0.95, 9, 1)
			return err
		},
		"no values": func() error { _, _, err := ShiftInBlocks(nil, 0.95, 9, 1); return err },
	} {
		if err := f(); !errors.Is(err, ErrPairs) {
			t.Errorf("%s: error %v, want %v", name, err, ErrPairs)
		}
	}
	two := []float64{1, 2}
	if _, err := AlignedRank([]Block{{two, two}}, 0, 1); err == nil {
		t.Error("no permutations were accepted")
	}
	if _, _, err := ShiftInBlocks([]Block{{two, two}}, 1, 9, 1); err == nil {
		t.Error("a confidence of 1 was accepted")
	}
	if got, err := AlignedRank([]Block{{[]float64{5, 5}, []float64{5, 5}}}, 9, 1); err != nil || got.P != 1 || got.Z != 0 {
		t.Errorf("equal values: %+v %v", got, err)
	}
}

func TestCliffsDelta(t *testing.T) {
	near(t, "all above", CliffsDelta([]float64{1, 2}, []float64{3, 4}), 1, 0)
	near(t, "equal", CliffsDelta([]float64{1, 1}, []float64{1, 1}), 0, 0)
	near(t, "none", CliffsDelta(nil, []float64{1}), 0, 0)
	// The example of R's effsize::cliff.delta, the arms exchanged.
	control := []float64{10, 10, 20, 20, 20, 30, 30, 30, 40, 50}
	treatment := []float64{10, 20, 30, 40, 40, 50}
	near(t, "worked example", CliffsDelta(control, treatment), 0.25, 1e-12)
	if DeltaSize(0.25) != "small" || DeltaSize(-0.4) != "medium" || DeltaSize(0.1) != "negligible" || DeltaSize(-1) != "large" {
		t.Error("words for sizes")
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.IntRange(0, 9), func(v int) float64 { return float64(v) })
		a, b := rapid.SliceOfN(value, 1, 20).Draw(t, "a"), rapid.SliceOfN(value, 1, 20).Draw(t, "b")
		sum := 0
		for _, x := range a {
			for _, y := range b {
				switch {
				case y > x:
					sum++
				case y < x:
					sum--
				}
			}
		}
		if got, want := CliffsDelta(a, b), float64(sum)/float64(len(a)*len(b)); got != want {
			t.Fatalf("δ = %v, want %v", got, want)
		}
	})
}

func TestMinimalEffect(t *testing.T) {
	near(t, "at 80 %", MinimalEffect(10, 0.8, 1), 14.294, 1e-3)
	near(t, "at 50 %", MinimalEffect(10, 0.5, 1), 10, 1e-9)
	// (2.49771 + 0.84162) ÷ 1.95996 at a level of 1.25 %.
	near(t, "of four metrics", MinimalEffect(10, 0.8, 4), 17.0378, 1e-3)
}

func TestDither(t *testing.T) {
	values := make([]float64, 4000)
	got := Dither(values, 16, 5)
	if !slices.Equal(got, Dither(values, 16, 5)) || slices.Equal(got, Dither(values, 16, 6)) {
		t.Error("the seed does not decide")
	}
	sum, squares := 0.0, 0.0
	for _, v := range got {
		if v < -8 || v >= 8 {
			t.Fatalf("%v is outside the frame", v)
		}
		sum, squares = sum+v, squares+v*v
	}
	near(t, "mean", sum/4000, 0, 0.25)
	near(t, "variance", squares/4000, 16*16/12.0, 1)
}
