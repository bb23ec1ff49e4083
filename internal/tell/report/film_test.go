package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/report/reporttest"
)

// TestFilmFromFirstChange: strips begin with the first change of any arm, an arm that shows nothing yet says so, and
// each metric is marked at the first picture that is not before it.
func TestFilmFromFirstChange(t *testing.T) {
	of := func(first, stable float64) side {
		s := side{Seen: &trial{Trial: &lab.Trial{Measurements: []lab.Measurement{metric.FirstChange.Measure(first, nil), metric.TimeToStable.Measure(stable, nil)}}}}
		for at := 0.0; at <= 1000; at += 200 {
			s.Seen.Thumbs = append(s.Seen.Thumbs, thumb{TimeMS: at})
		}
		return s
	}
	sides := []side{of(390, 600), of(610, 900)}
	align(sides)
	fromFirstChange(sides)
	got := make([]string, 2)
	for i := range sides {
		mark(&sides[i], []metric.Entry{metric.FirstChange.Entry(), metric.TimeToStable.Entry(), metric.SpeedIndex.Entry()})
		for _, c := range sides[i].Cells {
			word := fmt.Sprint(c.At)
			if c.Before {
				word += " nothing"
			}
			for _, m := range c.Moments {
				word += " " + m.Label + " " + m.At
			}
			got[i] += word + "; "
		}
	}
	want := []string{
		"400 First visual change 390; 600 Looks finished 600; 800; 1000; ",
		"400 nothing; 600 nothing; 800 First visual change 610; 1000 Looks finished 900; ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("strips (-want +got):\n%s", diff)
	}
}

// TestAxesFromZero: an axis begins with 0, and that of a share ends with 1.
func TestAxesFromZero(t *testing.T) {
	run := reporttest.Run(1, 7)
	for _, trial := range run.Trials {
		trial.Measurements = append(trial.Measurements, metric.ReplayConfidence.Measure(0.9, nil))
	}
	run.Summary = append(run.Summary, lab.Summary{Metric: metric.ReplayConfidence.String(), Unit: "share", Arm: lab.Control, N: 6, Median: 0.9, Low: 0.9, High: 0.9})
	for _, s := range strips(run) {
		if first := s.Ticks[0].Label; first != "0" {
			t.Errorf("the axis of %s begins with %s; want 0", s.Label, first)
		}
		if last := s.Ticks[len(s.Ticks)-1].Label; s.Unit == "share" && last != "1.00" {
			t.Errorf("the axis of %s ends with %s; want 1", s.Label, last)
		}
	}
}

// TestIntervalOfThisMetricAlone: what looks like a contradiction is explained where it stands.
func TestIntervalOfThisMetricAlone(t *testing.T) {
	c := &lab.Comparison{Level: 0.05, Effects: []lab.Effect{{
		Guard: true, Pairs: 10, Finding: lab.NoChange, P: 0.03, Adjusted: 0.09, Shift: lab.Range{Value: 47.8, Low: 4.12, High: 74.4, Confidence: 0.95},
	}, {Guard: true}, {}}}
	of := func() string { return noContradiction(c, change{Effect: &c.Effects[0], Chance: "0.09"}) }
	if want := "95 % for this metric alone; the verdict corrects for 2 guarded metrics (p 0.03, corrected 0.09)."; strings.ReplaceAll(of(), "0.030", "0.03") != want {
		t.Errorf("noContradiction() = %q, want %q", of(), want)
	}
	c.Effects[0].Shift.Low = -1
	if got := of(); got != "" {
		t.Errorf("noContradiction() of an interval with 0 = %q, want nothing", got)
	}
}

// TestPictureOfFailure: the screen of a step that failed stands in the report, of a recording at the top, of a trial in
// it.
func TestPictureOfFailure(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"recording", "trials/002"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, lab.FailedFile), []byte("\x89PNG"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	failed := &lab.Run{ID: "r", Page: "https://a.example/", State: "failed", Error: "step \"buy\""}
	one := reporttest.Run(1, 2)
	one.Trials[1].Valid, one.Trials[1].Invalid, one.Trials[1].Files["failed"] = false, []string{"step \"buy\""}, lab.FailedFile
	for want, run := range map[string]*lab.Run{`<img src="recording/failed-step.png"`: failed, `<img src="trials/002/failed-step.png"`: one} {
		if err := Write(dir, run); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, FileName))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %q (%v)", want, err)
		}
	}
}
