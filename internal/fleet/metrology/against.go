package metrology

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Shift is a metric of a reading that is outside of where the readings before it lie.
type Shift struct {
	Metric  string
	Percent float64 // by how much it is larger than the level before
	Limit   float64 // from how many percent on, up or down, it is outside
}

// Text is the shift in words.
func (s Shift) Text() string {
	return fmt.Sprintf("%s %s %% against the readings before (limit %.1f %%)", metric.Label(s.Metric), lab.Signed(s.Percent, 1), s.Limit)
}

// ErrThrown is of a reading of which most trials were thrown away: it tells no level.
var ErrThrown = errors.New("most of its trials were thrown away")

// Against compares one reading with those before it, since the last change of their level: it returns the metrics that
// are outside, the farthest first. Outside is what Normal says of a steady box: three standard deviations from the
// level, up or down. With too few readings for a baseline, it is what makes a box bad: BadPercent.
func Against(before []Reading, r Reading) ([]Shift, error) {
	used := current(before)
	switch {
	case len(used) == 0:
		return nil, fmt.Errorf("%w: there is none before", ErrFewReadings)
	case used[len(used)-1].Reference != r.Reference:
		return nil, fmt.Errorf("%w: %.24q before and %.24q after", ErrOtherReference, used[len(used)-1].Reference, r.Reference)
	case 2*r.Thrown > r.Trials:
		return nil, fmt.Errorf("%w: %d of %d", ErrThrown, r.Thrown, r.Trials)
	}
	w := NewWatch()
	for _, one := range used[sinceChange(used):] {
		w.Add(one)
	}
	type band struct {
		centre, limit float64 // logarithms
		n             int
	}
	bands := map[string]band{}
	for metric, c := range w.level {
		b := band{middle(c.values), math.Log1p(BadPercent / 100.0), len(c.values)}
		if c.known() {
			centre, deviation := c.level()
			b.centre, b.limit = centre, 3*deviation
		}
		bands[metric] = b
	}
	w.Add(r)
	var all []Shift
	compared := 0
	far := map[string]float64{}
	for metric, b := range bands {
		values := w.level[metric].values
		if len(values) == b.n {
			continue // this reading does not have it
		}
		compared++
		by := values[b.n] - b.centre
		if far[metric] = math.Abs(by) / b.limit; far[metric] > 1 {
			all = append(all, Shift{metric, 100 * math.Expm1(by), 100 * math.Expm1(b.limit)})
		}
	}
	if compared == 0 {
		return nil, fmt.Errorf("%w: the reading has no metric of those before it", ErrNoLevel)
	}
	slices.SortFunc(all, func(a, b Shift) int {
		return cmp.Or(cmp.Compare(far[b.Metric], far[a.Metric]), cmp.Compare(a.Metric, b.Metric))
	})
	return all, nil
}

// Both are the shifts of a second reading that the first has on the same side, too.
func Both(first, second []Shift) (all []Shift) {
	for _, s := range second {
		if slices.ContainsFunc(first, func(o Shift) bool { return o.Metric == s.Metric && o.Percent > 0 == (s.Percent > 0) }) {
			all = append(all, s)
		}
	}
	return all
}
