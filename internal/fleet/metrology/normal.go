package metrology

import (
	"math"
	"slices"
)

// Normal is what is normal for a metric of a device: the level of its baseline, and where a steady box's readings lie.
type Normal struct {
	Metric string
	Unit   string
	Median float64
	// Low and High are three standard deviations of a reading from the level.
	Low, High float64
	Drifted   bool    // the level is another one now
	Percent   float64 // by how much the newest readings are larger than the level
}

// newestReadings are those that Normal.Percent rests on.
const newestReadings = 5

// Normals lists what is normal for each metric of a device; none while there are too few readings for a baseline.
func Normals(readings []Reading) (all []Normal) {
	w := NewWatch()
	used := current(readings)
	for _, r := range used {
		w.Add(r)
	}
	for _, l := range metricsOf(used) {
		c := w.level[l.Metric]
		if c == nil || !c.known() {
			continue
		}
		centre, deviation := c.level()
		newest := slices.Sorted(slices.Values(c.values[max(len(c.values)-newestReadings, 0):]))
		all = append(all, Normal{
			Metric: l.Metric, Unit: l.Unit, Median: math.Exp(centre), Low: math.Exp(centre - 3*deviation), High: math.Exp(centre + 3*deviation),
			Drifted: c.drift != 0, Percent: 100 * math.Expm1(middle(newest)-centre),
		})
	}
	return all
}
