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
	seen  map[process64]int64 // ticks of each process, at the last look
	total map[string]time.Duration
}

// process64 is a process: its number alone may be given again.
type process64 struct {
	pid   int
	start string
}

// tick is the unit of times in /proc: Linux shows them in hundredths of a second
// on every machine.
const tick = 10 * time.Millisecond

// NewUsage begins to count.
func NewUsage() *Usage {
	return &Usage{proc: "/proc", self: os.Getpid(), seen: map[process64]int64{}, total: map[string]time.Duration{}}
}

// Total returns the processor time so far of "appliance", "link", "browser",
// "screen" and "others". What a process took between the last look at it and its
// end is not in it. The map belongs to u and changes with the next call.
func (u *Usage) Total() map[string]time.Duration {
	files, _ := filepath.Glob(filepath.Join(u.proc, "[0-9]*", "stat"))
	seen := make(map[process64]int64, len(files))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		id, name, ticks, ok := parseStat(content)
		if !ok {
			continue
		}
		seen[id] = ticks
		if more := ticks - u.seen[id]; more > 0 {
			if who := u.role(id.pid, name); who != "" {
				u.total[who] += time.Duration(more) * tick
			}
		}
	}
	u.seen = seen
	return u.total
}

// role says whose process it is; "" is one that is counted elsewhere.
func (u *Usage) role(pid int, name string) string {
	switch {
	case pid == u.self:
		return "appliance"
	case strings.HasPrefix(name, "chrom"), strings.HasPrefix(name, "google-chrom"):
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

// parseStat reads /proc/PID/stat (proc_pid_stat(5)): the name is in brackets, and
// may have any character.
func parseStat(content []byte) (id process64, name string, ticks int64, ok bool) {
	open, end := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	if open < 0 || end < open {
		return id, "", 0, false
	}
	fields := strings.Fields(string(content[end+1:]))
	if len(fields) < 20 {
		return id, "", 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content[:open])))
	user, userErr := strconv.ParseInt(fields[11], 10, 64)
	system, systemErr := strconv.ParseInt(fields[12], 10, 64)
	if err != nil || userErr != nil || systemErr != nil {
		return id, "", 0, false
	}
	return process64{pid, fields[19]}, string(content[open+1 : end]), user + system, true
}
