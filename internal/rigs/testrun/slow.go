package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// joinCommand is the first argument of the process that enters the control
// group and becomes a test's: go test -exec starts it.
const joinCommand = "join"

// slowness limits processes to a part of the processors' time, by the kernel's
// bandwidth control of a control group (cgroup v2's cpu.max, v1's cpu.cfs_quota_us):
// together they may run for a part of each period, and then wait for the next.
// A nil slowness limits nothing.
type slowness struct{ dir string }

// period is so short that a limited process looks slow and not stopped, and so long
// that the kernel's slices of 5 ms fit into it.
const period = 50 * time.Millisecond

// newSlowness creates a control group that may use one part-th of all processors.
func newSlowness(part float64) (*slowness, error) {
	v1, v2, err := cpuControllers()
	if err != nil {
		return nil, err
	}
	parent := v2
	if parent == "" {
		parent = v1
	}
	if parent == "" {
		return nil, errors.New(
			"cannot hold processes to a part of their time: no control group file system has the cpu controller here; mount one, as root: mount -t cgroup -o cpu cpu /sys/fs/cgroup/cpu",
		)
	}
	s := &slowness{filepath.Join(parent, fmt.Sprintf("eidetic-slow-%d", os.Getpid()))}
	quota := int64(float64(period.Microseconds()) * float64(runtime.NumCPU()) / part)
	files := []struct{ name, text string }{
		{"cpu.max", fmt.Sprintf("%d %d", quota, period.Microseconds())},
	}
	if v2 == "" {
		files = []struct{ name, text string }{
			{"cpu.cfs_period_us", strconv.FormatInt(period.Microseconds(), 10)},
			{"cpu.cfs_quota_us", strconv.FormatInt(quota, 10)},
		}
	} else if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+cpu"), 0); err != nil {
		return nil, fmt.Errorf("cannot hold processes to a part of their time (as root?): %w", err)
	}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot hold processes to a part of their time (as root?): %w", err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(s.dir, f.name), []byte(f.text), 0); err != nil {
			s.remove()
			return nil, fmt.Errorf("cannot hold processes to a part of their time: %w", err)
		}
	}
	return s, nil
}

// cpuControllers finds where the cpu controller is mounted, as cgroup v1 or v2.
func cpuControllers() (v1, v2 string, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(mounts)) {
		// … mount point (5th), then after " - ": type, source, options.
		before, after, _ := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) < 5 || len(right) < 3 {
			continue
		}
		switch point := left[4]; right[0] {
		case "cgroup":
			if strings.Contains(","+right[2]+",", ",cpu,") {
				v1 = point
			}
		case "cgroup2":
			controllers, err := os.ReadFile(filepath.Join(point, "cgroup.controllers"))
			if err == nil && strings.Contains(" "+strings.TrimSpace(string(controllers))+" ", " cpu ") {
				v2 = point
			}
		}
	}
	return v1, v2, nil
}

// flags makes go test start each test's process in the group. The compiler is not
// limited.
func (s *slowness) flags(self string) []string {
	if s == nil {
		return nil
	}
	return []string{"-exec", fmt.Sprintf("%s %s %s", self, joinCommand, s.dir)}
}

// throttled returns how often, and for how long in total, the group had to wait.
func (s *slowness) throttled() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "cpu.stat"))
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ", ")
}

// remove removes the group after its processes have ended.
func (s *slowness) remove() {
	if s == nil {
		return
	}
	for deadline := time.Now().Add(lingerLimit); os.Remove(s.dir) != nil && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond) // the last of them is still ending
	}
}

// join enters a control group and becomes the command: join GROUP COMMAND…
// It returns only with an error.
func join(args []string) error {
	if len(args) < 2 {
		return errors.New("join needs a group and a command")
	}
	if err := os.WriteFile(filepath.Join(args[0], "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("enter the control group: %w", err)
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, args[1:], os.Environ()))
}
