package store

import (
	"fmt"
	"math"
	"time"

	"eidetic/internal/keep/redact"
	"eidetic/internal/lab"
)

// ReportSchema names the layout of report.json. The number grows when a field is removed
// or changes its meaning; new fields may appear under the same number.
const ReportSchema = "eidetic/report/2"

// Report is the machine-readable summary of a run, as written to report.json.
type Report struct {
	Schema  string        `json:"schema"`
	Run     ReportRun     `json:"run"`
	Trials  []ReportTrial `json:"trials"`
	Summary []lab.Summary `json:"summary"`
	// Comparison is set if the run has two arms.
	Comparison *lab.Comparison `json:"comparison,omitempty"`
	// Cells are the results of each page and user of a run of many.
	Cells []lab.CellResult `json:"cells,omitempty"`
}

// ReportRun identifies a run and holds what could explain a difference between two runs. Its plan has no secrets.
type ReportRun struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Wall        time.Time       `json:"wall"`
	Elapsed     float64         `json:"elapsed_s"`
	State       string          `json:"state"`
	Error       string          `json:"error,omitempty"`
	Page        string          `json:"page"`
	Plan        lab.Plan        `json:"plan"`
	Archive     lab.ArchiveInfo `json:"archive"`
	Link        lab.Link        `json:"link"`
	Environment lab.Environment `json:"environment"`
	Warnings    []string        `json:"warnings"`
}

// ReportTrial is one trial without its series and artifacts.
type ReportTrial struct {
	Number     int                `json:"number"`
	Arm        string             `json:"arm"`
	Cell       string             `json:"cell,omitempty"`
	Page       string             `json:"page"`
	Valid      bool               `json:"valid"`
	Invalid    []string           `json:"invalid"`
	Misses     int                `json:"misses"`
	Requests   int                `json:"requests"`
	Filled     int                `json:"filled,omitempty"` // requests that were fetched from their origins
	FinalFrame string             `json:"final_frame_sha256"`
	Frames     int                `json:"frames"`
	FramesLost int                `json:"frames_lost"`
	Ended      lab.End            `json:"ended"`
	Metrics    map[string]float64 `json:"metrics"`
	// Steps are those of a journey, with their values and without methods.
	Steps []ReportStep `json:"steps,omitempty"`
}

// ReportStep is a step with the values of its measurements, and without their methods and bounds.
type ReportStep struct {
	*lab.TrialStep
	Metrics map[string]float64 `json:"metrics"`
}

// NewReport makes the report of a run. Empty lists and maps are written as such, never
// as null. No text has the user of an address.
func NewReport(run *lab.Run) *Report {
	r := &Report{
		Schema: ReportSchema,
		Run: ReportRun{
			ID: run.ID, Name: run.Name, Wall: run.Wall, Elapsed: run.Elapsed, State: run.State, Error: run.Error,
			Page: run.Page, Plan: run.Plan,
			Archive: run.Archive, Link: run.Link, Environment: run.Environment,
			Warnings: list(run.Warnings),
		},
		Trials:  make([]ReportTrial, 0, len(run.Trials)),
		Summary: list(run.Summary), Comparison: run.Comparison, Cells: run.Cells,
	}
	for _, t := range run.Trials {
		r.Trials = append(r.Trials, ReportTrial{
			Number: t.Number, Arm: t.Arm, Cell: t.Cell, Page: t.Page, Valid: t.Valid, Invalid: list(t.Invalid),
			Misses: t.Misses, Requests: t.Requests, Filled: t.Filled, FinalFrame: t.FinalFrame,
			Frames: t.Frames, FramesLost: t.FramesLost, Ended: t.Ended, Metrics: lab.Values(t.Measurements),
			Steps: bareSteps(t.Steps),
		})
	}
	return redact.Copy(r, redact.Users)
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// checkFinite returns an error for the first number of a run that JSON cannot represent.
func checkFinite(run *lab.Run) error {
	bad := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	for _, t := range run.Trials {
		for _, m := range t.Measurements {
			if bad(m.Value) {
				return fmt.Errorf("trial %d: measurement %s is %v", t.Number, m.Name, m.Value)
			}
		}
		for name, series := range map[string][]float64{
			"load_histogram": t.LoadHistogram, "visual_progress": t.VisualProgress, "frame_times_ms": t.FrameTimes,
		} {
			for i, v := range series {
				if bad(v) {
					return fmt.Errorf("trial %d: %s[%d] is %v", t.Number, name, i, v)
				}
			}
		}
	}
	for _, s := range run.Summary {
		for _, v := range []float64{s.Median, s.Min, s.Max, s.Q1, s.Q3, s.Low, s.High} {
			if bad(v) {
				return fmt.Errorf("summary of %s: a number is %v", s.Metric, v)
			}
		}
	}
	comparisons := []*lab.Comparison{run.Comparison}
	for _, c := range run.Cells {
		comparisons = append(comparisons, c.Comparison)
	}
	for _, c := range comparisons {
		if err := finiteComparison(c); err != nil {
			return err
		}
	}
	return nil
}

func finiteComparison(c *lab.Comparison) error {
	if c == nil {
		return nil
	}
	bad := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	for _, e := range c.Effects {
		for _, v := range []float64{e.Control, e.Treatment, e.Shift.Value, e.Shift.Low, e.Shift.High, e.P, e.Adjusted, e.Delta, e.MinimalEffect} {
			if bad(v) {
				return fmt.Errorf("comparison of %s: a number is %v", e.Metric, v)
			}
		}
	}
	return nil
}
