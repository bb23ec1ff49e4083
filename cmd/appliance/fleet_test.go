package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/service"
	"eidetic/internal/store"
	"eidetic/internal/storytest"
	"eidetic/internal/testlab"
)

// headHere starts the head of a fleet on this machine, at an address.
func headHere(t *testing.T, data, listen string, flags ...string) *serving {
	t.Helper()
	return startHere(t, data, "head", append([]string{"--listen", listen, "--films-stay"}, flags...)...)
}

// joinFleet makes a box whose service runs a member of a head's fleet, with the command that a person would use, and returns the link.
func joinFleet(t *testing.T, head, box *serving, name string) (link string) {
	t.Helper()
	status, body, err := head.panel.Do(t.Context(), http.MethodPost, "/api/v1/boxes/codes", nil)
	var code struct{ Link string }
	if err != nil || status != http.StatusCreated || json.Unmarshal(body, &code) != nil || code.Link == "" {
		t.Fatalf("POST codes = %d %s, %v; want a link", status, body, err)
	}
	if got := finishCmd(t, joining(t, code.Link, box, name)); got.status != exitGood {
		t.Fatalf("join = %d %s; want %d", got.status, got.err, exitGood)
	}
	return code.Link
}

func joining(t *testing.T, link string, box *serving, name string) *exec.Cmd {
	t.Helper()
	cmd := appliance(t, "join", link, "--name", name, "--box", box.panel.URL)
	cmd.Env = append(cmd.Env, "EIDETIC_TOKEN="+box.panel.Token)
	return cmd
}

// TestFleetKilled: two boxes with real browsers carry out a run of three pages for one head. The head is killed in the middle, and
// so is a box in a trial; the run ends once, with one verdict, all trials, and each pair from one box.
func TestFleetKilled(t *testing.T) {
	needLab(t)
	dir := t.TempDir()
	data := func(name string) string { return filepath.Join(dir, name) }
	archives := filepath.Join(data("head"), service.UploadsDir)
	if err := os.MkdirAll(archives, 0o755); err != nil {
		t.Fatal(err)
	}
	var pages []map[string]any
	for _, page := range smallSite(t, filepath.Join(archives, "site.wacz")) {
		pages = append(pages, map[string]any{"page": page})
	}
	head := headHere(t, data("head"), "127.0.0.1:0")
	one, two := serveHere(t, data("one")), serveHere(t, data("two"))
	used := joinFleet(t, head, one, "lab-1")
	joinFleet(t, head, two, "lab-2")
	if got := finishCmd(t, joining(t, used, two, "lab-3")); got.status == exitGood {
		t.Errorf("a link that was used lets another box join: %+v", got)
	}
	id := head.panel.Start(t, map[string]any{
		"name": "fleet", "archive": "site.wacz", "trials": 2, "still_s": 0.2, "limit_s": 30, "tolerance_ms": 10000, "seed": 7,
		"pages": pages, "treatment": map[string]any{"link": "rtt=100ms"},
	})
	head.panel.Follow(t, id, 3*testlab.Hang, func(p storytest.Progress) bool { return p.Trial >= 2 })
	address := strings.TrimPrefix(head.panel.URL, "http://")
	head.kill()
	one.kill()
	head = headHere(t, data("head"), address)
	serveHere(t, data("one"))
	head.panel.Follow(t, id, 5*testlab.Hang, nil)

	run, err := store.ReadRun(filepath.Join(data("head"), "runs", id))
	if err != nil || run.State != store.StateDone || len(run.Cells) != 3 {
		t.Fatalf("the run: %v, %+v; want it done, with three pages", err, run)
	}
	boxes, valid := map[string]bool{}, map[string]int{}
	for _, trial := range run.Trials {
		if trial.Valid {
			valid[trial.Cell+" "+trial.Arm]++
		}
	}
	for _, c := range run.Cells {
		if c.Box == nil || c.Comparison == nil || c.Comparison.Pairs != 2 {
			t.Errorf("%s: box %+v, %+v; want two pairs of one box", c.Name, c.Box, c.Comparison)
			continue
		}
		boxes[c.Box.Name] = true
		for _, arm := range []string{lab.Control, lab.Treatment} {
			if n := valid[c.Name+" "+arm]; n != 2 {
				t.Errorf("%s, %s: %d valid trials; want 2", c.Name, arm, n)
			}
		}
	}
	if len(boxes) != 2 {
		t.Errorf("the pages were measured by %v; want both boxes", boxes)
	}
	if page := string(head.panel.Get(t, "/runs/"+id+"/report.html")); !strings.Contains(page, "3 pages") {
		t.Error("the report does not say that it is of three pages")
	}
	// The films stayed on their boxes, and come when somebody opens them.
	if _, err := os.Stat(filepath.Join(data("head"), "runs", id, "trials", "001", "screen.reel")); err == nil {
		t.Error("the film of the first trial is at the head; want it on its box")
	}
	if film := head.panel.Artifact(t, id, "trials/001/screen.reel"); len(film) == 0 {
		t.Error("the film of the first trial is empty")
	}
}
