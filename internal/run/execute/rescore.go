package execute

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/experiment"
	"eidetic/internal/run/journey"
	"eidetic/internal/tell/verdict"
)

// Rescored is a trial of an earlier run, judged again by the ends of another plan.
type Rescored struct {
	Trial int    `json:"trial"`
	Arm   string `json:"arm"`
	Valid bool   `json:"valid"` // whether it was valid
	// Changed names the steps that have another end or other masks now.
	Changed []string           `json:"changed"`
	Before  map[string]float64 `json:"before"` // the metrics of the run, under the paths of the steps
	Steps   []*lab.TrialStep   `json:"steps"`
	Metrics map[string]float64 `json:"metrics"`
	Error   string             `json:"error,omitempty"`
}

// Rescore judges and measures the steps of an earlier run again, by the ends and masks that a plan, with its files,
// has for the same steps. The run is not changed.
func Rescore(run *lab.Run, folder string, asked plan.Checked) []Rescored {
	a := &analyst{templates: asked.Pictures, ask: asked.Measure}
	still := journey.DefaultEnd(asked.StillTime())
	var all []Rescored
	for _, short := range run.Trials {
		trialDir := filepath.Join(folder, "trials", store.TrialName(short.Number))
		r := Rescored{Trial: short.Number, Arm: short.Arm, Valid: short.Valid, Before: lab.Values(short.Measurements),
			Metrics: map[string]float64{}}
		if err := a.rescore(&r, trialDir, maskCodes(asked.Plan), still); err != nil {
			r.Error = err.Error()
		}
		all = append(all, r)
	}
	return all
}

// maxTrialFile bounds a trial.json.
const maxTrialFile = 256 << 20

func (a *analyst) rescore(out *Rescored, dir string, steps []lab.Step, still string) error {
	f, err := os.Open(filepath.Join(dir, "trial.json"))
	if err != nil {
		return err
	}
	defer f.Close()
	var t lab.Trial
	if err := json.NewDecoder(io.LimitReader(f, maxTrialFile)).Decode(&t); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	t.Measurements, t.FrameTimes = nil, nil
	if out.Changed, err = journey.Rescore(&t, steps, still); err != nil {
		return err
	}
	navigate, err := experiment.ReadNavigation(filepath.Join(dir, experiment.EventsFile))
	if err != nil {
		return err
	}
	r, o, err := open(dir, navigate)
	if err != nil {
		return err
	}
	defer r.Close()
	d, err := newDeep(r, o.Content, a.ask)
	if err != nil {
		return err
	}
	if err := a.measureSteps(r, o, &t, d); err != nil {
		return err
	}
	worked(dir, &t)
	out.Steps, out.Metrics = t.Steps, lab.Values(t.Measurements)
	for _, s := range out.Steps {
		s.LoadHistogram, s.VisualProgress, s.FrameTimes = nil, nil, nil
	}
	return nil
}

// Rejudge compares the arms of an earlier run again, by the rules of another plan: its margin, its primary metric and
// guards, and its covariates, as far as the run's trials have them. Without any the test is the raw one. The trials
// that were measured again have their new numbers. It is nil for a run of one arm; the run is not changed.
func Rejudge(run *lab.Run, again []Rescored, asked plan.Checked) *lab.Comparison {
	other := *run
	other.Looks = nil
	other.Plan.Margin, other.Plan.Margins, other.Plan.Primary = asked.Margin, asked.Margins, asked.Primary
	other.Plan.Measure, other.Plan.Covariates = asked.Plan.Measure, asked.Covariates
	if len(asked.Covariates) == 0 {
		other.Plan.Covariates = run.Plan.Covariates
	}
	other.Trials = slices.Clone(run.Trials)
	for i, t := range other.Trials {
		at := slices.IndexFunc(again, func(r Rescored) bool { return r.Trial == t.Number && r.Error == "" })
		if at < 0 {
			continue
		}
		now := *t
		now.Measurements = slices.Clone(t.Measurements)
		for k := range now.Measurements {
			if v, ok := again[at].Metrics[now.Measurements[k].Name]; ok {
				now.Measurements[k].Value, now.Measurements[k].Low, now.Measurements[k].High = v, nil, nil
			}
		}
		other.Trials[i] = &now
	}
	return verdict.Of(&other, run.Plan.Seed)
}
