package history

import (
	"slices"

	"eidetic/analysis/stats"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// SteadyRuns is how many of a series' newest runs say how steady it is.
const SteadyRuns = 10

// leastBetween is the fewest runs whose medians have a spread.
const leastBetween = 4

// normal is the interquartile range of a normal distribution in standard deviations.
const normal = 1.349

// Steady says how much the newest runs of a series scatter, so that a flaky page can be found among others.
type Steady struct {
	Runs    int     `json:"runs" doc:"The newest runs of which this is"`
	LeftOut float64 `json:"left_out_percent" doc:"Trials of the control that were left out, in percent of those made"`
	Metric  string  `json:"metric,omitempty" doc:"The metric of the spreads: the journey's duration, or SpeedIndex"`
	Label   string  `json:"label,omitempty"`
	// Spreads are of quartiles: a single outlier says little of a page.
	Within  *float64 `json:"within_percent,omitempty" doc:"Spread of the trials within a run, in percent of their median: the interquartile range ÷ 1.349, which is the standard deviation of normal values. The median of the runs"`
	Between *float64 `json:"between_percent,omitempty" doc:"Spread of the runs' medians, likewise, from 4 runs on. It is of the page's and the machine's changes, too"`
}

// SteadyOf is how steady runs are: those that [store.Store.Past] returns.
func SteadyOf(past []store.Past) Steady {
	s := Steady{Runs: len(past)}
	trials, valid := 0, 0
	for _, p := range past {
		trials, valid = trials+p.Trials, valid+p.Valid
	}
	if trials > 0 {
		s.LeftOut = 100 * float64(trials-valid) / float64(trials)
	}
	var medians, within []float64
	for _, of := range []metric.ID{metric.Journey, metric.Guards()[0]} {
		for _, p := range past {
			i := slices.IndexFunc(p.Summary, func(one lab.Summary) bool { return one.Metric == of.String() })
			if i < 0 || !(p.Summary[i].Median > 0) {
				continue
			}
			one := p.Summary[i]
			medians, within = append(medians, one.Median), append(within, 100*(one.Q3-one.Q1)/normal/one.Median)
		}
		if len(medians) > 0 {
			s.Metric, s.Label = of.String(), of.Label()
			break
		}
	}
	if len(medians) > 0 {
		v := stats.Median(within)
		s.Within = &v
	}
	if len(medians) >= leastBetween {
		slices.Sort(medians)
		v := 100 * (stats.Quantile(medians, 0.75) - stats.Quantile(medians, 0.25)) / normal / stats.Quantile(medians, 0.5)
		s.Between = &v
	}
	return s
}
