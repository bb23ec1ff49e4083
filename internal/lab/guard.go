package lab

import (
	"slices"
	"strings"
)

// Guard is a metric of page load time that decides verdicts and whose level a history
// watches. Larger is worse.
type Guard struct {
	Metric, Label string
	// Instant is set if the value is the time of one frame, and so known only to the
	// interval since the frame before.
	Instant bool
}

// Guards lists the guards, the most telling first.
func Guards() []Guard {
	return []Guard{
		{"speed_index_ms", "SpeedIndex", false},
		{"time_to_stable_ms", "Looks finished", true},
		{"first_visual_change_ms", "First visual change", true},
		{"last_visual_change_ms", "Last visual change", true},
	}
}

// StepGuard is the metric of a step that decides verdicts, as the guards do for a page.
const StepGuard = "time_to_end_ms"

// PingGuard is that of a step that measures responsiveness.
const PingGuard = "response_ms"

// GuardOf returns the guard that a metric is: one of Guards, or the StepGuard or PingGuard of a
// step, whose name has the step's path before it. It is false for other metrics.
func GuardOf(metric string) (Guard, bool) {
	for _, g := range Guards() {
		if g.Metric == metric {
			return g, true
		}
	}
	if step, ok := strings.CutSuffix(metric, "/"+StepGuard); ok {
		return Guard{metric, step + ": time to end", true}, true
	}
	if step, ok := strings.CutSuffix(metric, "/"+PingGuard); ok {
		return Guard{metric, step + ": response", true}, true
	}
	return Guard{}, false
}

// GuardPlace is the index of a metric in Guards; the number of guards for other metrics.
func GuardPlace(metric string) int {
	all := Guards()
	if i := slices.IndexFunc(all, func(g Guard) bool { return g.Metric == metric }); i >= 0 {
		return i
	}
	return len(all)
}

// MetricLabel returns a guard's name for people, and other names unchanged.
func MetricLabel(metric string) string {
	if g, ok := GuardOf(metric); ok {
		return g.Label
	}
	return metric
}
