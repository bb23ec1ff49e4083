package device

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage adds up the processor time of a virtual device and of the box around
// it, by who took it. It looks at every process of the namespace that it is
// called in: nothing else runs there.
type Usage struct {
	proc  string // where processes are listed
	self  int
	seen  map[int]procStat // at the last look
	total map[string]time.Duration
}

// NewUsage begins to count.
func NewUsage() *Usage {
	return &Usage{proc: "/proc", self: os.Getpid(), total: map[string]time.Duration{}}
}

// Total returns the processor time so far of "appliance", "link", "browser",
// "screen" and "others". What a process took between the last look at it and its
// end is not in it. The map belongs to u and changes with the next call.
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

// isBrowser tells the processes of a browser by their name.
func isBrowser(name string) bool {
	return strings.HasPrefix(name, "chrom") || strings.HasPrefix(name, "google-chrom")
}

// role says whose process it is; "" is one that is counted elsewhere.
func (u *Usage) role(pid int, name string) string {
	switch {
	case pid == u.self:
		return "appliance"
	case isBrowser(name):
		return "browser"
	case name == "vpxenc":
		return "" // what it took is told at its end
	case name == "Xvfb":
		return "screen"
	}
	// Our own program under another name is the link's process, or during the
	// recording the sample site's.
	command, _ := os.ReadFile(filepath.Join(u.proc, strconv.Itoa(pid), "cmdline"))
	if bytes.Contains(command, []byte("\x00link\x00")) {
		return "link"
	}
	return "others"
}
