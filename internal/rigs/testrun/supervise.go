package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// superviseCommand is the first argument of the supervisor's process.
const superviseCommand = "supervise"

// leftPipe is the descriptor on which the supervisor lists, one a line, the processes
// that the command left running.
const leftPipe = 3

// supervise runs a command, ends everything that the command started and left running,
// in whatever session or process group, and exits with the command's status. As a subreaper
// (prctl(2)) it inherits every descendant whose parent has died. SIGTERM, which the kernel
// also sends when the process that started this one dies, ends the command and all of its
// descendants. The first argument is the nice value (setpriority(2)) of all of them.
func supervise(args []string) int {
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testrun supervise NICE COMMAND…")
		return statusUsage
	}
	nice, err := strconv.Atoi(args[0])
	if err == nil && nice != 0 {
		runtime.LockOSThread() // a nice value is a thread's: this one starts the command
		err = syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "testrun: nice value %q: %v\n", args[0], err)
		return statusUsage
	}
	command := args[1:]
	unix.CloseOnExec(leftPipe)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "testrun: become a subreaper:", err)
		return statusFailed
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	path, err := exec.LookPath(command[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return statusFailed
	}
	process, err := os.StartProcess(path, command, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return statusFailed
	}
	status := make(chan int, 1)
	go func() { status <- reapUntil(process.Pid) }()
	select {
	case code := <-status:
		left := os.NewFile(leftPipe, "left")
		for _, p := range lingering() {
			fmt.Fprintf(left, "%s (process %d)\n", p.name, p.pid)
		}
		endDescendants()
		return code
	case <-signals:
		endDescendants()
		return statusInterrupted
	}
}

// lingering returns the descendants that still run after those that were ending
// anyway have had time to end.
func lingering() (left []process) {
	for deadline := time.Now().Add(lingerLimit); ; time.Sleep(50 * time.Millisecond) {
		for pid := 1; pid > 0; { // reap zombies first
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		left = slices.DeleteFunc(descendants(os.Getpid()), func(p process) bool {
			return p.name == "go" || p.state == "Z" // the go command's helper for telemetry ends by itself
		})
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

const lingerLimit = 3 * time.Second

// reapUntil reaps children, including adopted ones, until the child first ends.
func reapUntil(first int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return statusFailed
		case pid == first && status.Signaled():
			return 128 + int(status.Signal())
		case pid == first:
			return status.ExitStatus()
		}
	}
}

// endDescendants kills until no child is left. An orphan becomes this process's child, so
// then no descendant is left either. It gives up on processes that the kernel does not
// end within endLimit.
func endDescendants() {
	for deadline := time.Now().Add(endLimit); time.Now().Before(deadline); {
		for _, p := range descendants(os.Getpid()) {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		// Another goroutine may be reaping too: once no child is left, both get ECHILD.
		switch pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); {
		case errors.Is(err, syscall.ECHILD):
			return
		case pid == 0: // not dead yet, or started while /proc was read
			time.Sleep(5 * time.Millisecond)
		}
	}
}

const endLimit = time.Minute

// process is a line of /proc.
type process struct {
	pid, parent int
	name, state string
}

// descendants are the children of a process, and theirs, and so on.
func descendants(of int) (found []process) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	for next := []int{of}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			found = append(found, p)
			next = append(next, p.pid)
		}
	}
	return found
}

// readProcess reads /proc/PID/stat (proc(5)): the name stands in parentheses
// and may hold some itself.
func readProcess(pid int) (process, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false // it has ended
	}
	open, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	if open < 0 || end < open {
		return process{}, false
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 2 {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return process{pid, parent, string(text[open+1 : end]), fields[0]}, err == nil
}
