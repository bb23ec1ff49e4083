package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// spreadTrials is how many trials each entry of spreadSuite has: enough to kill a box before the last.
const spreadTrials = 4

// spreadSuite has three entries of one page each.
func spreadSuite() string {
	text := fmt.Sprintf("suite: spread\ntrials: %d\nplan: {still_s: 0.3, limit_s: 30, tolerance_ms: 10000}\nentries:\n", spreadTrials)
	for torn := 2; torn <= 4; torn++ {
		text += fmt.Sprintf(`  - name: torn-%[1]d
    type: animation
    visual: play/last_visual_change_ms
    plan: {steps: [{name: open, open: "https://www.shop.test/suite/tear?torn=%[1]d&pictures=6"}, {name: play, key: space}]}
`, torn)
	}
	return text
}

// TestFleetMeasuresASuite: a head has two boxes measure the entries of a suite at the same time. One of them is killed
// in a trial of its second entry, and stays away: the other one measures that entry, and every trial is counted once.
func TestFleetMeasuresASuite(t *testing.T) {
	testlab.Long(t, "a fleet and a suite, each of which has a test of its own, and a lease that runs out")
	needLab(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "spread.yaml")
	if err := os.WriteFile(file, []byte(spreadSuite()), 0o600); err != nil {
		t.Fatal(err)
	}
	head := headHere(t, filepath.Join(dir, "head"), "127.0.0.1:0")
	names := []string{"lab-1", "lab-2"}
	var boxes []*serving
	for _, name := range names {
		boxes = append(boxes, serveHere(t, filepath.Join(dir, name)))
		joinFleet(t, head, boxes[len(boxes)-1], name)
	}
	asked := finishCmd(t, appliance(t, "suite", "run", file, "--spread", "2", "--no-wait",
		"--box", head.panel.URL, "--token-file", filepath.Join(head.data, "token")))
	id := strings.TrimSpace(asked.out)
	if asked.status != exitGood || id == "" {
		t.Fatalf("suite run --no-wait: status %d: %s%s; want the result's ID", asked.status, asked.out, asked.err)
	}
	c := client.New(client.Config{Base: head.panel.URL, Token: client.NewSecret(head.panel.Token)})
	defer c.Close()
	result := func() client.SuiteResult {
		t.Helper()
		r, err := c.SuiteResult(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	killed, left := -1, -1
	testlab.Await(t, "a box in a trial of its second entry", func() bool {
		r := result()
		if !r.IsGoing() {
			t.Fatalf("the result is %+v before a box was killed; want it to go on", r)
		}
		made := madeBy(t, head, r)
		for i, b := range boxes {
			if made[names[i]] == 1 && begunRuns(t, b) == 2 {
				killed, left = i, 1-i
				return true
			}
		}
		return false
	})
	boxes[killed].kill()
	testlab.Await(t, "the lost entry at the other box", func() bool { return begunRuns(t, boxes[left]) == 2 })
	testlab.Await(t, "the end of the result", func() bool { return !result().IsGoing() })

	r := result()
	if r.State != ownruns.StateDone || r.Done != 3 || r.Failed != 0 || r.Table == nil || len(r.Table.Rows) != 3 {
		t.Fatalf("the result is %+v; want three entries done", r)
	}
	if made := madeBy(t, head, r); made[names[killed]] != 1 || made[names[left]] != 2 {
		t.Errorf("the entries were measured by %v; want one by %s, which was killed, and two by the other", made, names[killed])
	}
	if runs, err := os.ReadDir(filepath.Join(head.data, "runs")); err != nil || len(runs) != 3 {
		t.Errorf("the head has %d runs, %v; want one for each entry", len(runs), err)
	}
	found, err := c.SuiteFile(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found.Entries {
		seen, valid := map[int]bool{}, 0
		for _, trial := range e.Trials {
			if seen[trial.Number] {
				t.Errorf("%s: trial %d is counted twice", e.Entry, trial.Number)
			}
			if seen[trial.Number] = true; trial.Valid {
				valid++
			}
		}
		if run := head.panel.Run(t, e.Run); len(run.Trials) != len(seen) {
			t.Errorf("%s: the result has %d trials, its run %d; want the same", e.Entry, len(seen), len(run.Trials))
		}
		// The boxes are each other's company on this machine: a trial that was made up for may count again.
		if valid < spreadTrials {
			t.Errorf("%s: %d valid trials; want %d", e.Entry, valid, spreadTrials)
		}
	}

	// As docs/suite.md says: the folder runs lies beside the file.
	out := filepath.Join(dir, "out")
	if err := os.CopyFS(filepath.Join(out, "runs"), os.DirFS(filepath.Join(head.data, "runs"))); err != nil {
		t.Fatal(err)
	}
	if err := found.Write(out); err != nil {
		t.Fatal(err)
	}
	if got := finishCmd(t, appliance(t, "suite", "verify", out)); got.status != exitGood || strings.Count(got.out, "yes") != 3 {
		t.Errorf("verify: status %d: %s%s; want that the reels of three entries agree", got.status, got.out, got.err)
	}
}

// madeBy counts the entries of a result that are done by the box that measured them.
func madeBy(t *testing.T, head *serving, r client.SuiteResult) map[string]int {
	t.Helper()
	made := map[string]int{}
	for _, e := range r.Entries {
		if e.State != store.StateDone {
			continue
		}
		var box lab.BoxState
		if run := head.panel.Run(t, e.Run); run.Environment.Box != nil {
			box = *run.Environment.Box
		}
		made[box.Name]++
	}
	return made
}

// begunRuns counts the runs of a box that have a trial.
func begunRuns(t *testing.T, b *serving) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(b.data, "runs", "*", "trials", "001", "trial.json"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}
