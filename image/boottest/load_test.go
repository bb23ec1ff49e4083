package boottest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// hertz is the unit of /proc's processor times on Linux for x86-64.
const hertz = 100

// load is what the whole machine's processors had done when it was measured.
type load struct {
	t     *testing.T
	at    time.Time
	ticks int64
}

func measureLoad(t *testing.T) load { return load{t, time.Now(), busyTicks(t)} }

// others is how many processors everybody but the virtual machine has kept
// busy since: a limit of time says something only where they are few.
func (l load) others(m *Machine) float64 {
	var mine int64
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.process.Process.Pid))
	if err != nil {
		l.t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(text), ") ") // after the name, which may hold spaces
	var user, system int64
	if _, err := fmt.Sscan(strings.Join(strings.Fields(fields)[11:13], " "), &user, &system); err != nil {
		l.t.Fatal(err)
	}
	mine = user + system
	return float64(busyTicks(l.t)-l.ticks-mine) / hertz / time.Since(l.at).Seconds()
}

// busyTicks is the first line of /proc/stat without the idle times.
func busyTicks(t *testing.T) (sum int64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line)[1:] {
		var n int64
		if _, err := fmt.Sscan(field, &n); err != nil {
			t.Fatal(err)
		}
		// user nice system idle iowait irq softirq steal; guests are in user already.
		if i != 3 && i != 4 && i < 8 {
			sum += n
		}
	}
	return sum
}
