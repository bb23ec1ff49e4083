package truth

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/run/experiment"
)

// Pool holds the valid trials of all A/A experiments, in the order in which they
// were carried out. Trials of both arms loaded the same bytes.
type Pool struct{ Trials []Trial }

// NewPool collects them.
func NewPool(trials []Trial) Pool {
	var p Pool
	for _, t := range trials {
		if t.Valid && t.Delay == 0 {
			p.Trials = append(p.Trials, t)
		}
	}
	slices.SortStableFunc(p.Trials, func(a, b Trial) int { return a.Wall.Compare(b.Wall) })
	return p
}

// Draw makes an A/A experiment that could have happened: a stretch of consecutive trials of
// the pool, whose arms and blocks are drawn as the product draws them. Trials picked one by
// one from the whole pool would lose what makes real experiments hard, which is drift and
// slow periods of the machine; trials that keep their arms could be arranged in only a few
// ways. Stretches overlap if the pool is small, so two draws may share trials; their arms
// are independent.
func (p Pool) Draw(r *rand.Rand, pairs int) ([]Trial, error) {
	if n := len(p.Trials); n < 2*pairs {
		return nil, fmt.Errorf("an experiment of %d pairs needs a stretch of %d valid A/A trials, and there are %d", pairs, 2*pairs, n)
	}
	from := r.IntN(len(p.Trials) - 2*pairs + 1)
	drawn := slices.Clone(p.Trials[from : from+2*pairs])
	for i, slot := range experiment.Schedule(r.Uint64(), pairs, 2) {
		drawn[i].Number, drawn[i].Block, drawn[i].Arm = i+1, slot.Block, [...]string{lab.Control, lab.Treatment}[slot.Arm]
	}
	return drawn, nil
}

// sample is what rules get of a metric: its values in blocks, the step of one frame, and what was known of each trial
// before its arm could act.
type sample struct {
	blocks     []stats.Block
	step       float64
	covariates []stats.Covariate
}

// sampleOf returns the sample of a metric of valid trials.
func sampleOf(trials []Trial, m metric.ID) sample {
	s := sample{blocks: blocks(trials, m, func(t Trial) float64 { return t.Metrics[m.String()].Value }), step: step(trials, m)}
	for _, name := range lab.Covariates() {
		s.covariates = append(s.covariates, stats.Covariate{Name: name, Blocks: blocks(trials, m, func(t Trial) float64 {
			if v, ok := t.Before[name]; ok {
				return v
			}
			return math.NaN()
		})})
	}
	return s
}

// samplesOf returns the samples of all metrics.
func samplesOf(trials []Trial) (all []sample) {
	for _, m := range metrics() {
		all = append(all, sampleOf(trials, m))
	}
	return all
}

// compare compares as the product does for one metric.
func (s sample) compare(seed uint64) (stats.Comparison, error) {
	return stats.Compare(s.blocks, stats.Plan{Seed: seed, Family: 1, Step: s.step, Covariates: s.covariates})
}

// blocks returns a number of each valid trial that has a metric in the form of analysis/stats.
func blocks(trials []Trial, m metric.ID, number func(Trial) float64) (all []stats.Block) {
	trials = slices.Clone(trials)
	slices.SortStableFunc(trials, func(a, b Trial) int { return cmp.Compare(a.Number, b.Number) })
	place := map[int]int{}
	for _, t := range trials {
		if _, ok := t.Metrics[m.String()]; !ok || !t.Valid {
			continue
		}
		i, known := place[t.Block]
		if !known {
			i = len(all)
			place[t.Block], all = i, append(all, stats.Block{})
		}
		if t.Arm == lab.Control {
			all[i].Control = append(all[i].Control, number(t))
		} else {
			all[i].Treatment = append(all[i].Treatment, number(t))
		}
	}
	return all
}

// shifted returns the blocks with shift added to the treatment's values.
func shifted(all []stats.Block, shift float64) []stats.Block {
	out := make([]stats.Block, len(all))
	for i, b := range all {
		out[i].Control = b.Control
		for _, v := range b.Treatment {
			out[i].Treatment = append(out[i].Treatment, v+shift)
		}
	}
	return out
}

// pairsOf pairs the n-th trial of the control in each block with the n-th of the treatment.
func pairsOf(all []stats.Block) (control, treatment []float64) {
	for _, b := range all {
		n := min(len(b.Control), len(b.Treatment))
		control, treatment = append(control, b.Control[:n]...), append(treatment, b.Treatment[:n]...)
	}
	return control, treatment
}

// step returns the median width of the bounds that frames give a metric's values, as
// package verdict does; 0 for a metric without such bounds.
func step(trials []Trial, m metric.ID) float64 {
	var widths []float64
	for _, t := range trials {
		if v, ok := t.Metrics[m.String()]; ok && t.Valid && v.Low != nil && v.High != nil {
			widths = append(widths, *v.High-*v.Low)
		}
	}
	if len(widths) == 0 {
		return 0
	}
	slices.Sort(widths)
	return stats.Quantile(widths, 0.5)
}
