package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/run/experiment"
	"eidetic/internal/tell/report/reporttest"
)

// checkWidth fails where a line is longer than the terminal.
func checkWidth(t *testing.T, text string, columns int) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
			t.Errorf("a line of %d characters on %d columns: %q", n, columns, line)
		}
	}
}

// journeyOf is a comparison of a journey of so many steps, the slow one of which is slower.
func journeyOf(steps, slow int) (*lab.Comparison, []lab.Summary) {
	c := &lab.Comparison{Verdict: lab.Slower}
	var all []lab.Summary
	add := func(name, finding string, guard bool) {
		c.Effects = append(c.Effects, lab.Effect{Metric: name, Unit: "ms", Guard: guard, Finding: finding, Pairs: 9, Control: 200, Treatment: 300,
			Shift: lab.Range{Value: 100, Low: 90, High: 110, Confidence: 0.95}})
		all = append(all, lab.Summary{Metric: name, Unit: "ms", Arm: lab.Control, N: 9, Median: 200, Low: 190, High: 210})
	}
	add(metric.Journey.String(), lab.Unknown, false) // reports have it before the steps
	for i := range steps {
		finding := lab.NoChange
		if i == slow {
			finding = lab.Slower
		}
		add(metric.TimeToEnd.OfStep(fmt.Sprintf("step %d", i+1)), finding, true)
	}
	return c, all
}

// TestTablesAreShort: a table has at most eight lines, the journey's last; what it lacks is counted, and a finding is
// not what it lacks.
func TestTablesAreShort(t *testing.T) {
	c, all := journeyOf(20, 14)
	for name, print := range map[string]func(*Console){
		"medians": func(to *Console) { printMedians(to, all) },
		"effects": func(to *Console) { Effects(to, c, "control", "treatment", "in the report") },
	} {
		var out bytes.Buffer
		print(&Console{out: &out, Terminal: true, width: 80})
		lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
		checkWidth(t, out.String(), 80)
		if len(lines) != mostLines || !strings.HasPrefix(lines[mostLines-2], "Journey ") || lines[mostLines-1] != "and 15 more rows in the report" ||
			!strings.HasPrefix(lines[1], "step 1 ") {
			t.Errorf("%s: %q; want the first steps, the journey and how many are left out", name, lines)
		}
		if found := strings.Contains(out.String(), "step 15 "); found != (name == "effects") {
			t.Errorf("%s: the slower step is there: %v\n%s", name, found, &out)
		}
	}
	few, _ := journeyOf(6, 5)
	var out bytes.Buffer
	Effects(&Console{out: &out}, few, "control", "treatment", "in the report")
	if lines := strings.Count(out.String(), "\n"); lines != mostLines || strings.Contains(out.String(), "more") {
		t.Errorf("six steps: %d lines; want all of them and the journey\n%s", lines, &out)
	}
}

// TestTablesSayWhatTheyCut: names that a narrow terminal has no room for are counted below the table; a pipe has them all.
func TestTablesSayWhatTheyCut(t *testing.T) {
	list := Table{Head: []string{"entry", "finding"}}
	list.Add("", "short", "slower")
	list.Add("", strings.Repeat("long", 20), "faster")
	for width, want := range map[int]string{40: "1 name is cut for 40 columns: | cat shows all", 0: ""} {
		var out bytes.Buffer
		list.Print(&Console{out: &out, width: width})
		lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
		if said := strings.HasSuffix(out.String(), want+"\n"); want != "" && (!said || len(lines) != 4) || want == "" && len(lines) != 3 {
			t.Errorf("%d columns: %q; want the rows and %q", width, lines, want)
		}
	}
}

// TestFewTrialsHaveNoInterval: what three trials give is not headed as an interval, nor drawn as one.
func TestFewTrialsHaveNoInterval(t *testing.T) {
	var out bytes.Buffer
	c := &Console{out: &out, Terminal: true, width: 120}
	printMedians(c, []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 3, Median: 457, Min: 370, Max: 543}})
	if got := out.String(); strings.Contains(got, "95 %") || !strings.Contains(got, "smallest to largest") || !strings.Contains(got, "from 370 ms to 543 ms") {
		t.Errorf("medians of three trials: %q; want the smallest and the largest, said to be that", got)
	}
	out.Reset()
	few := &lab.Comparison{Effects: []lab.Effect{{Metric: "speed_index_ms", Unit: "ms", Guard: true, Finding: lab.Unknown, Pairs: 3, Control: 200,
		Treatment: 300, Shift: lab.Range{Value: 100, Low: 80, High: 130}}}}
	Effects(c, few, "control", "treatment", "in the report")
	if got := out.String(); !strings.Contains(got, "too few pairs") || strings.Contains(got, "80") || strings.Contains(got, "●") {
		t.Errorf("effects of three pairs: %q; want no interval, neither written nor drawn", got)
	}
}

// TestScriptLine: a line that stays as it is, whatever people read.
func TestScriptLine(t *testing.T) {
	one := reporttest.Run(1, 3)
	one.Summary = []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 3, Median: 812.25, Low: 800, High: 1234.5678}}
	two := reporttest.Compared(1, 6, 300)
	two.Comparison = &lab.Comparison{Verdict: lab.Slower, Effects: []lab.Effect{{Metric: "go to \"pay\"/time_to_end_ms", Unit: "ms", Guard: true,
		Finding: lab.Slower, Control: 1, Treatment: 2.5, Shift: lab.Range{Value: 1.5, Low: 1, High: 2, Confidence: 0.95}, Adjusted: 0.03}}}
	for _, c := range []struct {
		run  *lab.Run
		at   string
		want string
	}{
		{one, "out/a b/report.html", `result: state=done metric=speed_index_ms unit=ms median=812.25 low=800 high=1234.57 valid=3 trials=3 ` +
			`run=20261121-091400-demo report="out/a b/report.html"`},
		{two, "", `result: state=done verdict=slower metric="go to \"pay\"/time_to_end_ms" unit=ms control=1 treatment=2.5 change=1.5 low=1 high=2 ` +
			`p=0.03 valid=12 trials=12 run=20261121-101400-links`},
	} {
		if got := ScriptLine(c.run, c.at); got != c.want {
			t.Errorf("ScriptLine(%s) = %s; want %s", c.run.ID, got, c.want)
		}
	}
}

// TestStatusLine: while trials run, one line says which trial of which arm, the time, how many are valid, and the
// result so far.
func TestStatusLine(t *testing.T) {
	var out bytes.Buffer
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &Progress{Console: Console{out: &out, Terminal: true, width: 80}, now: func() time.Time { return clock }, begun: clock}
	made := reporttest.Compared(1, 6, 300).Trials
	for i, trial := range made[:4] {
		step := experiment.Step{Trial: i + 1, Of: 12, Arm: trial.Arm}
		step.Doing = "loading the page"
		p.Step(step)
		clock = clock.Add(10 * time.Second)
		step.Done = trial
		if i == 3 {
			trial.Valid, trial.Invalid = false, []string{"stalls of 135 ms in all while the page loaded,\nthe longest 23 ms: process build took 16 % of a core"}
		}
		p.Step(step)
	}
	p.Step(experiment.Step{Trial: 5, Of: 13, Arm: lab.Treatment, Doing: "loading the page"})
	got := out.String()
	checkWidth(t, strings.ReplaceAll(got, "\r\x1b[K", "\n"), 79)
	line := got[strings.LastIndex(got, "Trial"):]
	for _, want := range []string{"Trial  5 of 13, treatment, 0:40, 1:30 left, 3 valid, SpeedIndex ", " → "} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is missing in %q", want, line)
		}
	}
	if stays := strings.Count(got, "\n"); stays != 1 || !strings.Contains(got, "Trial  4 of 12, treatment: invalid: stalls of 135 ms in all") {
		t.Errorf("%d lines stay: %q; want that of the invalid trial alone", stays, got)
	}
}
