package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report/reporttest"
)

// hostile is what a page, a plan or a person may have put where a text is shown.
const hostile = "a|b`c``d <script>alert(1)</script> ]]> \x00\x1b[31m\r\n::error::owned\n| x | @admin #1 www.evil.example " +
	"https://evil.example [l](javascript:1) ![i](http://evil.example/i.png) &amp; %0A,:\u202e\xff"

// poison puts it wherever a run has a text.
func poison(run *lab.Run) *lab.Run {
	run.Name, run.Page, run.Link.Name, run.Environment.Browser = "="+hostile, hostile, hostile, hostile
	run.Warnings = []string{hostile}
	for _, t := range run.Trials {
		t.Page = "@" + hostile
		t.Measurements = append(t.Measurements, lab.Measurement{Name: hostile + "/x_ms", Value: 5}, lab.Measurement{Name: "-" + hostile + "/x_ms", Value: 5, Unit: hostile})
	}
	run.Summary = append(run.Summary, lab.Summary{Metric: hostile, Unit: hostile, Arm: lab.Control, N: 3, Median: 5})
	if c := run.Comparison; c != nil {
		c.Headline, c.Detail, c.Control, c.Treatment = hostile, hostile, hostile, hostile
		c.Effects = append(c.Effects, lab.Effect{Metric: metric.TimeToEnd.OfStep(hostile), Unit: hostile, Guard: true, Finding: lab.Slower,
			Shift: lab.Range{Value: 1, Confidence: 0.95}, Warnings: []string{hostile}})
	}
	return run
}

// runs are those that every format is tried with.
func runs() map[string]*lab.Run {
	failed := reporttest.Run(4, 0)
	failed.State, failed.Error, failed.Summary = "failed", "the browser did not start", nil
	return map[string]*lab.Run{
		"one arm":        reporttest.Run(1, 6),
		"slower":         reporttest.Compared(2, 20, 120),
		"too few":        reporttest.Compared(3, 2, 120),
		"failed":         failed,
		"hostile":        poison(reporttest.Compared(5, 8, 120)),
		"hostile single": poison(reporttest.Run(6, 3)),
	}
}

func written(t *testing.T, name string, s *Source) string {
	t.Helper()
	f, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := f.WriteTo(&out, s); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out.String()
}

func TestFind(t *testing.T) {
	if _, err := Find("xls"); err == nil || !strings.Contains(err.Error(), "junit, perfherder, csv") {
		t.Errorf("Find(xls) = %v; want an error that lists the formats", err)
	}
	folder, err := Find("picture")
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.WriteTo(&bytes.Buffer{}, &Source{Run: reporttest.Run(1, 2)}); err == nil {
		t.Error("a picture without the run's folder: no error")
	}
}

// Every document is what the schema of its readers allows, whatever stands in the run.
func TestJUnitSchema(t *testing.T) {
	lint := testlab.NeedProgram(t, "xmllint")
	for name, run := range runs() {
		t.Run(name, func(t *testing.T) {
			text := written(t, "junit", &Source{Run: run, Report: "https://box.example/runs/x/report.html?a=1&b=<2>"})
			file := filepath.Join(t.TempDir(), "junit.xml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), lint, "--noout", "--nonet", "--schema", "testdata/junit.xsd", file).CombinedOutput()
			if err != nil {
				t.Errorf("xmllint: %v\n%s\n%s", err, out, text)
			}
		})
	}
}

func TestJUnitResults(t *testing.T) {
	for name, want := range map[string][3]int{ // tests, failures, errors
		"one arm": {1, 0, 0}, "slower": {5, 4, 0}, "too few": {5, 0, 4}, "failed": {1, 0, 1},
	} {
		var doc junitSuites
		text := written(t, "junit", &Source{Run: runs()[name]})
		if err := xml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		failures, errors := 0, 0
		for _, c := range doc.Suite.Cases {
			if c.Failure != nil {
				failures++
				if !strings.Contains(c.Failure.Text, "→") {
					t.Errorf("%s: the body of a failure is %q; want the change, since GitLab shows only the body", name, c.Failure.Text)
				}
			}
			if c.Error != nil {
				errors++
			}
		}
		got := [3]int{len(doc.Suite.Cases), failures, errors}
		if counted := [3]int{doc.Tests, doc.Failures, doc.Errors}; got != want || counted != want {
			t.Errorf("%s: %v cases, and counted are %v; want %v\n%s", name, got, counted, want, text)
		}
	}
}

func TestPerfherderSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("testdata/perfherder.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range runs() {
		t.Run(name, func(t *testing.T) {
			text := written(t, "perfherder", &Source{Run: run})
			if strings.Count(text, "\n") != 1 {
				t.Errorf("%d lines; a log has it on one", strings.Count(text, "\n"))
			}
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(doc); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
	if err := schema.Validate(map[string]any{"framework": map[string]any{"name": "eidetic"}}); err == nil {
		t.Error("the schema accepts a document without suites")
	}
}

func TestPerfherder(t *testing.T) {
	var got perfArtifact
	if err := json.Unmarshal([]byte(written(t, "perfherder", &Source{Run: runs()["slower"]})), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Suites) != 2 || strings.Join(got.Suites[0].ExtraOptions, " ") != "control lte" || strings.Join(got.Suites[1].ExtraOptions, " ") != "treatment 3g" {
		t.Fatalf("suites %+v; want one for each arm with its link", got.Suites)
	}
	for _, s := range got.Suites {
		for _, one := range s.Subtests {
			lower, known := map[string]bool{"speed_index_ms": true, "unique_fps": false}[one.Name]
			if known && (one.LowerIsBetter == nil || *one.LowerIsBetter != lower || len(one.Replicates) != 20) {
				t.Errorf("%+v; want lower is better = %v, and 20 replicates", one, lower)
			}
		}
	}
	if got.Application == nil || *got.Application != (perfName{"chrome", "142.0.7444.59"}) {
		t.Errorf("application %+v; want chrome with its version", got.Application)
	}
}

func TestCSV(t *testing.T) {
	for name, run := range runs() {
		lines, err := csv.NewReader(strings.NewReader(written(t, "csv", &Source{Run: run}))).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := 1
		for _, trial := range run.Trials {
			want += len(trial.Measurements)
		}
		if len(lines) != want {
			t.Errorf("%s: %d lines; want %d", name, len(lines), want)
		}
		for _, line := range lines[1:] {
			for i, text := range line {
				if _, err := strconv.ParseFloat(text, 64); err != nil && text != "" && strings.ContainsAny(text[:1], "=+-@\t\r\n") {
					t.Errorf("%s: column %s begins a formula: %q", name, lines[0][i], text)
				}
			}
		}
	}
}

func TestGitHub(t *testing.T) {
	for name, run := range runs() {
		text := written(t, "github", &Source{Run: run, Report: "https://box.example/r"})
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		count := map[string]int{}
		for _, line := range lines {
			command, rest, _ := strings.Cut(strings.TrimPrefix(line, "::"), " ")
			count[command]++
			title, _, _ := strings.Cut(strings.TrimPrefix(rest, "title="), "::")
			if !strings.HasPrefix(line, "::"+command+" title=") || strings.ContainsAny(title, ":,\r") || strings.ContainsAny(line, "\r\x1b\x00") {
				t.Errorf("%s: %q; want a command with an escaped title", name, line)
			}
		}
		switch {
		case count["notice"] != 1 || count["error"]+count["warning"]+count["notice"] != len(lines):
			t.Errorf("%s: commands %v; want one notice, errors and warnings", name, count)
		case name == "slower" && count["error"] != 4, name == "failed" && count["warning"] != 1:
			t.Errorf("%s: commands %v", name, count)
		}
	}
	many := runs()["slower"]
	for range 15 {
		many.Comparison.Effects = append(many.Comparison.Effects, many.Comparison.Effects[0])
	}
	if text := written(t, "github", &Source{Run: many}); strings.Count(text, "::error") != 10 || !strings.Contains(text, "9 more errors not shown") {
		t.Errorf("19 guards got worse:\n%s\nwant 10 errors and the number of others", text)
	}
}

// In the rendered summary, nothing of a run's texts is markup, a link, a mention or a picture.
func TestMarkdownEscapes(t *testing.T) {
	for _, name := range []string{"hostile", "hostile single"} {
		text := written(t, "markdown", &Source{Run: runs()[name], Report: "javascript:alert(1)", Picture: "a b>c.png"})
		for _, bad := range []string{"<script", "\x00", "\x1b", "\r", "@admin", "](javascript", "](http", "\n::error", "\n| x |"} {
			for _, line := range strings.Split(text, "\n") {
				if strings.Contains(withoutCode(line), bad) {
					t.Errorf("%s: %q is in the line %q", name, bad, line)
				}
			}
		}
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "| ") && strings.Contains(text, "Control | Treatment") {
				if n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); n != 7 {
					t.Errorf("%s: %d bars in the row %q; want 7", name, n, line)
				}
			}
		}
	}
}

// withoutCode takes out of a line what stands in code spans, where nothing is markup.
func withoutCode(line string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(line, '`')
		for i > 0 && line[i-1] == '\\' { // escaped
			next := strings.IndexByte(line[i+1:], '`')
			if next < 0 {
				i = -1
				break
			}
			i += 1 + next
		}
		if i < 0 {
			return out.String() + line
		}
		fence := line[i : i+len(line[i:])-len(strings.TrimLeft(line[i:], "`"))]
		out.WriteString(line[:i])
		_, rest, ok := strings.Cut(line[i+len(fence):], fence)
		if !ok {
			return out.String() + line[i:]
		}
		line = rest
	}
}

func TestMarkdown(t *testing.T) {
	text := written(t, "markdown", &Source{Run: runs()["slower"], Report: "https://box.example/runs/x/report.html", Picture: "out/run.png"})
	for _, want := range []string{"### 🔴 ", "](<out/run.png>)", "[report](<https://box.example/runs/x/report.html>)", "| SpeedIndex | ", "**slower** |",
		"`https://www.shop.example/`"} {
		if !strings.Contains(text, want) {
			t.Errorf("the summary lacks %q:\n%s", want, text)
		}
	}
}

// Fewer than six trials have a smallest and a largest value, and no interval.
func TestMarkdownOfFewTrials(t *testing.T) {
	for trials, want := range map[int]string{4: "| | Median | Smallest … largest | Trials |", 10: "| | Median | 95 % interval | Trials |"} {
		text := written(t, "markdown", &Source{Run: reporttest.Run(1, trials)})
		if !strings.Contains(text, want) {
			t.Errorf("the summary of %d trials lacks %q:\n%s", trials, want, text)
		}
	}
	text := written(t, "markdown", &Source{Run: reporttest.Compared(1, 3, 800)})
	if !strings.Contains(text, "| too few pairs |") {
		t.Errorf("the summary of three pairs has intervals:\n%s", text)
	}
}

// The picture has a row for each arm, of the pictures that the run kept.
func TestPicture(t *testing.T) {
	for name, arms := range map[string]int{"one arm": 1, "slower": 2} {
		run, dir := runs()[name], t.TempDir()
		if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		text := written(t, "picture", &Source{Run: run, Files: root})
		got, err := png.Decode(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		row := textHeight + shotWidth*135/240 + textHeight + gap
		if b := got.Bounds(); b.Dy() != gap+arms*row || b.Dx() < 480 {
			t.Errorf("%s: the picture has %v; want %d rows of %d pixels", name, b, arms, row)
		}
	}
}

// A folder that others made may hold anything in the place of a picture.
func TestPictureOfHostileFiles(t *testing.T) {
	run, dir := runs()["slower"], t.TempDir()
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	shots, err := filepath.Glob(filepath.Join(dir, "trials", "*", "strip", "*.jpg"))
	if err != nil || len(shots) == 0 {
		t.Fatalf("pictures %v, %v; want some", shots, err)
	}
	for _, shot := range shots {
		if err := os.WriteFile(shot, []byte("\xff\xd8\xff not a picture"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := Picture(&bytes.Buffer{}, &Source{Run: run, Files: root}); err == nil {
		t.Error("pictures that are none: no error")
	}
}

// TestSecretsAreNotExported: what is a secret in a run's plan and addresses is in no document, unless addresses are
// asked for; nor is what a terminal obeys.
func TestSecretsAreNotExported(t *testing.T) {
	for name, run := range runs() {
		run.Page = "https://bob:hushword@shop.example/cart?token=hushquery"
		run.Plan.Page = run.Page
		run.Name = ""
		run.Plan.Users = []lab.PlanUser{{Name: "anna", Cookies: []lab.PlanCookie{{Name: "s", Value: lab.NewSecret("hushcookie")}}}}
		run.Warnings = append(run.Warnings, "slow: "+run.Page+" with hushcookie", "turned \u202e and \u009b31m")
		if c := run.Comparison; c != nil {
			c.Headline = run.Page + " is slower"
		}
		for _, tr := range run.Trials {
			tr.Page = run.Page
		}
		for _, f := range Formats() {
			if f.Folder {
				continue
			}
			text := written(t, f.Name, &Source{Run: run})
			for _, bad := range []string{"hush", "bob", "\u202e", "\u009b", "\x1b"} {
				if strings.Contains(text, bad) {
					t.Errorf("%s of %s has %q:\n%.2000s", f.Name, name, bad, text)
				}
			}
			if open := written(t, f.Name, &Source{Run: run, Addresses: true}); f.Name == "csv" && len(run.Trials) > 0 && !strings.Contains(open, "hushquery") {
				t.Errorf("%s of %s with addresses has no query:\n%.2000s", f.Name, name, open)
			}
		}
	}
}

// Budgets are tests of their own and lines of the summary; with several pages, one for each.
func TestBudgets(t *testing.T) {
	run := &lab.Run{ID: "a", Name: "shop", State: "done", Trials: []*lab.Trial{{Valid: true, Cell: "home"}, {Valid: true, Cell: "basket"}}}
	run.Plan.Pages = []lab.PlanPage{{Name: "home", Page: "https://a.test/"}, {Name: "basket", Page: "https://a.test/basket"}}
	run.Plan.Budgets = map[string]lab.Budget{"speed_index_ms": {Max: 800}, "bytes": {Max: 1e6}}
	for i, name := range []string{"home", "basket"} {
		low := 700 + 200*float64(i)
		run.Cells = append(run.Cells, lab.CellResult{Name: name, Summary: []lab.Summary{
			{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 8, Median: low + 20, Low: low, High: low + 40},
		}})
	}
	var junit, summary strings.Builder
	if err := errors.Join(JUnit(&junit, &Source{Run: run}), Markdown(&summary, &Source{Run: run})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`tests="5" failures="1" errors="2"`, `name="home: Budget of SpeedIndex"`,
		`message="basket: Budget of SpeedIndex: basket: SpeedIndex is over its budget of 800 ms: 920 ms (95 % interval 900 ms … 940 ms)" type="over budget"`,
		"whether it is within its budget of", "0 are valid and have it",
	} {
		if got := strings.ReplaceAll(junit.String(), "\u202f", ""); !strings.Contains(got, want) {
			t.Errorf("JUnit has no %q:\n%s", want, got)
		}
	}
	for _, want := range []string{"🔴 basket: SpeedIndex is over its budget", "🟢 home: SpeedIndex is within its budget", "⚠️ home: "} {
		if got := summary.String(); !strings.Contains(got, want) {
			t.Errorf("Markdown has no %q:\n%s", want, got)
		}
	}
}
