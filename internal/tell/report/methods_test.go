package report

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/report/reporttest"
)

// TestMethods: the report says of each metric what its entry says, once, and nothing that is another's.
func TestMethods(t *testing.T) {
	run := reporttest.Run(1, 2)
	var shown []metric.Entry
	for _, m := range metric.All() {
		for _, trial := range run.Trials {
			if trial.Measurement(m.String()) == nil {
				trial.Measurements = append(trial.Measurements, m.Measure(1, nil, "a detail"))
			}
		}
		shown = append(shown, describe(m.String(), ""))
	}
	run.Trials[0].Measurements = append(run.Trials[0].Measurements, lab.Measurement{Name: "open/first_content_ms", Method: "of a step"})
	texts := map[string]string{}
	for _, m := range methodsOf(run, shown) {
		e := m.Entry
		if n := strings.Count(m.Text, e.Method[1:]); n != 1 { // the first letter may be a capital
			t.Errorf("%s: %q has its definition %d times, want once", e.Name, m.Text, n)
		}
		if other, twice := texts[m.Text]; twice {
			t.Errorf("%s and %s have the same text: %s", e.Name, other, m.Text)
		}
		texts[m.Text] = e.Name
	}
	if len(texts) != len(shown) {
		t.Errorf("%d of %d metrics have a text", len(texts), len(shown))
	}
}
