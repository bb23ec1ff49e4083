package device

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// tick is the unit of processor times in /proc (USER_HZ, 100 Hz on every Linux).
const tick = 10 * time.Millisecond

// mostOthers is the most other programs to name.
const mostOthers = 3

// usage is the use of the machine since boot.
type usage struct {
	at            lab.Time
	stolen, total int64 // ticks of all processors
	idle          int64
	waiting       time.Duration
	tellsWaiting  bool
	holds         int64
	held          time.Duration
	hot           int64
	processes     map[int]procStat
	connections   int64 // that came to the network of the process that started this one
}

// procStat is a line of /proc/PID/stat.
type procStat struct {
	name   string
	parent int
	begun  string // start in ticks since boot; distinguishes two processes with the same PID
	ticks  int64  // processor time used
	reaped int64  // that of children that have ended
}

// since is what the process used since an earlier reading, or since its start if its PID was
// free or belonged to another process then.
func (p procStat) since(earlier procStat) int64 {
	if earlier.begun != p.begun {
		return p.ticks
	}
	return p.ticks - earlier.ticks
}

// Watch reads the state of the machine. The returned function reads it again and returns the
// difference. Each reading takes some milliseconds of processor time, so it is done at the
// ends of a trial and not in between.
func (h Host) Watch() func() *lab.Machine {
	before := h.usage()
	return func() *lab.Machine { return h.between(before, h.usage(), h.self()) }
}

func (h Host) proc() string {
	if h.Processes != "" {
		return h.Processes
	}
	return "/proc"
}

// self is this process's PID in the folder of processes.
func (h Host) self() int {
	name, err := os.Readlink(filepath.Join(h.proc(), "self"))
	if err != nil {
		return os.Getpid()
	}
	pid, _ := strconv.Atoi(name)
	return pid
}

func (h Host) usage() usage {
	u := usage{at: lab.Monotonic(), hot: heat()}
	if fields := strings.Fields(first("/proc/stat")); len(fields) > 8 {
		for i, f := range fields[1:9] { // guest time is included in user time
			n, _ := strconv.ParseInt(f, 10, 64)
			u.total += n
			switch i {
			case 3, 4: // idle, and idle while a disk works
				u.idle += n
			case 7:
				u.stolen = n
			}
		}
	}
	if _, total, ok := strings.Cut(first("/proc/pressure/cpu"), "total="); ok {
		µs, err := strconv.ParseInt(total, 10, 64)
		u.waiting, u.tellsWaiting = time.Duration(µs)*time.Microsecond, err == nil
	}
	u.holds, u.held = quota("/sys/fs/cgroup", lines("/proc/self/cgroup"))
	u.processes = processes(h.proc())
	u.connections = h.connections(u.processes[h.self()].parent)
	return u
}

// connections counts those that came to the network of the process that started this one (Tcp PassiveOpens of RFC
// 4022). It is 0 in one process with the service: there the device's own are among them.
func (h Host) connections(parent int) int64 {
	if h.Processes == "" {
		return 0
	}
	return passiveOpens(lines(filepath.Join(h.proc(), strconv.Itoa(parent), "net/snmp")))
}

// passiveOpens finds the number in the lines of /proc/net/snmp, each of which has its names in the line before.
func passiveOpens(lines []string) int64 {
	for i, line := range lines {
		names := strings.Fields(line)
		at := slices.Index(names, "PassiveOpens")
		if at < 0 || i+1 == len(lines) {
			continue
		}
		if numbers := strings.Fields(lines[i+1]); at < len(numbers) {
			n, _ := strconv.ParseInt(numbers[at], 10, 64)
			return n
		}
	}
	return 0
}

// heat is how often processors were throttled for their temperature (Intel's counters).
func heat() (n int64) {
	files, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count")
	for _, file := range files {
		n += readInt(file)
	}
	return n
}

// quota sums up how often, and for how long on all processors, the quota of this process's
// control group or one of its ancestors stopped processes. groups are the lines of
// /proc/self/cgroup.
func quota(root string, groups []string) (holds int64, held time.Duration) {
	for _, line := range groups {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		dir := root // cgroup version 2
		if parts[1] != "" {
			if !slices.Contains(strings.Split(parts[1], ","), "cpu") {
				continue
			}
			dir = filepath.Join(root, parts[1])
			if _, err := os.Stat(dir); err != nil {
				dir = filepath.Join(root, "cpu")
			}
		}
		// In a container the path may exist only outside: then the mounted folder is the group
		// itself.
		for path := filepath.Clean("/" + parts[2]); ; path = filepath.Dir(path) {
			for _, line := range lines(filepath.Join(dir, path, "cpu.stat")) {
				name, value, _ := strings.Cut(line, " ")
				n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
				switch name {
				case "nr_throttled":
					holds += n
				case "throttled_usec":
					held += time.Duration(n) * time.Microsecond
				case "throttled_time":
					held += time.Duration(n)
				}
			}
			if path == "/" {
				break
			}
		}
	}
	return holds, held
}

// processes reads the processor time of each process.
func processes(proc string) map[int]procStat {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil
	}
	all := map[int]procStat{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(proc, e.Name(), "stat"))
		if err != nil {
			continue // the process has ended
		}
		if p, ok := parseStat(text); ok {
			all[pid] = p
		}
	}
	return all
}

// parseStat parses /proc/PID/stat; the name in brackets may hold any characters.
func parseStat(text []byte) (p procStat, ok bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return p, false
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 20 {
		return p, false
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	childUser, _ := strconv.ParseInt(fields[13], 10, 64)
	childSystem, _ := strconv.ParseInt(fields[14], 10, 64)
	parent, err := strconv.Atoi(fields[1])
	return procStat{string(text[open+1 : end]), parent, fields[19], user + system, childUser + childSystem}, err == nil
}

// between returns the difference of two readings. Descendants of self count as ours. Its parent is
// the service that started it; ancestors of that are left out, since they only wait.
func (h Host) between(before, after usage, self int) *lab.Machine {
	wall := after.at.Sub(before.at)
	if wall <= 0 {
		return nil
	}
	m := &lab.Machine{Seconds: round(wall.Seconds()), Holds: after.holds - before.holds,
		Held: round((after.held - before.held).Seconds() * 1e3), Hot: after.hot - before.hot}
	if total := after.total - before.total; total > 0 {
		m.Stolen = round(float64(after.stolen-before.stolen) / float64(total))
	}
	if before.tellsWaiting && after.tellsWaiting {
		share := round((after.waiting - before.waiting).Seconds() / wall.Seconds())
		m.Waiting = &share
	}
	ancestors := map[int]bool{}
	for pid := after.processes[self].parent; pid > 0 && !ancestors[pid]; pid = after.processes[pid].parent {
		ancestors[pid] = true
	}
	others := map[string]*lab.Consumer{}
	most := map[string]float64{}
	for pid, p := range after.processes {
		p.ticks = p.since(before.processes[pid])
		cores := float64(p.ticks) * tick.Seconds() / wall.Seconds()
		switch {
		case descends(after.processes, pid, self):
			m.Own += cores
		case pid == after.processes[self].parent:
			m.Service += cores
		case p.ticks <= 0:
		case ancestors[pid]:
		default:
			c := others[p.name]
			if c == nil {
				c = &lab.Consumer{Name: p.name}
				others[p.name] = c
			}
			c.Count++
			c.Cores += cores
			if cores > most[p.name] {
				most[p.name], c.PID = cores, pid
			}
		}
	}
	m.Own += float64(ended(before.processes, after.processes, self)) * tick.Seconds() / wall.Seconds()
	m.Busy = float64(after.total-after.idle-before.total+before.idle)*tick.Seconds()/wall.Seconds() - m.Own
	m.Busy = round(max(0, m.Busy))
	m.Own, m.Service = round(m.Own), round(m.Service)
	m.Connections = round(float64(after.connections-before.connections) / wall.Seconds())
	m.Born = h.born(before.processes, after.processes, self, wall)
	for _, c := range others {
		if c.Cores = round(c.Cores); c.Cores >= 0.01 {
			m.Others = append(m.Others, *c)
		}
	}
	slices.SortFunc(m.Others, func(a, b lab.Consumer) int { return int(1e6 * (b.Cores - a.Cores)) })
	m.Others = m.Others[:min(len(m.Others), mostOthers)]
	return m
}

// ended is what processes of ours that ended in between used in between: all of their time, which whoever waited
// for their ends has among its own, less what they had used before.
func ended(before, after map[int]procStat, self int) (ticks int64) {
	for pid, p := range after {
		if b, known := before[pid]; known && b.begun == p.begun && descends(after, pid, self) {
			ticks += p.reaped - b.reaped
		}
	}
	for pid, b := range before {
		if after[pid].begun != b.begun && descends(before, pid, self) {
			ticks -= b.ticks
		}
	}
	return max(0, ticks)
}

// born lists the browser's processes that are new, by their kind.
func (h Host) born(before, after map[int]procStat, self int, wall time.Duration) []lab.Consumer {
	kinds := map[string]*lab.Consumer{}
	for pid, p := range after {
		if before[pid].begun == p.begun || !isBrowser(p.name) || !descends(after, pid, self) {
			continue
		}
		kind := cmp.Or(h.kind(pid), p.name)
		c := kinds[kind]
		if c == nil {
			c = &lab.Consumer{Name: kind, PID: pid}
			kinds[kind] = c
		}
		c.Count++
		c.Cores += float64(p.ticks) * tick.Seconds() / wall.Seconds()
	}
	var all []lab.Consumer
	for _, c := range kinds {
		c.Cores = round(c.Cores)
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b lab.Consumer) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// kind is the kind of a process of Chromium, such as renderer; "" is another browser's, or has ended.
func (h Host) kind(pid int) string {
	text, _ := os.ReadFile(filepath.Join(h.proc(), strconv.Itoa(pid), "cmdline"))
	for _, word := range bytes.FieldsFunc(text, func(r rune) bool { return r == 0 || r == ' ' }) {
		if kind, ok := bytes.CutPrefix(word, []byte("--type=")); ok {
			return string(kind)
		}
	}
	return ""
}

func descends(all map[int]procStat, pid, from int) bool {
	for range 100 { // bounds a cycle, which may appear as processes are read one by one
		if pid == from {
			return true
		}
		p, ok := all[pid]
		if !ok || pid <= 1 {
			return false
		}
		pid = p.parent
	}
	return false
}

func round(v float64) float64 { return float64(int64(v*1e4+0.5)) / 1e4 }
