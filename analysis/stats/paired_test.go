package stats

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
		t.Error("six reassignments were not tried one by one")
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
		got, err := AlignedRank(all, 1<<20, 1)
		if err != nil {
			t.Fatal(err)
		}
		blocks := alignedRanks(all)
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

// TestAlignedRankSampling: the sampled p is near the exact one, the same for
// the same seed, and drift does not hide a difference.
func TestAlignedRankSampling(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var control, treatment []float64
	for i := range 50 {
		drift := 10 * float64(i)
		control = append(control, 1500+drift+20*r.NormFloat64())
		treatment = append(treatment, 1520+drift+20*r.NormFloat64())
	}
	a, err := AlignedRank(inBlocks(control, treatment), 9999, 42)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := AlignedRank(inBlocks(control, treatment), 9999, 42)
	if a != b {
		t.Errorf("one seed, two outcomes: %+v %+v", a, b)
	}
	if a.P > 0.01 || a.Z < 2.5 || a.Permutations != 9999 {
		t.Errorf("a shift of 20 ms in drift was not seen: %+v", a)
	}
	small, _ := AlignedRank(inBlocks(control[:5], treatment[:5]), 251, 1) // 252 reassignments: sampled
	exact, _ := AlignedRank(inBlocks(control[:5], treatment[:5]), 252, 1)
	near(t, "sampled p", small.P, exact.P, 0.12)
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
		"unequal":   func() error { _, err := HodgesLehmann(one, []float64{1, 2}, 0.95); return err },
		"NaN":       func() error { _, err := HodgesLehmann(one, []float64{math.NaN()}, 0.95); return err },
		"infinity":  func() error { _, err := HodgesLehmann(one, []float64{math.Inf(1)}, 0.95); return err },
		"no values": func() error { _, err := HodgesLehmann(nil, nil, 0.95); return err },
	} {
		if err := f(); !errors.Is(err, ErrPairs) {
			t.Errorf("%s: %v", name, err)
		}
	}
	two := []float64{1, 2}
	if _, err := AlignedRank([]Block{{two, two}}, 0, 1); err == nil {
		t.Error("no permutations were accepted")
	}
	if _, err := HodgesLehmann(one, one, 1); err == nil {
		t.Error("a confidence of 1 was accepted")
	}
	if got, err := AlignedRank([]Block{{[]float64{5, 5}, []float64{5, 5}}}, 9, 1); err != nil || got.P != 1 || got.Z != 0 {
		t.Errorf("equal values: %+v %v", got, err)
	}
}

// TestHodgesLehmann: the depression data of Hollander and Wolfe, table 3.1; R's
// wilcox.test(y, x, paired = TRUE, conf.int = TRUE) says −0.46, −0.786 … −0.010
// with 96.1 %.
func TestHodgesLehmann(t *testing.T) {
	before := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	after := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	got, err := HodgesLehmann(before, after, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	want := Interval{Value: -0.46, Low: -0.786, High: -0.010, Confidence: 0.9609375}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 5e-4)); d != "" {
		t.Error(d)
	}
	few, err := HodgesLehmann([]float64{0, 0, 0}, []float64{1, 2, 6}, 0.95)
	if err != nil || few.Low != 1 || few.High != 6 || len(few.Warnings) != 1 || few.Confidence != 0.75 {
		t.Errorf("three pairs: %+v %v", few, err)
	}
}

// TestSignedRankCut against the sign patterns one by one, and R's
// qsignrank(0.025, n): 8 for n = 10, 434 for n = 50, each the first rank sum with
// P(T ≤ q) ≥ 0.025; the cut is one below it, counted from 1: the same number.
func TestSignedRankCut(t *testing.T) {
	for n := 6; n <= 14; n++ {
		counts := make([]int, n*(n+1)/2+1)
		for mask := range 1 << n {
			sum := 0
			for i := range n {
				if mask>>i&1 == 1 {
					sum += i + 1
				}
			}
			counts[sum]++
		}
		tail, want := 0, 0
		for 2*float64(tail+counts[want])/float64(int(1)<<n) <= 0.05 {
			tail += counts[want]
			want++
		}
		k, reached := signedRankCut(n, 0.95)
		if k != want {
			t.Errorf("n = %d: cut %d, want %d", n, k, want)
		}
		near(t, "confidence", reached, 1-2*float64(tail)/float64(int(1)<<n), 1e-12)
	}
	for n, want := range map[int]int{10: 9, 50: 435} {
		if k, _ := signedRankCut(n, 0.95); k != want && k != want-1 {
			t.Errorf("n = %d: cut %d, want about %d", n, k, want)
		}
	}
	exact, _ := signedRankCut(100, 0.95)
	normal, _ := signedRankCut(101, 0.95)
	if normal-exact < 0 || normal-exact > 60 {
		t.Errorf("the cut jumps from %d to %d where the exact distribution ends", exact, normal)
	}
}

// TestHodgesLehmannProperties: shifting one arm shifts estimate and bounds.
func TestHodgesLehmannProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		value := rapid.Map(rapid.IntRange(-1000, 1000), func(v int) float64 { return float64(v) })
		a, b := rapid.SliceOfN(value, n, n).Draw(t, "a"), rapid.SliceOfN(value, n, n).Draw(t, "b")
		x, err := HodgesLehmann(a, b, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		moved := slices.Clone(b)
		for i := range moved {
			moved[i] += 64
		}
		y, _ := HodgesLehmann(a, moved, 0.95)
		x.Value, x.Low, x.High = x.Value+64, x.Low+64, x.High+64
		if d := cmp.Diff(x, y); d != "" {
			t.Fatal(d)
		}
		back, _ := HodgesLehmann(moved, a, 0.95)
		if back.Value != -y.Value || back.Low != -y.High || back.High != -y.Low {
			t.Fatalf("%+v turned round is %+v", y, back)
		}
		if !(y.Low <= y.Value && y.Value <= y.High) {
			t.Fatalf("%+v is out of order", y)
		}
	})
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
