package verdict

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

func TestSizes(t *testing.T) {
	run := known(10, 0, 0) // a spread of 4 ms beside what is known
	run.Plan.Trials, run.Plan.Find = 40, "4ms"
	said := Sizes(run)
	if !strings.HasPrefix(said, metric.Label(metric.SpeedIndex.String())+", detected with 80 % probability: ") || !strings.Contains(said, "2 ms: ") ||
		!strings.Contains(said, "1 %: ") {
		t.Errorf("Sizes() = %q; want what pairs find", said)
	}
	s := SizeOf(run)
	if s == nil || s.Pairs < 8 || s.Pairs > 40 || s.Spread > 10 || s.Effect != 4 || s.After != 10 {
		t.Fatalf("SizeOf() = %+v; want a size by the spread of about 4 ms that is left", s)
	}
	raw := *run
	raw.Plan.Covariates = nil
	if wide := SizeOf(&raw); wide == nil || wide.Needed < 10*s.Needed || wide.Pairs != 40 {
		t.Errorf("SizeOf() without covariates = %+v; want all 40 pairs, and that %d would not do", wide, s.Needed)
	}
	// The looks are among the pairs that are made.
	run.Plan.Looks, run.Size = 4, &lab.Size{Pairs: 20}
	if after := LooksAfter(run); after[0] != 5 || after[3] != 20 {
		t.Errorf("LooksAfter() = %v; want those of 20 pairs", after)
	}
	few := known(7, 0, 0)
	few.Plan.Find = "4ms"
	if SizeOf(few) != nil || Sizes(few) != "" {
		t.Error("seven pairs tell a size; want none before eight")
	}
}

// The verdict's sentence says how the machine was.
func TestMachineInTheSentence(t *testing.T) {
	run := known(20, 8, 0)
	run.Tolerance = &lab.Tolerance{Company: &lab.Company{Usual: 0.04, Limit: 0.34, Planned: 0.34, N: 41, Over: 1, Cores: 2}}
	run.Trials = append(run.Trials, &lab.Trial{Number: 41, Arm: lab.Control, Block: 4, Machine: &lab.Machine{Busy: 1.2}})
	if c := Of(run, 1); !strings.Contains(c.Detail, "the machine was quiet: other work took 0.04 of its 2 processors beside a usual trial, and 1 beside more "+
		"than 0.34 is left out") {
		t.Errorf("Detail = %q; want how the machine was", c.Detail)
	}
	if run.Tolerance = nil; strings.Contains(Of(run, 1).Detail, "machine") {
		t.Error("a device with processors of its own is told of the machine")
	}
}
