package report

import (
	"os"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/report/reporttest"
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
	for _, want := range []string{`id="why"`, "/js/&lt;b&gt;app&lt;/b&gt;.js", "&#43;28 to &#43;33", "1 row that does not differ", "; 1 more is not used", "931 ms in the treatment"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}
