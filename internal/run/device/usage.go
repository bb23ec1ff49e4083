package device

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Usage sums the processor time of a virtual device and the box around it, by consumer. It
// reads every process of its own namespace, in which nothing else runs.
type Usage struct {
	proc  string // where processes are listed
	self  int
	seen  map[int]procStat // at the last reading
	total map[string]time.Duration
}

// NewUsage starts counting.
func NewUsage() *Usage {
	return &Usage{proc: "/proc", self: os.Getpid(), total: map[string]time.Duration{}}
}

// Total returns the processor time so far of "appliance", "link", "browser", "screen" and
// "others". It misses what a process used between its last reading and its end. The map
// belongs to u and changes with the next call.
func (u *Usage) Total() map[string]time.Duration {
	now := processes(u.proc)
	for pid, p := range now {
		if more := p.since(u.seen[pid]); more > 0 {
			if who := u.role(pid, p.name); who != "" {
				u.total[who] += time.Duration(more) * tick
			}
		}
	}
	u.seen = now
	return u.total
}

// isBrowser reports whether a process belongs to a browser, by its name.
func isBrowser(name string) bool {
	for _, prefix := range []string{"chrom", "google-chrom", "firefox", "Web Content", "Isolated Web", "WebExtensions", "Privileged Cont", "Socket Process", "RDD Process", "Utility Process"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// isProgram reports whether a process belongs to the browser or app of the device: it is one by its name, lives in the
// user namespace of the sandbox, where its descendants stay whatever they do, and in which nothing else is, or, where
// there is no sandbox, has the home of a trial.
func isProgram(dir, name string) bool { return isBrowser(name) || isJailed(dir) || isAtHome(dir) }

// ownUsers is this process's user namespace; "" where it is unknown.
var ownUsers = sync.OnceValue(func() string { // constant
	name, _ := os.Readlink("/proc/self/ns/user")
	return name
})

func isJailed(dir string) bool {
	theirs, err := os.Readlink(filepath.Join(dir, "ns/user"))
	return err == nil && ownUsers() != "" && theirs != ownUsers() // with an error it has ended
}

// isAtHome reads the environment that a process has inherited.
func isAtHome(dir string) bool {
	text, _ := os.ReadFile(filepath.Join(dir, "environ")) // nothing of one that has ended
	for variable := range bytes.SplitSeq(text, []byte{0}) {
		if home, ok := bytes.CutPrefix(variable, []byte("HOME=")); ok {
			number, ok := strings.CutPrefix(filepath.Base(string(home)), homePrefix)
			_, err := strconv.ParseUint(number, 10, 32)
			return ok && err == nil
		}
	}
	return false
}

// role names the consumer that a process belongs to; "" for a process counted elsewhere.
func (u *Usage) role(pid int, name string) string {
	switch {
	case pid == u.self:
		return "appliance"
	case isProgram(filepath.Join(u.proc, strconv.Itoa(pid)), name):
		return "browser"
	case name == "vpxenc":
		return "" // its processor time is read when it ends
	case name == "Xvfb" || name == "Xorg":
		return "screen"
	}
	// Our own program under another name is the link's process or, during the recording,
	// the sample site's.
	command, _ := os.ReadFile(filepath.Join(u.proc, strconv.Itoa(pid), "cmdline"))
	if bytes.Contains(command, []byte("\x00link\x00")) {
		return "link"
	}
	return "others"
}
