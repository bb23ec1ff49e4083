package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"eidetic/internal/rigs/testlab"
)

// bench is this program, and a small module whose tests fail in every way that tests can.
type bench struct {
	program, module, tried string
}

func newBench(t *testing.T) bench {
	t.Helper()
	b := bench{filepath.Join(t.TempDir(), "testrun"), t.TempDir(), t.TempDir()}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", b.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.CopyFS(b.module, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b bench) command(args ...string) *exec.Cmd {
	cmd := exec.Command(b.program, args...)
	cmd.Dir = b.module
	cmd.Env = append(os.Environ(), "TRIED="+b.tried)
	return cmd
}

// run returns what the program prints, and its exit status.
func (b bench) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := b.command(args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("testrun %v:\n%s", args, out)
	return string(out), cmd.ProcessState.ExitCode()
}

func TestSecondTries(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		name, pkg string
		flags     []string
		status    int
		says      []string
		never     []string
	}{
		{"good", "./good", nil, 0, []string{"ok  \teidetic/good", "Passed on the second try: none.", "Failed: none."}, []string{"nobody reads"}},
		{"lacks", "./lacks", nil, 0, []string{"Left out, for want of a package in this release of Debian:\n  eidetic/lacks TestRare: rare\n", "0 were skipped"}, nil},
		{"flaky", "./flaky", nil, 0,
			[]string{"not the first time", "failed\teidetic/flaky", "once more, alone: eidetic/flaky ^TestFlaky$\n", "ok  \teidetic/flaky",
				"Passed on the second try:\n  eidetic/flaky TestFlaky\n", "Failed: none."},
			[]string{"FAIL\teidetic/flaky"}},
		{"long and weak", "./long", []string{"-short"}, 0,
			[]string{"1 tests of 1 packages passed, 0 were skipped", fmt.Sprintf("%-20s %8d %10d", "long", 1, 1), "Proved less than elsewhere:\n  eidetic/long TestWeaker: no second processor"}, nil},
		{"broken", "./broken", nil, 1, []string{"once more", "FAIL\teidetic/broken", "Passed on the second try: none.", "Failed:\n  eidetic/broken TestBroken, twice"}, []string{"ok  \t"}},
		{"panics", "./panics", nil, 0, []string{"panic: not the first time", "Passed on the second try:\n  eidetic/panics (the whole package)"}, []string{"FAIL\t"}},
		{"not built", "./notbuilt", nil, 1, []string{"undefined: undefined", "FAIL\teidetic/notbuilt [build failed]", "eidetic/notbuilt is not built"}, []string{"once more"}},
		{"raced", "./raced", []string{"-race"}, 1, []string{"DATA RACE", "FAIL\teidetic/raced", "eidetic/raced has a data race"}, []string{"once more"}},
		{"no such package", "./nowhere", nil, 1, []string{"nowhere"}, []string{"once more", "Failed: none"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if slices.Contains(c.flags, "-race") {
				testlab.Long(t, "everything is built for the race detector, a minute and a half")
			}
			out, status := b.run(t, append(c.flags, "packages", c.pkg)...)
			if status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			for _, want := range c.says {
				if !strings.Contains(out, want) {
					t.Errorf("the output lacks %q", want)
				}
			}
			for _, never := range c.never {
				if strings.Contains(out, never) {
					t.Errorf("the output contains %q, which it must not", never)
				}
			}
		})
	}
	if _, err := os.Stat(filepath.Join(b.tried, "after")); err != nil {
		t.Errorf("the test behind the one that panicked was not run again: %v", err)
	}
}

// A command has the nice value that the supervisor was asked for, whichever thread starts it.
func TestNice(t *testing.T) {
	b := newBench(t)
	for range 10 {
		cmd := exec.CommandContext(t.Context(), b.program, superviseCommand, "5", "nice")
		left, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer left.Close()
		cmd.ExtraFiles = []*os.File{left}
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != "5" {
			t.Fatalf("the command has the nice value %q, %v; want 5", got, err)
		}
	}
}

// testrun ends and names the processes that a test leaves running.
func TestLeftBehind(t *testing.T) {
	b := newBench(t)
	ready := newFIFO(t)
	cmd := b.command("packages", "./leaves")
	cmd.Env = append(cmd.Env, "READY="+ready)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	processes := readPIDs(t, ready)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "Left behind by tests, and ended:") || !strings.Contains(out.String(), "sleep") {
		t.Errorf("the output does not name the process that was left running:\n%s", &out)
	}
	gone(t, processes)
}

// Whatever ends the program, or any part of it, no process stays.
func TestNothingIsLeftRunning(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(cmd *exec.Cmd) error
	}{
		{"SIGTERM", func(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGTERM) }},
		{"interrupt", func(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGINT) }},
		{"SIGKILL", func(cmd *exec.Cmd) error { return cmd.Process.Kill() }},
		{"SIGKILL of the supervisor, then SIGTERM", func(cmd *exec.Cmd) error {
			for _, p := range descendants(cmd.Process.Pid) {
				if p.parent == cmd.Process.Pid {
					return errors.Join(syscall.Kill(p.pid, syscall.SIGKILL), cmd.Process.Signal(syscall.SIGTERM))
				}
			}
			return errors.New("there is no supervisor")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "interrupt" || c.name == "SIGKILL" {
				testlab.Long(t, "other signals than the first and the last case")
			}
			b := newBench(t)
			ready := newFIFO(t)
			cmd := b.command("packages", "./leaves")
			cmd.Env = append(cmd.Env, "READY="+ready, "WAIT=1")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := testlab.Start(t, cmd); err != nil {
				t.Fatal(err)
			}
			processes := readPIDs(t, ready)
			if err := c.end(cmd); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // its status is that of what was ended
			t.Logf("%s", &out)
			gone(t, processes)
		})
	}
}

func newFIFO(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readPIDs waits until the test of the small module has started its program,
// and returns the IDs of its processes.
func readPIDs(t *testing.T, fifo string) (pids []int) {
	t.Helper()
	f, err := os.OpenFile(fifo, os.O_RDWR, 0) // for writing too: a writer never waits
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pids = make([]int, 2)
	if _, err := fmt.Sscan(line, &pids[0], &pids[1]); err != nil {
		t.Fatal(err)
	}
	return pids
}

// gone waits until the processes have ended; the test's own limit is the only one.
func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		for {
			p, there := readProcess(pid)
			if !there || p.state == "Z" {
				break
			}
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue // it has just ended
			}
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(testlab.Hang.Milliseconds()))
			_ = unix.Close(fd)
			if p, there := readProcess(pid); there && p.state != "Z" {
				t.Fatalf("process %d (%s) still runs, want it ended", pid, p.name)
			}
		}
	}
}
