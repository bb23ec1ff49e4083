package panel

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// planText and checked are the request for a check and its answer, as others read them.
type (
	planText struct {
		YAML string         `json:"yaml,omitempty"`
		Plan map[string]any `json:"plan,omitempty"`
	}
	checked struct {
		YAML     string         `json:"yaml"`
		Plan     map[string]any `json:"plan"`
		Problems []PlanProblem  `json:"problems"`
	}
)

// checkedAs sends a plan to be checked.
func checkedAs(t *testing.T, a automated, body planText) (c checked) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	got := a.ask(t, call{method: "POST", path: "/api/v1/plan", body: string(text)})
	if err := json.Unmarshal([]byte(got.text), &c); err != nil || got.StatusCode != 200 {
		t.Fatalf("POST /api/v1/plan %s = %d %s", text, got.StatusCode, got.text)
	}
	return c
}

func TestPlanIsCheckedWithItsPlace(t *testing.T) {
	a := newAutomated(t)
	for _, c := range []struct {
		yaml  string
		field string
		line  int
		what  string
	}{
		{"", "page", 0, "a plan opens a page"},
		{"page: https://a.test/\ntrials: 0", "trials", 2, "at least 1"},
		{"page: https://a.test/\ntrails: 3", "", 2, `unknown field "trails"`},
		{"page: https://a.test/\ntreatment:\n  match: lose\n", "treatment.match", 3, "strict"},
		{"page: https://a.test/\nsteps:\n  - open: https://a.test/\n  - scroll: 5\n    end: stil 1s\n", "steps[1].end", 5, "stil"},
		{"steps:\n  - click: 5%,5%\n", "steps[0]", 2, "the first step opens a page"},
		{"page: [", "", 1, ""},
		{"page: https://a.test/\nseed: 9007199254740993", "seed", 2, "count to"},
		{"a: &a [x,x]\npage: *a\n", "", 2, "alias"},
		{"- 1", "", 1, ""},
		{"page: https://a.test/\n---\npage: https://b.test/", "", 0, "more than one document"},
		{"steps:\n !00000 00", "", 0, "cannot be read"}, // the reader's own panic
	} {
		got := checkedAs(t, a, planText{YAML: c.yaml})
		if len(got.Problems) == 0 {
			t.Errorf("%q has no problem; want one at %q", c.yaml, c.field)
			continue
		}
		if p := got.Problems[0]; p.Field != c.field || p.Line != c.line || !strings.Contains(p.What, c.what) {
			t.Errorf("%q: %+v; want %q, line %d, with %q", c.yaml, p, c.field, c.line, c.what)
		}
	}
	both := a.ask(t, call{method: "POST", path: "/api/v1/plan", body: `{"yaml":"page: x","plan":{}}`})
	if both.StatusCode != 422 {
		t.Errorf("a plan in both forms = %d; want 422", both.StatusCode)
	}
}

// A text of a plan that a tree of gigabytes could be made of is refused before, in YAML and in JSON.
func TestPlanThatIsTooMuch(t *testing.T) {
	a := newAutomated(t)
	nested := func(n int, open, end string) string { return strings.Repeat(open, n) + strings.Repeat(end, n) }
	for _, text := range []string{"page: " + nested(30_000, "[", "]"), "page: [" + strings.Repeat("1,", 30_000) + "]", "page:\n " + nested(30_000, "- ", "")} {
		testlab.Bounded(t, 256<<20, func() {
			got := checkedAs(t, a, planText{YAML: text})
			if len(got.Problems) != 1 || got.Problems[0].Line == 0 || !strings.Contains(got.Problems[0].What, "more than") {
				t.Errorf("the problems of %.40q = %+v; want one, with its line, that says what is too much", text, got.Problems)
			}
		})
	}
	for _, depth := range []int{4500, 9000} {
		testlab.Bounded(t, 64<<20, func() {
			answer := a.ask(t, call{method: "POST", path: "/api/v1/plan", body: `{"plan":{"a":` + nested(depth, "[", "]") + `}}`})
			if answer.StatusCode != 400 || !strings.Contains(answer.text, "nested") {
				t.Errorf("a plan that is nested %d deep = %d, %.200s; want 400 and why", depth, answer.StatusCode, answer.text)
			}
		})
	}
	values := strings.TrimSuffix(strings.Repeat("1,", 100_000), ",")
	if answer := a.ask(t, call{method: "POST", path: "/api/v1/plan", body: `{"plan":{"a":[` + values + `]}}`}); answer.StatusCode != 422 {
		t.Errorf("a plan of 100,000 values = %d, %.200s; want 422", answer.StatusCode, answer.text)
	}
}

// The plans of the documentation are good, and come back as they were from text to object, to text and to object again.
func TestPlansGoBothWays(t *testing.T) {
	a := newAutomated(t)
	files, err := filepath.Glob("../../../docs/plans/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d plans, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first := checkedAs(t, a, planText{YAML: string(text)})
		if len(first.Problems) > 0 || first.YAML != string(text) {
			t.Errorf("%s: %+v; want no problem, and the text as it was", file, first.Problems)
		}
		written := checkedAs(t, a, planText{Plan: first.Plan})
		again := checkedAs(t, a, planText{YAML: written.YAML})
		if len(written.Problems)+len(again.Problems) > 0 || !reflect.DeepEqual(again.Plan, first.Plan) {
			t.Errorf("%s comes back as\n%s\n%+v %+v", file, written.YAML, written.Problems, again.Problems)
		}
	}
}

// A target with the sign of a comment, and texts that look like numbers, survive both ways.
func TestPlanTextIsQuoted(t *testing.T) {
	a := newAutomated(t)
	want := map[string]any{"page": "https://a.test/#top", "name": "- 3: # %", "steps": []any{
		map[string]any{"open": "https://a.test/"}, map[string]any{"click": "css #buy"}, map[string]any{"type": "007"}, map[string]any{"type": "two\nlines: yes"}}}
	written := checkedAs(t, a, planText{Plan: want})
	if got := checkedAs(t, a, planText{YAML: written.YAML}); !reflect.DeepEqual(got.Plan, want) || len(got.Problems) > 0 {
		t.Errorf("it comes back as %v, %+v, from\n%s", got.Plan, got.Problems, written.YAML)
	}
}
