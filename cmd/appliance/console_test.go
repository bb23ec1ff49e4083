package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/run/experiment"
	"eidetic/internal/tell/report/reporttest"
)

// onTerminal has something printed on a terminal of so many columns, and returns what came.
func onTerminal(t *testing.T, columns uint16, print func(*os.File)) string {
	t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer outer.Close()
	if err := unix.IoctlSetPointerInt(int(outer.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(outer.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(inner.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	came := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(outer) // it ends with an error once nobody has the inner end
		came <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	print(inner)
	inner.Close()
	return <-came
}

// plainText is a text without colours.
func plainText(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(after, "m")
	}
}

// checkWidth fails where a line is longer than the terminal, unless it is one word, such as a path.
func checkWidth(t *testing.T, text string, columns int) {
	t.Helper()
	for line := range strings.Lines(plainText(text)) {
		if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > columns && strings.Contains(line, " ") {
			t.Errorf("a line of %d characters on %d columns: %q", utf8.RuneCountInString(line), columns, line)
		}
	}
}

// TestCompareOnATerminal: within 80 columns, in colours unless nobody wants them, and without the line that is for
// scripts; which is all that --quiet prints.
func TestCompareOnATerminal(t *testing.T) {
	dir := t.TempDir()
	old := writeResult(t, filepath.Join(dir, "old", "run.json"), reporttest.Run(1, 12))
	slower := writeResult(t, filepath.Join(dir, "new", "run.json"), later(12, 400))
	if err := os.WriteFile(filepath.Join(dir, "new", "report.html"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	compare := func(columns uint16, more ...string) string {
		return onTerminal(t, columns, func(f *os.File) {
			args := append([]string{"compare", "--reference", old, slower}, more...)
			if status := run(t.Context(), args, &streams{nil, f, f}); status != exitFailed {
				t.Errorf("%q: status %d, want %d", args, status, exitFailed)
			}
		})
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	got := compare(80)
	checkWidth(t, got, 80)
	if !strings.Contains(got, "\x1b[31mslower\x1b[0m") || strings.Contains(got, "result:") || strings.Contains(got, "●") {
		t.Errorf("80 columns: %q; want colours, and neither bars, for which there is no room, nor the line for scripts", got)
	}
	if page := filepath.Join(dir, "new", "report.html"); !strings.Contains(strings.Join(strings.Fields(plainText(got)), " "), "The run's report opens from disk: "+page) {
		t.Errorf("%s is not named in:\n%s", page, got)
	}
	wide := compare(120)
	checkWidth(t, wide, 120)
	if !strings.Contains(wide, "●") {
		t.Errorf("120 columns: %q; want bars", wide)
	}
	t.Setenv("NO_COLOR", "1")
	if bare := compare(80); strings.Contains(bare, "\x1b") || bare != plainText(got) {
		t.Errorf("NO_COLOR: %q; want the same without colours as %q", bare, plainText(got))
	}
	quiet := compare(80, "--quiet")
	if !strings.HasPrefix(quiet, "result: verdict=slower metric=speed_index_ms unit=ms control=") || strings.Count(quiet, "\n") != 1 {
		t.Errorf("--quiet: %q; want one line", quiet)
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
	for name, print := range map[string]func(*console){
		"medians": func(to *console) { printMedians(to, all) },
		"effects": func(to *console) { printEffects(to, c, "control", "treatment", "in the report") },
	} {
		var out bytes.Buffer
		print(&console{out: &out, terminal: true, width: 80})
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
	printEffects(&console{out: &out}, few, "control", "treatment", "in the report")
	if lines := strings.Count(out.String(), "\n"); lines != mostLines || strings.Contains(out.String(), "more") {
		t.Errorf("six steps: %d lines; want all of them and the journey\n%s", lines, &out)
	}
}

// TestTablesSayWhatTheyCut: names that a narrow terminal has no room for are counted below the table; a pipe has them all.
func TestTablesSayWhatTheyCut(t *testing.T) {
	list := table{head: []string{"entry", "finding"}}
	list.add("", "short", "slower")
	list.add("", strings.Repeat("long", 20), "faster")
	for width, want := range map[int]string{40: "1 name is cut for 40 columns: | cat shows all", 0: ""} {
		var out bytes.Buffer
		list.print(&console{out: &out, width: width})
		lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
		if said := strings.HasSuffix(out.String(), want+"\n"); want != "" && (!said || len(lines) != 4) || want == "" && len(lines) != 3 {
			t.Errorf("%d columns: %q; want the rows and %q", width, lines, want)
		}
	}
}

// TestFewTrialsHaveNoInterval: what three trials give is not headed as an interval, nor drawn as one.
func TestFewTrialsHaveNoInterval(t *testing.T) {
	var out bytes.Buffer
	c := &console{out: &out, terminal: true, width: 120}
	printMedians(c, []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 3, Median: 457, Min: 370, Max: 543}})
	if got := out.String(); strings.Contains(got, "95 %") || !strings.Contains(got, "smallest to largest") || !strings.Contains(got, "from 370 ms to 543 ms") {
		t.Errorf("medians of three trials: %q; want the smallest and the largest, said to be that", got)
	}
	out.Reset()
	few := &lab.Comparison{Effects: []lab.Effect{{Metric: "speed_index_ms", Unit: "ms", Guard: true, Finding: lab.Unknown, Pairs: 3, Control: 200,
		Treatment: 300, Shift: lab.Range{Value: 100, Low: 80, High: 130}}}}
	printEffects(c, few, "control", "treatment", "in the report")
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
		if got := scriptLineOf(c.run, c.at); got != c.want {
			t.Errorf("scriptLineOf(%s) = %s; want %s", c.run.ID, got, c.want)
		}
	}
}

// TestStatusLine: while trials run, one line says which trial of which arm, the time, how many are valid, and the
// result so far.
func TestStatusLine(t *testing.T) {
	var out bytes.Buffer
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &progress{console: console{out: &out, terminal: true, width: 80}, now: func() time.Time { return clock }, begun: clock}
	made := reporttest.Compared(1, 6, 300).Trials
	for i, trial := range made[:4] {
		step := experiment.Step{Trial: i + 1, Of: 12, Arm: trial.Arm}
		step.Doing = "loading the page"
		p.step(step)
		clock = clock.Add(10 * time.Second)
		step.Done = trial
		if i == 3 {
			trial.Valid, trial.Invalid = false, []string{"stalls of 135 ms in all while the page loaded,\nthe longest 23 ms: process build took 16 % of a core"}
		}
		p.step(step)
	}
	p.step(experiment.Step{Trial: 5, Of: 13, Arm: lab.Treatment, Doing: "loading the page"})
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

// TestPanelsPort: the usual port may be taken, and another one is; one that was asked for must be free.
func TestPanelsPort(t *testing.T) {
	taken, err := net.Listen("tcp", usualPanel)
	if err == nil { // else somebody else has it
		defer taken.Close()
	}
	var said bytes.Buffer
	std := &streams{nil, &said, &said}
	at, err := localRun{}.listen(t.Context(), std)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if want := "Port 8080 is taken by another program: the panel will be at http://" + at.Addr().String() + "/\n"; said.String() != want || at.Addr().String() == usualPanel {
		t.Errorf("the usual port: %q; want %q", said.String(), want)
	}
	if at, err := (localRun{panelFlags: panelFlags{Listen: usualPanel}}).listen(t.Context(), std); err == nil || statusOf(err) != exitCannot {
		t.Errorf("a port that was asked for: %v, %v; want an error", at, err)
	}
	for name, l := range map[string]localRun{"json": {outcomeFlags: outcomeFlags{JSON: true}}, "quiet": {outcomeFlags: outcomeFlags{Quiet: true}}} {
		if at, err := l.listen(t.Context(), std); at != nil || err != nil {
			t.Errorf("--%s: %v, %v; want no panel", name, at, err)
		}
	}
}
