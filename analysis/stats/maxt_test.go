package stats_test

import (
	"math/rand/v2"
	"testing"

	"eidetic/analysis/stats"
	"eidetic/internal/rigs/testlab"
)

// One answer in forty that is slower is found with six units of each arm; equal arms have a false alarm in any of forty
// at most one time in twenty.
func TestMaxT(t *testing.T) {
	const rows = 40
	r := rand.New(rand.NewPCG(1, 9))
	alarms, found := 0, 0
	runs := testlab.Repeat(40, 1000)
	for range runs {
		all := make([][]float64, rows)
		for i := range all {
			for range 12 {
				all[i] = append(all[i], 50+20*r.ExpFloat64())
			}
		}
		for _, p := range stats.MaxT(all, 6, 1, 1) {
			if p <= 0.05 {
				alarms++
				break
			}
		}
		for k := 6; k < 12; k++ {
			all[7][k] += 120
		}
		if p := stats.MaxT(all, 6, 1, 1); p[7] <= 0.05 {
			found++
		}
	}
	t.Logf("%d runs: %d with a false alarm, the slow answer found in %d", runs, alarms, found)
	if float64(alarms) > 0.05*float64(runs)+6 || found < runs*8/10 {
		t.Errorf("%d of %d runs have a false alarm, and the slow answer is found in %d; want one in twenty, and most", alarms, runs, found)
	}
	many := [][]float64{make([]float64, 40)}
	for i := range many[0] {
		many[0][i] = float64(i / 20)
	}
	if p := stats.MaxT(many, 20, 1e-9, 1)[0]; p > 0.001 {
		t.Errorf("p = %v for forty units that differ; want little", p)
	}
	if got := stats.MaxT(nil, 0, 1, 1); len(got) != 0 {
		t.Errorf("MaxT of nothing = %v", got)
	}
}
