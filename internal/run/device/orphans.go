package device

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// reapOrphans waits for dead children with the given name that left the browser's process
// group, as Chromium's crash handlers do. They become children of this process, the first
// one of the namespace, when the browser ends, and would stay zombies until the run ends. A
// handler that has not ended yet is reaped after the next trial.
func reapOrphans(name string) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return // the pattern is constant
	}
	us := strconv.Itoa(os.Getpid())
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has just ended
		}
		pid, ok := deadChild(string(text), name, us)
		if !ok {
			continue
		}
		// An error means that another goroutine has waited for the process.
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}

// deadChild parses a line of /proc/PID/stat (proc(5)): "PID (NAME) STATE PARENT …". NAME may
// contain spaces and brackets, and is cut to 15 bytes.
func deadChild(stat, name, parent string) (pid int, ok bool) {
	head, rest, found := strings.Cut(stat, " (")
	end := strings.LastIndex(rest, ") ")
	if !found || end < 0 || rest[:end] != name[:min(len(name), 15)] {
		return 0, false
	}
	fields := strings.Fields(rest[end+2:])
	if len(fields) < 2 || fields[0] != "Z" || fields[1] != parent {
		return 0, false
	}
	pid, err := strconv.Atoi(head)
	return pid, err == nil
}
