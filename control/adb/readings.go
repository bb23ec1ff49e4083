package adb

import (
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// readingsReader makes samples of what the program readings prints.
type readingsReader struct {
	app  string
	emit func(lab.ProcessSample)
	rest []byte

	clocks clocks
	sent   lab.Time // when the reading was asked for
	at     lab.Time // when it was made; 0 before its stamp came
	first  lab.Time // of the first reading of processes
	widest lab.Time // bounds of a reading
	page   int64
	pids   []int
	names  map[int]string
	known  map[[2]int]*phoneProcess // by process and thread
	all    phoneProcess             // what all of the phone's processors did
	cost   int64                    // of the program, in ns
	what   string                   // that was asked for

	anyShare bool
}

// phoneProcess is one of the package, or a thread, with what it had at its last reading.
type phoneProcess struct {
	begun       string // its start since the phone's boot, in ticks: another one with its ID has another
	at          lab.Time
	ran, waited int64
	waits       bool // that was read before
	waitedAt    lab.Time
	rss, shared int64
	told, seen  bool
}

func newReadingsReader(app string, emit func(lab.ProcessSample)) readingsReader {
	return readingsReader{app: app, emit: emit, clocks: clocks{grain: phoneTick}, names: map[int]string{}, known: map[[2]int]*phoneProcess{}}
}

// begin prepares for a reading that is asked for now.
func (r *readingsReader) begin(what string, sent lab.Time) {
	r.sent, r.at, r.what, r.rest = sent, 0, what, r.rest[:0]
	if what == askList {
		r.pids = r.pids[:0]
	}
	for _, p := range r.known {
		p.seen = false
	}
}

// add takes what was printed. It returns true at the reading's end.
func (r *readingsReader) add(text []byte, came lab.Time) (ended bool) {
	r.rest = append(r.rest, text...)
	for {
		line, rest, ok := strings.Cut(string(r.rest), "\n")
		if !ok {
			break
		}
		r.rest = append(r.rest[:0], rest...)
		if line = strings.TrimSpace(line); line == "." {
			r.end()
			return true
		}
		if len(line) <= maxLine {
			r.line(line, came)
		}
	}
	if len(r.rest) > maxLine {
		r.rest = r.rest[:0]
	}
	return false
}

// line reads one of
//
//	@ 1234.56                     the stamp, seconds since the phone's boot (proc_uptime(5))
//	g 4096                        bytes of a page
//	c cpu 1 2 3 4 …               the first line of /proc/stat
//	s 4000 (name) S 1 …           /proc/PID/stat
//	m 4000 900 300 10 …           /proc/PID/statm
//	w 4000 RAN WAITED N           /proc/PID/schedstat, of its main thread
//	p 4000 1234 kB                its share of memory
//	t 4000 4001 RAN WAITED N name a thread
//	o 77 (sh) …                   /proc/PID/stat of the program itself
//
// or, of a list, a process of ps.
func (r *readingsReader) line(line string, came lab.Time) {
	kind, rest, _ := strings.Cut(line, " ")
	switch {
	case kind == "@" && r.at == 0:
		r.stamp(rest, came)
	case r.at == 0: // nothing comes before the stamp
	case kind == "g":
		if n, err := strconv.ParseInt(rest, 10, 24); err == nil && n >= 1024 && n&(n-1) == 0 {
			r.page = n
		}
	case kind == "c":
		r.busy(rest)
	case kind == "s":
		r.process(rest)
	case kind == "m":
		r.memory(strings.Fields(rest))
	case kind == "w":
		r.waits(strings.Fields(rest))
	case kind == "p":
		r.share(strings.Fields(rest))
	case kind == "t":
		r.thread(strings.Fields(rest))
	case kind == "o":
		r.own(rest)
	case r.what == askList && len(r.pids) < mostUsers:
		r.listed(strings.Fields(line))
	}
}

// stamp joins the reading's stamp, which is cut to hundredths of a second, to our clock.
func (r *readingsReader) stamp(text string, came lab.Time) {
	seconds, hundredths, ok := strings.Cut(strings.TrimSpace(text), ".")
	s, err := strconv.ParseUint(seconds, 10, 32)
	h, errH := strconv.ParseUint(hundredths, 10, 8)
	if !ok || err != nil || errH != nil || len(hundredths) != 2 || came < r.sent {
		return
	}
	stamp, between := time.Duration(s)*time.Second+time.Duration(h)*10*time.Millisecond, [2]lab.Time{r.sent, came}
	r.clocks.narrow(stamp, between)
	earliest, latest := r.clocks.interval(stamp, between)
	r.at = max(earliest+(latest-earliest)/2, 1)
	r.widest = max(r.widest, latest-earliest)
}

// listed takes a line of ps.
func (r *readingsReader) listed(fields []string) {
	if len(fields) != 2 {
		return
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil || pid <= 0 || fields[1] != r.app && !strings.HasPrefix(fields[1], r.app+":") {
		return
	}
	r.pids, r.names[pid] = append(r.pids, pid), lab.OneLine(fields[1], 60)
	if len(r.names) > 100*mostUsers { // of processes that have come and gone
		r.names = map[int]string{pid: r.names[pid]}
	}
}

// ticks reads the sum of some fields of a stat, in ns: they stand behind the name, which may hold any characters.
func ticks(stat string, fields ...int) (sum int64, all []string, ok bool) {
	const bits = 34 // as ranOf
	all = strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	for _, i := range fields {
		if i >= len(all) {
			return 0, nil, false
		}
		n, err := strconv.ParseInt(all[i], 10, bits)
		if err != nil || n < 0 {
			return 0, nil, false
		}
		sum += n * int64(phoneTick)
	}
	return sum, all, true
}

// Where the fields of a stat are, behind the name.
const (
	statUser, statSystem, statChildUser, statChildSystem, statBegun = 11, 12, 13, 14, 19
)

// process takes a process's stat.
func (r *readingsReader) process(stat string) {
	number, _, _ := strings.Cut(stat, " ")
	pid, err := strconv.Atoi(number)
	ran, fields, ok := ticks(stat, statUser, statSystem)
	if err != nil || pid <= 0 || !ok || len(fields) <= statBegun || r.names[pid] == "" {
		return
	}
	key := [2]int{pid}
	p := r.known[key]
	if p != nil && p.begun != fields[statBegun] { // another one has its ID
		r.gone(key, p)
		p = nil
	}
	if p == nil {
		if len(r.known) >= mostUsers+mostPhoneThreads {
			return
		}
		p = &phoneProcess{begun: fields[statBegun], at: r.at, ran: ran}
		if born, _, ok := ticks(") "+p.begun, 0); ok && r.first != 0 {
			_, latest := r.clocks.interval(time.Duration(born), [2]lab.Time{0, r.at})
			if latest >= r.first { // what it did it has done since
				p.at, p.ran = latest, 0
			}
		}
		r.known[key] = p
	}
	p.seen = true
	if more := ran - p.ran; more > 0 && r.at > p.at {
		r.tell(pid, p, lab.ProcessSample{At: r.at, PID: pid, For: int64(r.at - p.at), Ran: more})
	}
	p.at, p.ran = r.at, max(ran, p.ran)
}

// tell hands a sample on, with the name of a process of which nothing has been told.
func (r *readingsReader) tell(pid int, p *phoneProcess, one lab.ProcessSample) {
	if !p.told {
		one.Name, one.Of, p.told = r.names[pid], lab.OfBrowser, true
	}
	r.emit(one)
}

// of is the process that a line begins with, and its numbers.
func (r *readingsReader) of(fields []string, numbers int) (pid int, p *phoneProcess, values []int64) {
	if len(fields) < 1+numbers {
		return 0, nil, nil
	}
	pid, err := strconv.Atoi(fields[0])
	if p = r.known[[2]int{pid}]; err != nil || p == nil || !p.seen {
		return 0, nil, nil
	}
	for _, f := range fields[1 : 1+numbers] {
		const most = 1 << 60
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || n < 0 || n >= most {
			return 0, nil, nil
		}
		values = append(values, n)
	}
	return pid, p, values
}

// memory takes a statm: pages in memory, and those of them that are of files or shared.
func (r *readingsReader) memory(fields []string) {
	pid, p, v := r.of(fields, 3)
	const mostPages = 1 << 32
	if p == nil || r.page == 0 || v[1] >= mostPages || v[2] > v[1] || v[1]*r.page == p.rss {
		return
	}
	p.rss, p.shared = v[1]*r.page, v[2]*r.page
	r.tell(pid, p, lab.ProcessSample{At: r.at, PID: pid, RSS: p.rss, Own: p.rss - p.shared})
}

// waits takes a schedstat of a main thread.
func (r *readingsReader) waits(fields []string) {
	pid, p, v := r.of(fields, 2)
	if p == nil {
		return
	}
	// The time is that since the sample before: it is told with the next one of the process, or alone.
	if more := v[1] - p.waited; p.waits && more > 0 {
		r.tell(pid, p, lab.ProcessSample{At: r.at, PID: pid, For: int64(max(r.at-p.waitedAt, 0)), Waited: more})
	}
	p.waits, p.waited, p.waitedAt = true, max(v[1], p.waited), r.at
}

// share takes a Pss in kB.
func (r *readingsReader) share(fields []string) {
	if pid, p, v := r.of(fields, 1); p != nil && p.rss > 0 && v[0] > 0 && v[0] < 1<<40 {
		r.anyShare = true
		r.tell(pid, p, lab.ProcessSample{At: r.at, PID: pid, RSS: p.rss, Own: p.rss - p.shared, PSS: v[0] << 10})
	}
}

// addShares takes shares of memory that were read in another way.
func (r *readingsReader) addShares(shares map[int]int64, now lab.Time) {
	for _, pid := range r.pids {
		p := r.known[[2]int{pid}]
		if share := shares[pid]; p != nil && share > 0 && p.rss > 0 {
			r.tell(pid, p, lab.ProcessSample{At: now, PID: pid, RSS: p.rss, Own: p.rss - p.shared, PSS: share})
		}
	}
}

// thread takes a thread's schedstat and name.
func (r *readingsReader) thread(fields []string) {
	if len(fields) < 5 {
		return
	}
	pid, process, _ := r.of(fields, 0)
	tid, err := strconv.Atoi(fields[1])
	ran, errRan := strconv.ParseInt(fields[2], 10, 60)
	waited, errWaited := strconv.ParseInt(fields[3], 10, 60)
	if process == nil || err != nil || tid <= 0 || errRan != nil || errWaited != nil || ran < 0 || waited < 0 {
		return
	}
	key := [2]int{pid, tid}
	t := r.known[key]
	if t == nil {
		if len(r.known) >= mostUsers+mostPhoneThreads {
			return
		}
		r.known[key] = &phoneProcess{at: r.at, ran: ran, waited: waited, seen: true}
		return
	}
	t.seen = true
	one := lab.ProcessSample{At: r.at, PID: pid, TID: tid, For: int64(r.at - t.at), Ran: ran - t.ran, Waited: waited - t.waited}
	t.at, t.ran, t.waited = r.at, ran, waited
	if one.Ran < 0 || one.Waited < 0 || one.For <= 0 || one.Ran+one.Waited == 0 {
		return
	}
	if !t.told {
		one.Name, one.Of, t.told = lab.OneLine(strings.Join(fields[5:], " "), 40), lab.OfBrowser, true
	}
	r.emit(one)
}

// busy takes the first line of /proc/stat: what all processors did, in ticks.
func (r *readingsReader) busy(line string) {
	const user, nice, system, interrupts, softInterrupts, stolen = 0, 1, 2, 5, 6, 7
	rest, ok := strings.CutPrefix(line, "cpu ")
	ran, _, ok2 := ticks(") "+rest, user, nice, system, interrupts, softInterrupts, stolen)
	if !ok || !ok2 {
		return
	}
	if more := ran - r.all.ran; r.all.seen && more > 0 && r.at > r.all.at {
		r.emit(lab.ProcessSample{At: r.at, Name: lab.AllProcessors, Of: lab.OfMachine, For: int64(r.at - r.all.at), Ran: more})
	}
	r.all = phoneProcess{at: r.at, ran: max(ran, r.all.ran), seen: true}
}

// own takes the stat of the program itself, with the programs that it has started.
func (r *readingsReader) own(stat string) {
	if ran, _, ok := ticks(stat, statUser, statSystem, statChildUser, statChildSystem); ok {
		r.cost = max(r.cost, ran)
	}
}

// end ends a reading: processes of which it had nothing are gone.
func (r *readingsReader) end() {
	if r.at == 0 || r.what == askList || r.what == askPage {
		return
	}
	if r.first == 0 {
		r.first = r.at
	}
	for key, p := range r.known {
		if !p.seen && (key[1] == 0 || r.known[[2]int{key[0]}] == nil) {
			r.gone(key, p)
		}
	}
}

func (r *readingsReader) gone(key [2]int, p *phoneProcess) {
	if p.told && key[1] == 0 {
		r.emit(lab.ProcessSample{At: r.at, PID: key[0], For: int64(max(r.at-p.at, 0)), Ended: true})
	}
	delete(r.known, key)
}

// sharesOf reads what dumpsys meminfo says of each process, in bytes: "** MEMINFO in pid 4000 [name] **", and below it
// "TOTAL PSS: 123456 …" since Android 11, before that "TOTAL 123456 …".
func sharesOf(out string) map[int]int64 {
	shares, pid := map[int]int64{}, 0
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "** MEMINFO in pid "); ok {
			number, _, _ := strings.Cut(rest, " ")
			pid, _ = strconv.Atoi(number)
			if len(shares) >= mostUsers {
				break
			}
			continue
		}
		if total := memoryOf(line); pid > 0 && total > 0 && shares[pid] == 0 {
			shares[pid] = total
		}
	}
	return shares
}
