package benchrig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Ticks are the times of all processors since boot, in the units of /proc/stat
// (proc(5)): the total, and the time that the hypervisor gave to other guests.
type Ticks struct{ All, Stolen uint64 }

// ReadTicks reads /proc/stat.
func ReadTicks() (Ticks, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Ticks{}, err
	}
	return parseTicks(string(content))
}

// parseTicks reads the first line: "cpu user nice system idle iowait irq softirq
// steal guest guest_nice", of which the last two are contained in the first two.
func parseTicks(stat string) (t Ticks, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return Ticks{}, fmt.Errorf("/proc/stat begins with %q, which is not a line of all processors with a column for stolen time", line)
	}
	for i, f := range fields[1:9] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return Ticks{}, fmt.Errorf("/proc/stat, column %d: %w", i+1, err)
		}
		t.All += n
		t.Stolen = n
	}
	return t, nil
}

// Since returns the ticks after an earlier reading.
func (t Ticks) Since(earlier Ticks) Ticks {
	return Ticks{t.All - earlier.All, t.Stolen - earlier.Stolen}
}

// Percent is the share of all time that was stolen.
func (t Ticks) Percent() float64 {
	if t.All == 0 {
		return 0
	}
	return 100 * float64(t.Stolen) / float64(t.All)
}
