package panel

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/base/slots"
	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisection"
	"eidetic/internal/box/bisects"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// editable is a panel with a recording in the file shop.wacz and the run 20261121-091400-demo that made one.
func editable(t *testing.T) (setup, func(method, path, match, body string) reply) {
	t.Helper()
	config, _, _ := whole(t)
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	config.Queue = queueOf(config.Store, q, &fakeRunner{})
	config.Automation, config.Bisects = keeperOf(t, config), bisectsOf(t, config)
	if err := os.WriteFile(filepath.Join(config.Store.Root(), "runs/20261121-091400-demo", recordingName), []byte("PK"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, config)
	return config, func(method, path, match, body string) reply {
		return ask(t, s, method, path, func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/json")
			if match != "" {
				r.Header.Set("If-Match", match)
			}
			r.Body = io.NopCloser(strings.NewReader(body))
		})
	}
}

func TestRecordingEdits(t *testing.T) {
	_, send := editable(t)
	const shop, demo = "/api/v1/archives/shop.wacz", "/api/v1/archives/20261121-091400-demo"
	for _, c := range []struct {
		name, method, path, match, body string
		status                          int
		says                            string
	}{
		{"a new one", "POST", shop + "/edit", "", `{"into":"small.wacz","leave_out":["ads"]}`, 201, `"name":"small.wacz"`},
		{"of a run", "POST", demo + "/edit", "", `{"into":"small.wacz","leave_out":["ads"]}`, 201, `"left_out":1`},
		{"in place", "POST", shop + "/edit", "*", `{"leave_out":["ads"]}`, 201, `"name":"shop.wacz"`},
		{"in place without If-Match", "POST", shop + "/edit", "", `{"leave_out":["ads"]}`, 412, "If-Match"},
		{"of a run, in place", "POST", demo + "/edit", "*", `{"leave_out":["ads"]}`, 422, "name a new one"},
		{"no change", "POST", shop + "/edit", "", `{"into":"a.wacz"}`, 422, "nothing is changed"},
		{"a bad name", "POST", shop + "/edit", "", `{"into":"../a.wacz"}`, 422, "must match"},
		{"of no run", "POST", shop + "/edit", "", `{"into":"a.wacz","used_by":"nope"}`, 422, "used_by"},
		{"a bad status", "POST", shop + "/edit", "", `{"into":"a.wacz","answers":[{"url":"*","status":99}]}`, 422, "status"},
		{"a name", "PUT", shop + "/name", "", `{"name":"shop-2.wacz"}`, 200, `"name":"shop-2.wacz"`},
		{"a name that is taken", "PUT", shop + "/name", "", `{"name":"taken.wacz"}`, 409, "already"},
		{"a name that is none", "PUT", shop + "/name", "", `{"name":"shop"}`, 422, "must match"},
	} {
		if got := send(c.method, c.path, c.match, c.body); got.StatusCode != c.status || !strings.Contains(got.text, c.says) {
			t.Errorf("%s: %d %s; want %d with %s", c.name, got.StatusCode, got.text, c.status, c.says)
		}
	}
}

// What needs a recording is named when somebody wants to delete it, to rename it, or to put another in its place.
func TestNeededRecordings(t *testing.T) {
	config, send := editable(t)
	const shop, demo = "/api/v1/archives/shop.wacz", "/api/v1/runs/20261121-091400-demo"
	check := func(needed string, inPlace bool) {
		t.Helper()
		for _, c := range []struct{ method, path, match, body string }{
			{"DELETE", shop, "", ""}, {"PUT", shop + "/name", "", `{"name":"a.wacz"}`}, {"POST", shop + "/edit", "*", `{"leave_out":["ads"]}`},
		} {
			got := send(c.method, c.path, c.match, c.body)
			if c.method == "POST" && !inPlace {
				if got.StatusCode != 201 {
					t.Errorf("%s %s = %d %s; want it changed: a workflow may replay another version", c.method, c.path, got.StatusCode, got.text)
				}
			} else if got.StatusCode != 409 || !strings.Contains(got.text, needed) {
				t.Errorf("%s %s = %d %s; want 409 that names %s", c.method, c.path, got.StatusCode, got.text, needed)
			}
		}
	}
	replays := func(archive string) lab.Plan {
		return lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Archive: archive}}
	}
	if _, err := config.Automation.PutWorkflow(t.Context(), "nightly", replays("shop.wacz"), nil, "box", automation.Expect{}); err != nil {
		t.Fatal(err)
	}
	check("workflow nightly", false)
	if _, err := config.Automation.PutWorkflow(t.Context(), "nightly", replays("20261121-091400-demo"), nil, "box", automation.Expect{Any: true}); err != nil {
		t.Fatal(err)
	}
	if got := send("DELETE", demo+"?files=true", "", ""); got.StatusCode != 409 || !strings.Contains(got.text, "workflow nightly") {
		t.Errorf("DELETE of a run whose recording a workflow replays = %d %s; want 409 that names it", got.StatusCode, got.text)
	}
	waits := send("POST", "/api/v1/runs", "", `{"page":"https://a.test/","archive":"shop.wacz"}`)
	if waits.StatusCode != 202 {
		t.Fatal(waits.text)
	}
	check("run 2", true)
	id := waits.Header.Get("Location")
	if got := send("DELETE", id, "", ""); got.StatusCode != 204 {
		t.Fatal(got.text)
	}
	bisect := func() bisects.Bisect {
		made, _, err := config.Bisects.Make(t.Context(), bisects.Request{
			URL: "https://127.0.0.1:1/", Revisions: []bisection.Revision{{Name: "shop"}, {Name: "v2"}},
			Plan: plan.Request{Plan: lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Archive: plan.RevisionMark + ".wacz"}}},
		})
		if err != nil {
			t.Error(err)
		}
		return made
	}
	made := bisect()
	check("bisect "+made.ID, true)
	if got := send("PUT", shop, "*", "PK"); got.StatusCode != 409 || !strings.Contains(got.text, made.ID) {
		t.Errorf("an upload in place of what a bisect replays = %d %s; want 409", got.StatusCode, got.text)
	}
	if err := config.Bisects.Cancel(made.ID); err != nil {
		t.Fatal(err)
	}
	if got := send("DELETE", shop, "", ""); got.StatusCode != 204 {
		t.Errorf("DELETE of a recording that nothing needs = %d %s; want 204", got.StatusCode, got.text)
	}
	// One that begins while the new recording is brought is noticed, too.
	for _, c := range []struct{ method, path, body string }{{"PUT", shop, "PK"}, {"POST", shop + "/edit", `{"leave_out":["ads"]}`}} {
		var late bisects.Bisect
		config.Archives = fakeArchives{meanwhile: func() { late = bisect() }, file: config.Archives.(fakeArchives).file}
		s := newServer(t, config)
		got := ask(t, s, c.method, c.path, func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("If-Match", "*")
			r.Header.Set("Content-Type", "application/json")
			r.Body = io.NopCloser(strings.NewReader(c.body))
		})
		if got.StatusCode != 409 || late.ID == "" || !strings.Contains(got.text, "bisect "+late.ID) {
			t.Errorf("%s %s while bisect %s begins = %d %s; want 409 that names it", c.method, c.path, late.ID, got.StatusCode, got.text)
		}
		if err := config.Bisects.Cancel(late.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// However many look into recordings, one at a time does: uploads and runs read theirs in the same turn. The same holds for
// series of releases, which read all results of a suite, and for previews of retention, which look at all files of runs.
// Whoever leaves waits no longer.
func TestLargeAnswersAreMadeInTurn(t *testing.T) {
	config, _ := editable(t)
	config.Suites = suitesOf(t, config)
	p, err := newPanel(config)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, path string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/api/v1/"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		p.ServeHTTP(w, r)
		return w.Code
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for path, one := range map[string]*slots.Turn{
		"archives/shop.wacz/contents": p.looking, "suites/eidetic-1/releases": p.telling, "retention?keep_days=1": p.telling,
	} {
		done, err := one.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if status := ask(gone, path); status == http.StatusOK {
			t.Errorf("%s is answered while another has the turn, want that it waits", path)
		}
		done()
		if status := ask(t.Context(), path); status != http.StatusOK || one.Held() != 0 {
			t.Errorf("%s = %d, and %d have the turn; want 200, 0", path, status, one.Held())
		}
	}
}
