package compare

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/report/reporttest"
)

// of makes a run of a box, whose loads take so many times as long as usual.
func of(id, box string, factor float64) *lab.Run {
	run := reporttest.Run(1, 12)
	run.ID, run.Plan.Device = id, "virtual"
	for _, t := range run.Trials {
		for i := range t.Measurements {
			t.Measurements[i].Value *= factor
		}
	}
	if box == "" {
		return run
	}
	c := &lab.Calibration{Reference: "r1", Until: run.Wall.Add(-time.Hour), Runs: 10, Levels: []lab.CalibrationLevel{}}
	for _, g := range metric.Guards() {
		level := 800 * factor
		c.Levels = append(c.Levels, lab.CalibrationLevel{Metric: g.String(), Unit: "ms", Median: level, Between: 0.01 * level, Within: 0.02 * level, Runs: 10, Trials: 8})
	}
	run.Environment.Box = &lab.BoxState{Name: box, ID: "id-" + box, Health: fleet.HealthGood, Calibration: c}
	return run
}

// A box that is a fifth slower makes every page look slower; calibrations take that out, and what they do not know is
// in the interval.
func TestAcrossBoxes(t *testing.T) {
	same, err := Runs(of("old", "lab-1", 1), of("new", "lab-1", 1.2), 5, 1)
	if err != nil || same.Adjusted != nil || same.Comparison.Verdict != lab.Slower {
		t.Fatalf("Runs() of one box = %+v, %v; want slower, and nothing adjusted", same, err)
	}
	across, err := Runs(of("old", "lab-1", 1), of("new", "lab-2", 1.2), 5, 1)
	if err != nil || across.Adjusted == nil || across.Comparison.Verdict != lab.NoChange {
		t.Fatalf("Runs() of two calibrated boxes = %+v, %v; want no difference", across, err)
	}
	a := across.Adjusted
	if a.ReferenceBox != "lab-1/virtual" || a.RunBox != "lab-2/virtual" || a.Calibration != "r1" || len(a.Metrics) != 4 ||
		math.Abs(a.Metrics[0].Value-1.2) > 1e-9 || !(a.Metrics[0].StandardError > 0) {
		t.Errorf("Adjusted = %+v; want the ratio 1.2 of four metrics", a)
	}
	if want := "adjusted to lab-1/virtual: lab-2/virtual measures +20 % (± "; !strings.Contains(across.Comparison.Detail, want) {
		t.Errorf("Detail = %q; want %q in it", across.Comparison.Detail, want)
	}
	one, two := same.Comparison.Effects[0].Shift, across.Comparison.Effects[0].Shift
	if two.High-two.Low <= one.High-one.Low {
		t.Errorf("intervals of one box %+v and of two %+v: want the second wider", one, two)
	}
	slower, err := Runs(of("old", "lab-1", 1), scaled(of("new", "lab-2", 1.2), 1.5), 5, 1)
	if err != nil || slower.Comparison.Verdict != lab.Slower || math.Abs(slower.Comparison.Effects[0].Percent.Value-50) > 2 {
		t.Errorf("Runs() of a page that is half slower on another box = %+v, %v; want slower by about 50 %%", slower, err)
	}
}

// scaled makes the loads of a run slower, without its calibration.
func scaled(run *lab.Run, factor float64) *lab.Run {
	for _, t := range run.Trials {
		for i := range t.Measurements {
			t.Measurements[i].Value *= factor
		}
	}
	return run
}

func TestRefusedAcrossBoxes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(reference, run *lab.Run)
		want   string
	}{
		"no box":             {func(_, run *lab.Run) { run.Environment.Box = nil }, "run new is not of a fleet"},
		"no calibration":     {func(_, run *lab.Run) { run.Environment.Box.Calibration = nil }, "lab-2/virtual had no calibration before run new: let it carry out the fleet's reference, at least 5 times"},
		"another reference":  {func(_, run *lab.Run) { run.Environment.Box.Calibration.Reference = "r2" }, "different references"},
		"few runs":           {func(_, run *lab.Run) { run.Environment.Box.Calibration.Runs = 4 }, "too few reference runs"},
		"an old calibration": {func(_, run *lab.Run) { run.Wall = run.Wall.AddDate(0, 0, 8) }, "too old: its newest reference run was made 8 days before the run"},
		"other metrics":      {func(_, run *lab.Run) { run.Environment.Box.Calibration.Levels = nil }, "no metric of the runs is in both calibrations"},
	} {
		t.Run(name, func(t *testing.T) {
			reference, run := of("old", "lab-1", 1), of("new", "lab-2", 1.2)
			c.change(reference, run)
			_, err := Runs(reference, run, 5, 1)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "compare runs of one box") {
				t.Errorf("Runs() = %v; want an error with %q that says what to do", err, c.want)
			}
		})
	}
	// Two devices of one box are as far apart as two boxes.
	other := of("new", "lab-1", 1)
	other.Plan.Device, other.Environment.Box.Calibration = "phone", nil
	if _, err := Runs(of("old", "lab-1", 1), other, 5, 1); err == nil {
		t.Error("Runs() of two devices without calibrations succeeded; want an error")
	}
	// The same device, named by the head and by the box.
	named := of("new", "lab-1", 1)
	named.Plan.Device = "lab-1/virtual"
	if found, err := Runs(of("old", "lab-1", 1), named, 5, 1); err != nil || found.Adjusted != nil {
		t.Errorf("Runs() of one device by two names = %+v, %v; want no adjustment", found, err)
	}
}

func TestPartlyCalibrated(t *testing.T) {
	reference, run := of("old", "lab-1", 1), of("new", "lab-2", 1)
	run.Environment.Box.Calibration.Levels = run.Environment.Box.Calibration.Levels[:1]
	run.Environment.Box.Health = fleet.HealthDrifting
	found, err := Runs(reference, run, 5, 1)
	if err != nil || len(found.Comparison.Effects) != 1 || len(found.Adjusted.Missing) != 3 || !strings.Contains(found.Adjusted.Text, "not compared") {
		t.Fatalf("Runs() with one calibrated metric = %+v, %v; want it alone", found, err)
	}
	if !slices.ContainsFunc(found.Warnings, func(s string) bool { return strings.Contains(s, "lab-2/virtual was drifting when run new ended") }) {
		t.Errorf("Warnings = %q; want that lab-2 drifts", found.Warnings)
	}
}
