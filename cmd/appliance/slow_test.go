package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// heldToAThird starts this process's next children in a control group that gets
// a third of all processors' time, in whichever version of them there is.
func heldToAThird(t *testing.T) (enter string) {
	t.Helper()
	testlab.NeedRoot(t)
	third := int64(100_000) * int64(processors(t)) / 3
	for _, version := range []struct{ root, file, text string }{
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", fmt.Sprint(third)},
		{"/sys/fs/cgroup", "cpu.max", fmt.Sprintf("%d 100000", third)},
	} {
		dir := filepath.Join(version.root, fmt.Sprintf("eidetic-test-%d", os.Getpid()))
		if _, err := os.Stat(filepath.Join(version.root, "cgroup.procs")); err != nil || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		if os.WriteFile(filepath.Join(dir, version.file), []byte(version.text), 0o644) == nil {
			return filepath.Join(dir, "cgroup.procs")
		}
	}
	testlab.Need(t, false, "a control group with a quota of processor time (cpu.max or cpu.cfs_quota_us)")
	return ""
}

func processors(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	return max(1, strings.Count(string(content), "processor\t:"))
}

// TestDemoOnASlowMachine: with a third of the processors' time the demo ends with
// all its trials, and says in the terminal, the run and the report why its
// tolerance is wider and what would help.
func TestDemoOnASlowMachine(t *testing.T) {
	testlab.Long(t, "a demo with a third of the time")
	needLab(t)
	const trials = 1
	out := t.TempDir()
	enter := heldToAThird(t)
	self, err := os.Executable() // in the shell, /proc/self/exe is the shell
	if err != nil {
		t.Fatal(err)
	}
	demo := appliance(t, "demo", "--trials", strconv.Itoa(trials), "--no-serve", "--out", out)
	demo.Args = append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, enter, self}, demo.Args[1:]...)
	demo.Path = testlab.NeedProgram(t, "sh")
	got := finishCmd(t, demo)
	t.Log(got.out)
	dir, run := readRun(t, out)
	if got.status != exitGood || valid(run) != trials {
		t.Fatalf("status %d, %d of %d trials are valid (%s)\n%s", got.status, valid(run), len(run.Trials), run.Error, got.err)
	}
	if !run.Tolerance.Relaxed() {
		t.Logf("this machine keeps the tolerance with a third of its time: %+v", run.Tolerance)
		return
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for place, text := range map[string]string{"terminal": got.out, "run": strings.Join(run.Warnings, "\n"), "report": string(page)} {
		for _, want := range []string{"could not keep the tolerance of 16.7 ms", "the quota of our control group stopped us", "What would help"} {
			if !strings.Contains(text, want) {
				t.Errorf("the %s does not say %q", place, want)
			}
		}
	}
}

func valid(run *lab.Run) (n int) {
	for _, t := range run.Trials {
		if t.Valid {
			n++
		}
	}
	return n
}
