package device

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

const (
	// listEvery is how often new processes and memory are looked for, which takes longer than reading those that are
	// known.
	listEvery = 50 * time.Millisecond
	// mostMeetings is how often a process is named: for its first second.
	mostMeetings = 20
	// costWindow is over how many readings their cost is judged.
	costWindow = 50
)

// Sampler reads what the processes of its own namespace do. A reading of a process is one system call for its processor
// time and one for its main thread's waits; see proc_pid_schedstat(5) and clock_getcpuclockid(3).
type Sampler struct {
	proc     string
	self     int
	known    map[int]*sampled
	threads  map[int]*thread // nil where they are not read
	pressure [3]int64
	first    bool // of the readings: what was before is nobody's
	listed   lab.Time
	more     []func() map[string]float64 // totals of counters
	totals   map[string]tally
	counted  lab.Time // when they were last read; 0 before that
	out      lab.Sampled
	emit     func(lab.ProcessSample)
}

// sampled is a process with what it had at its last reading.
type sampled struct {
	name, of    string
	met         int      // how often it was named
	at          lab.Time // of the last reading
	ran, waited int64
	rss         int64
	wait        *os.File // its schedstat
	told        bool
}

// tally is the last total of a counter, and when it was read.
type tally struct {
	total float64
	at    lab.Time
}

// Sample reads hz times a second, with threads also those of the browser, until the function that it returns is called,
// which returns what was read. more are totals of counters, by name, which are read as well.
func Sample(hz float64, threads bool, more ...func() map[string]float64) (end func() (lab.Sampled, []lab.ProcessSample)) {
	var list []lab.ProcessSample
	s := &Sampler{
		proc: "/proc", self: os.Getpid(), known: map[int]*sampled{}, first: true, out: lab.Sampled{Hz: hz},
		more: more, totals: map[string]tally{},
	}
	if threads {
		s.threads = map[int]*thread{}
	}
	s.emit = func(one lab.ProcessSample) {
		if len(list) < lab.MostSamples {
			list = append(list, one)
		} else {
			s.out.Left++
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // its processor time is that of the readings
		s.run(ctx, time.Duration(1e9/hz))
	}()
	return func() (lab.Sampled, []lab.ProcessSample) {
		stop()
		<-done
		return s.out, list
	}
}

func (s *Sampler) run(ctx context.Context, period time.Duration) {
	begun, cost := lab.Monotonic(), threadTime()
	defer func() {
		for _, p := range s.known {
			p.close()
		}
		s.forgetThreads() // none was seen since the last list
		s.out.CostMS = float64(threadTime()-cost) / 1e6
		s.out.WallMS = float64(lab.Monotonic()-begun) / 1e6
	}()
	since, sinceCost := begun, cost
	for n := 1; ; n++ {
		s.read(lab.Monotonic())
		s.count(lab.Monotonic(), false)
		s.out.Readings++
		if n%costWindow == 0 {
			now, used := lab.Monotonic(), threadTime()
			if float64(used-sinceCost) > lab.MostSampling*float64(now-since) {
				period *= 2
				s.out.Slowed++
			}
			since, sinceCost = now, used
		}
		if lab.Wait(ctx, period) != nil {
			s.list(lab.Monotonic()) // threads are read there
			s.read(lab.Monotonic()) // up to the end
			s.count(lab.Monotonic(), true)
			return
		}
	}
}

// threadTime is the processor time of this thread, in ns.
func threadTime() int64 { return clockOf(unix.CLOCK_THREAD_CPUTIME_ID) }

// processClock is the clock of a process's processor time (MAKE_PROCESS_CPUCLOCK with CPUCLOCK_SCHED, in the kernel's
// posix-timers_types.h), which counts in ns, its threads that have ended included.
func processClock(pid int) int32 { return int32(^pid)<<3 | 2 }

func clockOf(id int32) int64 {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return -1
	}
	return t.Nano()
}

// read reads all processes once.
func (s *Sampler) read(now lab.Time) {
	if s.first || now-s.listed >= lab.Time(listEvery) {
		s.list(now)
	}
	pids := make([]int, 0, len(s.known))
	for pid := range s.known {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	for _, pid := range pids {
		p := s.known[pid]
		ran, waited := clockOf(processClock(pid)), p.waits()
		if ran < p.ran { // it has ended
			if p.told {
				s.emit(lab.ProcessSample{At: now, PID: pid, For: int64(now - p.at), Ended: true})
			}
			p.close()
			delete(s.known, pid)
			continue
		}
		one := lab.ProcessSample{At: now, PID: pid, For: int64(now - p.at), Ran: ran - p.ran, Waited: max(waited-p.waited, 0)}
		p.at, p.ran, p.waited = now, ran, max(waited, p.waited)
		if !s.first && one.Ran+one.Waited > 0 {
			s.tell(p, one)
		}
	}
	s.first = false
}

// count reads the counters. Each has a sample at the last reading, also if it counted nothing: so one that counted
// nothing differs from one that there is not.
func (s *Sampler) count(now lab.Time, last bool) {
	for _, totals := range s.more {
		sums := totals()
		for _, name := range slices.Sorted(maps.Keys(sums)) {
			before, known := s.totals[name]
			switch {
			case known:
			case s.counted == 0: // what was before is nobody's
				before = tally{sums[name], now}
			default: // of a program that began since
				before = tally{0, s.counted}
			}
			more := max(int64(sums[name]-before.total), 0)
			s.totals[name] = tally{before.total + float64(more), now}
			if more == 0 && !last {
				continue
			}
			of := lab.OfBrowser
			if strings.HasPrefix(name, lab.EnergyOf) {
				of = lab.OfMachine
			}
			s.emit(lab.ProcessSample{At: now, Name: name, Of: of, For: int64(now - before.at), Counted: more})
		}
	}
	s.counted = now
}

// tell hands a sample on, with the name of a process of which nothing has been told.
func (s *Sampler) tell(p *sampled, one lab.ProcessSample) {
	if !p.told {
		one.Name, one.Of, p.told = p.name, p.of, true
	}
	s.emit(one)
}

// list looks for new processes, reads what is in memory of the browser's, and the machine's pressure.
func (s *Sampler) list(now lab.Time) {
	dir, err := os.Open(s.proc)
	if err != nil {
		return
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || s.known[pid] == nil && len(s.known) >= mostProcesses {
			continue
		}
		p := s.known[pid]
		if p == nil || p.met < mostMeetings {
			if p = s.meet(now, pid, p); p == nil {
				continue
			}
		}
		if p.of != lab.OfBrowser {
			continue
		}
		rss, shared, ok := residentOf(filepath.Join(s.proc, name))
		if ok && rss != p.rss {
			p.rss = rss
			s.tell(p, lab.ProcessSample{At: now, PID: pid, RSS: rss, Own: rss - shared})
		}
		if s.threads != nil {
			s.readThreads(now, pid)
		}
	}
	s.forgetThreads()
	for i, what := range []string{"cpu", "memory", "io"} {
		total := stalled(filepath.Join(s.proc, "pressure", what))
		if more := total - s.pressure[i]; more > 0 && !s.first {
			s.emit(lab.ProcessSample{At: now, Name: "pressure: " + what, Of: lab.OfMachine, For: int64(now - s.listed), Waited: more})
		}
		s.pressure[i] = total
	}
	s.listed = now
}

// meet names a process, also one that was met before: what a browser or we start is another program a little later.
func (s *Sampler) meet(now lab.Time, pid int, p *sampled) *sampled {
	dir := filepath.Join(s.proc, strconv.Itoa(pid))
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return nil
	}
	stat, ok := parseStat(text)
	if !ok {
		return nil
	}
	name, of := lab.OneLine(stat.name, 40), lab.OfOthers
	command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	switch {
	case isProgram(dir, stat.name):
		name, of = roleOf(stat.name, bytes.FieldsFunc(command, func(r rune) bool { return r == 0 || r == ' ' })), lab.OfBrowser
	case pid == s.self:
		name, of = "appliance", lab.OfBox
	case bytes.Contains(command, []byte("\x00link\x00")):
		name, of = "link", lab.OfBox
	case stat.name == "Xvfb" || stat.name == "Xorg" || stat.name == "vpxenc":
		of = lab.OfBox
	}
	if p == nil {
		p = &sampled{at: s.listed}                           // it was born since
		p.wait, _ = os.Open(filepath.Join(dir, "schedstat")) // nil where the kernel has none
		if s.first {
			p.at, p.ran, p.waited = now, max(clockOf(processClock(pid)), 0), p.waits()
		}
		s.known[pid] = p
	}
	p.met++
	p.told = p.told && p.name == name
	p.name, p.of = name, of
	return p
}

// waits is for how long the process's main thread has waited for a processor, in ns.
func (p *sampled) waits() int64 {
	if p.wait == nil {
		return 0
	}
	_, waited := schedule(p.wait)
	return waited
}

// schedule reads a schedstat: the ns on a processor, and those of waiting for one; 0 where it cannot be read.
func schedule(f *os.File) (ran, waited int64) {
	var b [64]byte
	n, _ := f.ReadAt(b[:], 0)
	fields := bytes.Fields(b[:n])
	if len(fields) < 2 {
		return 0, 0
	}
	ran, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0, 0
	}
	if waited, err = strconv.ParseInt(string(fields[1]), 10, 64); err != nil {
		return 0, 0
	}
	return ran, waited
}

func (p *sampled) close() {
	if p.wait != nil {
		p.wait.Close()
	}
}

// stalled reads a file of /proc/pressure (psi.rst): for how many ns some thread has stood still. 0 where the kernel has
// none.
func stalled(name string) int64 {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	some, _, _ := strings.Cut(string(text), "\n")
	_, total, ok := strings.Cut(some, " total=")
	if us, err := strconv.ParseInt(strings.TrimSpace(total), 10, 64); ok && err == nil && us >= 0 {
		return us * 1000
	}
	return 0
}
