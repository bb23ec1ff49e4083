package bisects

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/box/bisection"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// A list of revisions stands in place of git.
func TestRepositoryOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "revisions")
	if err := os.WriteFile(file, []byte("v1 begin\nv2 totals\nv3 search\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := Repository{File: file, Good: "v1", Deploy: "true"}
	head, err := r.Head(t.Context())
	good, err2 := r.Before(t.Context())
	if head != "v3" || good != "v1" || err != nil || err2 != nil {
		t.Errorf("Head() = %q, %v, Before() = %q, %v; want v3 and v1", head, err, good, err2)
	}
	all, err := r.Between(t.Context(), "v1", "v2")
	if d := cmp.Diff([]bisection.Revision{{Name: "v1", Words: "begin"}, {Name: "v2", Words: "totals"}}, all); d != "" || err != nil {
		t.Errorf("Between() = %v (-want +got):\n%s", err, d)
	}
	for _, broken := range []Repository{{File: filepath.Join(t.TempDir(), "none")}, {Git: t.TempDir()}} {
		if head, err := broken.Head(t.Context()); err == nil || head != "" {
			t.Errorf("Head() of %+v = %q; want an error", broken, head)
		}
	}
	if got := shortened("a\x1b[2J\tb\xff" + strings.Repeat("é", 300)); strings.ContainsAny(got, "\x1b\t") || !utf8.ValidString(got) || len([]rune(got)) != mostWords {
		t.Errorf("shortened() = %q; want one line of %d characters", got, mostWords)
	}
}

// What a bisect measures of a scheduled comparison is its treatment, recorded anew, by a plan that every bisect can have.
func TestPlanOf(t *testing.T) {
	p := lab.Plan{Name: "checkout", Trials: 20, Looks: 4, Margin: 3, Recordings: 6, Timing: lab.TimingShared, Device: "virtual", Scope: "admin", Opened: []string{"a"},
		Arm: lab.Arm{Page: "https://a.test/", Link: "lte", Archive: "/data/a.wacz"}, Treatment: &lab.Arm{Page: "https://b.test/"},
		Budgets: map[string]lab.Budget{"bytes": {Max: 1}}, From: &lab.Origin{Schedule: "often"}}
	got := PlanOf(p)
	want := plan.Request{Plan: lab.Plan{Trials: 20, Device: "virtual", Scope: "admin", Opened: []string{"a"}, Arm: lab.Arm{Page: "https://b.test/", Link: "lte"}}}
	if d := cmp.Diff(want.Plan, got.Plan); d != "" {
		t.Errorf("PlanOf() (-want +got):\n%s", d)
	}
	if err := got.CheckRevisions(); err != nil {
		t.Errorf("CheckRevisions() = %v", err)
	}
	p.Treatment = nil
	if got := PlanOf(p); got.Page != "https://a.test/" || got.Archive != "" {
		t.Errorf("PlanOf() of one arm = %+v; want the arm, recorded anew", got.Plan)
	}
}
