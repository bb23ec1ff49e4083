package execute

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"eidetic/analysis/trace"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// uncounted says what a plan asks for by name and no trial has, because this machine does not count it; "" for nothing.
func uncounted(run *lab.Run) string {
	if len(run.Trials) == 0 {
		return ""
	}
	asked := slices.Collect(maps.Keys(run.Plan.Budgets))
	if m := run.Plan.Measure; m != nil {
		asked = slices.Concat(asked, m.Metrics, m.Guards)
	}
	has := map[metric.ID]bool{}
	for _, t := range run.Trials {
		for _, m := range t.Measurements {
			has[metric.Parse(m.Name).ID] = true
		}
	}
	var lacks []string
	energy := false
	for _, name := range asked {
		id := metric.Parse(name).ID
		if slices.Contains(trace.CountMetrics(), id) && !has[id] && !slices.Contains(lacks, id.String()) {
			lacks, energy = append(lacks, id.String()), energy || id == metric.Energy
		}
	}
	if len(lacks) == 0 {
		return ""
	}
	slices.Sort(lacks)
	why := fmt.Sprintf("counted was: %s.", orNothing(run.Environment.Counters))
	if energy {
		why += fmt.Sprintf(" Energy: %s.", orNothing(run.Environment.Energy))
	}
	return fmt.Sprintf("%s could not be measured here, and nothing rests on it; %s", strings.Join(lacks, ", "), why)
}

func orNothing(text string) string {
	if text == "" {
		return "nothing, on this device"
	}
	return text
}
