package archive

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DefaultShare is the share of the machine's memory that a reading may take where nothing else is
// configured: the rest is for the browser, the recorder, and what an export makes of the bodies.
const DefaultShare = 0.5

// MemoryOf returns a share of the memory that this process may use: the machine's, or what its
// control group or one above leaves it. See [Limits.Memory].
func MemoryOf(share float64) int64 {
	total := int64(math.MaxInt64)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		total = int64(min(uint64(info.Totalram)*uint64(info.Unit), math.MaxInt64))
	}
	if text, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		total = min(total, groupMemory("/sys/fs/cgroup", string(text)))
	}
	return int64(share * float64(total))
}

// groupMemory is the least memory.max of a control group (cgroups v2) and of those above it; text is
// the process's /proc/PID/cgroup.
func groupMemory(root, text string) int64 {
	least := int64(math.MaxInt64)
	for line := range strings.Lines(text) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		for dir := path.Clean("/" + group); dir != "/"; dir = path.Dir(dir) {
			limit, err := os.ReadFile(path.Join(root, dir, "memory.max"))
			if n, numErr := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64); err == nil && numErr == nil {
				least = min(least, n)
			}
		}
	}
	return least
}
