package compare

import (
	"fmt"
	"slices"
	"strings"

	"eidetic/analysis/stats"
	"eidetic/internal/fleet"
	"eidetic/internal/fleet/metrology"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Adjusted says how the numbers of a run were adjusted to those of another box.
type Adjusted struct {
	ReferenceBox string        `json:"reference_box" doc:"Box and device that measured the earlier run" example:"lab-1/virtual"`
	RunBox       string        `json:"run_box" doc:"Box and device that measured the run" example:"lab-2/virtual"`
	Calibration  string        `json:"calibration" doc:"Identifies the reference that both boxes measured"`
	Metrics      []AdjustedFor `json:"metrics" doc:"One for each metric that was compared"`
	Missing      []string      `json:"missing,omitempty" doc:"Guarded metrics that were not compared, since a calibration says nothing of them"`
	Text         string        `json:"text" doc:"The adjustment in words"`
}

// AdjustedFor is the adjustment of one metric.
type AdjustedFor struct {
	Metric string `json:"metric" example:"speed_index_ms"`
	metrology.Ratio
}

// adjust returns how the run's numbers compare with those of the reference's box: nil where it is the same box and
// device, and an error where nothing is known of it.
func adjust(reference, run *lab.Run) (*Adjusted, map[string]stats.Scale, error) {
	a, b := reference.Environment.Box, run.Environment.Box
	if a == nil && b == nil || a != nil && b != nil && a.ID == b.ID && deviceOf(reference) == deviceOf(run) {
		return nil, nil, nil
	}
	out := &Adjusted{ReferenceBox: place(reference), RunBox: place(run), Metrics: []AdjustedFor{}}
	refuse := func(why string) error {
		return fmt.Errorf("run %s was measured by %s and run %s by %s, and by how much these differ is not known: %s; compare runs of one box, or "+
			"make one run with two arms, which stay on one box (docs/fleet-health.md)", reference.ID, out.ReferenceBox, run.ID, out.RunBox, why)
	}
	for _, one := range []*lab.Run{reference, run} {
		switch box := one.Environment.Box; {
		case box == nil:
			return nil, nil, refuse(fmt.Sprintf("run %s is not of a fleet", one.ID))
		case box.Calibration == nil:
			return nil, nil, refuse(fmt.Sprintf("%s had no calibration before run %s: let it carry out the fleet's reference, at least %d times, and then the run",
				place(one), one.ID, metrology.LeastRuns))
		}
		if err := metrology.Fresh(*one.Environment.Box.Calibration, one.Wall); err != nil {
			return nil, nil, refuse(fmt.Sprintf("%s, run %s: %v: let it carry out the reference, and then the run", place(one), one.ID, err))
		}
	}
	if err := metrology.Comparable(*a.Calibration, *b.Calibration); err != nil {
		return nil, nil, refuse(err.Error() + ": let both boxes carry out the same reference, and then the runs")
	}
	out.Calibration = a.Calibration.Reference
	scales := map[string]stats.Scale{}
	for _, l := range a.Calibration.Levels {
		ratio, err := metrology.Bias(*a.Calibration, *b.Calibration, l.Metric)
		if err != nil || !has(reference, l.Metric) || !has(run, l.Metric) {
			continue // the other box's reference, or a run, lacks the metric
		}
		out.Metrics = append(out.Metrics, AdjustedFor{l.Metric, ratio})
		scales[l.Metric] = stats.Scale{Ratio: ratio.Value, Error: ratio.StandardError, Degrees: max(ratio.Degrees, 1)}
	}
	if len(scales) == 0 {
		return nil, nil, refuse("no metric of the runs is in both calibrations: let the fleet's reference be a page, or a journey, like theirs")
	}
	out.Missing = missing(reference, run, scales)
	out.tell()
	return out, scales, nil
}

// tell puts the adjustment into words.
func (a *Adjusted) tell() {
	first := a.Metrics[0]
	a.Text = fmt.Sprintf("adjusted to %s: %s measures %s %% (± %.1f %%) of %s on the reference that both measured, and the interval includes that uncertainty",
		a.ReferenceBox, a.RunBox, lab.Signed(100*(first.Value-1), 1), 100*first.StandardError, metric.Label(first.Metric))
	if len(a.Missing) > 0 {
		a.Text += "; not compared, since the reference does not have it: " + strings.Join(a.Missing, ", ")
	}
}

// missing lists the guards that both runs have and that cannot be compared.
func missing(reference, run *lab.Run, scales map[string]stats.Scale) (names []string) {
	seen := map[string]bool{}
	for _, t := range run.Trials {
		for _, m := range t.Measurements {
			_, known := scales[m.Name]
			if metric.IsGuard(m.Name) && !known && !seen[m.Name] && t.Valid && has(reference, m.Name) {
				seen[m.Name] = true
				names = append(names, metric.Label(m.Name))
			}
		}
	}
	return names
}

// has says whether a valid trial has a metric.
func has(run *lab.Run, name string) bool {
	return slices.ContainsFunc(run.Trials, func(t *lab.Trial) bool { return t.Valid && t.Measurement(name) != nil })
}

// place is the box and the device of a run, for people.
func place(run *lab.Run) string {
	if run.Environment.Box == nil {
		return "a box by itself"
	}
	return store.SeriesOf(run).Device
}

// deviceOf is the box's own device.
func deviceOf(run *lab.Run) string {
	_, device, ok := strings.Cut(run.Plan.Device, fleet.DeviceMark)
	if !ok {
		device = run.Plan.Device
	}
	return device
}

// warnings says what lowers the trust in runs.
func warnings(runs ...*lab.Run) (all []string) {
	for _, run := range runs {
		if box := run.Environment.Box; box != nil && (box.Health == fleet.HealthDrifting || box.Health == fleet.HealthBad) {
			all = append(all, fmt.Sprintf("%s was %s when run %s ended: what it measured may not be what it usually measures", place(run), box.Health, run.ID))
		}
	}
	return all
}
