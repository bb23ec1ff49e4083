package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/storytest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/experiment"
	"eidetic/internal/run/isolate"
)

// needLab skips or fails where the demo cannot run.
func needLab(t *testing.T) {
	t.Helper()
	for _, program := range []string{"chromium", "Xvfb", "certutil", "vpxenc"} {
		testlab.NeedProgram(t, program)
	}
	err := isolate.Available(t.Context())
	testlab.Need(t, err == nil, fmt.Sprintf("namespaces: %v", err))
	sandbox := finishCmd(t, appliance(t, "doctor", "sandbox"))
	testlab.Need(t, sandbox.status == exitGood, "the browser's sandbox: "+sandbox.out)
}

// readRun reads the newest run of a store.
func readRun(t *testing.T, out string) (dir string, run *lab.Run) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(filepath.Join(out, "latest"))
	if err != nil {
		t.Fatal(err)
	}
	run, err = store.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, run
}

// tookPlace fails the test unless a run ended as it should, on any machine: all
// trials were carried out, and what is invalid is so because the machine was
// busy. Then the run has failed if no trial is valid, and says so.
func tookPlace(t *testing.T, got result, run *lab.Run, trials int) {
	t.Helper()
	valid := 0
	for _, trial := range run.Trials {
		if trial.Valid != (len(trial.Invalid) == 0) || !trial.Valid && !slowed(trial) {
			t.Errorf("trial %d: valid is %t, because %q", trial.Number, trial.Valid, trial.Invalid)
		}
		if trial.Valid {
			valid++
		} else {
			t.Logf("trial %d is invalid: %q", trial.Number, trial.Invalid)
		}
	}
	none := valid == 0 && got.status != exitGood && run.State == store.StateFailed && strings.HasPrefix(run.Error, "no trial was valid")
	if !none && (valid == 0 || got.status != exitGood || run.State != store.StateDone) || len(run.Trials) < trials {
		t.Fatalf(
			"status %d; the run is %s with %d valid trials of %d, want %d or more: %s\n%s%s",
			got.status,
			run.State,
			valid,
			len(run.Trials),
			trials,
			run.Error,
			got.out,
			got.err,
		)
	}
}

// slowed says whether a trial has a reason to be invalid, and none but those
// that a busy machine gives.
func slowed(trial *lab.Trial) bool {
	return len(trial.Invalid) > 0 && !slices.ContainsFunc(trial.Invalid, func(why string) bool { return !storytest.OfSlowMachines(why) })
}

// firstStill returns a trial whose page came to rest, so that its last picture
// is whole; whether the trial counts is the machine's affair.
func firstStill(t *testing.T, run *lab.Run) *lab.Trial {
	t.Helper()
	for _, trial := range run.Trials {
		if trial.Ended == lab.EndStable {
			return trial
		}
	}
	t.Fatalf("no trial of %s came to rest", run.ID)
	return nil
}

// bag is the requests of a trial without regard to their order, each with the
// hash of what was served.
func bag(t *testing.T, dir string, trial *lab.Trial) (requests []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "trials", store.TrialName(trial.Number), trial.Files["replay"]))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(content)))
	for decoder.More() {
		var s lab.Served
		if err := decoder.Decode(&s); err != nil {
			t.Fatal(err)
		}
		if s.Stage != lab.StageBox {
			requests = append(
				requests,
				strings.Join([]string{s.Method, s.URL, s.Protocol, s.RequestSHA256, fmt.Sprint(s.Status), s.BodySHA256}, " "),
			)
		}
	}
	slices.Sort(requests)
	return requests
}

// TestDemoReplaysTheSameEveryTime is the main job: ten loads of a page whose
// origins are gone are one and the same load, pixel for pixel.
func TestDemoReplaysTheSameEveryTime(t *testing.T) {
	needLab(t)
	trials := testlab.Repeat(4, 10)
	out := t.TempDir()
	got := finishCmd(t, appliance(t, "demo", "--trials", fmt.Sprint(trials), "--no-serve", "--out", out))
	t.Log(got.out)
	dir, run := readRun(t, out)
	tookPlace(t, got, run, trials)
	whole := firstStill(t, run)
	first := bag(t, dir, whole)
	if n := len(first); n < 50 || n > 75 {
		t.Errorf("the page makes %d requests, about 60 were promised", n)
	}
	still := 0
	for _, trial := range run.Trials {
		if trial.Misses != 0 {
			t.Errorf("trial %d: %d misses: %v", trial.Number, trial.Misses, trial.Invalid)
		}
		if trial.Ended != lab.EndStable {
			continue // cut off, for a reason that tookPlace has looked at
		}
		still++
		if diff := cmp.Diff(first, bag(t, dir, trial)); diff != "" {
			t.Errorf("trial %d asked or got something else than trial %d:\n%s", trial.Number, whole.Number, diff)
		}
		if trial.FinalFrame != whole.FinalFrame {
			t.Errorf("trial %d ends with another picture", trial.Number)
		}
		for name, file := range trial.Files {
			if info, err := os.Stat(filepath.Join(dir, "trials", store.TrialName(trial.Number), file)); err != nil || info.Size() == 0 {
				t.Errorf("trial %d: no %s: %v", trial.Number, name, err)
			}
		}
	}
	// A busy machine may spoil what is measured; the page comes to rest there too.
	if still < trials/2 {
		t.Errorf("the page came to rest in %d of %d trials", still, len(run.Trials))
	}
	isolation := run.Environment.Isolation // a run that failed tells none
	if run.State == store.StateDone &&
		(isolation == nil || fmt.Sprint(isolation.Interfaces) != "[dev0p lab0 lab0p]" || *isolation.OutsidePackets != 0) {
		t.Errorf("isolation: %+v, want the interfaces of the link alone and no packet for outside", isolation)
	}
	if want := isolate.SandboxFull.String() + "; memory bounded for "; !strings.HasPrefix(run.Environment.Sandbox, want) {
		t.Errorf("the browser's sandbox is %q; want %q", run.Environment.Sandbox, want)
	}
	checkReportJSON(t, filepath.Join(dir, "report.json"))
	if _, err := os.Stat(filepath.Join(dir, "report.html")); err != nil {
		t.Error(err)
	}
}

// checkReportJSON holds the report to the field names that scripts rely on.
func checkReportJSON(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Trials []struct {
			Valid      *bool               `json:"valid"`
			Misses     *int                `json:"misses"`
			FinalFrame string              `json:"final_frame_sha256"`
			Frames     int                 `json:"frames"`
			Lost       *int                `json:"frames_lost"`
			Metrics    map[string]*float64 `json:"metrics"`
		} `json:"trials"`
	}
	if err := json.Unmarshal(content, &report); err != nil {
		t.Fatal(err)
	}
	for i, trial := range report.Trials {
		if trial.Valid == nil || trial.Misses == nil || trial.Lost == nil ||
			trial.Valid != nil && *trial.Valid && (len(trial.FinalFrame) != 64 || trial.Frames < 60) {
			t.Errorf("report.json, trial %d: a field is missing: %+v", i+1, trial)
			continue
		}
		if !*trial.Valid {
			continue // the machine may have left nothing to measure
		}
		for _, name := range []string{"first_visual_change_ms", "last_visual_change_ms", "speed_index_ms", "time_to_stable_ms", "unique_fps"} {
			if v := trial.Metrics[name]; v == nil || *v <= 0 {
				t.Errorf("report.json, trial %d: no metric %s", i+1, name)
			}
		}
	}
}

// TestDemoOverConnections: the link that packets are compared with replays the
// same page. Whether the trial counts is the machine's affair.
func TestDemoOverConnections(t *testing.T) {
	testlab.Long(t, "another back end of the link, which netlab/link/conn tries")
	needLab(t)
	out := t.TempDir()
	got := finishCmd(t, appliance(t, "demo", "--backend", "conn", "--trials", "1", "--no-serve", "--out", out))
	t.Log(got.out, got.err)
	_, run := readRun(t, out)
	if len(run.Trials) < 1 || run.Trials[0].Misses != 0 || run.Trials[0].Requests < 50 {
		t.Errorf("the run is %s: %s", run.State, run.Error)
	}
	if backend := run.Link.BackEnd; backend != "conn" {
		t.Errorf("the link is by %v", backend)
	}
}

// TestLiveLoadsDiffer is the control of TestDemoReplaysTheSameEveryTime: without replay, the
// page is another one at each load.
func TestLiveLoadsDiffer(t *testing.T) {
	testlab.Long(t, "the control of TestDemoReplaysTheSameEveryTime")
	needLab(t)
	out := t.TempDir()
	got := finishCmd(t, appliance(t, "demo", "--live", "--trials", "3", "--no-serve", "--out", out))
	dir, run := readRun(t, out)
	tookPlace(t, got, run, 3)
	frames, bags, whole := map[string]bool{}, map[string]bool{}, 0
	for _, trial := range run.Trials {
		if trial.Ended != lab.EndStable {
			continue // cut off, for a reason that tookPlace has looked at
		}
		whole++
		frames[trial.FinalFrame] = true
		bags[strings.Join(bag(t, dir, trial), "\n")] = true
	}
	if whole < 2 || len(frames) != whole || len(bags) != whole {
		t.Errorf(
			"of %d live loads that came to rest %d end with different pictures and %d got different bytes; want all, and two or more",
			whole,
			len(frames),
			len(bags),
		)
	}
}

// TestKillInATrial kills everything while a trial is filmed.
func TestKillInATrial(t *testing.T) {
	testlab.Long(t, "another kill than TestManyKilledTwice's")
	needLab(t)
	out := t.TempDir()
	cmd := appliance(t, "demo", "--trials", "3", "--no-serve", "--out", out)
	alive, theirs, err := os.Pipe() // at its end when the last process that had it is gone
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	cmd.Stdout = theirs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	reelPath := awaitFilming(t, cmd, out)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := alive.SetReadDeadline(time.Now().Add(testlab.Hang)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, alive); err != nil {
		t.Fatalf("processes of the killed demo live on: %v", err)
	}

	_, run := readRun(t, out)
	if run.State != store.StateInterrupted {
		t.Errorf("the killed run is listed as %s", run.State)
	}
	recovered := filepath.Join(t.TempDir(), "recovered.reel")
	got := finishCmd(t, appliance(t, "reel", "recover", "--out", recovered, reelPath))
	if got.status != exitGood && got.status != exitFailed {
		t.Fatalf("reel recover: status %d\n%s%s", got.status, got.out, got.err)
	}
	got = finishCmd(t, appliance(t, "reel", "verify", recovered))
	if got.status != exitGood {
		t.Errorf("what was recovered is not whole: status %d\n%s%s", got.status, got.out, got.err)
	}
	got = finishCmd(t, appliance(t, "demo", "--trials", "3", "--no-serve", "--out", out))
	_, recorded := readRun(t, out)
	tookPlace(t, got, recorded, 3)

	// A finished run's archive is a recording like any other.
	again := t.TempDir()
	got = finishCmd(
		t,
		appliance(
			t,
			"demo",
			"--archive",
			filepath.Join(out, "latest", execute.ArchiveFile),
			"--link",
			"native",
			"--trials",
			"3",
			"--no-serve",
			"--out",
			again,
		),
	)
	_, run = readRun(t, again)
	tookPlace(t, got, run, 3)
	replayed, want := firstStill(t, run), firstStill(t, recorded)
	if replayed.Misses != 0 || replayed.FinalFrame != want.FinalFrame || run.Archive.SHA256 != recorded.Archive.SHA256 {
		t.Errorf(
			"the same archive gave another page: %d misses, final picture %s, was %s",
			replayed.Misses,
			replayed.FinalFrame,
			want.FinalFrame,
		)
	}
	fillsWhatIsMissing(t, filepath.Join(out, "latest", execute.ArchiveFile))
}

// awaitFilming waits until the first trial's reel has some seconds in it.
func awaitFilming(t *testing.T, cmd *exec.Cmd, out string) (reelPath string) {
	t.Helper()
	testlab.Await(t, "a trial that is filmed", func() bool {
		matches, _ := filepath.Glob(filepath.Join(out, "runs", "*", "trials", "001", experiment.ReelFile))
		if len(matches) != 1 {
			return false
		}
		reelPath = matches[0]
		info, err := os.Stat(reelPath)
		return err == nil && info.Size() > 100_000
	}, func() any { return cmd.Process.Signal(syscall.SIGTERM) })
	return reelPath
}

func TestDemoBadInput(t *testing.T) {
	needLab(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	truncated := filepath.Join(t.TempDir(), "truncated.wacz")
	if err := os.WriteFile(truncated, []byte("PK\x03\x04 and no more"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		args   []string
		env    string
		status int
		says   string
	}{
		{"unknown link", []string{"--link", "warp"}, "", exitUsage, "warp"},
		{"unknown treatment", []string{"--treatment-link", "warp"}, "", exitUsage, "treatment.link: "},
		{"no trials", []string{"--trials", "0"}, "", exitUsage, "trials: must be at least 1 (it is 0)"},
		{"trials that take too long", []string{"--trials", "5000", "--limit", "2m"}, "", exitUsage, "5000 trials of at most 2m0s each"},
		{"others can reach it", []string{"--listen", "0.0.0.0:0"}, "", exitUsage, "listen on 127.0.0.1"},
		{"port taken", []string{"--listen", taken.Addr().String()}, "", exitCannot, "choose another with --listen"},
		{"truncated archive", []string{"--no-serve", "--archive", truncated}, "", exitUsage, "truncated.wacz"},
		{"no such archive", []string{"--archive", truncated + "x"}, "", exitUsage, "truncated.waczx"},
		{"unwritable out", []string{"--no-serve", "--out", filepath.Join(file, "x")}, "", exitCannot, "--out"},
		{"no Chromium", []string{"--no-serve"}, "PATH=/nonexistent", exitCannot, "apt-get install chromium"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			args := append([]string{"demo", "--out", out}, test.args...)
			cmd := appliance(t, args...)
			if test.env != "" {
				cmd.Env = append(cmd.Env, test.env)
			}
			got := finishCmd(t, cmd)
			if got.status != test.status || !strings.Contains(got.err, test.says) {
				t.Errorf("status %d, want %d; said %q, want a word of %q", got.status, test.status, got.err, test.says)
			}
			if lines := strings.Count(strings.TrimSpace(got.err), "\n") + 1; lines > 2 {
				t.Errorf("it took %d lines to say so:\n%s", lines, got.err)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("an output folder was left behind")
			}
		})
	}
}
