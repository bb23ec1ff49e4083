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
