package store

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// inSmallDisk reruns the calling test in a child process with its own mount namespace,
// and returns "" in the parent. In the child it returns a tmpfs of 2 MiB.
func inSmallDisk(t *testing.T) (dir string) {
	t.Helper()
	const key = "EIDETIC_TEST_SMALL_DISK"
	if os.Getenv(key) != t.Name() {
		testlab.NeedNamespaces(t)
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), key+"="+t.Name())
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{Size: 1, HostID: os.Geteuid()}},
			GidMappings: []syscall.SysProcIDMap{{Size: 1, HostID: os.Getegid()}},
		}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("the test in a small disk: %v; want it to pass; it said:\n%s", err, out)
		}
		return ""
	}
	dir = t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill uses up all space of dir's file system.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n := 64 << 10; n > 0; {
		if _, err := f.Write(make([]byte, n)); err != nil {
			n /= 2
		}
	}
}

// threeRuns fills a small disk with three runs, the last of which is still running.
func threeRuns(t *testing.T, root string) (last *Folder) {
	t.Helper()
	for _, id := range []string{"20261121-091400-a", "20261121-091500-b", "20261121-091600-c"} {
		if last != nil {
			_ = last.Close()
		}
		last = create(t, root, sample(id, StateRunning))
		if err := os.WriteFile(filepath.Join(last.Path(), "reel"), make([]byte, 100<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

// listed checks the name and state of the runs that a store lists.
func listed(t *testing.T, s *Store, want string) {
	t.Helper()
	runs, err := s.Runs(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range runs {
		all = append(all, r.ID[16:]+" "+r.State)
	}
	if got := strings.Join(all, ", "); got != want {
		t.Errorf("Runs() lists %s; want %s", got, want)
	}
}

// A full disk prevents neither listing nor removing runs.
func TestStoreOnAFullDisk(t *testing.T) {
	root := inSmallDisk(t)
	if root == "" {
		return
	}
	last := threeRuns(t, root)
	if err := open(t, root).Close(); err != nil {
		t.Fatal(err)
	}
	fill(t, root)
	s := open(t, root)
	listed(t, s, "c running, b interrupted, a interrupted")
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
	listed(t, s, "c interrupted, b interrupted, a interrupted")
	if _, err := Create(root, sample("20261121-091700-d", StateRunning)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Create() on a full disk: %v; want ENOSPC", err)
	}
	if err := s.Remove("20261121-091400-a"); err != nil {
		t.Fatal(err)
	}
	listed(t, s, "c interrupted, b interrupted")
	create(t, root, sample("20261121-091700-d", StateDone))
	listed(t, s, "d done, c interrupted, b interrupted")
}

// As above, where the disk fills up while the service runs.
func TestStoreOnADiskThatFillsUp(t *testing.T) {
	root := inSmallDisk(t)
	if root == "" {
		return
	}
	last := threeRuns(t, root)
	s := open(t, root)
	listed(t, s, "c running, b interrupted, a interrupted")
	fill(t, root)
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
	listed(t, s, "c interrupted, b interrupted, a interrupted")
	if err := s.Remove("20261121-091600-c"); err != nil {
		t.Fatal(err)
	}
	listed(t, s, "b interrupted, a interrupted")
}

// The queue's errors for a full disk wrap ENOSPC.
func TestQueueOnAFullDisk(t *testing.T) {
	dir := inSmallDisk(t)
	if dir == "" {
		return
	}
	fill(t, dir)
	if _, err := OpenQueue(t.Context(), filepath.Join(dir, "new.db")); err == nil || Damaged(err) {
		t.Errorf("OpenQueue() on a full disk: %v; want an error that is not Damaged", err)
	}
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	q, err := OpenQueue(t.Context(), filepath.Join(dir, "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	fill(t, dir)
	for n := 0; ; n++ {
		err := q.Add(
			t.Context(),
			Job{ID: strings.Repeat("x", n), Created: time.Unix(1, 0), Plan: lab.Plan{Name: strings.Repeat("x", 9000)}},
		)
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
		if err != nil || n > 1000 {
			t.Fatalf("job %d: %v", n, err)
		}
	}
	memory, err := MemoryQueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	if err := memory.Add(t.Context(), Job{ID: "1", Created: time.Unix(1, 0)}); err != nil {
		t.Error(err)
	}
	if j, err := memory.Next(t.Context()); err != nil || j.ID != "1" {
		t.Errorf("Next() = %+v, %v; want job 1", j, err)
	}
}

func TestRemove(t *testing.T) {
	root := filepath.Join(t.TempDir(), "[a]") // a name that is a pattern, too
	f := create(t, root, sample("1", StateRunning))
	create(t, root, sample("2", StateDone)).Close()
	s, err := Open(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for id, want := range map[string]error{"1": ErrHeld, "3": ErrNotFound, "../runs": ErrNotFound} {
		if err := s.Remove(id); !errors.Is(err, want) {
			t.Errorf("Remove(%q) = %v; want %v", id, err, want)
		}
	}
	latest := func() string {
		target, _ := os.Readlink(filepath.Join(root, "latest"))
		return target
	}
	if err := s.Remove("2"); err != nil || s.Has("2") || latest() != "runs/1" {
		t.Errorf("Remove(2) = %v, latest is %q; want nil, runs/1", err, latest())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(root, "report.html") // a file in a link's place is the user's
	if err := errors.Join(os.Remove(mine), os.WriteFile(mine, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("1"); err != nil || latest() != "" {
		t.Errorf("Remove(1) = %v, latest is %q; want nil and no link", err, latest())
	}
	left, err := fs.Glob(os.DirFS(root), "*")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(left, " "); got != "index.db index.db-shm index.db-wal report.html runs" {
		t.Errorf("files left after all runs were removed: %s", got)
	}
	cut := filepath.Join(root, runsDir, removedPrefix+"9")
	if err := os.Mkdir(cut, 0o755); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := os.Stat(cut); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open() after an interrupted removal: Stat = %v; want ErrNotExist", err)
	}
}
