package bisects

import (
	"net/http"
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

// A machine without git, as a box is, says so when the repository is named, and takes a list of revisions.
func TestRepositoryWithoutGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	k := &Keeper{Config: Config{Repositories: map[string]Repository{"clone": {Git: "/srv/x.git"}, "list": {File: "/srv/x"}}}}
	if _, err := k.Repository("clone"); err == nil || !strings.Contains(err.Error(), "git is not installed") {
		t.Errorf("Repository() of a clone = %v; want that there is no git", err)
	}
	if _, err := k.Repository("list"); err != nil {
		t.Errorf("Repository() of a list = %v; want nil", err)
	}
}

// Of two requests with one key one bisect is made, unless the first has failed: then it is tried again.
func TestOnce(t *testing.T) {
	h := newHook(t)
	b := newBox(t, &world{})
	q := request(h.URL, 3)
	q.Once = "alert 7"
	answers := func(status int) {
		h.says(func(w http.ResponseWriter, _ *http.Request, _, _ string) { w.WriteHeader(status) })
	}
	answers(http.StatusNotFound) // the hook is none: the bisect fails
	first := b.make(t, q)
	b.await(t, first, func(b Bisect) bool { return b.State == StateFailed })
	answers(http.StatusAccepted)
	second, _, err := b.keeper.Make(t.Context(), q)
	again, _, err2 := b.keeper.Make(t.Context(), q)
	if err != nil || err2 != nil || second.ID == first || again.ID != second.ID {
		t.Errorf("after bisect %s failed, Make() = %s, %v and %s, %v; want a new one, and the same again", first, second.ID, err, again.ID, err2)
	}
}
