package device

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/run/counters"
)

// TestCountersAsSamples: the samples of a counter sum up to its total, one that counted nothing has a sample at the end,
// and what came before the first reading is nobody's.
func TestCountersAsSamples(t *testing.T) {
	total := map[string]float64{lab.CounterFaults: 100, lab.CounterMigrations: 7}
	var list []lab.ProcessSample
	s := &Sampler{totals: map[string]tally{}, more: []func() map[string]float64{func() map[string]float64 { return total }, (*counters.Energy)(nil).Total, (*counters.Counters)(nil).Total}}
	s.emit = func(one lab.ProcessSample) { list = append(list, one) }
	s.count(1e6, false)
	total[lab.CounterFaults] = 130
	s.count(2e6, false)
	total[lab.EnergyOf+"package-0"] = 5 // of a counter that begins now
	s.count(3e6, false)
	s.count(4e6, true)
	faults := lab.ProcessSample{At: 2e6, Name: lab.CounterFaults, Of: lab.OfBrowser, For: 1e6, Counted: 30}
	want := []lab.ProcessSample{
		faults, {At: 3e6, Name: lab.EnergyOf + "package-0", Of: lab.OfMachine, For: 1e6, Counted: 5},
		{At: 4e6, Name: lab.EnergyOf + "package-0", Of: lab.OfMachine, For: 1e6},
		{At: 4e6, Name: lab.CounterMigrations, Of: lab.OfBrowser, For: 1e6}, {At: 4e6, Name: lab.CounterFaults, Of: lab.OfBrowser, For: 1e6},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}
