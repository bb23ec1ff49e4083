package lab

import "slices"

// Guard is a time of a page load of which a verdict is made, and the level that
// a history watches; a larger value is worse.
type Guard struct {
	Metric, Label string
	// Instant is set where the value is the time of one frame, so that it is
	// known no finer than the frame before it tells.
	Instant bool
}

// Guards lists them, the most telling first.
func Guards() []Guard {
	return []Guard{
		{"speed_index_ms", "SpeedIndex", false},
		{"time_to_stable_ms", "Looks finished", true},
		{"first_visual_change_ms", "First visual change", true},
		{"last_visual_change_ms", "Last visual change", true},
	}
}

// GuardPlace is where a metric is in Guards, or how many there are.
func GuardPlace(metric string) int {
	all := Guards()
	if i := slices.IndexFunc(all, func(g Guard) bool { return g.Metric == metric }); i >= 0 {
		return i
	}
	return len(all)
}

// MetricLabel is a guard's name for people, and that of any other metric as it is.
func MetricLabel(metric string) string {
	for _, g := range Guards() {
		if g.Metric == metric {
			return g.Label
		}
	}
	return metric
}
