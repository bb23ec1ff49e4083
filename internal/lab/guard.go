package lab

import (
	"slices"
	"strings"
)

// Guard is a metric of page load time that decides verdicts and whose level a history
// watches. Larger is worse, unless Higher says that larger is better.
type Guard struct {
	Metric, Label string
	// Instant is set if the value is the time of one frame, and so known only to the
	// interval since the frame before.
	Instant bool
	Higher  bool
}

// Guards lists the guards, the most telling first.
func Guards() []Guard {
	return []Guard{
		{"speed_index_ms", "SpeedIndex", false, false},
		{"time_to_stable_ms", "Looks finished", true, false},
		{"first_visual_change_ms", "First visual change", true, false},
		{"last_visual_change_ms", "Last visual change", true, false},
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
		return Guard{metric, step + ": time to end", true, false}, true
	}
	if step, ok := strings.CutSuffix(metric, "/"+PingGuard); ok {
		return Guard{metric, step + ": response", true, false}, true
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

// DirectionOf says whether a measurement is worse when it is larger (1), better (−1), or
// neither (0), as a distance is.
func DirectionOf(metric string) int {
	switch metric {
	case "code_clock_ms", "movement_lag_ms":
		return 0
	case "duplicate_frames", "lost_frames", "missed_refreshes", "missed_refreshes_worst_percent", "jank_count", "stalls",
		"torn_frames", "torn_percent", "torn_run_frames", "blank_sum", "blank_most_percent", "blank_mean_percent", "checkerboard",
		"blank_longest_frames", "movement_unevenness_px", "movement_overshoot_px", "movement_deviation_px", "layout_instability",
		"layout_instability_worst", "code_skipped", "code_broken_frames":
		return 1
	}
	switch {
	case strings.HasSuffix(metric, "_fps"):
		return -1
	case strings.HasSuffix(metric, "_ms"):
		return 1
	}
	return 0
}

// AskedGuard returns the guard that a metric is because a plan asks for it by name: of a load, or
// of any step, whose path stands before it. It is false for metrics that are not asked for.
func AskedGuard(metric string, asked []string) (Guard, bool) {
	step, name := "", metric
	if i := strings.LastIndexByte(metric, '/'); i >= 0 {
		step, name = metric[:i]+": ", metric[i+1:]
	}
	if !slices.Contains(asked, name) {
		return Guard{}, false
	}
	bare, region, of := strings.Cut(name, RegionMark)
	label := step + strings.ReplaceAll(bare, "_", " ")
	if of {
		label += " (" + region + ")"
	}
	return Guard{metric, label, isInstant(bare), DirectionOf(bare) < 0}, true
}

// isInstant says whether a measurement is the time of one frame.
func isInstant(name string) bool {
	for _, part := range []string{"_change_ms", "_settled_ms", "_movement_ms", "first_content_ms", "visual_complete_", "stable_", "_stable_ms", "_paint"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
