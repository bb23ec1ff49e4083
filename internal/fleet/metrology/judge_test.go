package metrology_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/metrology"
	"eidetic/internal/fleet/metrology/simulate"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// quiet is a box whose readings have a spread of about 1 %.
func quiet(seed uint64, n int, change simulate.Change) []metrology.Reading {
	return simulate.OfNoise(0.01).Readings(rand.New(rand.NewPCG(seed, 1)), n, change)
}

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		change simulate.Change
		spoil  func([]metrology.Reading)
		health string
		of     string
		why    string
	}{
		{"no reading", 0, simulate.Change{}, nil, fleet.HealthUnknown, "", "has not measured the reference yet"},
		{"few readings", 4, simulate.Change{}, nil, fleet.HealthUnknown, "", "4 of the 10 reference runs that a baseline needs"},
		{"steady", 40, simulate.Change{}, nil, fleet.HealthGood, "", "are what they were, in 40 reference runs"},
		{"slower", 40, simulate.Change{At: 30, Level: 1.05}, nil, fleet.HealthDrifting, metrology.OfLevel, "the box is slower: "},
		{"faster", 40, simulate.Change{At: 30, Level: 0.95}, nil, fleet.HealthDrifting, metrology.OfLevel, "the box is faster: "},
		{"much slower", 40, simulate.Change{At: 30, Level: 1.4}, nil, fleet.HealthBad, metrology.OfLevel, "25 % and more is bad"},
		{"less steady", 70, simulate.Change{At: 30, Spread: 3}, nil, fleet.HealthDrifting, metrology.OfSpread, "the box is less steady: the spread of "},
		{"trials lost", 60, simulate.Change{At: 30, Thrown: 0.45}, nil, fleet.HealthDrifting, metrology.OfThrown, "of the trials were thrown away since run-"},
		{"slower for a while", 60, simulate.Change{At: 20, Until: 30, Level: 1.05}, nil, fleet.HealthGood, "", ""},
		{"one outlier", 40, simulate.Change{At: 30, Until: 31, Level: 2}, nil, fleet.HealthGood, "", ""},
		{"unusable", 40, simulate.Change{}, func(all []metrology.Reading) {
			for i := range all[37:] {
				all[37+i].Thrown, all[37+i].Levels = 8, nil
			}
		}, fleet.HealthBad, metrology.OfThrown, "most trials were thrown away in each of the last 3 reference runs"},
		{"unusable from the start", 3, simulate.Change{Thrown: 1}, nil, fleet.HealthBad, metrology.OfThrown, "last 3 reference runs"},
		{"clock", 40, simulate.Change{}, func(all []metrology.Reading) { all[37].ClockSteps, all[39].ClockSteps = 1, 2 }, fleet.HealthBad,
			metrology.OfClock, "the wall clock stepped in 2 of the last 3 reference runs"},
		{"another reference", 40, simulate.Change{At: 30, Level: 2}, func(all []metrology.Reading) {
			for i := range all[30:] {
				all[30+i].Reference = "next"
			}
		}, fleet.HealthGood, "", "in 10 reference runs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := quiet(3, c.n, c.change)
			if c.spoil != nil {
				c.spoil(all)
			}
			got := metrology.Judge(all)
			if got.Health != c.health || got.Of != c.of || !strings.Contains(got.Why, c.why) {
				t.Errorf("Judge() = %s of %q: %s; want %s of %q: %s", got.Health, got.Of, got.Why, c.health, c.of, c.why)
			}
			slices.Reverse(all)
			if again := metrology.Judge(all); again.Why != got.Why {
				t.Errorf("Judge() of the readings in another order = %s; want %s", again.Why, got.Why)
			}
		})
	}
}

// A box that drifts says since when, by how much, and what else changed then.
func TestDriftTellsWhatChanged(t *testing.T) {
	all := quiet(5, 45, simulate.Change{At: 30, Level: 1.06})
	for i := range all {
		all[i].Facts = map[string]string{"kernel": "Linux 6.1.1", "governor": "performance"}
		if i >= 30 {
			all[i].Facts["governor"], all[i].Stolen = "powersave", 0.05
		}
	}
	got := metrology.Judge(all)
	if got.Health != fleet.HealthDrifting || got.Percent == nil || got.Percent.Low > 6 || got.Percent.High < 6 || math.Abs(got.Percent.Value-6) > 1.5 {
		t.Fatalf("Judge() = %+v, percent %+v; want drifting by about 6 %%", got, got.Percent)
	}
	if !slices.Contains([]string{"run-29", "run-30", "run-31"}, got.SinceRun) || got.Since.IsZero() {
		t.Errorf("since %s (%v); want run-30, or its neighbour", got.SinceRun, got.Since)
	}
	if len(got.Changed) != 1 || got.Changed[0].Name != "governor" || !strings.Contains(got.Why, "stolen time rose from 0.0 to 5.0 %") {
		t.Errorf("changed %+v, %s; want the governor and the stolen time", got.Changed, got.Why)
	}
	// A person accepts the level: the readings since then are the baseline.
	accepted, err := metrology.Rebase(all, got.SinceRun)
	if err != nil {
		t.Fatal(err)
	}
	if again := metrology.Judge(accepted); again.Health != fleet.HealthGood || again.Readings > 16 {
		t.Errorf("Judge() after Rebase() = %+v; want good, by the readings since %s", again, got.SinceRun)
	}
	if again := metrology.Judge(all); again.Health != fleet.HealthDrifting {
		t.Errorf("Rebase() changed its argument: %+v", again)
	}
	if _, err := metrology.Rebase(all, "nope"); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("Rebase(nope) = %v; want an error that names it", err)
	}
}

// A box whose level moves to a third one drifts still, and tells of that level.
func TestThirdLevel(t *testing.T) {
	all := quiet(7, 60, simulate.Change{At: 25, Level: 1.06})
	for i := range all[45:] {
		for k := range all[45+i].Levels {
			all[45+i].Levels[k].Median /= 1.12
		}
	}
	if got := metrology.Judge(all); got.Health != fleet.HealthDrifting || got.Percent == nil || got.Percent.Value > -3 {
		t.Errorf("Judge() = %+v, %+v; want drifting, faster by about 5 %%", got, got.Percent)
	}
}

// The numbers of docs/fleet-health.md, with fewer boxes: fixed seeds give the same counts everywhere.
func TestRates(t *testing.T) {
	l := metrology.Usual()
	for _, box := range simulate.Steady() {
		if n := simulate.False(l, box, 200, 100, rand.New(rand.NewPCG(11, 12))); n > 1 {
			t.Errorf("%d of 200 steady boxes with noise %q were called within 100 readings; want at most 1", n, box.Name)
		}
	}
	late := 0
	delays := simulate.Delays(l, simulate.OfNoise(0.01), 100, 10, simulate.Change{At: 15, Level: 1.05}, rand.New(rand.NewPCG(13, 14)))
	for _, d := range delays {
		if d > 10 {
			late++
		}
	}
	if late > 0 || len(delays) < 99 {
		t.Errorf("of %d boxes that became 5 %% slower, %d were not called within 10 readings; want 0 of at least 99", len(delays), late)
	}
}

// Intervals across boxes have the truth in them about as often as they say.
func TestCrossings(t *testing.T) {
	for _, c := range []simulate.Crossing{
		{A: simulate.OfNoise(0.01), B: simulate.OfNoise(0.01), Runs: 10, Trials: 12, Factor: 1.12, Slowed: 1},
		{A: simulate.OfNoise(0.02), B: simulate.OfNoise(0.01), Runs: 10, Trials: 12, Factor: 0.9, Slowed: 1.05},
	} {
		got, err := c.Try(300, rand.New(rand.NewPCG(15, 16)))
		if err != nil {
			t.Fatal(err)
		}
		if got.Covered < 280 {
			t.Errorf("%+v: %d of %d intervals have the truth in them; want at least 280", c, got.Covered, got.Tried)
		}
		c.Ignored = true
		if ignored, err := c.Try(300, rand.New(rand.NewPCG(15, 16))); err != nil || ignored.Covered >= got.Covered {
			t.Errorf("with the ratio taken for certain %d of 300 have it (%v); want fewer than %d", ignored.Covered, err, got.Covered)
		}
	}
}

func TestBias(t *testing.T) {
	a, b := metrology.Calibrate(quiet(1, 20, simulate.Change{})), metrology.Calibrate(quiet(2, 20, simulate.Change{Level: 1.2}))
	got, err := metrology.Bias(a, b, "speed_index_ms")
	if err != nil || math.Abs(math.Log(got.Value/1.2)) > 3*got.StandardError || got.StandardError > 0.03 || got.Degrees < 5 {
		t.Errorf("Bias() = %+v, %v; want about 1.2", got, err)
	}
	if back, err := metrology.Bias(b, a, "speed_index_ms"); err != nil || math.Abs(back.Value*got.Value-1) > 1e-12 {
		t.Errorf("Bias() the other way = %+v, %v; want its inverse", back, err)
	}
	old, few, other := b, b, b
	old.Until, few.Runs, other.Reference = b.Until.Add(-8*24*time.Hour), 4, "other"
	for want, c := range map[error]lab.Calibration{metrology.ErrTooOld: old, metrology.ErrFewReadings: few, metrology.ErrOtherReference: other} {
		if _, err := metrology.Bias(a, c, "speed_index_ms"); !errors.Is(err, want) {
			t.Errorf("Bias() = %v; want %v", err, want)
		}
	}
	if _, err := metrology.Bias(a, b, "nope"); !errors.Is(err, metrology.ErrNoLevel) {
		t.Errorf("Bias(nope) = %v; want %v", err, metrology.ErrNoLevel)
	}
	// A drifting box is calibrated by what it measures since then.
	drifted := metrology.Calibrate(quiet(1, 40, simulate.Change{At: 30, Level: 1.1}))
	if drifted.Runs < 9 || drifted.Runs > 11 {
		t.Errorf("Calibrate() of a box that drifts since 10 readings rests on %d; want those", drifted.Runs)
	}
	if none := metrology.Calibrate(nil); none.Runs != 0 || none.Levels == nil {
		t.Errorf("Calibrate(nil) = %+v; want no runs and an empty list", none)
	}
}

// FuzzJudge: whatever a box says of itself, it is judged, in numbers that JSON can hold.
func FuzzJudge(f *testing.F) {
	f.Add(uint64(1), 30, 900.0, 20.0, 8, 0)
	f.Add(uint64(2), 12, 1e14, 1e14, 1, 1)
	f.Add(uint64(3), 25, 1e-300, 0.0, 3, 0)
	f.Fuzz(func(t *testing.T, seed uint64, n int, median, spread float64, trials, thrown int) {
		defer testlab.Input(t)()
		r := rand.New(rand.NewPCG(seed, 1))
		var all []metrology.Reading
		for i := range min(max(n, 0), 60) {
			reading := metrology.Reading{Run: fmt.Sprint(i), At: time.Unix(int64(i), 0), Trials: trials, Thrown: thrown, Levels: []metrology.Level{
				{Metric: "speed_index_ms", Median: median * r.Float64(), Spread: spread, N: trials},
			}}
			if reading.Check() == nil {
				all = append(all, reading)
			}
		}
		got := metrology.Judge(all)
		if p := got.Percent; got.Why == "" || p != nil && (math.IsNaN(p.Value+p.Low+p.High) || math.IsInf(p.Value, 0)) {
			t.Errorf("Judge() = %+v, %+v", got, p)
		}
		metrology.Calibrate(all)
	})
}

// One reading after an update is compared with those before.
func TestAgainst(t *testing.T) {
	after := func(level float64) metrology.Reading {
		all := quiet(3, 31, simulate.Change{At: 30, Level: level})
		return all[30]
	}
	for _, c := range []struct {
		name    string
		before  int
		level   float64
		outside bool
		percent float64 // about
	}{
		{"steady", 30, 1, false, 0}, {"10 % slower", 30, 1.1, true, 10}, {"10 % faster", 30, 0.9, true, -10}, {"1 % slower", 30, 1.01, false, 0},
		{"10 % slower than three readings", 3, 1.1, false, 0}, {"40 % slower than one reading", 1, 1.4, true, 40}, {"much faster than one", 1, 0.7, true, -30},
	} {
		shifts, err := metrology.Against(quiet(3, 30, simulate.Change{})[:c.before], after(c.level))
		if err != nil || len(shifts) > 0 != c.outside {
			t.Errorf("%s: Against() = %+v, %v; want outside: %v", c.name, shifts, err, c.outside)
			continue
		}
		if c.outside && (math.Abs(shifts[0].Percent-c.percent) > 6 || shifts[0].Limit <= 0 || !strings.Contains(shifts[0].Text(), "% against the readings before (limit ")) {
			t.Errorf("%s: the farthest metric is %+v, %q; want about %+.0f %%", c.name, shifts[0], shifts[0].Text(), c.percent)
		}
	}
	before := quiet(3, 30, simulate.Change{})
	spoilt := func(spoil func(*metrology.Reading)) metrology.Reading { r := after(1); spoil(&r); return r }
	for name, c := range map[string]struct {
		before []metrology.Reading
		r      metrology.Reading
		want   error
	}{
		"nothing before":    {nil, after(1), metrology.ErrFewReadings},
		"another reference": {before, spoilt(func(r *metrology.Reading) { r.Reference = "next" }), metrology.ErrOtherReference},
		"thrown away":       {before, spoilt(func(r *metrology.Reading) { r.Thrown = r.Trials }), metrology.ErrThrown},
		"no levels":         {before, spoilt(func(r *metrology.Reading) { r.Levels = nil }), metrology.ErrNoLevel},
	} {
		if _, err := metrology.Against(c.before, c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: Against() = %v; want %v", name, err, c.want)
		}
	}
	// After a drift that stays, the level since then counts.
	drifted := quiet(3, 60, simulate.Change{At: 20, Level: 1.2})
	if shifts, err := metrology.Against(drifted[:59], drifted[59]); err != nil || len(shifts) > 0 {
		t.Errorf("a box that drifted long ago: Against() = %+v, %v; want it within", shifts, err)
	}
}
