package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/box/service"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/storytest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/experiment"
	"eidetic/netlab/archive"
)

// serving is a service in a process of its own, that a test can kill.
type serving struct {
	data  string
	cmd   *exec.Cmd
	panel *storytest.Panel
}

// serveHere starts a service on this machine; it is killed at the end of the test.
func serveHere(t *testing.T, data string) *serving {
	t.Helper()
	return startHere(t, data, "serve", "--listen", "127.0.0.1:0")
}

// startHere starts a command that serves a panel; it is killed at the end of the test.
func startHere(t *testing.T, data, command string, flags ...string) *serving {
	t.Helper()
	return startLogged(t, data, os.Stderr, command, flags...)
}

// startLogged writes all that the command prints but its standard output's first lines to a log.
func startLogged(t *testing.T, data string, log *os.File, command string, flags ...string) *serving {
	t.Helper()
	s := &serving{data: data, cmd: appliance(t, append([]string{command, "--data", data}, flags...)...)}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "The panel is at "); ok {
			go func() { // it must not wait for a reader
				for lines.Scan() {
				}
			}()
			token, err := os.ReadFile(filepath.Join(data, "token"))
			if err != nil {
				t.Fatal(err)
			}
			s.panel = &storytest.Panel{URL: strings.TrimRight(strings.Fields(at)[0], "/"), Token: strings.TrimSpace(string(token)), Client: http.DefaultClient}
			return s
		}
	}
	t.Fatal("the service ended without saying where its panel is")
	return nil
}

// kill ends the service as a power cut would.
func (s *serving) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()
}

// interrupted waits until nobody works at a run any more, and reads it.
func (s *serving) interrupted(t *testing.T, id string) *lab.Run {
	t.Helper()
	var run *lab.Run
	testlab.Await(t, "the end of a killed service's processes", func() bool {
		var err error
		if run, err = store.ReadRun(filepath.Join(s.data, "runs", id)); err != nil {
			t.Fatal(err)
		}
		return run.State == store.StateInterrupted
	}, func() any { return run.State })
	return run
}

// smallSite records three small pages, which show whether a user is known by its cookie and its storage.
func smallSite(t *testing.T, file string) (pages []string) {
	t.Helper()
	wall := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	w, err := archive.Create(file, archive.CreateOptions{Software: "test", Wall: wall})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"one", "two", "three"} {
		body := fmt.Sprintf(`<!doctype html><link rel="icon" href="data:,"><title>%s</title><body style="margin:0"><div id="a" style="height:%dpx"></div><script>
			document.getElementById("a").style.background = document.cookie.includes("who=anna") && localStorage.theme == "dark" ? "navy" : "orange"
			</script>`, name, 100+50*i)
		pages = append(pages, "https://shop.example/"+name)
		err := w.Add(&lab.Exchange{
			Order: i, Wall: wall, Method: http.MethodGet, URL: pages[i], Protocol: "http/1.1", TLS: "tls/1.3", Status: 200, Reason: "OK",
			Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: "text/html"}}, Body: []byte(body)},
			Chunks:   []lab.Chunk{{Bytes: len(body)}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return pages
}

// TestManyKilledTwice: pages with two arms for two users, asked for over REST, whose service is killed twice in
// the middle: the run goes on each time with its order and seed, until each has had its trial.
func TestManyKilledTwice(t *testing.T) {
	needLab(t)
	data := t.TempDir()
	archives := filepath.Join(data, service.UploadsDir)
	if err := os.MkdirAll(archives, 0o755); err != nil {
		t.Fatal(err)
	}
	var pages []map[string]any
	n := testlab.Repeat(2, 3)
	for _, page := range smallSite(t, filepath.Join(archives, "site.wacz"))[:n] {
		pages = append(pages, map[string]any{"page": page})
	}
	user := map[string]any{"name": "anna", "viewport": "640x480", "storage": map[string]string{"theme": "dark"},
		"cookies": []map[string]any{{"name": "who", "value": "anna", "domain": "shop.example", "secure": true}}}
	s := serveHere(t, data)
	id := s.panel.Start(t, map[string]any{
		"name": "many", "archive": "site.wacz", "trials": 1, "still_s": 0.2, "limit_s": 30, "tolerance_ms": 10000, "seed": 7,
		"pages": pages, "users": []any{map[string]any{"name": "new", "viewport": "640x480"}, user}, "treatment": map[string]any{"link": "rtt=100ms"},
	})
	var kept []time.Time // when each trial that survived a kill had begun
	for _, at := range []int{n, 2*n + 2} {
		s.panel.Follow(t, id, 3*testlab.Hang, func(p storytest.Progress) bool { return p.Trial >= at })
		s.kill()
		run := s.interrupted(t, id)
		if len(run.Trials) < at-1 {
			t.Fatalf("after the kill in trial %d the run has %d trials", at, len(run.Trials))
		}
		kept = nil
		for _, trial := range run.Trials {
			kept = append(kept, trial.Wall)
		}
		s = serveHere(t, data)
	}
	s.panel.Follow(t, id, 3*testlab.Hang, nil)
	run, err := store.ReadRun(filepath.Join(data, "runs", id))
	if err != nil || run.State != store.StateDone || len(run.Resumed) != 2 || run.Resumed[1].Trials != len(kept) {
		t.Fatalf("the run: %v, resumed %+v, error %q; want it to be done, and to have gone on twice, last after %d trials", err, run.Resumed,
			run.Error, len(kept))
	}
	for i, wall := range kept {
		if !run.Trials[i].Wall.Equal(wall) {
			t.Errorf("trial %d began at %v, and before the kill at %v: it was made again", i+1, run.Trials[i].Wall, wall)
		}
	}
	checkOrder(t, run)
	checkUsers(t, run, n)
	for i, c := range run.Cells {
		if c.Comparison == nil || c.Comparison.Pairs != 1 || len(c.Summary) == 0 {
			t.Errorf("%s: %+v; want a pair compared", c.Name, c.Comparison)
		}
		if page := string(s.panel.Get(t, "/runs/"+id+"/"+c.Report)); !strings.Contains(page, c.URL[len("https://"):len("https://shop")]) || !strings.Contains(page, "many · "+c.Name) {
			t.Errorf("the report of cell %d does not name it", i+1)
		}
	}
	if page := string(s.panel.Get(t, "/runs/"+id+"/report.html")); !strings.Contains(page, fmt.Sprint(n, " pages for 2 users")) ||
		!strings.Contains(page, fmt.Sprintf(`href="cell-%02d.html"`, 2*n)) {
		t.Error("the report has no list of pages and users")
	}
}

// checkOrder: each slot of the order that the seed draws has its trial, once, and repetitions follow invalid ones.
func checkOrder(t *testing.T, run *lab.Run) {
	t.Helper()
	cells, arms := run.Plan.Cells(), []string{lab.Control, lab.Treatment}
	plan, next := experiment.ScheduleCells(run.Plan.Seed, 1, 2, len(cells)), 0
	valid := map[string]int{}
	for i, trial := range run.Trials {
		if trial.Valid {
			valid[trial.Cell+trial.Arm]++
		}
		// An arm of a cell has one place in the plan; the trial that was made first may be the one that counts at the
		// end.
		if repeated := i > 0 && run.Trials[i-1].Cell == trial.Cell && run.Trials[i-1].Arm == trial.Arm; repeated {
			continue
		}
		if next < len(plan) {
			s := plan[next]
			if cells[s.Arm/2].Name != trial.Cell || arms[s.Arm%2] != trial.Arm || s.Block != trial.Block {
				t.Errorf("trial %d is of the %s of %s, block %d; the seed draws the %s of %s", i+1, trial.Arm, trial.Cell, trial.Block, arms[s.Arm%2],
					cells[s.Arm/2].Name)
			}
			next++
		}
	}
	for _, c := range cells {
		for _, arm := range arms {
			if n := valid[c.Name+arm]; n != 1 {
				t.Errorf("%s has %d valid trials of the %s; want 1", c.Name, n, arm)
			}
		}
	}
}

// checkUsers: both users see the page in the same size, and only the one with cookie and storage as a known one.
func checkUsers(t *testing.T, run *lab.Run, pages int) {
	t.Helper()
	pictures := map[string][]string{}
	for _, trial := range run.Trials {
		if trial.Valid && !slices.Contains(pictures[trial.Cell], trial.FinalFrame) {
			pictures[trial.Cell] = append(pictures[trial.Cell], trial.FinalFrame)
		}
		if trial.Valid && trial.ContentW != 640 {
			t.Errorf("trial %d of %s is %d pixels wide; want the viewport's 640", trial.Number, trial.Cell, trial.ContentW)
		}
	}
	for _, page := range []string{"one", "two", "three"}[:pages] {
		known, other := pictures[page+" / anna"], pictures[page+" / new"]
		if len(known) != 1 || len(other) != 1 || known[0] == other[0] {
			t.Errorf("page %s: final pictures %.12q of a known user, %.12q of a new one; want one of each, and not the same", page, known, other)
		}
	}
}
