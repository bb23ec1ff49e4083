package metrology

import (
	"errors"
	"fmt"
	"math"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// What a calibration must be to say something of another box.
const (
	// LeastRuns are the reference runs that it rests on.
	LeastRuns = 5
	// MostRuns are the newest ones that it uses, so that it follows a level that was accepted or drifts.
	MostRuns = 20
	// MostAge is how much older the one may be than the other.
	MostAge = 7 * 24 * time.Hour
)

// The reasons for which two boxes cannot be compared.
var (
	ErrOtherReference = errors.New("the boxes measured different references")
	ErrFewReadings    = errors.New("too few reference runs")
	ErrTooOld         = errors.New("the calibration is too old")
	ErrNoLevel        = errors.New("the reference does not have the metric")
)

// Calibrate says what a box measures of the reference at present. The readings are those of one device, in any order;
// those since the last change of the level count, at most MostRuns of them.
func Calibrate(readings []Reading) lab.Calibration {
	all := current(readings)
	if len(all) == 0 {
		return lab.Calibration{Levels: []lab.CalibrationLevel{}}
	}
	all = all[sinceChange(all):]
	all = all[max(len(all)-MostRuns, 0):]
	newest := all[len(all)-1]
	out := lab.Calibration{Reference: newest.Reference, Until: newest.At, Runs: len(all), Levels: []lab.CalibrationLevel{}}
	for _, l := range metricsOf(all) {
		var medians, spreads, counts []float64
		for _, r := range all {
			if one, ok := r.level(l.Metric); ok && one.N >= leastTrials && one.Median > 0 {
				medians, spreads, counts = append(medians, one.Median), append(spreads, one.Spread), append(counts, float64(one.N))
			}
		}
		if len(medians) == 0 {
			continue
		}
		out.Levels = append(out.Levels, lab.CalibrationLevel{
			Metric: l.Metric, Unit: l.Unit, Median: middle(medians), Between: Deviation(medians), Within: middle(spreads),
			Runs: len(medians), Trials: int(middle(counts)),
		})
	}
	return out
}

// metricsOf lists the metrics of the readings in the order of the first that has them.
func metricsOf(readings []Reading) (all []Level) {
	seen := map[string]bool{}
	for _, r := range readings {
		for _, l := range r.Levels {
			if !seen[l.Metric] && len(all) < mostLevels {
				seen[l.Metric] = true
				all = append(all, l)
			}
		}
	}
	return all
}

// sinceChange is the index of the first reading after the newest change of a level that holds on.
func sinceChange(readings []Reading) (from int) {
	w := NewWatch()
	for _, r := range readings {
		w.Add(r)
	}
	for _, c := range w.level {
		if c.drift != 0 {
			from = max(from, c.readings[c.changed])
		}
	}
	return from
}

// Ratio is by how much a level of one box is larger than that of another, with the uncertainty that it has on the scale
// of logarithms.
type Ratio struct {
	Value float64 `json:"ratio" doc:"What the second box measures, divided by what the first measures"`
	// StandardError is of the logarithm of the ratio: of the two levels, and of how far a run of either box may be from
	// its level.
	StandardError float64 `json:"standard_error"`
	// Degrees are those of freedom that the standard error rests on (Satterthwaite 1946).
	Degrees float64 `json:"degrees_of_freedom"`
}

// Bias returns the ratio of what box b measures to what box a measures. It refuses calibrations that say nothing of
// each other: of different references, of too few runs, or of different times.
func Bias(a, b lab.Calibration, name string) (Ratio, error) {
	if err := Comparable(a, b); err != nil {
		return Ratio{}, err
	}
	var out Ratio
	var total, spread float64
	for _, one := range []struct {
		c    lab.Calibration
		sign float64
	}{{a, -1}, {b, 1}} {
		l, ok := levelOf(one.c, name)
		if !ok || !(l.Median > 0) || !(l.Between >= 0) || !(l.Within >= 0) || math.IsInf(l.Median+l.Between+l.Within, 0) {
			return Ratio{}, fmt.Errorf("%s: %w", metric.Label(name), ErrNoLevel)
		}
		if l.Runs < LeastRuns {
			return Ratio{}, fmt.Errorf("%s: %w: %d of a box have it, at least %d are needed", metric.Label(name), ErrFewReadings, l.Runs, LeastRuns)
		}
		out.Value += one.sign * math.Log(l.Median)
		v := variance(l)
		total += v
		spread += v * v / float64(l.Runs-1)
	}
	out.Value, out.StandardError = math.Exp(out.Value), math.Sqrt(total)
	out.Degrees = math.Inf(1)
	if spread > 0 {
		out.Degrees = total * total / spread
	}
	return out, nil
}

// Comparable returns an error that says why two calibrations say nothing of each other.
func Comparable(a, b lab.Calibration) error {
	switch {
	case a.Reference == "" || a.Reference != b.Reference:
		return fmt.Errorf("%w: %.24q and %.24q", ErrOtherReference, a.Reference, b.Reference)
	case min(a.Runs, b.Runs) < LeastRuns:
		return fmt.Errorf("%w: %d and %d, at least %d of each box are needed", ErrFewReadings, a.Runs, b.Runs, LeastRuns)
	case a.Until.Sub(b.Until).Abs() > MostAge:
		return fmt.Errorf("%w: they end %.0f days apart, at most %.0f may be between them", ErrTooOld,
			a.Until.Sub(b.Until).Abs().Hours()/24, MostAge.Hours()/24)
	}
	return nil
}

// Fresh returns an error if a calibration says nothing of a run any more.
func Fresh(c lab.Calibration, run time.Time) error {
	if age := run.Sub(c.Until); age > MostAge {
		return fmt.Errorf("%w: its newest reference run was made %.0f days before the run, at most %.0f may be between them", ErrTooOld,
			age.Hours()/24, MostAge.Hours()/24)
	}
	return nil
}

func levelOf(c lab.Calibration, metric string) (lab.CalibrationLevel, bool) {
	for _, l := range c.Levels {
		if l.Metric == metric {
			return l, true
		}
	}
	return lab.CalibrationLevel{}, false
}

// variance is what a box contributes to that of the logarithm of a ratio: of the median of its runs, whose neighbours
// may correlate, and of the difference between a run and that level, apart from what the run's own trials explain. Of
// that, no more is taken off than the mean of as many trials would have: the median of trials with heavy tails is
// hardly less precise. Runs that lie together more closely than their trials allow have the trials' standard error.
func variance(l lab.CalibrationLevel) float64 {
	between, within := l.Between/l.Median, l.Within/l.Median
	between *= between
	own := within * within / float64(max(l.Trials, 1))
	return Usual().LongRun*math.Pi/2*max(between, own)/float64(l.Runs) + max(between-own, 0)
}
