package bisect_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/analysis/bisect"
	"eidetic/analysis/bisect/virtual"
	"eidetic/analysis/stats"
	"eidetic/internal/rigs/testlab"
)

// TestFinds25ms: a regression of 25 ms at a random place among 64 revisions, in virtual time, with the noise of
// docs/benchmarks.md: found in nine bisects of nine.
func TestFinds25ms(t *testing.T) {
	testlab.Long(t, "hundreds of simulated bisects")
	trials := 0
	for seed := range uint64(9) {
		r := rand.New(rand.NewPCG(2, seed))
		truth := 1 + r.IntN(64)
		o, err := virtual.Search(r, virtual.Machine(), virtual.One(65, truth, 25), nil, bisect.Problem{})
		if err != nil {
			t.Fatal(err)
		}
		f := o.Found
		if f.Kind != bisect.Culprit || f.Steps[0].Last != truth || f.Steps[0].First != truth {
			t.Errorf("bisect %d found %s %+v; want a culprit, %d", seed, f.Kind, f.Steps, truth)
			continue
		}
		s := f.Steps[0]
		if s.Probability < 0.95 || s.Pairs < 6 || !(s.Direct.Low > 0 && s.Direct.Low < 40 && s.Direct.High > 15) {
			t.Errorf("bisect %d named %+v; want a probability of 0.95, and 25 ms in pairs made to confirm it", seed, s)
		}
		sum := o.None + o.Several
		for _, p := range o.Culprits {
			sum += p
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("bisect %d: the probabilities sum up to %v", seed, sum)
		}
		trials += 2 * o.Pairs
	}
	t.Logf("%d trials a bisect", trials/9)
}

func TestSaysWhatItDoesNotKnow(t *testing.T) {
	two := virtual.One(33, 9, 25)
	for i := 22; i < len(two); i++ {
		two[i] += 25
	}
	tests := []struct {
		name    string
		levels  []float64
		problem bisect.Problem
		kind    string
	}{
		{"no difference", virtual.One(33, 9, 0), bisect.Problem{}, bisect.None},
		{"less than matters", virtual.One(33, 9, 2), bisect.Problem{Least: 25}, bisect.None},
		{"two steps", two, bisect.Problem{}, bisect.Several},
		{"too little money", virtual.One(33, 9, 25), bisect.Problem{Budget: 40}, bisect.Unsure},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(5) {
				o, err := virtual.Search(rand.New(rand.NewPCG(3, seed)), virtual.Machine(), tt.levels, nil, tt.problem)
				if err != nil {
					t.Fatal(err)
				}
				if o.Found.Kind != tt.kind {
					t.Errorf("seed %d: found %+v; want %s", seed, *o.Found, tt.kind)
				}
				if tt.problem.Least > 0 && o.Pairs >= 160 {
					t.Errorf("seed %d: %d pairs; want fewer than without a least difference", seed, o.Pairs)
				}
				if tt.problem.Budget > 0 && (o.Pairs > tt.problem.Budget || o.Found.More < 10) {
					t.Errorf("seed %d: %d pairs made, %d missing", seed, o.Pairs, o.Found.More)
				}
			}
		})
	}
}

// Revisions that cannot be tried widen the answer and are never measured.
func TestUntestable(t *testing.T) {
	broken := map[int]bool{}
	for _, i := range []int{3, 7, 8, 9, 16, 17, 24, 30} {
		broken[i] = true
	}
	for seed := range uint64(3) {
		o, err := virtual.Search(rand.New(rand.NewPCG(4, seed)), virtual.Machine(), virtual.One(33, 9, 50), broken, bisect.Problem{})
		if err != nil {
			t.Fatal(err)
		}
		f := o.Found
		if f.Kind != bisect.Culprit || f.Steps[0].Before > 6 || f.Steps[0].Before < 6 || f.Steps[0].First != 7 || f.Steps[0].Last != 10 {
			t.Errorf("seed %d: %+v; want one of 7 … 10, after 6", seed, f)
		}
	}
}

// Two neighbours leave nothing to search; values without noise, and of one size, are no trouble.
func TestEdges(t *testing.T) {
	quiet := virtual.Machine()
	quiet.Spread, quiet.Outliers, quiet.Drift, quiet.Frame, quiet.Tails, quiet.Invalid = 1e-9, 0, 0, 0, 0, 0
	for _, revisions := range []int{2, 3, 100} {
		for _, culprit := range []int{1, revisions - 1} {
			o, err := virtual.Search(rand.New(rand.NewPCG(5, 5)), quiet, virtual.One(revisions, culprit, -80), nil, bisect.Problem{})
			if err != nil {
				t.Fatal(err)
			}
			if o.Found.Kind != bisect.Culprit || o.Found.Steps[0].Last != culprit || math.Abs(o.Found.Steps[0].Direct.Value+80) > 1e-3 {
				t.Errorf("of %d, %d: %+v", revisions, culprit, *o.Found)
			}
		}
	}
	equal := bisect.State{Visits: []bisect.Visit{{Control: 0, Treatment: 4, Blocks: []stats.Block{{Control: make([]float64, 200),
		Treatment: make([]float64, 200)}}}}}
	d, err := bisect.Decide(bisect.Problem{Revisions: 5}, equal)
	if err != nil || d.Found == nil || d.Found.Kind != bisect.None {
		t.Errorf("200 pairs of zeros: %+v, %v", d.Found, err)
	}
}

// The same data give the same decision.
func TestDeterministic(t *testing.T) {
	search := func() virtual.Outcome {
		o, err := virtual.Search(rand.New(rand.NewPCG(6, 6)), virtual.Machine(), virtual.One(20, 7, 40), nil, bisect.Problem{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if d := cmp.Diff(search(), search()); d != "" {
		t.Error(d)
	}
}

func TestErrors(t *testing.T) {
	visit := func(control, treatment int, v float64) bisect.State {
		return bisect.State{Visits: []bisect.Visit{{Control: control, Treatment: treatment, Blocks: []stats.Block{{Control: []float64{0}, Treatment: []float64{v}}}}}}
	}
	for _, tt := range []struct {
		name  string
		p     bisect.Problem
		s     bisect.State
		wants string
	}{
		{"one revision", bisect.Problem{Revisions: 1}, bisect.State{}, "1 revisions"},
		{"confidence", bisect.Problem{Revisions: 3, Confidence: 1}, bisect.State{}, "confidence 1"},
		{"budget", bisect.Problem{Revisions: 3, Budget: -1}, bisect.State{}, "budgets"},
		{"bad is untestable", bisect.Problem{Revisions: 3}, bisect.State{Untestable: []int{2}}, "revision 2 cannot be tried"},
		{"backwards", bisect.Problem{Revisions: 3}, visit(2, 1, 0), "compares revision 2 with 1"},
		{"not a number", bisect.Problem{Revisions: 3}, visit(0, 2, math.NaN()), "differs by NaN"},
		{"huge", bisect.Problem{Revisions: 3}, visit(0, 2, 1e300), "differs by"},
	} {
		if _, err := bisect.Decide(tt.p, tt.s); err == nil || !strings.Contains(err.Error(), tt.wants) {
			t.Errorf("%s: error %v; want one with %q", tt.name, err, tt.wants)
		}
	}
}
