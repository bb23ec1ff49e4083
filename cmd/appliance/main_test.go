package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"eidetic/internal/rigs/testlab/xtest"
)

// asAppliance makes this test binary behave as the appliance, whose own
// restarts inside namespaces then work as well.
const asAppliance = "EIDETIC_TEST_AS_APPLIANCE"

// peakFile names, in the environment of an appliance, the file that it leaves the kernel's account of its memory in.
// What the kernel tells the process that started it has that process's own memory in it.
const peakFile = "EIDETIC_TEST_PEAK"

func TestMain(m *testing.M) {
	if os.Getenv(asAppliance) == "" {
		xtest.Main()
		os.Exit(m.Run())
	}
	if dir := os.Getenv(drawnIn); dir != "" && len(os.Args) > 1 && os.Args[1] == ownCommands().Inside[0] {
		if err := drawInside(dir); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], &streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	if file := os.Getenv(peakFile); file != "" {
		kept, err := os.ReadFile("/proc/self/status")
		if err == nil {
			err = os.WriteFile(file, kept, 0o600)
		}
		if err != nil {
			panic(err)
		}
	}
	os.Exit(status)
}

// appliance is a command that runs the appliance with args in a process of its own.
func appliance(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), asAppliance+"=1")
	return cmd
}

// result is how a command ended.
type result struct {
	status   int
	out, err string
}

// finish runs a command to its end.
func finishCmd(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"nonsense"}, {"version", "extra"}, {"demo", "--trials", "many"}} {
		got := finishCmd(t, appliance(t, args...))
		if got.status != exitUsage || !strings.Contains(got.err, "appliance") {
			t.Errorf("appliance %q: status %d, said %q; want status %d and a word on usage", args, got.status, got.err, exitUsage)
		}
	}
}

// Whoever knows no command is shown them; a script learns by the status that it named none.
func TestNoCommand(t *testing.T) {
	got := finishCmd(t, appliance(t))
	if got.status != exitUsage || got.out != "" || !strings.Contains(got.err, "Commands:") || !strings.Contains(got.err, "doctor") {
		t.Errorf("status %d, printed %q, said %q", got.status, got.out, got.err)
	}
}

func TestHelpEverywhere(t *testing.T) {
	top := finishCmd(t, appliance(t, "--help"))
	if top.status != exitGood {
		t.Fatalf("--help: status %d: %s", top.status, top.err)
	}
	for _, command := range []string{"demo", "version"} {
		got := finishCmd(t, appliance(t, command, "--help"))
		if got.status != exitGood || !strings.Contains(got.out, "Usage: appliance "+command) {
			t.Errorf("%s --help: status %d, said %q", command, got.status, got.out)
		}
	}
}
