// Package compare compares a run with an earlier one: is it slower, and what else
// differs between the two? Its input is two runs, from the store or from files; its
// output is the verdict of package verdict and the facts of package history. Runs of two boxes of a fleet are compared if both boxes
// have measured the same reference.
package compare

import (
	"errors"
	"fmt"
	"math"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/history"
	"eidetic/internal/tell/verdict"
)

// Between is the comparison of a run with an earlier one.
type Between struct {
	Reference string  `json:"reference" doc:"ID of the earlier run"`
	Run       string  `json:"run" doc:"ID of the run that is judged"`
	Margin    float64 `json:"margin_percent" doc:"Differences up to so many percent of the reference are none"`
	// Different is an empty list, not null, if nothing differs.
	Different  []history.Fact  `json:"different" doc:"What in environment, link, plan and recording is not alike, and may be the reason"`
	Comparison *lab.Comparison `json:"comparison" doc:"The reference as control, the run as treatment"`
	// Adjusted is set if two boxes of a fleet measured the runs.
	Adjusted *Adjusted `json:"adjusted,omitempty" doc:"How the run's numbers were adjusted, where another box measured it than the reference: the comparison's numbers are those that the reference's box would have measured"`
	Warnings []string  `json:"warnings,omitempty" doc:"What lowers the trust in the comparison, such as a box that drifts"`
}

// mostCompared bounds the valid trials of each run: every trial of one run is compared
// with every trial of the other.
const mostCompared = 2000

// Runs compares the control of a run with that of an earlier one; see verdict.Between.
// Its error names the run that cannot be compared and says why.
func Runs(reference, run *lab.Run, margin float64, seed uint64) (*Between, error) {
	for _, r := range []*lab.Run{reference, run} {
		if err := canCompare(r); err != nil {
			return nil, fmt.Errorf("run %s: %w", r.ID, err)
		}
	}
	b := &Between{
		Reference: reference.ID, Run: run.ID, Margin: margin, Different: history.Differences(store.Facts(reference), store.Facts(run)),
		Warnings: warnings(reference, run),
	}
	adjusted, scales, err := adjust(reference, run)
	if err != nil {
		return nil, err
	}
	if adjusted == nil {
		b.Comparison = verdict.Between(reference, run, margin, seed)
		if c := b.Comparison; reference.ID == run.ID && reference.Wall.Equal(run.Wall) {
			c.Verdict, c.Headline, c.Detail = lab.NoChange, "The same run", "both are run "+run.ID+", which does not differ from itself: name another one"
		}
		return b, nil
	}
	b.Adjusted, b.Comparison = adjusted, verdict.Across(reference, run, margin, seed, scales)
	b.Comparison.Detail += "; " + adjusted.Text
	return b, nil
}

// canCompare refuses a run that did not end well, one with too many trials, and values so
// large that differences would overflow.
func canCompare(run *lab.Run) error {
	if run.State != store.StateDone {
		return fmt.Errorf("it is %s: only one that is done can be compared", run.State)
	}
	if run.Plan.IsMany() {
		return errors.New("it is of several pages or users, and only runs of one page can be compared with each other: within such a run, " +
			"compare with a treatment")
	}
	valid := 0
	for _, t := range run.Trials {
		if t.Valid {
			valid++
		}
		for _, m := range t.Measurements {
			if math.Abs(m.Value) > 1e15 {
				return fmt.Errorf("trial %d: %.60s is %v, which nothing takes", t.Number, m.Name, m.Value)
			}
		}
	}
	if valid > mostCompared {
		return fmt.Errorf("%d valid trials: at most %d can be compared", valid, mostCompared)
	}
	return nil
}
