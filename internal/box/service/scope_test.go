package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/base/programs"
	"eidetic/internal/box/automation"
	"eidetic/internal/fleet"
	"eidetic/internal/fleet/fleettest"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/rigs/testlab"
	"eidetic/systemd"
)

// attacked is a service that runs in this process, with the tokens of three people.
type attacked struct {
	url, data        string
	own, run, reader string // tokens: the box's own, which is an admin's
}

// attack starts a box's service in a data folder.
func attack(t *testing.T, data string) *attacked {
	config := DefaultConfig()
	config.Browsers = plan.Browsers{"nightly": {Command: "/opt/nightly/chromium", Profile: "/srv/shop"}}
	return attackOn(t, data, func(token string, n *systemd.Notifier) func(context.Context, net.Listener) error {
		return New(Options{Config: config, Data: data, Token: lab.NewSecret(token), Log: slog.New(slog.DiscardHandler), Notifier: n}).Serve
	})
}

// attackOn starts what serves a panel.
func attackOn(
	t *testing.T, data string, of func(token string, n *systemd.Notifier) func(context.Context, net.Listener) error,
) *attacked {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &attacked{url: "http://" + listener.Addr().String(), data: data, own: newToken().Reveal()}
	ctx, stop := context.WithCancel(t.Context())
	ready, done := make(chan string, 1000), make(chan error, 1)
	serve := of(a.own, systemd.NewNotifier(func(s string) error { ready <- s; return nil }, time.Minute, time.Now))
	go func() { done <- serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	for scope, to := range map[string]*string{"run": &a.run, "read": &a.reader} {
		var made struct{ Secret string }
		if status := a.do(t, a.own, "POST", "/api/v1/tokens", fmt.Sprintf(`{"name":%q,"scope":%q}`, scope, scope), &made); status != http.StatusCreated {
			t.Fatalf("making a token of the scope %s: status %d", scope, status)
		}
		*to = made.Secret
	}
	return a
}

// do makes a request as the holder of a token does.
func (a *attacked) do(t *testing.T, token, method, path, body string, into any) (status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s %s: status %d, %q: %v", method, path, response.StatusCode, text, err)
		}
	}
	return response.StatusCode
}

// refusal is a problem's document.
type refusal struct {
	Detail string
	Errors []struct{ Location, Message string }
}

// spy is a browser of a plan that copies the data folder into its home, as an attacker's that has a token of the scope
// run: its program notes what it can read.
func (a *attacked) spy(t *testing.T) (browser, mark string) {
	t.Helper()
	dir := testlab.TempDir(t)
	program, mark := filepath.Join(dir, "spy"), filepath.Join(dir, "mark")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n(id; cat $HOME/profile/token) > "+mark+"\necho Spy 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{"command": program, "profile": a.data})
	if err != nil {
		t.Fatal(err)
	}
	return string(text), mark
}

// The holder of a token of the scope run can name no program and no file of the box, by no request that starts or keeps
// a plan.
func TestRunTokenNamesNothingOfTheBox(t *testing.T) {
	a := attack(t, t.TempDir())
	spy, mark := a.spy(t)
	page := `"page":"https://shop.example/","device":"virtual"`
	adminsPlan := `{"plan":{` + page + `,"browser":{"command":"/opt/other/chromium"}}}`
	if status := a.do(t, a.own, "PUT", "/api/v1/workflows/admins", adminsPlan, nil); status != http.StatusOK {
		t.Fatalf("an admin keeps a plan with a program: status %d; want 200", status)
	}
	revisions := `"revisions":[{"name":"a"},{"name":"b"}],"hook":{"url":"https://93.184.216.34/"}`
	for _, c := range []struct{ name, method, path, body, location string }{
		{"a run", "POST", "/api/v1/runs", `{` + page + `,"browser":` + spy + `}`, "body.browser.command"},
		{"a forged scope", "POST", "/api/v1/runs", `{` + page + `,"scope":"admin","browser":` + spy + `}`, "body.browser.command"},
		{"a profile", "POST", "/api/v1/runs", `{` + page + `,"browser":{"name":"nightly","profile":"` + a.data + `"}}`, "body.browser.profile"},
		{"a second arm", "POST", "/api/v1/runs", `{` + page + `,"treatment":{"browser":` + spy + `}}`, "body.treatment.browser.command"},
		{"a flag", "POST", "/api/v1/runs", `{` + page + `,"browser":{"name":"chromium","flags":["--renderer-cmd-prefix=/bin/sh"]}}`, "body.browser.flags[0]"},
		{"an address", "POST", "/api/v1/runs", `{` + page + `,"controls":{"rfb":"127.0.0.1:8080"}}`, "body.controls.rfb"},
		{"a workflow", "PUT", "/api/v1/workflows/mine", `{"plan":{` + page + `,"browser":` + spy + `}}`, "body.plan.browser.command"},
		{"a forged workflow", "PUT", "/api/v1/workflows/mine", `{"plan":{` + page + `,"scope":"admin","browser":` + spy + `}}`, "body.plan.browser.command"},
		{"another's workflow", "POST", "/api/v1/workflows/admins/runs", `{"change":{"browser":` + spy + `}}`, "body.change.browser.command"},
		{"a profile for it", "POST", "/api/v1/workflows/admins/runs", `{"change":{"browser":{"profile":"` + a.data + `"}}}`, "body.change.browser.profile"},
		{"a bisect", "POST", "/api/v1/bisects", `{"plan":{` + page + `,"browser":` + spy + `},` + revisions + `}`, "body.plan.browser.command"},
		{"a bisect's revision", "POST", "/api/v1/bisects", `{"plan":{` + page + `,"browser":{"name":"chromium","profile":"/{revision}"}},` + revisions + `}`,
			"body.plan.browser.profile"},
		{"a bisect's hook", "POST", "/api/v1/bisects", `{"plan":{` + page + `},` + revisions + `}`, "body.hook.url"},
	} {
		var said refusal
		status := a.do(t, a.run, c.method, c.path, c.body, &said)
		if status != http.StatusForbidden || len(said.Errors) != 1 || said.Errors[0].Location != c.location || !strings.Contains(said.Detail, "admin") {
			t.Errorf("%s: status %d, %+v; want 403 of %s, and who may", c.name, status, said, c.location)
		}
	}
	var checked struct {
		Problems []struct{ Field, What string }
	}
	if a.do(t, a.run, "POST", "/api/v1/plan", `{"plan":{`+page+`,"browser":`+spy+`}}`, &checked); len(checked.Problems) != 1 ||
		checked.Problems[0].Field != "browser.command" {
		t.Errorf("checking the plan tells %+v; want the field", checked.Problems)
	}
	var jobs struct{ Runs []struct{ ID string } }
	if a.do(t, a.reader, "GET", "/api/v1/runs", "", &jobs); len(jobs.Runs) != 0 {
		t.Errorf("%d runs are there; want none", len(jobs.Runs))
	}
	if text, err := os.ReadFile(mark); err == nil {
		t.Errorf("the attacker's program was started, and wrote %q", text)
	}
	bisect := `{"plan":{` + page + `},` + revisions + `}`
	if status := a.do(t, a.own, "POST", "/api/v1/bisects", bisect, nil); status != http.StatusAccepted {
		t.Errorf("an admin's bisect with a hook of their choice: status %d; want 202", status)
	}
	// What an admin has named, and what an admin sends, is not refused for what it names: only for a machine that has
	// no such device.
	for _, c := range []struct{ who, token, body string }{
		{"run", a.run, `{` + page + `,"browser":"nightly"}`},
		{"run", a.run, `{` + page + `,"browser":{"name":"nightly","viewport":"412x915"}}`},
		{"admin", a.own, `{` + page + `,"browser":{"command":"/opt/other/chromium","flags":["--no-sandbox"]}}`},
	} {
		c.body = strings.Replace(c.body, `"virtual"`, `"toaster"`, 1)
		var said refusal
		if status := a.do(t, c.token, "POST", "/api/v1/runs", c.body, &said); status != http.StatusUnprocessableEntity || !strings.Contains(said.Detail, "toaster") {
			t.Errorf("%s of a token of the scope %s: status %d, %+v; want 422 for the device alone", c.body, c.who, status, said)
		}
	}
	if status := a.do(t, a.run, "POST", "/api/v1/workflows/admins/runs", `{"change":{"name":"mine","device":"toaster"}}`, nil); status != http.StatusUnprocessableEntity {
		t.Errorf("a run of an admin's workflow with another name: status %d; want 422 for the device, and not 403", status)
	}
}

// The head of a fleet passes on to boxes no plan that names a program or file of theirs, whoever sends it: not even its
// own admin, who is another one than theirs.
func TestHeadNamesNothingOfItsBoxes(t *testing.T) {
	data := t.TempDir()
	a := attackOn(t, data, func(token string, n *systemd.Notifier) func(context.Context, net.Listener) error {
		return NewHead(HeadOptions{Data: data, Token: lab.NewSecret(token), Log: slog.New(slog.DiscardHandler), Notifier: n}).Serve
	})
	spy, mark := a.spy(t)
	const page = `"page":"https://shop.example/"`
	for who, token := range map[string]string{"run": a.run, "admin": a.own} {
		for _, c := range []struct{ method, path, body, location string }{
			{"POST", "/api/v1/runs", `{` + page + `,"browser":` + spy + `}`, "body.browser.command"},
			{"POST", "/api/v1/runs", `{` + page + `,"scope":"admin","on":{"each":"box"},"browser":` + spy + `}`, "body.browser.command"},
			{"PUT", "/api/v1/workflows/mine", `{"plan":{` + page + `,"browser":` + spy + `}}`, "body.plan.browser.command"},
		} {
			var said refusal
			status := a.do(t, token, c.method, c.path, c.body, &said)
			if status != http.StatusForbidden || len(said.Errors) != 1 || said.Errors[0].Location != c.location {
				t.Errorf("%s %s with the scope %s: status %d, %+v; want 403 of %s", c.method, c.path, who, status, said, c.location)
			}
		}
	}
	// A name that some box's admin may know is no matter of the head's, which has no box here.
	var said refusal
	status := a.do(t, a.run, "POST", "/api/v1/runs", `{`+page+`,"browser":"nightly"}`, &said)
	if status != http.StatusUnprocessableEntity || strings.Contains(said.Detail, "nightly") {
		t.Errorf("a browser's name: status %d, %+v; want 422 for the box that is missing", status, said)
	}
	if _, err := os.ReadFile(mark); err == nil {
		t.Error("the attacker's program was started")
	}
}

// Plans that an earlier version kept for a token of the scope run are judged when they are carried out.
func TestKeptPlansAreJudged(t *testing.T) {
	data := t.TempDir()
	a := &attacked{data: data}
	spy, mark := a.spy(t)
	var p lab.Plan
	if err := json.Unmarshal([]byte(`{"page":"https://shop.example/","device":"virtual","browser":`+spy+`}`), &p); err != nil {
		t.Fatal(err)
	}
	queue, err := store.OpenQueue(t.Context(), filepath.Join(data, queueFile))
	if err != nil {
		t.Fatal(err)
	}
	const id = "20260101-000000-old"
	if err := queue.Add(t.Context(), store.Job{ID: id, Device: "virtual", Created: time.Now(), Plan: p}); err != nil {
		t.Fatal(err)
	}
	runs, err := store.Open(t.Context(), data, nil)
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := automation.Open(t.Context(), automation.Config{
		File: filepath.Join(data, automationFile), Store: runs, Runs: runqueue.New(runqueue.Config{Jobs: queue, Store: runs}),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = keeper.PutWorkflow(t.Context(), "old", p, nil, "nightly", automation.Expect{})
	if err := errors.Join(err, keeper.Close(), runs.Close(), queue.Close()); err != nil {
		t.Fatal(err)
	}
	a = attack(t, data)
	var said refusal
	if status := a.do(t, a.run, "POST", "/api/v1/workflows/old/runs", `{}`, &said); status != http.StatusForbidden {
		t.Errorf("a run of the kept workflow: status %d, %+v; want 403", status, said)
	}
	failed := awaitState(t, a, id, store.StateFailed)
	if !strings.Contains(failed, "browser.command: ") {
		t.Errorf("the kept run failed with %q; want the field that it may not say", failed)
	}
	if text, err := os.ReadFile(mark); err == nil {
		t.Errorf("the attacker's program was started, and wrote %q", text)
	}
}

// awaitState waits until a run is in a state, and returns its error.
func awaitState(t *testing.T, a *attacked, id, state string) string {
	t.Helper()
	var run struct{ State, Error string }
	testlab.Await(t, "run "+id+" to be "+state, func() bool {
		run.Error = ""
		a.do(t, a.own, "GET", "/api/v1/runs/"+id, "", &run)
		return run.State == state
	}, func() any { return run })
	return run.Error
}

// A head can have a box start no program and copy no file of its own, whatever it says of the plan's scope. The box
// gives such a part back with the reason, and carries out what its own admin has named.
func TestHostileHeadNamesNothingOfTheBox(t *testing.T) {
	_, err := programs.Chromium().Find()
	testlab.Need(t, err == nil, "chromium")
	a := attack(t, t.TempDir())
	spy, mark := a.spy(t)
	head := fleettest.NewHead(t)
	if status := a.do(t, a.own, "PUT", "/api/v1/fleet", fmt.Sprintf(`{"link":%q,"name":"lab-1"}`, head.Link()), nil); status != http.StatusOK {
		t.Fatalf("joining the fleet: status %d", status)
	}
	var browser lab.Browser
	if err := json.NewDecoder(bytes.NewReader([]byte(spy))).Decode(&browser); err != nil {
		t.Fatal(err)
	}
	p := lab.Plan{Scope: "admin", Trials: 1, Arm: lab.Arm{Page: "https://shop.example/", Browser: &browser}}
	head.Add(fleet.Assignment{Part: "20260101-000000-spy", Run: "20260101-000000-spy", Device: "virtual", Plan: p})
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	var why []string
	head.Await(ctx, t, "part that was given back", func() bool {
		if part := head.Part("20260101-000000-spy"); part != nil {
			why = slices.Clone(part.Returns)
		}
		return len(why) > 0
	})
	if !strings.Contains(why[0], "browser.command: ") || !strings.Contains(why[0], "browsers:") {
		t.Errorf("the part was given back because of %q; want the field, and what to do", why[0])
	}
	if text, err := os.ReadFile(mark); err == nil {
		t.Errorf("the head's program was started, and wrote %q", text)
	}
	head.Lock()
	defer head.Unlock()
	for _, offer := range head.Offers {
		for _, d := range offer.Devices {
			if d.Kind == "virtual" && !slices.Contains(d.Browsers, "nightly") {
				t.Errorf("the box offers the browsers %q; want its admin's, too", d.Browsers)
			}
		}
	}
}
