package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func loads(r *rand.Rand, n int, level float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = level * math.Exp(0.03*r.NormFloat64())
	}
	return out
}

// What is known of the ratio of the instruments is taken out, and what is not known of it makes the interval wider and
// p larger.
func TestAcross(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	control, treatment := loads(r, 12, 800), loads(r, 12, 800*1.2*1.1)
	var before Comparison
	for i, e := range []float64{0, 0.02, 0.05} {
		got, err := Across(control, treatment, 0, Plan{Scale: &Scale{Ratio: 1.2, Error: e, Degrees: 12}})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Percent.Value-10) > 4 || got.Percent.Low >= got.Percent.Value || got.Percent.High <= got.Percent.Value {
			t.Errorf("error %v: Percent = %+v; want about 10", e, got.Percent)
		}
		if excludes := got.Shift.Low > 0; excludes != (got.Test.P <= 1-got.Shift.Confidence) {
			t.Errorf("error %v: p = %v, interval %+v: want both to reject, or neither", e, got.Test.P, got.Shift)
		}
		if i > 0 && (got.Test.P < before.Test.P || got.Shift.Low >= before.Shift.Low || got.Shift.High <= before.Shift.High ||
			got.MinimalEffect <= before.MinimalEffect) {
			t.Errorf("error %v: %+v; want a wider interval and a larger p than %+v", e, got, before)
		}
		before = got
	}
	if before.Test.P < 0.05 {
		t.Errorf("10 %% with an uncertainty of 5 %%: p = %v; want no difference", before.Test.P)
	}
	// Without uncertainty it is Independent on the logarithms.
	scale := &Scale{Ratio: 1, Error: 0, Degrees: math.Inf(1)}
	got, err := Across(control, treatment, 0, Plan{Scale: scale})
	a, _ := logs(control)
	b, _ := logs(treatment)
	plain, plainErr := Independent(a, b, 0, Plan{})
	if err != nil || plainErr != nil || math.Abs(math.Log1p(got.Percent.Low/100)-plain.Shift.Low) > 1e-9 ||
		math.Abs(math.Log1p(got.Percent.High/100)-plain.Shift.High) > 1e-9 || got.Test.P < plain.Test.P {
		t.Errorf("Across() with a certain ratio of 1 = %+v, %v; want the interval %+v of the logarithms", got, err, plain.Shift)
	}
	// A difference within the margin is none.
	if got, err := Across(control, treatment, 0.6, Plan{Scale: scale}); err != nil || got.Test.P != 1 {
		t.Errorf("Across() within the margin: p = %v, %v; want 1", got.Test.P, err)
	}
}

func TestAcrossRefuses(t *testing.T) {
	good := []float64{1, 2, 3}
	for name, c := range map[string]struct {
		control []float64
		scale   *Scale
		margin  float64
	}{
		"no scale": {good, nil, 0}, "a ratio of 0": {good, &Scale{0, 0, 1}, 0}, "no degrees": {good, &Scale{1, 0, 0}, 0},
		"an error that is no number": {good, &Scale{1, math.NaN(), 1}, 0}, "a value of 0": {[]float64{0, 1, 2}, &Scale{1, 0.1, 5}, 0},
		"one value": {good[:1], &Scale{1, 0.1, 5}, 0}, "a negative margin": {good, &Scale{1, 0.1, 5}, -1},
	} {
		if got, err := Across(c.control, good, c.margin, Plan{Scale: c.scale}); err == nil {
			t.Errorf("Across() with %s = %+v; want an error", name, got)
		}
	}
}
