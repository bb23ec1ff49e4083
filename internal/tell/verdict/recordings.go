package verdict

import (
	"maps"
	"math"
	"slices"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
)

// recordingsOf gives a metric one value for each recording: the mean of its trials, each less the median of its block,
// and the median of all. The recordings are one block: they were made in an order of the arms that was drawn by lot
// from all orders.
func recordingsOf(m compared, blocks []*block) []stats.Block {
	values, _ := valuesOf(m, blocks)
	numbers := trialsOf(blocks, func(t *lab.Trial) (float64, bool) { return float64(t.Recording), t.Measurement(m.name) != nil })
	type sum struct {
		of float64
		n  int
	}
	control, treatment := map[float64]sum{}, map[float64]sum{}
	var every []float64
	for _, b := range values {
		every = append(append(every, b.Control...), b.Treatment...)
	}
	middle := stats.Median(every)
	for i, b := range values {
		of := stats.Median(slices.Concat(b.Control, b.Treatment))
		for _, arm := range []struct {
			values, numbers []float64
			to              map[float64]sum
		}{{b.Control, numbers[i].Control, control}, {b.Treatment, numbers[i].Treatment, treatment}} {
			for k, v := range arm.values {
				if number := arm.numbers[k]; number > 0 {
					s := arm.to[number]
					arm.to[number] = sum{s.of + v - of, s.n + 1}
				}
			}
		}
	}
	means := func(sums map[float64]sum) (all []float64) {
		for _, number := range slices.Sorted(maps.Keys(sums)) {
			all = append(all, middle+sums[number].of/float64(sums[number].n))
		}
		return all
	}
	return []stats.Block{{Control: means(control), Treatment: means(treatment)}}
}

// effectOfRecordings compares a metric over the recordings of the arms.
func effectOfRecordings(m compared, blocks []*block, plan stats.Plan) (lab.Effect, bool) {
	trials, _ := valuesOf(m, blocks)
	e := untested(m, trials)
	values := recordingsOf(m, blocks)
	c, err := stats.Compare(values, plan)
	if err != nil {
		return e, false
	}
	found := effectOf(m, c)
	found.Pairs, found.Control, found.Treatment = e.Pairs, e.Control, e.Treatment
	found.Recordings = min(len(values[0].Control), len(values[0].Treatment))
	found.ModeChange = false // there are too few to count modes
	if base := math.Abs(e.Control); base > 0 && found.Shift.Confidence > 0 {
		s := found.Shift
		found.Percent = &lab.Range{Value: 100 * s.Value / base, Low: 100 * s.Low / base, High: 100 * s.High / base, Confidence: s.Confidence}
	}
	return found, true
}
