package verdict

import (
	"fmt"
	"math"
	"strings"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
)

// balanced tests of each covariate that the rule declares whether the arms differ in it, and drops it if they do: it
// would hide a part of what the arm did. All these tests together have stats.DropShare of the level; the adjusted tests
// of the guards have the rest, so a run whose arms are equal still has a false alarm with at most the level.
func balanced(blocks []*block, r rule, seed uint64) (uses []lab.CovariateUse) {
	for _, name := range r.covariates {
		if name == lab.CovariateNone {
			continue
		}
		values := trialsOf(blocks, func(t *lab.Trial) (float64, bool) { v, ok := t.Before[name]; return v, ok })
		u := lab.CovariateUse{Name: name, P: 1}
		for _, b := range values {
			u.Trials += len(b.Control) + len(b.Treatment)
		}
		if u.Trials == 0 {
			continue // a run of before this was measured, or a device that cannot tell
		}
		if t, err := stats.AlignedRank(values, permutations, seed); err == nil {
			u.P = t.P
		}
		uses = append(uses, u)
	}
	for i := range uses {
		uses[i].Dropped = uses[i].P <= stats.DropShare*r.level/float64(len(uses)*max(r.times, 1))
	}
	return uses
}

// permutations are those of a covariate's test, where it is not exact.
const permutations = 99_999

// covariatesOf lists the covariates that were not dropped, for the trials that have a metric; nil for metrics that no
// verdict rests on.
func covariatesOf(m compared, blocks []*block, uses []lab.CovariateUse) (all []stats.Covariate) {
	if !m.guarded {
		return nil
	}
	for _, u := range uses {
		if u.Dropped {
			continue
		}
		all = append(all, stats.Covariate{Name: u.Name, Blocks: trialsOf(blocks, func(t *lab.Trial) (float64, bool) {
			v, ok := t.Before[u.Name]
			if !ok {
				v = math.NaN()
			}
			return v, t.Measurement(m.name) != nil
		})})
	}
	return all
}

// trialsOf lists a number of each trial that has it.
func trialsOf(blocks []*block, number func(*lab.Trial) (float64, bool)) (values []stats.Block) {
	of := func(trials []*lab.Trial) (all []float64) {
		for _, t := range trials {
			if v, ok := number(t); ok {
				all = append(all, v)
			}
		}
		return all
	}
	for _, b := range blocks {
		values = append(values, stats.Block{Control: of(b.control), Treatment: of(b.treatment)})
	}
	return values
}

// Dropped says which covariates of a comparison were not used since the arms differ in them; "" for none.
func Dropped(c *lab.Comparison) string {
	var names []string
	for _, u := range c.Covariates {
		if u.Dropped {
			names = append(names, fmt.Sprintf("%s (%s)", u.Name, probability(u.P)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("The arms differ in what was measured before their pages were loaded: %s. So the comparison is not adjusted by it; "+
		"look whether something else than the arm differs.", strings.Join(names, ", "))
}

// adjusted says what covariates did to an effect: "adjusted by what was known before each load, which explains 45 % of
// the variance; unadjusted +35 ms (95 % interval -5 to +70, p = 0.09)"; "" for nothing.
func adjusted(e *lab.Effect) string {
	a := e.Adjustment
	if a == nil {
		return ""
	}
	return fmt.Sprintf("adjusted by what was known before each load, which explains %.0f %% of the variance; unadjusted %s %s "+
		"(95 %% interval %s to %s, %s)", 100*a.Explained, lab.Change(a.Raw.Value), e.Unit, lab.Change(a.Raw.Low),
		lab.Change(a.Raw.High), probability(a.RawP))
}
