package device

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// MainThreads tells of each process of the browser, by its ID, for how long its main thread has
// run or waited for a processor: the main thread of a renderer is the page's, and a page that
// computes wants a processor all the time, whether it gets one or not. The time of the threads that bring the
// main thread its work is added, as it waits for them meanwhile, and they take turns: those that receive and
// pass on what the network has brought, and those that compile scripts. On a busy machine megabytes of script
// take seconds on their way. Where the kernel does not count this (/proc/PID/schedstat), there is nothing in it.
func MainThreads() map[int]time.Duration { return mainThreads("/proc") }

func mainThreads(proc string) map[int]time.Duration {
	names, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	if err != nil {
		return nil // the pattern is constant
	}
	all := map[int]time.Duration{}
	for _, name := range names {
		dir := filepath.Dir(name)
		comm, err := os.ReadFile(name)
		if err != nil || !isProgram(dir, string(comm)) {
			continue // it has ended, or is another program
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if wanted, ok := wantedBy(dir); ok {
			all[pid] = wanted + wantedByBringers(dir)
		}
	}
	return all
}

// wantedBy is for how long the thread of a folder of /proc has wanted a processor.
func wantedBy(dir string) (time.Duration, bool) {
	text, err := os.ReadFile(filepath.Join(dir, "schedstat"))
	if err != nil {
		return 0, false // it has ended, or the kernel does not count
	}
	return wantedTime(text)
}

// wantedByBringers is that of all threads of a process that bring the main thread its work.
func wantedByBringers(dir string) (sum time.Duration) {
	tasks, err := filepath.Glob(filepath.Join(dir, "task", "[0-9]*"))
	if err != nil {
		return 0 // the pattern is constant
	}
	for _, task := range tasks {
		if comm, err := os.ReadFile(filepath.Join(task, "comm")); err == nil && isBringer(string(comm)) {
			wanted, _ := wantedBy(task) // a thread that has ended wants nothing
			sum += wanted
		}
	}
	return sum
}

// isBringer tells the names of the threads on which Chromium and Firefox receive what the network brings, pass it
// on to the process of the page, and compile scripts; a name has at most 15 bytes.
func isBringer(comm string) bool {
	for _, name := range []string{
		"NetworkService", "Chrome_ChildIOT", "ThreadPoolForeg",
		"Socket Thread", "IPC I/O", "StreamTrans", "TaskCon", "JS Helper",
	} {
		if strings.HasPrefix(comm, name) {
			return true
		}
	}
	return false
}

// wantedTime reads a schedstat (sched-stats.rst): the ns for which a thread ran, those for which it
// waited for a processor, and how often it ran.
func wantedTime(schedstat []byte) (time.Duration, bool) {
	fields := bytes.Fields(schedstat)
	if len(fields) < 2 {
		return 0, false
	}
	ran, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0, false
	}
	waited, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return time.Duration(ran + waited), err == nil
}
