package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/keep/store"
	"eidetic/internal/rigs/testlab"
)

// TestFleetFindsTheAuthor: the head of a fleet deploys trunk and compares it with production on its two boxes. A commit
// is slower; the alert begins a bisect, whose pairs both boxes measure; the head and a box are killed in the middle, and
// the alert gets its revision and author. The trials are drawn.
func TestFleetFindsTheAuthor(t *testing.T) {
	testlab.Long(t, "TestPathOfAutomate is the story without a fleet")
	testlab.NeedNamespaces(t)
	testlab.NeedProgram(t, "git")
	dir := t.TempDir()
	t.Setenv(drawnIn, dir)
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(in(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(in(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page := func(name string, works int) {
		t.Helper()
		write(name, fmt.Sprintf("<script>for (const end = performance.now() + %d; performance.now() < end;);</script>", works))
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", in("shop")}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_COMMITTER_NAME=build", "GIT_COMMITTER_EMAIL=build@shop.example")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	commit := func(author, subject string) {
		t.Helper()
		git("add", "--all")
		git("commit", "--quiet", "--allow-empty", "--author", author+" <"+author+"@shop.example>", "--message", subject)
	}
	page("production/index.html", 20)
	page("trunk/index.html", 20)
	page("shop/index.html", 20)
	git("init", "--quiet", "--initial-branch=main")
	commit("Ada", "shop: begin")
	write("deploy.sh", fmt.Sprintf(`git -C '%s' show "$1:broken" 2> /dev/null && exit 125; git -C '%s' show "$1:index.html" > '%s'`,
		in("shop"), in("shop"), in("trunk/index.html")))
	write("head.yaml", fmt.Sprintf("repositories:\n  shop: {git: '%s', branch: main, deploy: 'sh %s \"$1\"'}\n", in("shop"), in("deploy.sh")))
	write("trunk.yaml", "name: trunk\npage: http://127.0.0.1:18481/\ntrials: 20\ntreatment: {page: 'http://127.0.0.1:18482/'}\n")

	for port, folder := range map[string]string{"18481": "production", "18482": "trunk"} { // boxes look whether somebody answers
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.FileServer(http.Dir(in(folder)))}
		go server.Serve(l)
		t.Cleanup(func() { _ = server.Close() })
	}

	head := headHere(t, in("head"), "127.0.0.1:0", "--config", in("head.yaml"))
	box := func(name string) *serving {
		return startHere(t, in(name), "serve", "--listen", "127.0.0.1:0", "--allow-private")
	}
	one := box("one")
	joinFleet(t, head, one, "lab-1")
	joinFleet(t, head, box("two"), "lab-2")
	typed := func(want int, args ...string) {
		t.Helper()
		cmd := appliance(t, append(args, "--box", head.panel.URL)...)
		cmd.Env = append(cmd.Env, "EIDETIC_TOKEN="+head.panel.Token)
		if got := finishCmd(t, cmd); got.status != want {
			t.Fatalf("%q = %d %s %s; want %d", args, got.status, got.out, got.err, want)
		}
	}
	typed(exitGood, "workflow", "put", "trunk", "--plan", in("trunk.yaml"))
	typed(exitGood, "schedule", "set", "trunk", "--workflow", "trunk", "--every", "24h", "--repository", "shop", "--pairs", "400", "--minutes", "300", "--spread", "2")
	typed(exitGood, "schedule", "start", "trunk")
	commit("Bob", "cart: show totals")
	page("shop/index.html", 140)
	commit("Eve", "search: ask the server twice")
	write("shop/broken", "")
	commit("Ada", "build: try a new bundler")
	git("rm", "--quiet", "broken")
	commit("Ada", "build: take that back")
	typed(exitFailed, "schedule", "start", "trunk")

	get := func(path string, into any) bool {
		status, body, err := head.panel.Do(t.Context(), http.MethodGet, path, nil)
		return err == nil && status == http.StatusOK && json.NewDecoder(bytes.NewReader(body)).Decode(into) == nil
	}
	await := func(what string, holds func() bool) {
		t.Helper()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for limit := time.After(5 * testlab.Hang); !holds(); {
			select {
			case <-tick.C:
			case <-limit:
				t.Fatalf("%s did not happen", what)
			}
		}
	}
	await("the first comparison of the bisect", func() bool {
		var list struct{ Bisects []bisects.Bisect }
		return get("/api/v1/bisects", &list) && len(list.Bisects) == 1 && list.Bisects[0].Run != ""
	})
	address := strings.TrimPrefix(head.panel.URL, "http://")
	head.kill()
	one.kill()
	head = headHere(t, in("head"), address, "--config", in("head.yaml"))
	box("one")
	var found automation.Bisection
	await("the alert's bisection", func() bool {
		var list struct{ Alerts []automation.Alert }
		if !get("/api/v1/alerts", &list) || len(list.Alerts) == 0 || list.Alerts[0].Bisection == nil {
			return false
		}
		found = *list.Alerts[0].Bisection
		return found.State == ownruns.StateDone || found.State == ownruns.StateFailed || found.Reason != ""
	})
	if found.Author != "Eve" || found.Subject != "search: ask the server twice" {
		t.Errorf("the bisect found %+v; want Eve's commit", found)
	}
	boxes := map[string]bool{}
	runs, err := os.ReadDir(in("head/runs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if run, err := store.ReadRun(filepath.Join(in("head/runs"), r.Name())); err == nil && run.Environment.Box != nil {
			boxes[run.Environment.Box.Name] = true
		}
	}
	if len(boxes) != 2 {
		t.Errorf("the runs were made by %v; want both boxes", boxes)
	}
}
