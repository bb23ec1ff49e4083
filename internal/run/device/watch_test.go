package device

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/lab"
)

func TestParseStat(t *testing.T) {
	p, ok := parseStat([]byte("123 (Web (1) x) S 7 123 123 0 -1 4194560 1 0 0 0 250 50 20 10 20 0 12 0 4711 1 2 3\n"))
	if !ok || p != (procStat{"Web (1) x", 7, "4711", 300, 30}) {
		t.Errorf("parseStat() = %+v", p)
	}
	for _, bad := range []string{"", "123", "1 (x", "1 (x) S 1"} {
		if p, ok := parseStat([]byte(bad)); ok {
			t.Errorf("parseStat(%q) = %+v; want an error", bad, p)
		}
	}
}

// Descendants count as ours; of the ancestors the service counts, and the others are left out. A process with the PID
// of an earlier one is counted from its own start.
func TestBetween(t *testing.T) {
	before := usage{at: 0, connections: 10, stolen: 10, total: 1000, idle: 500, waiting: time.Second, tellsWaiting: true, holds: 3, held: time.Second,
		processes: map[int]procStat{
			1: {name: "init", parent: 0, begun: "1", ticks: 10}, 10: {name: "make", parent: 1, begun: "2", ticks: 100}, 15: {name: "appliance", parent: 10, begun: "2", ticks: 50}, 20: {name: "appliance", parent: 15, begun: "3", ticks: 100}, 21: {name: "chromium", parent: 20, begun: "4", ticks: 100}, 23: {name: "chromium", parent: 21, begun: "4", ticks: 30},
			30: {name: "stress-ng", parent: 1, begun: "5", ticks: 1000}, 31: {name: "stress-ng", parent: 1, begun: "5", ticks: 1000}, 40: {name: "old", parent: 1, begun: "6", ticks: 5000},
		}}
	after := usage{at: lab.Time(2 * time.Second), connections: 2010, stolen: 14, total: 1400, idle: 500, waiting: 2 * time.Second, tellsWaiting: true, holds: 5,
		held: 1500 * time.Millisecond, processes: map[int]procStat{
			1: {name: "init", parent: 0, begun: "1", ticks: 10}, 10: {name: "make", parent: 1, begun: "2", ticks: 140}, 15: {name: "appliance", parent: 10, begun: "2", ticks: 110}, 20: {name: "appliance", parent: 15, begun: "3", ticks: 150}, 21: {name: "chromium", parent: 20, begun: "4", ticks: 200, reaped: 40},
			24: {name: "chromium", parent: 21, begun: "9", ticks: 20},
			22: {name: "vpxenc", parent: 21, begun: "9", ticks: 10},
			30: {name: "stress-ng", parent: 1, begun: "5", ticks: 1190}, 31: {name: "stress-ng", parent: 1, begun: "5", ticks: 1020}, 40: {name: "new", parent: 1, begun: "8", ticks: 50},
		}}
	m := Host{Processes: t.TempDir()}.between(before, after, 20)
	if m.Service != 0.3 || m.Connections != 1000 {
		t.Errorf("the service took %v cores, and %v connections a second came; want 0.3 and 1000", m.Service, m.Connections)
	}
	if m.Own != 0.95 || m.Busy != 1.05 || m.Stolen != 0.01 || *m.Waiting != 0.5 || m.Holds != 2 || m.Held != 500 {
		t.Errorf("%+v, waiting %v", m, *m.Waiting)
	}
	if len(m.Born) != 1 || m.Born[0] != (lab.Consumer{Name: "chromium", PID: 24, Count: 1, Cores: 0.1}) {
		t.Errorf("born are %+v", m.Born)
	}
	want := []lab.Consumer{{Name: "stress-ng", PID: 30, Count: 2, Cores: 1.05}, {Name: "new", PID: 40, Count: 1, Cores: 0.25}}
	if len(m.Others) != 2 || m.Others[0] != want[0] || m.Others[1] != want[1] {
		t.Errorf("the others are %+v, want %+v", m.Others, want)
	}
}

// The quota is found in both versions of control groups, and in a container that sees only
// its own group.
func TestQuota(t *testing.T) {
	for _, test := range []struct {
		name, file, content string
		groups              []string
		holds               int64
		held                time.Duration
	}{
		{"version 2", "a/b/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_usec 2000\n", []string{"0::/a/b/c"}, 4, 2 * time.Millisecond},
		{"version 1", "cpu/a/cpu.stat", "nr_throttled 4\nthrottled_time 2000000\n", []string{"3:cpuset:/", "1:cpu:/a"}, 4, 2 * time.Millisecond},
		{"version 1, together", "cpu,cpuacct/a/cpu.stat", "nr_throttled 4\nthrottled_time 2000000\n", []string{"1:cpu,cpuacct:/a"}, 4,
			2 * time.Millisecond},
		{"a container", "cpu.stat", "nr_throttled 4\nthrottled_usec 2000\n", []string{"0::/../outside"}, 4, 2 * time.Millisecond},
		{"none", "cpu.stat", "usage_usec 1\n", []string{"0::/", "broken"}, 0, 0},
	} {
		root := t.TempDir()
		file := filepath.Join(root, test.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(test.content), 0o644); err != nil {
			t.Fatal(err)
		}
		if holds, held := quota(root, test.groups); holds != test.holds || held != test.held {
			t.Errorf("%s: stopped %d times for %v, want %d and %v", test.name, holds, held, test.holds, test.held)
		}
	}
}

// Watch sees this process's processor time, also through another folder of processes.
func TestWatch(t *testing.T) {
	proc, err := os.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	for _, folder := range []string{"", "/proc/self/fd/" + itoa(proc.Fd())} {
		seen := Host{Processes: folder}.Watch()
		used := func() time.Duration { return processTime(t) }
		for begin := used(); used() < begin+50*time.Millisecond; {
		}
		if m := seen(); m == nil || m.Own <= 0 || m.Seconds <= 0 {
			t.Errorf("through %q: %+v", folder, m)
		}
	}
}

func itoa(n uintptr) string { return strconv.FormatUint(uint64(n), 10) }

func processTime(t *testing.T) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func TestPassiveOpens(t *testing.T) {
	snmp := []string{"Ip: Forwarding DefaultTTL", "Ip: 1 64", "Tcp: RtoAlgorithm ActiveOpens PassiveOpens InSegs", "Tcp: 1 20 4711 99"}
	if got := passiveOpens(snmp); got != 4711 {
		t.Errorf("passiveOpens() = %d; want 4711", got)
	}
	if got := passiveOpens(snmp[:3]); got != 0 {
		t.Errorf("passiveOpens() of a file that is cut off = %d; want 0", got)
	}
}
