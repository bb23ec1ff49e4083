package store

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// DecodeResult reads a run from its run.json or its report.json, either of which may
// come from anyone. A report.json holds only the values of measurements, so a run read
// from it lacks their methods and bounds.
func DecodeResult(r io.Reader) (*lab.Run, error) {
	b, err := readBounded(r)
	if err != nil {
		return nil, err
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("%s%w", place(b, err), bounded.Plain(err))
	}
	switch head.Schema {
	case "":
		return decodeRun(b)
	case ReportSchema:
	default:
		return nil, fmt.Errorf("schema: %.60q is not %s: it was written by another version", head.Schema, ReportSchema)
	}
	var report Report
	if err := json.Unmarshal(b, &report); err != nil {
		return nil, fmt.Errorf("%s%w", place(b, err), bounded.Plain(err))
	}
	run := report.result()
	if err := checkRun(run); err != nil {
		return nil, err
	}
	return run, nil
}

// ReadResult is DecodeResult of a file. In a run's own folder, whose lock tells it, a run that nobody carries out any more
// is returned as interrupted.
func ReadResult(path string) (*lab.Run, error) {
	folder := ""
	if real, err := filepath.EvalSymlinks(path); err == nil { // latest, and the names beside it, are links
		folder = filepath.Dir(real)
	}
	_, noLock := os.Lstat(filepath.Join(folder, lockFile))
	alive := noLock != nil || isLocked(folder) // before the file is read, as in ReadRun
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	run, err := DecodeResult(f)
	if err == nil && !alive {
		endedIn(run)
	}
	return run, err
}

// result converts the report to a run, as far as the report has its fields.
func (r *Report) result() *lab.Run {
	run := &lab.Run{
		ID: r.Run.ID, Name: r.Run.Name, Wall: r.Run.Wall, Elapsed: r.Run.Elapsed, State: r.Run.State, Error: r.Run.Error,
		Page: r.Run.Page, Plan: r.Run.Plan, Archive: r.Run.Archive, Link: r.Run.Link, Environment: r.Run.Environment,
		Warnings: r.Run.Warnings, Summary: r.Summary, Comparison: r.Comparison, Cells: r.Cells,
	}
	for _, one := range r.Trials {
		t := &lab.Trial{
			Number: one.Number, Arm: one.Arm, Cell: one.Cell, Page: one.Page, Valid: one.Valid, Invalid: one.Invalid,
			Misses: one.Misses, Requests: one.Requests, Filled: one.Filled,
			FinalFrame: one.FinalFrame, Frames: one.Frames, FramesLost: one.FramesLost, Ended: one.Ended,
		}
		t.Measurements = measurements(one.Metrics)
		for _, s := range one.Steps {
			if s.TrialStep != nil {
				s.TrialStep.Measurements = measurements(s.Metrics)
				t.Steps = append(t.Steps, s.TrialStep)
			}
		}
		run.Trials = append(run.Trials, t)
	}
	return run
}

// measurements are the values of a report, by name. Their units are those of the metrics.
func measurements(values map[string]float64) (all []lab.Measurement) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, lab.Measurement{Name: name, Value: values[name], Unit: metric.Parse(name).Entry().Unit})
	}
	return all
}
