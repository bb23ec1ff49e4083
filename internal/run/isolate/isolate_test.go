package isolate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/base/unshare"
	"eidetic/internal/rigs/testlab"
)

// The test binary plays three parts, chosen by this variable: the test itself, an outer
// process that is killed, and the inside.
const part = "EIDETIC_ISOLATE_PART"

func TestMain(m *testing.M) {
	switch os.Getenv(part) {
	case "":
		os.Exit(m.Run())
	case "outer":
		os.Setenv(part, "linger")
		if err := Run(context.Background(), nil, os.NewFile(3, "report")); err != nil {
			os.Exit(1)
		}
	case "view":
		view(os.NewFile(3, "report"))
	case "available":
		fmt.Println(Available(context.Background()))
	case "bounds":
		bound(os.NewFile(3, "report"))
	case "linger":
		linger(os.NewFile(3, "report"))
	}
}

type seen struct {
	PID        int
	Interfaces []string
	Temp       []string
	Kept       string
	Resolver   string
	Err        string
}

// view reports what the inside sees.
func view(report io.Writer) {
	var s seen
	kept := os.Getenv("EIDETIC_ISOLATE_KEEP")
	if err := Mount(Mounts{Keep: []string{kept}, Resolver: "192.0.2.1", TempSize: 1 << 20}); err != nil {
		s.Err = err.Error()
	}
	s.PID = os.Getpid()
	all, _ := net.Interfaces()
	for _, i := range all {
		s.Interfaces = append(s.Interfaces, i.Name)
	}
	entries, _ := os.ReadDir("/tmp")
	for _, e := range entries {
		s.Temp = append(s.Temp, e.Name())
	}
	content, _ := os.ReadFile(filepath.Join(kept, "file"))
	s.Kept = string(content)
	content, _ = os.ReadFile("/etc/resolv.conf")
	s.Resolver = string(content)
	json.NewEncoder(report).Encode(s)
}

// linger starts a grandchild that also holds the pipe, reports it, and waits for a signal.
func linger(report *os.File) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	child := exec.Command("sleep", "1000")
	child.ExtraFiles = []*os.File{report}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		fmt.Fprintln(report, err)
		return
	}
	fmt.Fprintln(report, "here")
	<-signals
	fmt.Fprintln(report, "bye")
}

func needNamespaces(t *testing.T) {
	t.Helper()
	err := Available(t.Context())
	testlab.Need(t, err == nil, fmt.Sprintf("namespaces: %v", err))
}

func TestInsideSeesItsOwn(t *testing.T) {
	needNamespaces(t)
	keep := t.TempDir()
	if err := os.WriteFile(filepath.Join(keep, "file"), []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(part, "view")
	t.Setenv("EIDETIC_ISOLATE_KEEP", keep)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), nil, w); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var got seen
	if err := json.NewDecoder(r).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Err != "" {
		t.Fatal(got.Err)
	}
	if got.PID != 1 {
		t.Errorf("the inside is process %d, want 1", got.PID)
	}
	if strings.Join(got.Interfaces, " ") != "lo" {
		t.Errorf("the inside sees interfaces %v, want the loopback alone", got.Interfaces)
	}
	if got.Kept != "kept" {
		t.Errorf("the kept folder's file reads %q", got.Kept)
	}
	if got.Resolver != "nameserver 192.0.2.1\n" {
		t.Errorf("/etc/resolv.conf is %q", got.Resolver)
	}
	for _, name := range got.Temp {
		if name != "resolv.conf" && name != "hosts" && !strings.HasPrefix(keep, "/tmp/"+name) {
			t.Errorf("the host's /tmp/%s is visible inside", name)
		}
	}
	if host, err := os.ReadFile("/etc/resolv.conf"); err == nil && string(host) == got.Resolver {
		t.Error("the host's /etc/resolv.conf was changed")
	}
}

// TestKillLeavesNothing kills the outer process, so that it cannot clean up; the end of the
// pipe proves that all processes of the inside have ended.
func TestKillLeavesNothing(t *testing.T) {
	needNamespaces(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	outer := exec.Command("/proc/self/exe")
	outer.Env = append(os.Environ(), part+"=outer")
	outer.ExtraFiles = []*os.File{w}
	if err := outer.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	lines := bufio.NewReader(r)
	if line, err := lines.ReadString('\n'); line != "here\n" {
		t.Fatal(line, err)
	}
	if err := outer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(testlab.Hang)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Errorf("processes of the inside live on: %v", err)
	}
	if len(rest) > 0 {
		t.Errorf("the inside said %q although it was killed", rest)
	}
	_ = outer.Wait()
}

func TestEndOfContextIsASignal(t *testing.T) {
	needNamespaces(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Setenv(part, "linger")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := Run(ctx, nil, w)
		w.Close()
		ended <- err
	}()
	lines := bufio.NewReader(r)
	if line, err := lines.ReadString('\n'); line != "here\n" {
		t.Fatal(line, err)
	}
	cancel()
	rest, err := io.ReadAll(lines)
	if err != nil || string(rest) != "bye\n" {
		t.Errorf("the inside said %q (%v), want that it could wind down", rest, err)
	}
	if err := <-ended; err == nil {
		t.Error("Run returned no error although its context ended")
	}
}

// In a plain chroot, one sentence says what it lacks, with and without a /proc.
func TestChroot(t *testing.T) {
	needNamespaces(t)
	for _, folders := range []string{"usr lib lib64 bin tmp dev proc", "usr lib lib64 bin tmp dev"} {
		root := testlab.TempDir(t)
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		// Of the program's own file system only the program is there, not its folder, which may be around this one.
		script := `cd "$1"; for d in $3; do mkdir $d; mount --rbind /$d $d; done; touch test; mount --bind "$2" test; exec chroot . /test`
		var out strings.Builder
		cmd := exec.Command("sh", "-ec", script, "sh", root, program, folders)
		cmd.Env = append(os.Environ(), part+"=available")
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := unshare.Run(cmd, unshare.Mounts); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		if got := out.String(); !strings.HasPrefix(got, "this is a chroot, ") || strings.Count(got, "\n") != 1 {
			t.Errorf("Available in a chroot of %s = %q; want a line that says that this is a chroot", folders, got)
		}
	}
}

// A refusal names the setting that the kernel's error stands for.
func TestRemedyOfARefusal(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, fmt.Errorf("unshare: unshare failed: No space left on device")} {
		if got := (&Refusal{err}).Error(); !strings.Contains(strings.ToLower(got), "sysctl user.max_user_namespaces") || !strings.Contains(got, "--no-sandbox") {
			t.Errorf("the refusal of %v is %q; want the limit that is reached, and the flag that goes on without", err, got)
		}
	}
}

// A run is bounded in memory: by a control group where this machine lets it make one, else each of its processes.
func TestRunIsBoundedInMemory(t *testing.T) {
	needNamespaces(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Setenv(part, "bounds")
	err = Run(t.Context(), nil, w)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var got bounds
	if err := json.NewDecoder(r).Decode(&got); err != nil {
		t.Fatal(err)
	}
	most, err := memoryBound()
	if err != nil {
		t.Fatal(err)
	}
	if !got.Group && got.Data > most || got.Group != strings.HasSuffix(got.Said, "for the run") {
		t.Errorf("the run is bounded by %+v; want a group, or at most %d bytes a process, and to say so", got, most)
	}
	lines, err := os.ReadFile("/proc/self/cgroup")
	if own, ok := ownGroup(groupsRoot, string(lines)); err == nil && ok {
		if left, _ := filepath.Glob(filepath.Join(own.dir, prefix+owner(strconv.Itoa(os.Getpid()))+"-*")); len(left) > 0 {
			t.Errorf("the groups %q are left; want none", left)
		}
	}
	second, _ := os.ReadFile(groupsRoot + "/cgroup.subtree_control")
	lets := isWritable(groupsRoot+"/memory") || isWritable(groupsRoot) && slices.Contains(strings.Fields(string(second)), "memory")
	if os.Getuid() == 0 && lets && !got.Group {
		t.Errorf("root's run is bounded by %+v; want a control group", got)
	}
}

// Where the kernel does not let the inside be born in its control group, it bounds each of its processes, and says that
// only then.
func TestRunWithoutItsGroup(t *testing.T) {
	needNamespaces(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	none, err := os.Open(t.TempDir()) // clone3 refuses what is no control group
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	t.Setenv(part, "bounds")
	left := false
	err = run(t.Context(), func(cmd *exec.Cmd) func() {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(none.Fd())}
		return func() { left = true }
	}, nil, []*os.File{w})
	w.Close()
	var got bounds
	if err = errors.Join(err, json.NewDecoder(r).Decode(&got)); err != nil || !left {
		t.Fatalf("run() = %v, the group was left: %v; want a run without a group", err, left)
	}
	if isGroupBounded() {
		return // by a group around this test
	}
	if got.Before != "memory not bounded" || !strings.Contains(got.Said, "each process alone") {
		t.Errorf("the bounds are %+v; want none before Limit, and each process's then", got)
	}
}

type bounds struct {
	Group        bool
	Data         uint64
	Before, Said string // before Limit, and then
}

// bound reports the bounds of the inside.
func bound(report io.Writer) {
	var b bounds
	var data unix.Rlimit
	before := MemoryBounds()
	if Limit() == nil && unix.Getrlimit(unix.RLIMIT_DATA, &data) == nil {
		b = bounds{isGroupBounded(), data.Cur, before, MemoryBounds()}
	}
	json.NewEncoder(report).Encode(b)
}

func isWritable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }

// Groups of processes that do not run are removed, also those of one that had the ID of one that does.
func TestGroupsAreForgotten(t *testing.T) {
	dir, me := t.TempDir(), strconv.Itoa(os.Getpid())
	ours := prefix + owner(me) + "-5"
	for _, name := range []string{ours, prefix + me + "-1-7", prefix + me + "-99", prefix + "4194305-3-4", "others-1-2"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	forget(dir)
	var left []string
	all, err := os.ReadDir(dir)
	for _, one := range all {
		left = append(left, one.Name())
	}
	if want := []string{ours, "others-1-2"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("the groups %q are left, %v; want %q", left, err, want)
	}
}

// The group of a run is made where the kernel of either version lets memory be bounded, and a bound that is there is
// found.
func TestGroupOfEitherVersion(t *testing.T) {
	type tree map[string]string // files of groups
	const most = 800
	for name, c := range map[string]struct {
		tree  tree
		lines string
		here  string // where a group is made
		made  string // in which group; "" is none
		bound bool
	}{
		"version 1": {tree{"memory/a/memory.limit_in_bytes": "9223372036854771712", "memory/a/cgroup.procs": ""}, "4:cpu:/b\n3:memory:/a\n0::/\n", "memory/a", "memory/a", false},
		"version 1, bounded": {tree{"memory/a/b/memory.limit_in_bytes": "9223372036854771712", "memory/a/memory.limit_in_bytes": "700"}, "3:memory:/a/b\n",
			"", "", true},
		"version 2, the parent's": {tree{"cgroup.controllers": "memory", "u/memory.max": "max", "u/cgroup.procs": "", "u/s/cgroup.procs": "", "u/s/memory.max": "max"}, "0::/u/s\n",
			"u", "u", false},
		"version 2, bounded":         {tree{"cgroup.controllers": "memory", "u/memory.max": "800", "u/s/memory.max": "max"}, "0::/u/s\n", "", "", true},
		"version 2, none is allowed": {tree{"cgroup.controllers": "memory", "u/memory.max": "max"}, "0::/u\n", "elsewhere", "", false},
		"no groups":                  {tree{}, "0::/\n", "", "", false},
		"version 1, with kills":      {tree{"memory/a/memory.limit_in_bytes": "7", "memory/a/memory.oom_control": "under_oom 0\noom_kill 3\n"}, "3:memory:/a\n", "", "", true},
		"version 2, with kills": {tree{"cgroup.controllers": "memory", "u/memory.max": "7", "u/memory.events": "oom 4\noom_kill 3\noom_group_kill 0\n"}, "0::/u\n",
			"", "", true},
	} {
		root := t.TempDir()
		for file, text := range c.tree {
			path := filepath.Join(root, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		g, ok := ownGroup(root, c.lines)
		if ok && g.isBounded(most) != c.bound {
			t.Errorf("%s: isBounded() = %v; want %v", name, !c.bound, c.bound)
		}
		if want := map[bool]int{true: 3}[strings.HasSuffix(name, "kills")]; g.kills() != want {
			t.Errorf("%s: kills() = %d; want %d", name, g.kills(), want)
		}
		if !ok || c.bound {
			continue
		}
		made, err := g.make(most, func(dir, pattern string) (string, error) { // as the kernel: with files, where memory can be bounded
			made, err := os.MkdirTemp(dir, pattern)
			if err == nil && dir != filepath.Join(root, c.here) {
				err = os.Mkdir(filepath.Join(made, g.file), 0o755) // cannot be written
			}
			return made, err
		})
		if in, _ := filepath.Rel(root, filepath.Dir(made.dir)); err == nil && in != c.made || err != nil && c.made != "" {
			t.Errorf("%s: a group in %q, %v; want one in %q", name, in, err, c.made)
		}
		if text, _ := os.ReadFile(filepath.Join(made.dir, g.file)); err == nil && string(text) != "800" {
			t.Errorf("%s: it may have %q bytes; want 800", name, text)
		}
	}
}
