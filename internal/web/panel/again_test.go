package panel

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/box/credentials"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/report/reporttest"
)

// The plan of a run can be sent again as it is: with the names of recordings and the files that it names, without what
// the box noted in it.
func TestPlanOfARun(t *testing.T) {
	config, _, _ := whole(t)
	run := reporttest.Compared(3, 2, 800)
	run.ID = "20261122-090000-again"
	run.Plan = lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Link: "lte", Process: "same", Inject: "fix.js", Archive: filepath.Join(config.Store.Root(), "runs", "20261121-091400-demo", recordingName)},
		Treatment: &lab.Arm{Page: "https://a.test/", Link: "3g", Process: "same", Inject: "fix.js", Archive: "/data/archives/shop.wacz"}, Scope: "admin", Opened: []string{"a.test"},
		From: &lab.Origin{Workflow: "w"}, Users: []lab.PlanUser{{Name: "anna", Cookies: []lab.PlanCookie{{Name: "sid", Value: lab.NewSecret("secret"), Domain: "a.test"}}}}}.WithDefaults()
	addRun(t, config.Store, run)
	files := filepath.Join(config.Store.Root(), "runs", run.ID, planFiles)
	if err := os.MkdirAll(files, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "fix.js"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, config)
	reader := newToken(t, s, "looks", "read").Secret
	const path = "/api/v1/runs/20261122-090000-again/plan"
	got := ask(t, s, http.MethodGet, path, sending(token, ""))
	want := `{"page":"https://a.test/","archive":"20261121-091400-demo","link":"lte","inject":"fix.js","files":{"fix.js":"MQ=="},` +
		`"treatment":{"archive":"shop.wacz","link":"3g"},"users":[{"name":"anna","cookies":[{"name":"sid","value":"secret","domain":"a.test"}]}]}`
	var one, other any
	if err := json.Unmarshal([]byte(got.text), &one); err != nil || json.Unmarshal([]byte(want), &other) != nil || !equal(one, other) {
		t.Errorf("GET %s = %s\nwant %s", path, got.text, want)
	}
	for _, secret := range []string{"secret", "MQ=="} {
		if got := ask(t, s, http.MethodGet, path, sending(reader, "")); got.StatusCode != 200 || strings.Contains(got.text, secret) {
			t.Errorf("a reader gets %d %s; want the plan without %q", got.StatusCode, got.text, secret)
		}
	}
}

// asToken is the context of a request by a token of the scope admin, or run.
func asToken(t *testing.T, admin bool) context.Context {
	t.Helper()
	scope := credentials.Run
	if admin {
		scope = credentials.Admin
	}
	return context.WithValue(t.Context(), identityKey{}, credentials.Identity{Scope: scope})
}

func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// Only an admin, on a panel that only this machine reaches, opens the hosts of a plan's pages; a smaller token that
// changes a kept plan opens no other host.
func TestWhoOpensHosts(t *testing.T) {
	p := &Panel{}
	for _, c := range []struct {
		reaches Reaches
		token   bool // whether the token is an admin's
		want    Reaches
	}{
		{ReachesPages, true, ReachesPages}, {ReachesPages, false, ReachesPublic}, {ReachesPrivate, false, ReachesPrivate}, {"", true, ReachesPublic},
	} {
		p.Reaches = c.reaches
		ctx := asToken(t, c.token)
		if got := p.reaches(ctx); got != c.want {
			t.Errorf("reaches(%q, admin: %v) = %q; want %q", c.reaches, c.token, got, c.want)
		}
		asked := p.askedBy(ctx, lab.Plan{Arm: lab.Arm{Page: "http://localhost:3000/"}, Treatment: &lab.Arm{Page: "http://10.0.0.7/"}, Opened: []string{"forged.test"}})
		want := []string(nil)
		if c.want == ReachesPages {
			want = []string{"localhost", "10.0.0.7"}
		}
		if !slices.Equal(asked.Opened, want) {
			t.Errorf("askedBy(%q, admin: %v) opens %q; want %q", c.reaches, c.token, asked.Opened, want)
		}
	}
	kept := plan.Opening(lab.Plan{Arm: lab.Arm{Page: "http://localhost:3000/"}})
	if changed := p.changedBy(asToken(t, false), kept, lab.Plan{Arm: lab.Arm{Page: "http://10.0.0.7/"}, Opened: []string{"10.0.0.7"}}); !slices.Equal(changed.Opened, []string{"localhost"}) {
		t.Errorf("a smaller token's change opens %q; want what was kept", changed.Opened)
	}
	p.Reaches = ReachesPages
	kept = lab.Plan{Arm: lab.Arm{Page: "http://127.0.0.1:9200/"}} // by a smaller token
	longer := kept
	longer.Trials = 20
	if changed := p.changedBy(asToken(t, true), kept, longer); changed.Opened != nil {
		t.Errorf("an admin who wants more trials of somebody else's plan opens %q; want nothing", changed.Opened)
	}
	longer.Treatment = &lab.Arm{Page: "http://10.0.0.7/"}
	if changed := p.changedBy(asToken(t, true), kept, longer); !slices.Equal(changed.Opened, []string{"10.0.0.7"}) {
		t.Errorf("an admin who adds a page opens %q; want its host alone", changed.Opened)
	}
}
