package device

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// reapOrphans collects our dead children of the name, which left the process group of
// the browser that started them: Chromium's crash handlers do. We are the first
// process of the namespace, so they are ours when the browser has ended; each would
// stay as a zombie until the run ends. Handlers that are still ending are collected
// after the next trial.
func reapOrphans(name string) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return // the pattern is constant
	}
	us := strconv.Itoa(os.Getpid())
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		pid, ok := deadChild(string(text), name, us)
		if !ok {
			continue
		}
		// Whoever else waits for it has it; nothing is lost by an error.
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}

// deadChild reads a line of /proc/PID/stat (proc(5)): "PID (NAME) STATE PARENT …". NAME may
// hold spaces and brackets, and is cut after 15 bytes.
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
