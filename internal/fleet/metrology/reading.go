// Package metrology judges the boxes of a fleet by what they measure of a reference: one plan and one recording that
// every box measures again and again. In go readings, one for each reference run; out come a box's health ([Judge]),
// what it measures at present ([Calibrate]) and by how much two boxes differ ([Bias]). It is pure: no files, no clock.
//
// Level, spread and share of trials thrown away are each watched by a cumulative sum (Page 1954, "Continuous inspection
// schemes", Biometrika 41) of standardised and clipped deviations from a baseline that grows while nothing has changed
// (self-starting, as in Hawkins 1987, The Statistician 36). docs/fleet-health.md has the method, where its parameters
// come from, and how often it errs.
package metrology

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"eidetic/analysis/stats"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Reading is what one run of the reference says of a box and its device.
type Reading struct {
	At        time.Time `json:"at" doc:"When the run started"`
	Run       string    `json:"run" doc:"ID of the run"`
	Reference string    `json:"reference" doc:"Identifies plan and recording of the reference"`
	Levels    []Level   `json:"levels" doc:"One for each guarded metric that a valid trial has"`
	Trials    int       `json:"trials" doc:"Trials that were made to be counted"`
	Thrown    int       `json:"thrown" doc:"Those that are not valid"`
	// Stolen, Waiting and Blur are medians over the trials.
	Stolen  float64  `json:"stolen_share" doc:"Processor time that the hypervisor gave to others"`
	Waiting *float64 `json:"waiting_share,omitempty" doc:"Time in which something runnable waited for a processor, where the kernel tells"`
	Blur    float64  `json:"blur_ms" doc:"How late link or recorder may have been"`
	// ClockSteps and Hot count trials.
	ClockSteps int `json:"clock_steps,omitempty" doc:"Trials in which the wall clock stepped"`
	Hot        int `json:"hot,omitempty" doc:"Trials in which a processor was slowed down by its heat"`
	// Rebased is set by Rebase.
	Rebased bool `json:"rebased,omitempty" doc:"A person accepted what the box measures from this reading on"`
	// Facts are those that a history watches: versions, kernel, governor, settings.
	Facts map[string]string `json:"facts,omitempty" doc:"What could explain a change"`
}

// Level is what a reading says of one metric.
type Level struct {
	Metric string  `json:"metric"`
	Unit   string  `json:"unit"`
	Median float64 `json:"median" doc:"Of the valid trials"`
	Spread float64 `json:"spread" doc:"Their standard deviation, from Gini's mean difference"`
	N      int     `json:"n" doc:"Valid trials that have the metric"`
}

// ErrNoReading is returned for a run that says nothing of a box.
var ErrNoReading = errors.New("not a reference run that says something of its box")

// Bounds of a reading.
const (
	mostLevels = 64
	mostFacts  = 128
)

// ReadingOf returns what a run of the reference says. A run whose trials are all invalid has a reading without levels.
func ReadingOf(run *lab.Run) (Reading, error) {
	switch {
	case run.Plan.IsMany():
		return Reading{}, fmt.Errorf("run %s: %w: it is of several pages or users; a reference has one", run.ID, ErrNoReading)
	case run.State != store.StateDone && run.State != store.StateFailed:
		return Reading{}, fmt.Errorf("run %s: %w: it is %s", run.ID, ErrNoReading, run.State)
	}
	digest, err := ReferenceDigest(run.Plan, run.Archive.SHA256)
	if err != nil {
		return Reading{}, fmt.Errorf("run %s: %w", run.ID, err)
	}
	r := Reading{At: run.Wall.UTC(), Run: run.ID, Reference: digest, Levels: []Level{}, Facts: store.Facts(run)}
	var stolen, waiting, blur []float64
	for _, t := range run.Trials {
		if t.IsExtra() || t.Arm != lab.Control {
			continue
		}
		r.Trials++
		if !t.Valid {
			r.Thrown++
		}
		if slices.ContainsFunc(t.Invalid, func(why string) bool { return strings.HasPrefix(why, lab.ClockStepped) }) {
			r.ClockSteps++
		}
		blur = append(blur, t.Blur.Worst())
		if m := t.Machine; m != nil {
			stolen = append(stolen, m.Stolen)
			if m.Waiting != nil {
				waiting = append(waiting, *m.Waiting)
			}
			if m.Hot > 0 {
				r.Hot++
			}
		}
	}
	if r.Trials == 0 {
		return Reading{}, fmt.Errorf("run %s: %w: it has no trials", run.ID, ErrNoReading)
	}
	r.Stolen, r.Blur = middle(stolen), middle(blur)
	if len(waiting) > 0 {
		share := middle(waiting)
		r.Waiting = &share
	}
	r.Levels = levelsOf(run)
	if err := r.Check(); err != nil {
		return Reading{}, fmt.Errorf("run %s: %w: %w", run.ID, ErrNoReading, err)
	}
	return r, nil
}

// levelsOf lists the guarded metrics of the valid trials of the control, the most telling first.
func levelsOf(run *lab.Run) []Level {
	var asked []string
	if run.Plan.Measure != nil {
		asked = run.Plan.Measure.Guards
	}
	values, units := map[string][]float64{}, map[string]string{}
	var names []string
	for _, t := range run.Trials {
		if t.IsExtra() || t.Arm != lab.Control || !t.Valid {
			continue
		}
		for _, m := range t.Measurements {
			if !metric.Parse(m.Name).IsGuardOf(asked) {
				continue
			}
			if _, known := units[m.Name]; !known {
				names = append(names, m.Name)
			}
			units[m.Name] = m.Unit
			values[m.Name] = append(values[m.Name], m.Value)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return metric.GuardPlace(a) - metric.GuardPlace(b) })
	levels := make([]Level, 0, len(names))
	for _, name := range names {
		v := values[name]
		levels = append(levels, Level{Metric: name, Unit: units[name], Median: middle(v), Spread: Deviation(v), N: len(v)})
	}
	return levels
}

// Check returns an error for a reading that no run of ours gives.
func (r Reading) Check() error {
	if len(r.Levels) > mostLevels || len(r.Facts) > mostFacts {
		return fmt.Errorf("%d levels and %d facts: at most %d and %d", len(r.Levels), len(r.Facts), mostLevels, mostFacts)
	}
	if r.Trials < 1 || r.Thrown < 0 || r.Thrown > r.Trials {
		return fmt.Errorf("%d of %d trials thrown away", r.Thrown, r.Trials)
	}
	for i, l := range r.Levels {
		if l.N < 1 || l.N > r.Trials || !(math.Abs(l.Median) < 1e15) || !(l.Spread >= 0 && l.Spread < 1e15) {
			return fmt.Errorf("levels[%d]: %.60s has the median %v and spread %v of %d trials", i, l.Metric, l.Median, l.Spread, l.N)
		}
	}
	if !(r.Stolen >= 0 && r.Stolen <= 1) || !(r.Blur >= 0 && r.Blur < 1e15) {
		return fmt.Errorf("stolen_share %v, blur_ms %v: out of range", r.Stolen, r.Blur)
	}
	return nil
}

// level returns what a reading says of a metric.
func (r Reading) level(metric string) (Level, bool) {
	for _, l := range r.Levels {
		if l.Metric == metric {
			return l, true
		}
	}
	return Level{}, false
}

// ReferenceDigest identifies a reference by its plan and its recording. Names, the box and the device do not count:
// every box has its own.
func ReferenceDigest(p lab.Plan, archiveSHA256 string) (string, error) {
	if archiveSHA256 == "" {
		return "", errors.New("a reference needs a recording: without one each box would measure another page")
	}
	p.Name, p.Device, p.On, p.From, p.Archive = "", "", nil, nil, ""
	p = p.WithDefaults()
	text, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("the reference's plan: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "reference 1\n%s\n%s", archiveSHA256, text)
	return hex.EncodeToString(h.Sum(nil))[:24], nil
}

// middle is the median of values, 0 for none.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return stats.Median(values)
}

// Deviation estimates the standard deviation by Gini's mean difference, √π÷2 times the mean distance of two values: it
// is almost as efficient as the root of the mean square, and an outlier weighs less (Gerstenberger and Vogel 2015).
func Deviation(values []float64) float64 { return giniOfSorted(slices.Sorted(slices.Values(values))) }

func giniOfSorted(sorted []float64) float64 {
	n := len(sorted)
	if n < 2 {
		return 0
	}
	sum := 0.0
	for i, v := range sorted {
		sum += float64(float64(2*i-n+1) * v)
	}
	return max(math.Sqrt(math.Pi)*sum/float64(n*(n-1)), 0)
}
