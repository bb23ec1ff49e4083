package report

import (
	"os"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

func causes() *lab.Causes {
	return &lab.Causes{
		Control: lab.CausesArm{Trials: 10, WindowMS: 900}, Treatment: lab.CausesArm{Trials: 9, Left: 1, WindowMS: 931}, Pairs: 9, Tested: 40, Level: 0.05,
		Rows: []lab.Cause{
			{Kind: lab.CauseThread, Main: true, Group: "run scripts", What: "/js/<b>app</b>.js", Unit: "ms", Control: 12, Treatment: 42, Shift: 30, Low: 28, High: 33,
				Adjusted: 1e-4, Named: true, Explains: 30},
			{Kind: lab.CauseStart, What: "GET /font", After: "the end of GET /", Unit: "ms", Shift: 31, Low: 20, High: 40, Adjusted: 0.01, Named: true},
			{Kind: lab.CauseWait, What: "GET /", Unit: "ms", Shift: 1, Low: -1, High: 3, Adjusted: 1},
		},
		Paths: &lab.CriticalPaths{
			Share: 30, Parting: lab.Cause{Control: 500, Treatment: 545, Shift: 45, Low: 40, High: 52, Unit: "ms", Named: true}, Tested: 12,
			Rows: []lab.Cause{
				{Kind: lab.CausePath, Thread: lab.PathWork, Group: "run scripts", What: "/js/<b>app</b>.js", Unit: "ms", Control: 10, Treatment: 51, Shift: 41,
					Low: 38, High: 44, Adjusted: 0.001, Named: true},
				{Kind: lab.CausePath, Thread: lab.PathScreen, Unit: "ms", Shift: 4, Low: -8, High: 9, Adjusted: 1},
			},
			Control: lab.Path{Trial: 3, Frame: 41, Steps: []lab.PathStep{
				{Kind: lab.PathStart, ToMS: 90, Inferred: true, Why: "before the first request"}, {Kind: lab.PathWait, What: "/", FromMS: 90, ToMS: 500},
			}},
			Treatment: lab.Path{Trial: 4, Frame: 44, Steps: []lab.PathStep{{Kind: lab.PathIdle, What: "/<i>", ToMS: 545, Inferred: true}}},
		},
	}
}

// TestWhy: the sentence has the first named row with its interval, and says so where none is named.
func TestWhy(t *testing.T) {
	c := causes()
	want := "Why: run scripts, /js/<b>app</b>.js (main threads of pages): 30 ms more in the treatment (+28 to +33); 1 more row differs."
	if got := Why(c); got != want {
		t.Errorf("Why() = %q, want %q", got, want)
	}
	c.Rows = c.Rows[1:]
	if got := Why(c); !strings.Contains(got, "start of GET /font (after the end of GET /): 31 ms later") {
		t.Errorf("Why() of a request that starts later = %q", got)
	}
	c.Rows = c.Rows[1:]
	if got := Why(c); !strings.Contains(got, "nothing is named. Of 40 rows") {
		t.Errorf("Why() without a named row = %q", got)
	}
	c.Pairs, c.Notes = 0, []string{"there are 0 pairs"}
	if got := Why(c); !strings.Contains(got, "there are 0 pairs") {
		t.Errorf("Why() without pairs = %q", got)
	}
}

// TestWhySection: the report has named rows apart from the others, with the text of pages as text.
func TestWhySection(t *testing.T) {
	run := reporttest.Run(1, 2)
	run.Causes = causes()
	dir := t.TempDir()
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, run); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(dir + "/" + FileName)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="why"`, "/js/&lt;b&gt;app&lt;/b&gt;.js", "&#43;28 to &#43;33", "1 row that does not differ", "; 1 more is not used", "931 ms in the treatment",
		"part at the first picture that is 30 % visually complete: the control shows it after 500 ms, the treatment after 545", "1 sort of steps that does not differ",
		"Control, trial 3, to frame 41", "wait for the first byte: /<", "inferred: before the first request", "the page’s thread waits: /&lt;i&gt;",
		"run scripts: /js/&lt;b&gt;app&lt;/b&gt;.js"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

// TestPathsNowhere: arms that part nowhere have no paths, and the report says so.
func TestPathsNowhere(t *testing.T) {
	p := pathsOf(&lab.CriticalPaths{Share: -1, Notes: []string{"over 10 pairs the arms part nowhere"}})
	if want := "Over 10 pairs the arms part nowhere. So there is no picture that their critical paths could lead to."; p.Says != want || len(p.Arms) != 0 {
		t.Errorf("says %q, %d paths; want %q and none", p.Says, len(p.Arms), want)
	}
	if pathsOf(nil) != nil {
		t.Error("a run without paths has some")
	}
}
