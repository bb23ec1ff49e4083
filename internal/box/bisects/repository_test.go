package bisects

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"eidetic/analysis/bisect"
	"eidetic/internal/box/bisection"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/box/webhook"
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

// What a bisect measures of a scheduled comparison is its treatment, recorded anew, by a plan that every bisect can
// have.
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
	k := &Keeper{line: ownruns.NewLine[*kept](), Config: Config{Repositories: map[string]Repository{"clone": {Git: "/srv/x.git"}, "list": {File: "/srv/x"}}}}
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
	b.await(t, first, func(b Bisect) bool { return b.State == ownruns.StateFailed })
	answers(http.StatusAccepted)
	second, _, err := b.keeper.Make(t.Context(), q)
	again, _, err2 := b.keeper.Make(t.Context(), q)
	if err != nil || err2 != nil || second.ID == first || again.ID != second.ID {
		t.Errorf("after bisect %s failed, Make() = %s, %v and %s, %v; want a new one, and the same again", first, second.ID, err, again.ID, err2)
	}
}

// listed is a file of revisions.
func listed(t *testing.T, n int) string {
	t.Helper()
	file, text := filepath.Join(t.TempDir(), "revisions"), ""
	for _, r := range revisions(n) {
		text += r.Name + " " + r.Words + "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The hook of a repository deploys what the bisects of alerts ask for, signed with the secret of the configuration.
func TestRepositoryOfAHook(t *testing.T) {
	h := newHook(t)
	b := newBox(t, &world{repositories: map[string]Repository{"shop": {File: listed(t, 17), Hook: h.URL, Secret: lab.NewSecret(secret)}}})
	made, err := b.keeper.MakeOf(t.Context(), "shop", "r0000", "r0016", lab.Plan{Arm: lab.Arm{Page: "https://a.test/"}}, Request{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.await(t, made.ID, ended); got.State != ownruns.StateDone || got.Result.Kind != bisect.Culprit || got.Result.Steps[0].Revisions[0].Name != "r0011" {
		t.Errorf("the bisect: %+v; want one that found r0011", got)
	}
	if n := h.count()["r0016"]; n != 1 {
		t.Errorf("the hook was asked for the bad revision %d times; want once", n)
	}
	if got := b.keeper.Secrets(); !slices.Contains(got, secret) || !slices.Contains(got, h.URL) {
		t.Errorf("Secrets() = %q; want the secret and the address of the hook", got)
	}
}

// The newest revision is deployed by the hook, which answers at once, or 202 and later; and it may say that it cannot.
func TestHeadByHook(t *testing.T) {
	k := &Keeper{line: ownruns.NewLine[*kept]()}
	statuses := map[string]int{"at once": 200, "it cannot": 422, "later": 202, "later it cannot": 202}
	for name, want := range map[string]string{"at once": "", "it cannot": "the hook says so, with status 422", "later": "", "later it cannot": "no disk"} {
		t.Run(name, func(t *testing.T) {
			var later sync.WaitGroup
			defer later.Wait()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				var e event
				if err == nil {
					err = json.Unmarshal(body, &e)
				}
				var at int64
				if err == nil {
					_, err = fmt.Sscan(r.Header.Get("Webhook-Timestamp"), &at)
				}
				signature, signErr := webhook.Sign(lab.NewSecret(secret), r.Header.Get("Webhook-Id"), time.Unix(at, 0), body)
				if err != nil || signErr != nil || signature != r.Header.Get("Webhook-Signature") || e.Type != EventDeployHead ||
					e.Data != (order{Repository: "shop", Revision: "r0002", Answer: "/api/v1/repositories/shop/deployment"}) {
					t.Errorf("the hook is posted %s with %v, %v, %v", body, r.Header, err, signErr)
				}
				w.WriteHeader(statuses[name])
				if strings.HasPrefix(name, "later") {
					later.Go(func() {
						if err := k.HeadDeployed("shop", "r0001", ""); !errors.Is(err, ErrNotAwaited) {
							t.Errorf("HeadDeployed() of another revision = %v; want ErrNotAwaited", err)
						}
						if err := k.HeadDeployed("shop", "r0002", want); err != nil {
							t.Errorf("HeadDeployed() = %v", err)
						}
					})
				}
			}))
			defer server.Close()
			k.Config = Config{Now: time.Now, Sender: webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}, Agent: "test"},
				Repositories: map[string]Repository{"shop": {File: listed(t, 3), Hook: server.URL, Secret: lab.NewSecret(secret)}}}
			if revision, reason, err := k.DeployHead(t.Context(), "shop"); revision != "r0002" || reason != want || err != nil {
				t.Errorf("DeployHead() = %q, %q, %v; want r0002, %q", revision, reason, err, want)
			}
			later.Wait()
			if err := k.HeadDeployed("shop", "r0002", ""); !errors.Is(err, ErrNotAwaited) {
				t.Errorf("HeadDeployed() of what is not awaited = %v; want ErrNotAwaited", err)
			}
		})
	}
}

// Where each revision has an address of its own, nothing is deployed: each is recorded there.
func TestRepositoryOfAddresses(t *testing.T) {
	var mu sync.Mutex
	pages := map[string]bool{}
	w := &world{repositories: map[string]Repository{"shop": {File: listed(t, 17), URL: "https://{revision}.preview.test/pr"}}}
	w.spoil = func(_ *lab.Run, p lab.Plan) {
		mu.Lock()
		defer mu.Unlock()
		for _, arm := range p.Arms() {
			pages[arm.Page] = true
		}
	}
	b := newBox(t, w)
	planned := lab.Plan{Arm: lab.Arm{Page: "https://www.test/cart?x"}, Treatment: &lab.Arm{Page: "https://trunk.test/cart?x"}}
	at, err := b.keeper.PlanAt("shop", "r0016", planned)
	if err != nil || at.Page != planned.Page || at.Treatment.Page != "https://r0016.preview.test/pr/cart?x" {
		t.Fatalf("PlanAt() = %+v, %v; want the treatment at the revision's address", at.Treatment, err)
	}
	at.From = &lab.Origin{Revision: "r0016"}
	if revision, reason, err := b.keeper.DeployHead(t.Context(), "shop"); revision != "r0016" || reason != "" || err != nil {
		t.Errorf("DeployHead() = %q, %q, %v; want r0016, and nothing to deploy", revision, reason, err)
	}
	made, err := b.keeper.MakeOf(t.Context(), "shop", "r0000", "r0016", at, Request{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.await(t, made.ID, ended); got.State != ownruns.StateDone || got.Result.Kind != bisect.Culprit || got.Result.Steps[0].Revisions[0].Name != "r0011" {
		t.Errorf("the bisect: %+v; want one that found r0011", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if !pages["https://r0010.preview.test/pr/cart?x"] || !pages["https://r0011.preview.test/pr/cart?x"] || pages["https://trunk.test/cart?x"] {
		t.Errorf("the bisect loaded %v; want the addresses of the revisions", pages)
	}
}

// A repository has one source and one way to deploy.
func TestCheckRepository(t *testing.T) {
	for want, r := range map[string]Repository{
		"":                         {Git: "/srv/x.git", Deploy: "true"},
		"either git":               {Deploy: "true"},
		"one of deploy":            {Git: "/srv/x.git"},
		"one of deploy, a command": {Git: "/srv/x.git", Deploy: "true", URL: "https://{revision}.x.test"},
		"write {revision}":         {Git: "/srv/x.git", URL: "https://x.test"},
		"must begin with https://": {Git: "/srv/x.git", URL: "ftp://{revision}"},
		"come from the plan":       {Git: "/srv/x.git", URL: "https://{revision}.x.test/?a"},
		"it belongs to a hook":     {Git: "/srv/x.git", Hook: "https://x.test"},
		"a secret is whsec_":       {Git: "/srv/x.git", Hook: "https://x.test", Secret: lab.NewSecret("x")},
	} {
		if _, err := r.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check(%+v) = %v; want %q", r, err, want)
		}
	}
}

// The plan of a bisect of a run is one that a box takes: a run's own plan has filled in what only a comparison can
// have.
func TestPlanOfIsAccepted(t *testing.T) {
	asked := lab.Plan{Trials: 20, Primary: "speed_index_ms", Margin: 3, Arm: lab.Arm{Page: "https://www.a.test/"}, Treatment: &lab.Arm{Page: "https://trunk.a.test/"}}
	checked, err := plan.Check(plan.Request{Plan: asked}, plan.Options{Scope: plan.ScopePerson})
	if err != nil || len(checked.Plan.Covariates) == 0 {
		t.Fatalf("Check() = %v, %v; want covariates that are filled in", checked.Plan.Covariates, err)
	}
	if _, err := plan.Check(PlanOf(checked.Plan), plan.Options{Scope: plan.ScopePerson}); err != nil {
		t.Errorf("Check(PlanOf()) = %v; want nil", err)
	}
}
