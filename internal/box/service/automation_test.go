package service

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/box/automation"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// newKeeper opens what a service in the folder does by itself.
func newKeeper(t *testing.T, dir string) (k *automation.Keeper, warning []string) {
	t.Helper()
	runs, err := store.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := store.MemoryQueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	carrier := &runner{data: dir, runs: runs, devices: &deviceList{}}
	network := &ports{config: []deviceConfig{{Name: "laptop", Port: "eth9", Gateway: "203.0.112.1/24"}}}
	s := &shared{
		Service: New(Options{Config: DefaultConfig(), Data: dir, Log: slog.New(slog.DiscardHandler)}),
		queue:   runqueue.New(runqueue.Config{Jobs: jobs, Store: runs, Runner: carrier}), runs: runs, carrier: carrier, inside: network.prefixes,
	}
	if _, err := s.openAutomation(t.Context()); err != nil {
		t.Fatalf("openAutomation() = %v; want a warning at most", err)
	}
	t.Cleanup(func() {
		var closed error
		if s.keeper != nil {
			closed = s.keeper.Close()
		}
		if err := errors.Join(closed, jobs.Close(), runs.Close()); err != nil {
			t.Error(err)
		}
	})
	return s.keeper, s.warnings
}

// A box starts whatever its file is, and says what is gone.
func TestAutomationThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, automationFile)
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	k, warning := newKeeper(t, dir)
	if k == nil || len(warning) != 1 || !strings.Contains(warning[0], "were damaged") {
		t.Fatalf("with a damaged file: %v, %q; want a new one and a warning", k, warning)
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Error(err)
	}
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, automationFile), 0o755); err != nil { // no file, whoever asks
		t.Fatal(err)
	}
	if k, warning := newKeeper(t, dir); k != nil || len(warning) != 1 || !strings.Contains(warning[0], "are off") {
		t.Errorf("with a file that cannot be opened: %v, %q; want none and a warning", k, warning)
	}
}

// A plan is checked when it is kept, though its device is not there; and a webhook may not call
// the network of a device, whatever its addresses are.
func TestKeeperKnowsTheBox(t *testing.T) {
	k, warning := newKeeper(t, t.TempDir())
	if len(warning) != 0 {
		t.Fatalf("warnings: %q", warning)
	}
	var wrong *automation.WrongError
	plan := lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Archive: "nope.wacz"}, Device: "laptop"}.WithDefaults()
	if _, err := k.PutWorkflow(t.Context(), "w", plan, nil, "", automation.Expect{}); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "nope.wacz") {
		t.Errorf("a plan without its recording = %v; want a WrongError that names it", err)
	}
	plan.Archive = ""
	if _, err := k.PutWorkflow(t.Context(), "w", plan, nil, "", automation.Expect{}); err != nil {
		t.Errorf("a plan for a device that is away = %v; want nil", err)
	}
	if _, _, err := k.MakeHook(t.Context(), "h", "", "https://203.0.112.7/", lab.Secret{}, nil, ""); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "network of a device") {
		t.Errorf("a webhook in a device's network = %v; want a refusal", err)
	}
	if got := (&ports{config: []deviceConfig{{Port: "eth9", Gateway: "203.0.112.1/24"}}}).prefixes(); len(got) != 1 || got[0] != netip.MustParsePrefix("203.0.112.0/24") {
		t.Errorf("prefixes() = %v; want 203.0.112.0/24", got)
	}
}
