package history

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// compared makes a scheduled comparison a day: the control's level, and by how much the treatment is above it.
func compared(control, difference []float64, finding string, p float64) []store.Past {
	past := series(control...)
	for i := range past {
		d := difference[i]
		past[i].Schedule = "often"
		past[i].Treatment = []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Treatment, N: 10, Median: control[i] + d}}
		past[i].Changes = []store.Change{{Metric: "speed_index_ms", Unit: "ms", Pairs: 10, Control: control[i],
			Shift: lab.Range{Value: d, Low: d - 8, High: d + 8, Confidence: 0.95}, P: p, Finding: finding, Guard: true}}
	}
	return past
}

// Three lines of one series: production and trunk become slower together, and later trunk alone.
func TestLines(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	control, difference := append(noisy(r, 15, 900, 4), noisy(r, 30, 1000, 4)...), append(noisy(r, 30, 0, 4), noisy(r, 15, 60, 4)...)
	past := compared(control, difference, lab.NoChange, 1)
	got := ""
	for _, line := range LinesOf(past) {
		m, err := NewFinder().Of(t.Context(), past, Runs(past), "speed_index_ms", line)
		if err != nil {
			t.Fatal(err)
		}
		got += fmt.Sprint(m.Line, ", ", m.Label, ", ", len(m.Values), ":")
		for _, s := range m.Steps {
			got += fmt.Sprintf(" %s at %s by %.0f %%", s.Trend, s.Run, *s.Percent)
		}
		got += "\n"
	}
	want := "control, SpeedIndex, 45: slower at 20261116-checkout by 11 %\n" +
		"treatment, SpeedIndex of the treatment, 45: slower at 20261116-checkout by 11 % slower at 20261201-checkout by 6 %\n" +
		"difference, Difference of SpeedIndex, 45: slower at 20261201-checkout by 6 %\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if m, err := NewFinder().Of(t.Context(), past[:6], Runs(past[:6]), "speed_index_ms", Difference); err != nil || !strings.HasSuffix(m.Text, "from 13 runs on") {
		t.Errorf("the text for 6 comparisons is %q, %v; want the 13 runs that are needed", m.Text, err)
	}
}

// TestNoiseOfLines: of series of comparisons without a change, one in eighty shows one in any of the three lines of a
// guard at half the level of four guards: 2.5 of 400 series with one guard on average, and more than 9 once in a
// thousand times.
func TestNoiseOfLines(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	alarms := 0
	for range 400 {
		past := compared(noisy(r, 28, 1200, 30), noisy(r, 28, 0, 20), lab.NoChange, 1)
		for _, line := range Lines() {
			m, err := NewFinder().Of(t.Context(), past, Runs(past), "speed_index_ms", line)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Steps) > 0 {
				alarms++
				break
			}
		}
	}
	if alarms > 9 {
		t.Errorf("%d of 400 series without a change show a step; want at most 9", alarms)
	}
}

// A verdict is no chance with the first comparison, when it is very clear, and when it is said twice.
func TestSlower(t *testing.T) {
	day := func(finding string, p float64) store.Past {
		return compared([]float64{500}, []float64{690}, finding, p)[0]
	}
	same, once, clear := day(lab.NoChange, 0.4), day(lab.Slower, 0.02), day(lab.Slower, 0.0004)
	byHand, faster := day(lab.Slower, 0.0004), day(lab.Faster, 0.0004)
	byHand.Schedule = ""
	for name, c := range map[string]struct {
		past  []store.Past
		since int // -1: none
	}{
		"the first":                {[]store.Past{once}, 0},
		"one of many":              {[]store.Past{same, same, once}, -1},
		"a clear one of many":      {[]store.Past{same, same, clear}, 2},
		"twice":                    {[]store.Past{same, once, once}, 1},
		"twice, with another":      {[]store.Past{same, once, byHand, once}, 1},
		"three times":              {[]store.Past{once, once, once}, 0},
		"none since":               {[]store.Past{once, same}, -1},
		"by hand":                  {[]store.Past{byHand}, -1},
		"by hand after a schedule": {[]store.Past{once, byHand}, -1},
		"faster":                   {[]store.Past{faster}, -1},
		"no run":                   {nil, -1},
	} {
		for i := range c.past {
			c.past[i].ID = fmt.Sprint("run", i)
		}
		slower, since := Slower(c.past)
		if (len(slower) > 0) != (c.since >= 0) || len(slower) > 0 && since.ID != fmt.Sprint("run", c.since) {
			t.Errorf("%s: Slower() = %+v since %q; want since run%d (-1: nothing)", name, slower, since.ID, c.since)
		}
	}
	s := StepOf(clear.Changes[0], clear, Runs([]store.Past{clear}))
	if want := "SpeedIndex of the treatment +690 ms (+138 %) against the control since 20261101-checkout, p = 0.0004"; s.Text != strings.Replace(want, "20261101-checkout", clear.ID, 1) {
		t.Errorf("the step of a verdict says %q; want %q", s.Text, want)
	}
}
