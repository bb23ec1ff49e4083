package reference

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"eidetic/analysis/stats"
	"eidetic/internal/rigs/testlab"
)

// question is a case for SciPy.
type question struct {
	Kind   string          `json:"kind"`
	A      []float64       `json:"a,omitempty"`
	B      []float64       `json:"b,omitempty"`
	Blocks []stats.Block   `json:"blocks,omitempty"`
	Groups [][]stats.Block `json:"groups,omitempty"`
	Low    float64         `json:"low"`
	High   float64         `json:"high"`
	Q      []float64       `json:"q,omitempty"`
	Looks  []int           `json:"looks,omitempty"`
	Bounds []float64       `json:"bounds,omitempty"`
	Rank   int             `json:"rank"`
	check  func(t *testing.T, a answer)
}

// answer is what SciPy says.
type answer struct {
	P, Value, Delta, Next float64
	At, Holm, BH          []float64
}

// TestAgainstSciPy holds every statistic against SciPy or NumPy.
func TestAgainstSciPy(t *testing.T) {
	testlab.Long(t, "another implementation of what analysis/stats tries by hand")
	// Debian's own Python has Debian's SciPy; another one on the PATH may have none.
	programs := []string{"/usr/bin/python3", "python3"}
	at := slices.IndexFunc(programs, func(p string) bool { return exec.Command(p, "-c", "import scipy.stats").Run() == nil })
	testlab.Need(t, at >= 0, "SciPy of Debian, python3-scipy; install it with: make deps")
	questions := slices.Concat(rankSums(t), blocks(t), together(t), ties(t), shifts(t), others(t))
	text, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(programs[at], "reference.py")
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("reference.py: %v\n%s", err, errs.Bytes())
	}
	var answers []answer
	if err := json.Unmarshal(out.Bytes(), &answers); err != nil || len(answers) != len(questions) {
		t.Fatalf("%d answers to %d questions: %v", len(answers), len(questions), err)
	}
	for i, q := range questions {
		t.Run(q.Kind, func(t *testing.T) { q.check(t, answers[i]) })
	}
	t.Logf("%d cases", len(questions))
}

func normal(r *rand.Rand, n int, shift float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = shift + r.NormFloat64()
	}
	return out
}

// near compares with an absolute error.
func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s = %.15g; SciPy has %.15g", what, got, want)
	}
}

// rankSums: in one block the aligned rank test is Wilcoxon's rank sum test. Beyond a few hundred thousand steps P comes
// from the characteristic function, to 1e-8.
func rankSums(t *testing.T) (out []question) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range [][2]int{{2, 3}, {5, 5}, {10, 10}, {7, 15}, {20, 20}, {30, 25}, {55, 50}} {
		for _, shift := range []float64{0, 0.5, 1} {
			a, b := normal(r, n[0], 0), normal(r, n[1], shift)
			test, err := stats.AlignedRank([]stats.Block{{Control: a, Treatment: b}}, 999, 1)
			if err != nil {
				t.Fatal(err)
			}
			within := 1e-9
			if n[0]+n[1] > 80 {
				within = 2e-8
			}
			out = append(out, question{Kind: "rank sum", A: a, B: b, check: func(t *testing.T, a answer) { near(t, "P", test.P, a.P, within) }})
			if test.Permutations != 0 {
				t.Errorf("%v values: P is not exact", n)
			}
		}
	}
	return out
}

// blocks: in several blocks, with ties and without, against all reassignments one by one. Blocks of one pair are the
// sign-flip test of the pairs' ranks.
func blocks(t *testing.T) (out []question) {
	r := rand.New(rand.NewPCG(2, 2))
	for n := range 24 {
		shape := [][2]int{{2, 2}, {3, 2}, {3, 3}}
		if n%3 == 0 {
			shape = [][2]int{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}
		}
		var all []stats.Block
		for i, s := range shape {
			b := stats.Block{Control: normal(r, s[0], float64(i)), Treatment: normal(r, s[1], float64(i)+float64(n%4)/2)}
			if n%2 == 0 { // ties
				for _, values := range [][]float64{b.Control, b.Treatment} {
					for k := range values {
						values[k] = math.Round(2 * values[k])
					}
				}
			}
			all = append(all, b)
		}
		test, err := stats.AlignedRank(all, 999, 1)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, question{Kind: "blocks", Blocks: all, check: func(t *testing.T, a answer) { near(t, "P", test.P, a.P, 1e-9) }})
	}
	return out
}

// ties: of hundreds of values most of which are equal, P is estimated from permutations, by SciPy as well.
func ties(t *testing.T) (out []question) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 2 {
		draw := func(n, more int) []float64 {
			v := make([]float64, n)
			for i := range v {
				v[i] = float64(min(r.IntN(6), 2) + more*r.IntN(8)/7)
			}
			return v
		}
		a, b := draw(150, 0), draw(150, 1)
		test, err := stats.AlignedRank([]stats.Block{{Control: a, Treatment: b}}, 9999, 1)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, question{Kind: "ties", A: a, B: b, check: func(t *testing.T, a answer) {
			near(t, "P", test.P, a.P, 5*math.Sqrt(max(a.P*(1-a.P), 1e-4)*(1.0/9999+1.0/2999))) // Monte Carlo, both
		}})
	}
	return out
}

// shifts: Hodges–Lehmann's estimate, Cliff's δ, and the interval, at whose ends the test's p passes 0.05.
func shifts(t *testing.T) (out []question) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, n := range [][2]int{{6, 6}, {10, 12}, {25, 20}, {45, 50}} {
		a, b := normal(r, n[0], 0), normal(r, n[1], 0.7)
		shift, err := stats.ShiftOfTwo(a, b, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		delta := stats.CliffsDelta(a, b)
		out = append(out, question{Kind: "shift", A: a, B: b, Low: shift.Low, High: shift.High, check: func(t *testing.T, a answer) {
			near(t, "shift", shift.Value, a.Value, 1e-12)
			near(t, "δ", delta, a.Delta, 1e-12)
			if !(a.At[0] <= 0.05 && a.At[1] > 0.05 && a.At[2] > 0.05 && a.At[3] <= 0.05) {
				t.Errorf("interval %v: SciPy's p outside and inside of its ends is %v; want 0.05 passed at both", shift, a.At)
			}
		}})
	}
	return out
}

// others: quantiles, corrections for several tests, sequential looks, the interval of the median.
func others(t *testing.T) (out []question) {
	r := rand.New(rand.NewPCG(5, 5))
	values := slices.Sorted(slices.Values(normal(r, 17, 3)))
	q := []float64{0, 0.05, 0.25, 0.5, 0.9, 1}
	out = append(out, question{Kind: "quantiles", A: values, Q: q, check: func(t *testing.T, a answer) {
		for i, p := range q {
			near(t, "quantile", stats.Quantile(values, p), a.At[i], 1e-12)
		}
	}})
	var p []float64
	for range 30 {
		p = append(p, math.Pow(r.Float64(), 3))
	}
	p[3] = p[7]
	out = append(out, question{Kind: "adjusted", A: p, check: func(t *testing.T, a answer) {
		for i := range p {
			near(t, "Holm", stats.Holm(p)[i], a.Holm[i], 1e-12)
			near(t, "Benjamini–Hochberg", stats.BenjaminiHochberg(p)[i], a.BH[i], 1e-12)
		}
	}})
	for _, looks := range [][]int{{50}, {25, 50}, {13, 25, 38, 50}, {6, 20, 25}} {
		bounds, err := stats.OBrienFleming(looks, 0.05)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, question{Kind: "looks", Looks: looks, Bounds: bounds, check: func(t *testing.T, a answer) {
			near(t, "the level of the looks", 0.05, a.P, 1e-4)
		}})
	}
	for _, n := range []int{6, 10, 31, 200} {
		sample := slices.Sorted(slices.Values(normal(r, n, 0)))
		s := stats.Summarise(sample)
		rank := slices.Index(sample, s.Low) + 1
		out = append(out, question{Kind: "median interval", A: sample, Rank: rank, check: func(t *testing.T, a answer) {
			if a.P < 0.95 || a.Next >= 0.95 {
				t.Errorf("n = %d: from rank %d on the interval has %v, from the next one %v; want the narrowest of 0.95", n, rank, a.P, a.Next)
			}
		}})
	}
	return out
}

// together: groups of blocks that are ranked by themselves, in units of their own, against all reassignments one by
// one.
func together(t *testing.T) (out []question) {
	r := rand.New(rand.NewPCG(6, 6))
	for n := range 12 {
		var groups []stats.Group
		var values [][]stats.Block
		for g := range 3 {
			var all []stats.Block
			for range 2 {
				b := stats.Block{Control: normal(r, 2, 100), Treatment: normal(r, 2, 100+float64(n%3))}
				for _, arm := range [][]float64{b.Control, b.Treatment} {
					for k := range arm {
						arm[k] *= float64(1 + 10*g)
					}
				}
				all = append(all, b)
			}
			groups, values = append(groups, stats.Group{Blocks: all}), append(values, all)
		}
		c, err := stats.CompareTogether(groups, stats.Plan{Confidence: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		if c.Test.Permutations != 0 {
			t.Error("P is not exact")
		}
		// Where p rises again within the interval, P is that of the interval's end: never less.
		out = append(out, question{Kind: "together", Groups: values, check: func(t *testing.T, a answer) {
			if c.Test.P < a.P-1e-9 || c.Test.P > a.P+1e-9 && c.Test.P <= 0.5 {
				t.Errorf("P = %.15g; SciPy has %.15g", c.Test.P, a.P)
			}
		}})
	}
	return out
}
