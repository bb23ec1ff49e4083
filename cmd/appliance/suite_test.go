package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/box/suites"
	"eidetic/internal/keep/store"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/suite"
)

// tornSuite has one entry, whose page says how many pictures it tore.
const tornSuite = `suite: torn
trials: 1
plan: {still_s: 0.3, limit_s: 30, measure: {page_marks: true}}
entries:
  - name: tearing
    type: animation
    visual: play/last_visual_change_ms
    plan:
      measure: {metrics: [tearing], steps: [play], known_images: true}
      steps: [{name: open, open: "https://www.shop.test/suite/tear?torn=3&pictures=6"}, {name: play, key: space}]
    truth: [{metric: play/torn_frames, is: 3, did: torn, within: 0}]
`

// TestSuiteFilmed: a suite of one entry is measured in Chromium, its answer is the page's, and its reels say what its
// result says, until one of them is another. The same call then has nothing left to do.
func TestSuiteFilmed(t *testing.T) {
	needLab(t)
	dir := t.TempDir()
	file, out := filepath.Join(dir, "torn.yaml"), filepath.Join(dir, "out")
	if err := os.WriteFile(file, []byte(tornSuite), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"suite", "run", file, "--browser", "chromium", "--out", out}
	got := finishCmd(t, appliance(t, args...))
	t.Log(got.out, got.err)
	r, err := suite.ReadResult(out)
	if err != nil {
		t.Fatal(err)
	}
	known, err := r.Knowns()
	if err != nil || len(known) != 1 {
		t.Fatalf("known answers %+v, %v; want one", known, err)
	}
	if known[0].Measured == nil { // the machine was busier than a trial allows; the reel is judged all the same
		testlab.Weaker(t, "no trial is valid on a machine that is so busy: "+known[0].Why)
	}
	for _, trial := range r.Entries[0].Trials {
		if n, ok := trial.Values["play/torn_frames"]; !ok || n != trial.Did["torn"] || n != 3 {
			t.Errorf("trial %d: %v torn frames, and the page tore %v; want 3", trial.Number, n, trial.Did["torn"])
		}
	}
	verified := finishCmd(t, appliance(t, "suite", "verify", out))
	if verified.status != exitGood {
		t.Errorf("verify: status %d: %s%s; want that the reels agree", verified.status, verified.out, verified.err)
	}
	if r.Entries[0].State == store.StateDone {
		before, err := os.ReadDir(filepath.Join(out, "runs"))
		if err != nil {
			t.Fatal(err)
		}
		finishCmd(t, appliance(t, args...))
		if after, err := os.ReadDir(filepath.Join(out, "runs")); err != nil || len(after) != len(before) {
			t.Errorf("%d runs after the same call, %v; want %d: nothing was left to do", len(after), err, len(before))
		}
	}
	again := filepath.Join(dir, "again") // has been measured whole, and is the same
	if err := errors.Join(os.Mkdir(again, 0o700), r.Write(again)); err != nil {
		t.Fatal(err)
	}
	if r.Entries[0].State == store.StateDone {
		repeated := finishCmd(t, appliance(t, "suite", "repeat", out, "--out", again))
		compared := finishCmd(t, appliance(t, "suite", "compare", out, again))
		for name, got := range map[string]result{"repeat": repeated, "compare": compared} {
			if got.status != exitUnsure && got.status != exitCannot || !strings.Contains(got.out+got.err, "trial") {
				t.Errorf("suite %s of one trial: status %d: %s%s; want that so few trials do not tell", name, got.status, got.out, got.err)
			}
		}
	}
	trial := r.Entries[0].Trials[0]
	reel := filepath.Join(out, "runs", r.Entries[0].Run, "trials", store.TrialName(trial.Number), "screen.reel")
	if err := os.WriteFile(reel, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if verified = finishCmd(t, appliance(t, "suite", "verify", out)); verified.status != exitFailed || !strings.Contains(verified.out, "another file") {
		t.Errorf("verify: status %d: %s; want that the reel is another file", verified.status, verified.out)
	}
}

// TestSuiteOnABox: a box measures a suite of one entry, and is killed in the middle. It goes on with the run.
func TestSuiteOnABox(t *testing.T) {
	testlab.Long(t, "filmed runs of a service that is killed")
	needLab(t)
	dir := t.TempDir()
	file, data := filepath.Join(dir, "torn.yaml"), filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte(tornSuite), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveHere(t, data)
	asked := finishCmd(t, appliance(t, "suite", "run", file, "--trials", "4", "--no-wait", "--box", s.panel.URL, "--token-file", filepath.Join(data, "token")))
	id := strings.TrimSpace(asked.out)
	if asked.status != exitGood || id == "" {
		t.Fatalf("suite run --no-wait: status %d: %s%s; want the result's ID", asked.status, asked.out, asked.err)
	}
	testlab.Await(t, "a trial of the result", func() bool {
		found, err := filepath.Glob(filepath.Join(data, "runs", "*", "trials", "001", "trial.json"))
		return err == nil && len(found) > 0
	})
	s.kill()
	s = serveHere(t, data)
	box := client.New(client.Config{Base: s.panel.URL, Token: client.NewSecret(s.panel.Token)})
	defer box.Close()
	var r client.SuiteResult
	var err error
	testlab.Await(t, "the end of the result", func() bool {
		r, err = box.SuiteResult(t.Context(), id)
		return err == nil && !r.IsGoing()
	})
	if err != nil || r.State != ownruns.StateDone || len(r.Entries) != 1 || r.Entries[0].Trials < 4 {
		t.Fatalf("the result is %+v, %v; want one run of at least 4 trials", r, err)
	}
	runs, err := os.ReadDir(filepath.Join(data, "runs"))
	if err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v; want one, which went on", len(runs), err)
	}
}

// TestSuiteRepeatStartsNoProgram: a result of somebody else names a command; it is started only if a person names it,
// too.
func TestSuiteRepeatStartsNoProgram(t *testing.T) {
	s, err := suite.Parse("torn", []byte(tornSuite))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	command := "/bin/sh -c touch${IFS}" + filepath.Join(dir, "started")
	if err := suite.New(s, "1", []string{command}, 1, 1, time.Now()).Write(dir); err != nil {
		t.Fatal(err)
	}
	got := finishCmd(t, appliance(t, "suite", "repeat", dir, "--out", filepath.Join(dir, "again")))
	if got.status != exitUsage || !strings.Contains(got.err, "--program") {
		t.Errorf("status %d: %s; want a refusal that names --program", got.status, got.err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the command was started")
	}
}

// TestSuiteKnobs: every analysis returns what the page of its knob did.
func TestSuiteKnobs(t *testing.T) {
	testlab.Long(t, "every analysis, filmed")
	turnKnobs(t, testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome"))
}

// TestSuiteKnobsInFirefox is a test of its own, as each takes a quarter of an hour.
func TestSuiteKnobsInFirefox(t *testing.T) {
	testlab.Long(t, "every analysis, filmed in a second browser")
	turnKnobs(t, testlab.NeedProgram(t, "firefox-esr", "firefox"))
}

func turnKnobs(t *testing.T, program string) {
	needLab(t)
	out := filepath.Join(t.TempDir(), "out")
	got := finishCmd(t, appliance(t, "suite", "run", "knobs-1", "--browser", filepath.Base(program), "--out", out))
	t.Log(got.out)
	if got.status != exitGood {
		t.Errorf("status %d: %s", got.status, got.err)
	}
}

// A suite that came with somebody's result names no program, device or file of this machine when it is run again, and
// opens no private host.
func TestStrangeSuiteNamesNothingOfThisMachine(t *testing.T) {
	for _, c := range []struct{ plan, want string }{
		{"link: trace=/etc/passwd", "trace"},
		{"inject: .env", "inject"},
		{"archive: /etc/passwd", "not in this folder"},
		{"archive: ../shop.wacz", "not in this folder"},
		{"screen: {v4l2: /dev/video0}", "screen.v4l2"},
		{"tolerance_ms: 20", ""},
	} {
		text := "suite: strange\nentries:\n  - name: a\n    type: load\n    visual: load/speed_index_ms\n    plan:\n      " + c.plan +
			"\n      steps: [{name: load, open: 'http://127.0.0.1:1/'}]\n"
		s, err := suite.Parse("strange.yaml", []byte(text))
		if err == nil {
			err = suites.CheckStrange(s)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want an error with %q", c.plan, err, c.want)
		}
	}
	for _, strange := range []bool{false, true} {
		r, err := (&originFlags{Strange: strange}).reach(t.Context(), "http://127.0.0.1:1/")
		if err != nil || len(r.Pages) > 0 == strange {
			t.Errorf("with a plan of a stranger (%v) the hosts %v are opened, %v", strange, r.Pages, err)
		}
	}
	for name, want := range map[string]bool{"eidetic-1": true, "strange": false} {
		text := []byte(tornSuite)
		if s, err := suite.Open("eidetic-1"); err == nil && want {
			text = s.Text()
		}
		if s, err := suite.Parse(name, text); err != nil || s.IsShipped() != want {
			t.Errorf("%s is the program's own: %v, %v; want %v", name, !want, err, want)
		}
	}
}

// TestSampleResult: the results in the documents give the tables that the documents show of them.
func TestSampleResult(t *testing.T) {
	text, err := os.ReadFile("../../docs/suite.md")
	if err != nil {
		t.Fatal(err)
	}
	const first, again = "../../docs/suites/eidetic-1.json", "../../docs/suites/eidetic-1-again.json"
	for _, args := range [][]string{{"suite", "show", first}, {"suite", "compare", first, again, "--within", "1"}} {
		for line := range strings.Lines(finishCmd(t, appliance(t, args...)).out) {
			if !strings.Contains(string(text), line) {
				t.Errorf("%s prints a line that docs/suite.md does not have; want its output there: %q", strings.Join(args[:2], " "), line)
			}
		}
	}
}
