package service

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/internal/keep/runqueue"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/execute"
	"eidetic/internal/web/panel"
)

// failingDevice fills or breaks the disk in its run.
type failingDevice struct {
	noDevice
	run func() error
}

func (failingDevice) refuses(plan.Checked) error { return nil }
func (d failingDevice) carryOut(context.Context, string, plan.Checked, execute.News) error {
	return d.run()
}

// inOwnMounts runs the calling test again in a mount namespace of its own and returns false
// in the parent.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	const key = "EIDETIC_TEST_MOUNTS"
	if os.Getenv(key) == t.Name() {
		return true
	}
	testlab.NeedNamespaces(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), key+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{Size: 1, HostID: os.Geteuid()}},
		GidMappings: []syscall.SysProcIDMap{{Size: 1, HostID: os.Getegid()}},
	}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("the test in mounts of its own: %v; want it to pass; it said:\n%s", err, out)
	}
	return false
}

// A full and a read-only disk are said in health and in a run's reason, and a run is
// refused.
func TestDiskThatTakesNothing(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=80m"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }()
	r := newRunner(t)
	r.disk = newDisk(dir, nil)
	r.disk.patience = testlab.Hang
	s := &Service{}
	ports := &ports{root: t.TempDir()}
	look := func() { r.disk.looked = time.Time{} }
	plan := lab.Plan{Trials: 1, Still: 1.5, Limit: 60, Arm: lab.Arm{Page: "https://x.test/"}}
	if _, err := r.Accept(t.Context(), plan); err != nil || len(s.alerts(r.disk, ports)) != 0 {
		t.Fatalf("with a good disk: %v, alerts %q; want none", err, s.alerts(r.disk, ports))
	}
	refused := func(want string) {
		t.Helper()
		look()
		_, err := r.Accept(t.Context(), plan)
		var refusal *panel.Refusal
		if !errors.As(err, &refusal) || refusal.Status != http.StatusInsufficientStorage || !strings.Contains(err.Error(), want) {
			t.Errorf("Accept() = %v, want a refusal 507 that says %q", err, want)
		}
		if all := s.alerts(r.disk, ports); len(all) != 1 || !strings.Contains(all[0], want) {
			t.Errorf("alerts %q, want one that says %q", all, want)
		}
	}
	filler := filepath.Join(dir, "filler")
	fill := func() error { look(); return os.WriteFile(filler, make([]byte, 30<<20), 0o600) }
	r.devices.add("port", failingDevice{run: func() error { return errors.Join(fill(), errors.New("the film was cut off")) }})
	err := r.Run(t.Context(), "20270101-000000-a", withDevice(plan), func(panel.Progress) {})
	if err == nil || !strings.Contains(err.Error(), "the disk is full") || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("a run that filled the disk: %v; want both reasons", err)
	}
	refused("the disk is full")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=80m"); err != nil {
		t.Fatal(err)
	}
	refused("read-only")
}

// TestRunsWaitForRoom: a disk that fills up after runs were accepted costs none of them; they begin when there is room.
func TestRunsWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		full.Store(true)
		d := newDisk(t.TempDir(), nil)
		d.look = func(string) error {
			if full.Load() {
				return errors.New("the disk is full: delete runs")
			}
			return nil
		}
		r := &runner{disk: d}
		said := make(chan string, 100)
		wait := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() { done <- r.awaitRoom(ctx, func(p runqueue.Progress) { said <- p.Doing }) }()
			return done
		}
		done := wait(t.Context())
		for range 3 {
			if got, want := <-said, "waiting: the disk is full: delete runs"; got != want {
				t.Errorf("a run on a full disk says %q; want %q", got, want)
			}
		}
		full.Store(false)
		if err := <-done; err != nil {
			t.Errorf("awaitRoom() with room again = %v; want nil", err)
		}
		full.Store(true)
		d.again()
		ctx, cancel := context.WithCancel(t.Context())
		done = wait(ctx)
		<-said
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("awaitRoom() of a run that is cancelled = %v; want that", err)
		}
	})
}

// A disk that is busy with a large file keeps nobody waiting: the watchdog would end a service
// whose health waited for it. After a while it is a problem.
func TestSlowDisk(t *testing.T) {
	d := newDisk(t.TempDir(), nil)
	goOn := make(chan struct{})
	d.look = func(string) error { <-goOn; return errors.New("it is full") }
	d.patience = time.Millisecond
	for range 2 {
		if err := d.problem(); err != nil {
			t.Errorf("problem() = %v while the first look goes on, want nil", err)
		}
	}
	d.mu.Lock()
	d.began = time.Now().Add(-slowDisk - 10*time.Second)
	d.mu.Unlock()
	if err := d.problem(); err == nil || !strings.Contains(err.Error(), "taken nothing for 30 s") {
		t.Errorf("problem() = %v of a disk that is busy for 30 s; want that", err)
	}
	close(goOn)
	d.patience = testlab.Hang
	if err := d.problem(); err == nil || err.Error() != "it is full" {
		t.Errorf("problem() = %v after the look, want its result", err)
	}
}

func withDevice(p lab.Plan) lab.Plan {
	p.Device = "port"
	return p
}

// mountSmall mounts a file system of 20 MB in the test's own mounts.
func mountSmall(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=20m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}
