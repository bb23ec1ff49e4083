package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// SizeAfter is how many pairs tell by how much loads vary.
const SizeAfter = 8

// vary is by how much the loads of a run vary, in the metric that its verdict rests on first. It is the same whatever
// arm each of them had, so that a run may choose its size by it.
type vary struct {
	metric, unit  string
	spread, level float64 // standard deviation, and median of all loads
	family, pairs int
}

// varies returns false if too few trials tell.
func varies(run *lab.Run) (v vary, ok bool) {
	if !hasTreatment(run) || run.Plan.IsMany() {
		return v, false
	}
	blocks, _ := sorted(run.Trials)
	r := ruleOf(run, Level)
	all := metrics(blocks, r)
	i := slices.IndexFunc(all, func(m compared) bool { return m.guarded })
	if i < 0 {
		return v, false
	}
	m, guards := all[i], 0
	for _, other := range all {
		if other.guarded {
			guards++
		}
	}
	values, _ := valuesOf(m, blocks)
	var every []float64
	for _, b := range values {
		v.pairs += min(len(b.Control), len(b.Treatment))
		every = append(append(every, b.Control...), b.Treatment...)
	}
	v.metric, v.unit, v.family, v.level = m.name, m.unit, familyOf(m, guards, r), math.Abs(stats.Median(every))
	if r.recordings { // their number is the plan's
		return v, false
	}
	v.spread = stats.SpreadOfBoth(values, covariatesOf(m, blocks, unbalanced(r)))
	return v, v.pairs >= SizeAfter && v.spread > 0
}

// unbalanced are the covariates of a rule before anybody looked whether the arms differ in them, which would be a look
// at the arms.
func unbalanced(r rule) (uses []lab.CovariateUse) {
	for _, name := range r.covariates {
		if name != lab.CovariateNone {
			uses = append(uses, lab.CovariateUse{Name: name})
		}
	}
	return uses
}

// SizeOf chooses how many pairs a run makes that is to find a difference; nil if that is not known yet or the plan
// names none.
func SizeOf(run *lab.Run) *lab.Size {
	v, ok := varies(run)
	effect, percent, err := lab.ParseFind(run.Plan.Find)
	if !ok || err != nil || effect == 0 {
		return nil
	}
	if percent {
		effect *= v.level / 100
	}
	s := &lab.Size{After: v.pairs, Metric: v.metric, Effect: effect, Spread: v.spread, Needed: stats.PairsToFind(v.spread, effect, v.family)}
	s.Pairs = max(SizeAfter, min(s.Needed, run.Plan.Trials))
	return s
}

// Sizes says how many pairs find which difference in a run like this one: "SpeedIndex: 20 ms: 12 pairs, 10 ms: 41
// pairs, 1 %: 41 pairs"; "" if too few trials tell.
func Sizes(run *lab.Run) string {
	v, ok := varies(run)
	if !ok {
		return ""
	}
	const least, most, named = 6, 500, 3
	var parts []string
	for _, size := range []float64{500, 200, 100, 50, 20, 10, 5, 2, 1} {
		if n := stats.PairsToFind(v.spread, size, v.family); n >= least && n <= most && len(parts) < named {
			parts = append(parts, fmt.Sprintf("%g %s: %d pairs", size, v.unit, n))
		}
	}
	if n := stats.PairsToFind(v.spread, v.level/100, v.family); n <= 20*most && v.unit != "%" {
		parts = append(parts, fmt.Sprintf("1 %%: %d pairs", max(n, least)))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, detected with 80 %% probability: %s", metric.Label(v.metric), strings.Join(parts, ", "))
}
