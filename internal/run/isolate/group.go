package isolate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// groupsRoot is where the kernel shows its control groups (cgroups(7)).
const groupsRoot = "/sys/fs/cgroup"

// memoryPercent is how much of the machine's memory a run may have, as MemoryMax= of a box's unit says.
const memoryPercent = 80

// group is a control group that bounds memory.
type group struct {
	dir  string
	top  string // of its tree, an ancestor of dir
	file string // of the bound: memory.max, or memory.limit_in_bytes in the first version of control groups
}

// ownGroup returns the control group of this process. lines are those of /proc/self/cgroup.
func ownGroup(root, lines string) (g group, ok bool) {
	for line := range strings.Lines(lines) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		switch {
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			top := filepath.Join(root, "memory")
			return group{filepath.Join(top, filepath.Clean("/"+parts[2])), top, "memory.limit_in_bytes"}, true
		case parts[1] == "":
			if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
				g, ok = group{filepath.Join(root, filepath.Clean("/"+parts[2])), root, "memory.max"}, true
			}
		}
	}
	return g, ok
}

// isBounded says whether the group or one of its ancestors may have less than so many bytes.
func (g group) isBounded(most uint64) bool {
	for dir := g.dir; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, g.file))
		if err == nil {
			if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && n <= most {
				return true
			}
		}
		if len(dir) <= len(g.top) {
			return false
		}
	}
}

// kills is how many processes of the group the kernel has ended because memory was used up, the group's or the machine's
// (the kernel's Documentation/admin-guide: cgroup-v2.rst, cgroup-v1/memory.rst); 0 where it does not tell.
func (g group) kills() (n int) {
	name := "memory.events"
	if g.file != "memory.max" {
		name = "memory.oom_control"
	}
	text, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			n, _ = strconv.Atoi(count)
		}
	}
	return n
}

// MemoryKills is how many processes of this one's control group the kernel has ended because memory was used up.
func MemoryKills() int {
	lines, err := os.ReadFile("/proc/self/cgroup")
	own, ok := ownGroup(groupsRoot, string(lines))
	if err != nil || !ok {
		return 0
	}
	return own.kills()
}

// prefix begins the names of our groups; whose it is follows, and a number.
const prefix = "eidetic-"

// owner names a process, also if another one has its ID later: by that, and by its start since boot
// (proc_pid_stat(5)). It is "" for one that does not run.
func owner(pid string) string {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // a name holds anything
	const start = 19
	if err != nil || len(fields) <= start {
		return ""
	}
	return pid + "-" + fields[start]
}

// make makes a group of at most so many bytes in this one or, where its processes forbid that (version 2), in the
// nearest ancestor that lets bound memory. Groups whose process was killed are removed.
func (g group) make(most uint64, makeDir func(dir, pattern string) (string, error)) (group, error) {
	for dir := g.dir; ; dir = filepath.Dir(dir) {
		forget(dir)
		made, err := makeDir(dir, prefix+owner(strconv.Itoa(os.Getpid()))+"-*")
		if err == nil {
			err = os.WriteFile(filepath.Join(made, g.file), strconv.AppendUint(nil, most, 10), 0)
			if err == nil {
				err = unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) // to come in from below dir
			}
			if err == nil {
				return group{made, g.top, g.file}, nil
			}
			_ = os.Remove(made)
		}
		if len(dir) <= len(g.top) || g.file != "memory.max" {
			return group{}, fmt.Errorf("bounding the memory of the run: %w", err)
		}
	}
}

// forget removes groups of processes that were killed, also of one that had this one's ID, as the first of a container
// has.
func forget(dir string) {
	all, _ := filepath.Glob(filepath.Join(dir, prefix+"*-*"))
	for _, old := range all {
		name := strings.TrimPrefix(filepath.Base(old), prefix)
		pid, _, _ := strings.Cut(name, "-")
		if lives := owner(pid); lives == "" || !strings.HasPrefix(name, lives+"-") {
			_ = os.Remove(old) // the kernel keeps one that has processes
		}
	}
}

// enter has cmd, which this thread starts, be born in a group of its own that bounds memory, if this machine lets us
// make one. It returns what is to be called when cmd has ended.
func enter(cmd *exec.Cmd) (leave func()) {
	lines, err := os.ReadFile("/proc/self/cgroup")
	own, ok := ownGroup(groupsRoot, string(lines))
	most, memErr := memoryBound()
	if err != nil || memErr != nil || !ok || own.isBounded(most) {
		return func() {}
	}
	made, err := own.make(most, os.MkdirTemp)
	if err != nil {
		return func() {} // the inside then bounds itself
	}
	back := func() {}
	if made.file == "memory.max" {
		fd, err := unix.Open(made.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
			back = func() { _ = unix.Close(fd) }
		}
	} else if os.WriteFile(filepath.Join(made.dir, "tasks"), []byte("0"), 0) == nil { // this thread, whose children stay there
		back = func() { _ = os.WriteFile(filepath.Join(own.dir, "tasks"), []byte("0"), 0) } // else the thread ends there
	}
	return func() {
		back()
		for range 100 { // the kernel may still be ending the last processes
			if err := os.Remove(made.dir); err == nil || errors.Is(err, os.ErrNotExist) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// memoryBound is how many bytes a run may have.
func memoryBound() (uint64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("reading how much memory there is: %w", err)
	}
	return uint64(info.Totalram) * uint64(info.Unit) / 100 * memoryPercent, nil
}

// isGroupBounded says whether a control group bounds the memory of this process and all that it starts.
func isGroupBounded() bool {
	lines, err := os.ReadFile("/proc/self/cgroup")
	own, ok := ownGroup(groupsRoot, string(lines))
	most, memErr := memoryBound()
	return err == nil && memErr == nil && ok && own.isBounded(most)
}

// MemoryBounds says how the memory of the run that this process is in is bounded, for a report.
func MemoryBounds() string {
	if isGroupBounded() {
		return "memory bounded for the run"
	}
	var each unix.Rlimit
	most, err := memoryBound()
	if err != nil || unix.Getrlimit(unix.RLIMIT_DATA, &each) != nil || each.Cur > most {
		return "memory not bounded"
	}
	return "memory bounded for each process alone, as this machine lets the run make no control group"
}
