package automation

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/box/mail"
	"eidetic/internal/lab"
)

const (
	culprit  = "6113728f27ae82c7b1a177c8d03f9e96e0adf246"
	changeID = "I8473b95934b5732ac55d26311a706c9c2bde9940"
)

func foundAlert() Alert {
	a := Alert{Row: Row{ID: 7, Bisection: &Bisection{State: "done", Kind: "culprit", Revision: culprit, Change: changeID,
		Text: "6113728 by Eve made SpeedIndex 110 ms slower " + strings.Repeat("é", 300)}}}
	a.Text = "SpeedIndex +110 ms"
	return a
}

// What code hosts are posted has the fields that their interfaces document, with values that they know, and no others.
func TestPayloadsOfCodeHosts(t *testing.T) {
	// GitHub: docs.github.com/rest/commits/statuses; GitLab: docs.gitlab.com/api/commits, Set commit pipeline status;
	// Gerrit: ReviewInput of rest-api-changes.
	known := map[string]map[string][]string{
		AsGitHub: {"state": {"error", "failure", "pending", "success"}, "target_url": nil, "description": nil, "context": nil},
		AsGitLab: {"state": {"pending", "running", "success", "failed", "canceled", "skipped"}, "ref": nil, "name": nil, "context": nil, "target_url": nil,
			"description": nil, "coverage": nil, "pipeline_id": nil},
		AsGerrit: {"message": nil, "tag": nil, "labels": nil, "comments": nil, "drafts": nil, "notify": {"NONE", "OWNER", "OWNER_REVIEWERS", "ALL"}},
	}
	most := map[string]int{AsGitHub: 140, AsGitLab: 255, AsGerrit: 10_000}
	resolved := foundAlert()
	resolved.Resolved = &Acknowledgement{By: "ada", Note: "reverted"}
	run := func(state, verdict string) Event {
		return Event{Type: EventFinished, Data: Finished{State: state, Verdict: verdict, Headline: "Slower", From: &From{Workflow: "checkout", Revision: culprit}}}
	}
	for name, c := range map[string]struct {
		event Event
		state string
	}{
		"a culprit": {Event{Type: EventBisected, Data: foundAlert()}, "failure"}, "a culprit that was reverted": {Event{Type: EventResolved, Data: resolved}, "success"},
		"a run that is slower": {run("done", lab.Slower), "failure"}, "a run that is not": {run("done", lab.NoChange), "success"},
		"a run that failed": {run("failed", ""), "error"}, "a run that does not know": {run("done", lab.Unknown), "error"},
	} {
		for way, fields := range known {
			path, body, ok := c.event.payload(way)
			isRun := c.event.Type == EventFinished
			if way == AsGerrit && isRun {
				if ok {
					t.Errorf("%s: Gerrit is told %v; want nothing, as its change is not known", name, body)
				}
				continue
			}
			want := map[string]string{AsGitHub: "/statuses/" + culprit, AsGitLab: "/statuses/" + culprit, AsGerrit: "~" + changeID + "/revisions/" + culprit + "/review"}[way]
			if !ok || path != want {
				t.Errorf("%s, %s: the path is %q, %v; want %q", name, way, path, ok, want)
			}
			text, err := json.Marshal(body)
			got := map[string]string{}
			if err == nil {
				err = json.Unmarshal(text, &got)
			}
			if err != nil {
				t.Fatal(err)
			}
			for field, value := range got {
				values, ok := fields[field]
				if !ok || len(values) > 0 && !strings.Contains(" "+strings.Join(values, " ")+" ", " "+value+" ") || len([]rune(value)) > most[way] {
					t.Errorf("%s, %s: %s = %.300q; want a field and a value that it knows", name, way, field, value)
				}
			}
			state := c.state
			if way == AsGitLab && state != "success" {
				state = "failed"
			}
			if way != AsGerrit && got["state"] != state {
				t.Errorf("%s, %s: the state is %s; want %s", name, way, got["state"], state)
			}
		}
	}
	for name, a := range map[string]func(*Alert){
		"no culprit":       func(a *Alert) { a.Bisection.Kind = "unsure" },
		"no commit's name": func(a *Alert) { a.Bisection.Revision = "../../user" },
		"no bisection":     func(a *Alert) { a.Bisection = nil },
	} {
		one := foundAlert()
		a(&one)
		if _, body, ok := (Event{Data: one}).payload(AsGitHub); ok {
			t.Errorf("%s: GitHub is told %+v; want nothing", name, body)
		}
	}
}

// A code host is called with its token below its address; mail is handed in; and both are tried again as events are.
func TestToldInOtherWays(t *testing.T) {
	type call struct {
		path, token, body string
	}
	calls := make(chan call, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- call{r.URL.EscapedPath(), r.Header.Get("Authorization") + r.Header.Get("PRIVATE-TOKEN"), string(body)}
		if r.Header.Get("Webhook-Signature") != "" {
			t.Error("a code host is posted a signature")
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	b := newTestBox(t, nil)
	sent := make(chan mail.Message, 10)
	b.Mail = func(_ context.Context, m mail.Message) error { sent <- m; return nil }
	for _, h := range [][3]string{{AsGitHub, "/repos/o/r", "ghp_token"}, {AsGitLab, "/api/v4/projects/g%2Fp", "glpat-token"}, {AsGerrit, "/a/changes/shop~main", "box:hush-hush"}} {
		if _, _, err := b.MakeHook(t.Context(), h[0], h[0], server.URL+h[1], lab.NewSecret(h[2]), []string{EventRaised}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.MakeHook(t.Context(), "sheriff", AsMail, "mailto:perf@shop.example", lab.Secret{}, []string{EventRaised}, ""); err != nil {
		t.Fatal(err)
	}
	tx, err := b.db.BeginTx(t.Context(), nil)
	if err == nil {
		err = b.publish(t.Context(), tx, Event{EventBisected, b.Now(), foundAlert()})
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	m := &postman{Keeper: b.Keeper, busy: map[string]bool{}}
	for range 4 {
		if _, err := m.deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.all.Wait()
	}
	got := map[string]string{}
	for range 3 {
		c := <-calls
		got[c.path] = c.token
	}
	if d := cmp.Diff(map[string]string{
		"/repos/o/r/statuses/" + culprit: "Bearer ghp_token", "/api/v4/projects/g%2Fp/statuses/" + culprit: "glpat-token",
		"/a/changes/shop~main~" + changeID + "/revisions/" + culprit + "/review": "Basic Ym94Omh1c2gtaHVzaA==",
	}, got); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	if one := <-sent; one.To != "perf@shop.example" || one.Subject != "Eidetic: Alert 7 bisected: SpeedIndex +110 ms" || !strings.Contains(one.Text, "by Eve made SpeedIndex") || !strings.HasPrefix(one.ID, "msg_") {
		t.Errorf("the mail is %+v", one)
	}
	for _, d := range b.log() {
		if d.State != DeliveryDone {
			t.Errorf("delivery %+v; want that it is done", d)
		}
	}
	hooks, err := b.Hooks(t.Context())
	if err != nil || len(hooks) != 4 {
		t.Fatalf("Hooks() = %+v, %v", hooks, err)
	}
	var wrong *WrongError
	if _, err := b.TestHook(t.Context(), hooks[0].ID, "ada"); !errors.As(err, &wrong) {
		t.Errorf("TestHook() of %s = %v; want a refusal", hooks[0].As, err)
	}
	for _, h := range [][4]string{
		{"x", "nope", server.URL, "secretsecret"}, {"x", AsGitHub, server.URL, "short"}, {"x", AsGitHub, server.URL + "/?a", "ghp_token"}, {"x", AsGerrit, server.URL, "no-password"},
		{"x", AsMail, "https://a.test", ""}, {"x", AsMail, "mailto:a@b.test,c@d.test", ""}, {"x", AsGitHub, "https://192.168.0.1/repos/o/r", "ghp_token"},
	} {
		if _, _, err := b.MakeHook(t.Context(), h[0], h[1], h[2], lab.NewSecret(h[3]), nil, ""); !errors.As(err, &wrong) {
			t.Errorf("MakeHook(%q) = %v; want a refusal", h, err)
		}
	}
	b.Mail = nil
	if _, _, err := b.MakeHook(t.Context(), "y", AsMail, "mailto:a@b.test", lab.Secret{}, nil, ""); !errors.As(err, &wrong) {
		t.Errorf("mail without a server = %v; want a refusal", err)
	}
}
