package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	const frame = 1000.0 / 60
	load := func(base float64) float64 { return math.Ceil((base+30*r.NormFloat64())/frame) * frame }
	var control, treatment []float64
	for range 50 {
		control, treatment = append(control, load(1500)), append(treatment, load(1540))
	}
	plan := Plan{Seed: 3, Step: frame}
	got, err := Compare(inBlocks(control, treatment), plan)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := Compare(inBlocks(control, treatment), plan)
	if d := cmp.Diff(got, again); d != "" {
		t.Error("not repeatable", d)
	}
	if got.Test.P > 0.001 || got.Shift.Low > 40 || got.Shift.High < 40 || got.Shift.Low < 20 || got.ModeChange || got.Delta < 0.4 {
		t.Errorf("Compare() = %+v; want a shift of 40 inside an interval above 20, p ≤ 0.001, no change of modes", got)
	}
	near(t, "per cent", got.Percent.Value, got.Shift.Value/15, 0.1)

	for i := range treatment { // every second one hits a slow path
		if i%2 == 0 {
			treatment[i] += 400
		}
	}
	if got, _ = Compare(inBlocks(control, treatment), plan); !got.ModeChange || !strings.Contains(strings.Join(got.Warnings, " "), "mode") {
		t.Errorf("modes %v and %v", got.ModesControl, got.ModesTreatment)
	}
	zero := []float64{0, 0, 0, 0, 0, 0}
	if got, err = Compare(inBlocks(zero, zero), Plan{}); err != nil || got.Test.P != 1 || got.MinimalEffect != 0 || len(got.Warnings) != 1 {
		t.Errorf("Compare() of zeros = %+v, %v; want p 1, no minimal effect, one warning", got, err)
	}
	if got, err = Compare([]Block{{zero, []float64{1, 1}}}, Plan{}); err != nil || got.Pairs != 2 || got.Delta != 1 || got.Treatment != 1 {
		t.Errorf("unequal arms: Compare() = %+v, %v; want 2 pairs, δ 1, a median of 1", got, err)
	}
}
