package verdict

import (
	"fmt"
	"math"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
)

// Between compares two runs made at different times: the control of run with the control
// of reference, which becomes the control of the result. A difference of at most margin,
// in percent of the reference, counts as none: the machine, the hour or the browser
// may have changed between the runs.
func Between(reference, run *lab.Run, margin float64, seed uint64) *lab.Comparison {
	return between(reference, run, margin, seed, nil)
}

// Across is Between where two boxes measured the runs: scales has, by metric, the ratio of what the run's box measures to what that
// of the reference does. The treatment's numbers are divided by it. Metrics without a ratio cannot be compared, and are left out.
func Across(reference, run *lab.Run, margin float64, seed uint64, scales map[string]stats.Scale) *lab.Comparison {
	if scales == nil {
		scales = map[string]stats.Scale{}
	}
	return between(reference, run, margin, seed, scales)
}

func between(reference, run *lab.Run, margin float64, seed uint64, scales map[string]stats.Scale) *lab.Comparison {
	b := &block{}
	c := &lab.Comparison{Level: Level, Seed: seed, Effects: []lab.Effect{}, Control: reference.ID, Treatment: run.ID}
	for _, one := range []struct {
		run *lab.Run
		to  *[]*lab.Trial
	}{{reference, &b.control}, {run, &b.treatment}} {
		for _, t := range one.run.Trials {
			switch {
			case t.Arm != lab.Control:
			case t.Valid:
				*one.to = append(*one.to, t)
			default:
				c.LeftOut++
			}
		}
	}
	c.Pairs = min(len(b.control), len(b.treatment))
	r := rule{level: Level, margin: margin, asked: asked(run), scales: scales}
	judge(c, []*block{b}, r, func(values []stats.Block, p stats.Plan) (stats.Comparison, error) {
		if p.Scale != nil {
			return stats.Across(values[0].Control, values[0].Treatment, margin/100, p)
		}
		base := stats.Median(values[0].Control)
		return stats.Independent(values[0].Control, values[0].Treatment, margin/100*math.Abs(base), p)
	})
	more := ""
	if margin > 0 {
		more = fmt.Sprintf(" of more than %g %%", margin)
	}
	c.Headline, c.Detail = words(c, voice{
		name: "The run", none: "No difference" + more + " from the reference was found",
		few: "Too few trials to tell whether the run is slower than the reference",
		least: fmt.Sprintf("%d valid %s of the reference and %d of the run, at least %d of each are needed", len(b.control),
			lab.Plural(len(b.control), "trial", "trials"), len(b.treatment), Least),
		trials: func(e *lab.Effect) string {
			return fmt.Sprintf("%d and %d trials", having(b.control, e.Metric), having(b.treatment, e.Metric))
		},
	})
	if c.Verdict == lab.Slower || c.Verdict == lab.Faster {
		c.Headline += " than the reference"
		if margin > 0 {
			c.Headline += fmt.Sprintf(", by more than %g %%", margin)
		}
	}
	return c
}

// having counts the trials that have a metric.
func having(trials []*lab.Trial, metric string) (n int) {
	for _, t := range trials {
		if t.Measurement(metric) != nil {
			n++
		}
	}
	return n
}
