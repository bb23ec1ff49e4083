package stats_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"eidetic/analysis/stats"
	"eidetic/analysis/stats/simulate"
	"eidetic/internal/rigs/testlab"
)

// A size that is chosen after eight pairs finds what it was chosen for about four times of five, and does not depend on
// the arms.
func TestPairsToFind(t *testing.T) {
	m := simulate.Machine{Load: 900, Spread: 30}
	found, pairs := 0, 0
	runs := testlab.Repeat(60, 400)
	for n := range runs {
		r := rand.New(rand.NewPCG(8, uint64(n)))
		need := stats.PairsToFind(stats.SpreadOfBoth(m.Experiment(r, 8, 0), nil), 20, 1)
		pairs += need
		c, err := stats.Compare(m.Experiment(r, max(need, 8), 20), stats.Plan{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if c.Test.P <= 0.05 {
			found++
		}
	}
	t.Logf("%d of %d found, with %.1f pairs in the mean", found, runs, float64(pairs)/float64(runs))
	if share := float64(found) / float64(runs); share < 0.65 || share > 0.92 {
		t.Errorf("%d of %d are found; want about four of five", found, runs)
	}
	blocks := m.Experiment(rand.New(rand.NewPCG(8, 1)), 10, 40)
	exchanged := slices.Clone(blocks)
	for i, b := range blocks {
		exchanged[i] = stats.Block{Control: b.Treatment, Treatment: b.Control}
	}
	if a, b := stats.SpreadOfBoth(blocks, nil), stats.SpreadOfBoth(exchanged, nil); a-b > 1e-9 || b-a > 1e-9 || a <= 0 {
		t.Errorf("the spread is %v, with the arms exchanged %v; want the same", a, b)
	}
}
