package execute

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// TestUncounted: what a plan asks for by name and this machine does not count is named with the reason; what it counts,
// and what is no counter, is not.
func TestUncounted(t *testing.T) {
	run := &lab.Run{Trials: []*lab.Trial{{Measurements: []lab.Measurement{metric.PageFaults.Measure(0, nil)}}}}
	if got := uncounted(run); got != "" {
		t.Errorf("of a plan that asks for nothing: %q", got)
	}
	run.Plan.Measure = &lab.Measure{Guards: []string{"instructions_million", "page_faults", "processor_ms"}, Metrics: []string{metric.Machine}}
	run.Plan.Budgets = map[string]lab.Budget{"energy_j": {Max: 5}, "instructions_million": {Max: 1}}
	run.Environment.Counters = "task clock; this machine has no instructions"
	want := "energy_j, instructions_million could not be measured here, and nothing rests on it; counted was: " +
		"task clock; this machine has no instructions. Energy: nothing, on this device."
	if got := uncounted(run); got != want {
		t.Errorf("uncounted() = %q; want %q", got, want)
	}
	if conclude(run); !strings.Contains(strings.Join(run.Warnings, " "), want) {
		t.Errorf("warnings %q", run.Warnings)
	}
	run.Trials = nil
	if got := uncounted(run); got != "" {
		t.Errorf("of a run without trials: %q", got)
	}
}
