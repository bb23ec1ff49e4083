package job

import (
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/store"
)

// What an order may ask for together is bounded, and the most of it is allowed.
func TestOrdersThatAreTooLong(t *testing.T) {
	for _, c := range []struct {
		trials int
		limit  time.Duration
		says   string
	}{
		{store.MaxTrials / 2, time.Minute, ""},
		{store.MaxTrials/2 + 1, time.Minute, "at most 5000 in all"},
		{store.MaxTrials / 2, time.Minute + time.Second, "more than 83h20m0s in all"},
		{1, 1 << 62, "in all"},
		{10, time.Hour, ""},
	} {
		o := Order{
			ID: "1", Trials: c.trials, Timing: "recorded", Still: Duration{time.Second}, Limit: Duration{c.limit},
			Arms: []Arm{{Name: lab.Control, Page: "https://x.test/", Link: "native"}, {Name: lab.Treatment, Page: "https://x.test/", Link: "3g"}},
		}
		err := o.Validate()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("two arms of %d trials, each at most %v: %v, want a word of %q", c.trials, c.limit, err, c.says)
		}
	}
}

// A tolerance is above 0 or left open, which an order's JSON then leaves out.
func TestOrdersTolerance(t *testing.T) {
	for tolerance, good := range map[time.Duration]bool{0: true, time.Nanosecond: true, MaxTolerance: true, MaxTolerance + 1: false, -1: false} {
		o := Order{
			ID: "1", Trials: 1, Timing: "recorded", Still: Duration{time.Second}, Limit: Duration{time.Minute}, Tolerance: Duration{tolerance},
			Arms: []Arm{{Name: lab.Control, Page: "https://x.test/", Link: "native"}},
		}
		if err := o.Validate(); (err == nil) != good {
			t.Errorf("a tolerance of %v: %v", tolerance, err)
		}
		if _, said := asMap(o)["tolerance"]; said != (tolerance != 0) {
			t.Errorf("a tolerance of %v stands in the plan: %t", tolerance, said)
		}
	}
}
