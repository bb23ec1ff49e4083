package export

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// Every format has each page and user of a run of many, and what was found of it.
func TestMany(t *testing.T) {
	run := reporttest.Many(4, 10, 300)
	s := &Source{Run: run}

	var suites junitSuites
	if err := xml.Unmarshal([]byte(written(t, "junit", s)), &suites); err != nil {
		t.Fatal(err)
	}
	failed := map[string]bool{}
	for _, c := range suites.Suite.Cases {
		failed[c.Name] = c.Failure != nil
		if c.Error != nil {
			t.Errorf("the test of %s has no answer: %s", c.Name, c.Error.Text)
		}
	}
	for name, want := range map[string]bool{doneName: false, "home / new": false, "checkout / new": true, "checkout / anna": true, "search / anna": false} {
		if got, ok := failed[name]; !ok || got != want {
			t.Errorf("the test of %s: there %v, failed %v; want %v", name, ok, got, want)
		}
	}
	if len(suites.Suite.Cases) != 8 || suites.Failures < 2 {
		t.Errorf("%d tests, %d failures; want 8, and those of the slower page", len(suites.Suite.Cases), suites.Failures)
	}

	var perf perfArtifact
	if err := json.Unmarshal([]byte(written(t, "perfherder", s)), &perf); err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, one := range perf.Suites {
		for _, test := range one.Subtests {
			names[test.Name]++
			if len(test.Replicates) != 10 {
				t.Errorf("%s has %d values; want those of its own 10 trials", test.Name, len(test.Replicates))
			}
		}
	}
	if names["checkout / anna speed_index_ms"] != 2 || len(perf.Suites) != 2 {
		t.Errorf("%d suites with the subtests %v; want both arms of each page and user", len(perf.Suites), names)
	}

	rows, err := csv.NewReader(strings.NewReader(written(t, "csv", s))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last := len(rows[0]) - 1
	if rows[0][last-1] != "page_name" || rows[0][last] != "user" || rows[1][last-1] != "home" || rows[len(rows)-1][last] != "anna" {
		t.Errorf("columns %q, first row %q", rows[0], rows[1])
	}

	run.Cells[3].Causes = &lab.Causes{Rows: []lab.Cause{{Kind: "wait", What: "https://www.shop.example/a.js"}}}
	rows, err = csv.NewReader(strings.NewReader(written(t, "causes", s))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last = len(rows[0]) - 1
	if c := run.Cells[3]; len(rows) != 2 || rows[0][last-1] != "page_name" || rows[1][last-1] != c.Page || rows[1][last] != c.User {
		t.Errorf("causes %q; want one row, of %s and %s", rows, c.Page, c.User)
	}

	text := written(t, "markdown", s)
	for _, want := range []string{"| All together: SpeedIndex | 100 % |", "| checkout / anna: SpeedIndex |", "**slower** |", "and 5 more", "slower: checkout / new, checkout / anna"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in the Markdown:\n%s", want, text)
		}
	}
	if text := written(t, "github", s); !strings.Contains(text, "::error title=many%3A checkout / new::slower: ") {
		t.Errorf("GitHub's annotations:\n%s", text)
	}
}

// Names of pages and users that a person may have chosen break no format.
func TestManyHostile(t *testing.T) {
	run := reporttest.Many(5, 6, 300)
	const name = "=a|b`c <script>alert(1)</script> ]]> ::error::owned @admin ![i](x)"
	run.Plan.Pages[1].Name = strings.ReplaceAll(name, "/", "")
	cells := run.Plan.Cells()
	for i := range run.Cells {
		for _, trial := range run.Trials {
			if trial.Cell == run.Cells[i].Name {
				trial.Cell = cells[i].Name
			}
		}
		run.Cells[i].Name = cells[i].Name
	}
	reporttest.CompareMany(run)
	s := &Source{Run: run}
	if err := xml.Unmarshal([]byte(written(t, "junit", s)), new(junitSuites)); err != nil {
		t.Error(err)
	}
	for _, line := range strings.Split(written(t, "github", s), "\n") {
		if line != "" && !strings.HasPrefix(line, "::error title=") && !strings.HasPrefix(line, "::warning title=") && !strings.HasPrefix(line, "::notice title=") {
			t.Errorf("a line that is no annotation of ours: %q", line)
		}
	}
	if text := written(t, "markdown", s); strings.Contains(text, "<script>") || strings.Contains(text, "![i]") || strings.Contains(text, "@admin") {
		t.Errorf("the Markdown has what a name brought in:\n%s", text)
	}
	rows, err := csv.NewReader(strings.NewReader(written(t, "csv", s))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if strings.HasPrefix(row[len(row)-2], "=") {
			t.Fatalf("a cell that a spreadsheet calculates: %q", row)
		}
	}
}
