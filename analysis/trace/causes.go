package trace

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
)

// CausesLevel is the probability that anything is named where the arms are equal.
const CausesLevel = 0.05

const (
	mostRequestKeys = 300 // requests that are told apart; the later ones are left out, and that is said
	mostRows        = 300 // rows that are tested
	mostCauses      = 60  // rows of the result
	leastMS         = 1.0 // ms that a row of times has on average, and by which its values differ
)

// Observed is what is known of one traced trial.
type Observed struct {
	Arm      string
	Block    int
	Page     string
	Zero     lab.Time
	WindowMS float64
	Work     []Work
	Served   []lab.Served

	// What critical paths are found in; a trial without Stretches has none.
	Number     int
	StartFrame int
	FrameMS    []float64 // times of the frames from StartFrame on
	Progress   []float64 // their visual progress, in percent
	Stretches  []Stretch
	Fetches    []Fetch
}

// Causes compares the traced trials of two arms, row by row: self time of threads by group and URL; the server's wait,
// the transfer, the start and the bytes of each request, and how often it is made. Each row is tested as
// stats.ShiftInBlocks does, as the order of the arms was drawn by lot in each block. Which rows there are depends on
// values, never on arms, so that tests stay exact. Holm's correction over all rows keeps the chance that anything is
// named without a difference at CausesLevel.
func Causes(trials []Observed, seed uint64) *lab.Causes {
	c := &lab.Causes{Level: CausesLevel, Rows: []lab.Cause{}}
	t := table{seed: seed, trials: trials, rows: map[rowKey]*row{}}
	for i, o := range trials {
		arm := &c.Control
		if o.Arm == lab.Treatment {
			arm = &c.Treatment
		}
		arm.Trials++
		t.work(i, o.Work)
	}
	t.requests()
	if t.more > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d more requests were not compared", t.more))
	}
	for _, pairs := range pairsOf(trials) {
		c.Pairs += pairs
	}
	if c.Pairs < 2 {
		c.Notes = append(c.Notes, fmt.Sprintf("there are %d pairs of trials with whole traces: at least 2 are needed, and 10 for most differences", c.Pairs))
		return c
	}
	end := &row{Cause: lab.Cause{Kind: lab.CauseEnd, Unit: "ms"}, values: make([]float64, len(trials))}
	for i, o := range trials {
		end.values[i] = o.WindowMS
	}
	if t.test(end) {
		c.End = end.Cause
	}
	c.Control.WindowMS, c.Treatment.WindowMS = t.medians(end.values)
	rows, left := t.telling()
	if left > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d rows with the least time were not compared", left))
	}
	var tested []*row
	for _, r := range rows {
		if t.test(r) {
			tested = append(tested, r)
		}
	}
	c.Tested = len(tested)
	p := make([]float64, len(tested))
	for i, r := range tested {
		p[i] = r.P
	}
	for i, adjusted := range stats.Holm(p) {
		tested[i].Adjusted, tested[i].Named = adjusted, adjusted <= CausesLevel
	}
	if least := t.leastP(); least*float64(len(tested)) > CausesLevel {
		c.Notes = append(c.Notes, fmt.Sprintf("%d pairs are too few for %d rows: no difference, however large, could be named; trace more pairs", c.Pairs, len(tested)))
	}
	explain(tested)
	slices.SortStableFunc(tested, func(a, b *row) int {
		return cmp.Or(cmp.Compare(truth(b.Named), truth(a.Named)), cmp.Compare(b.Explains, a.Explains), cmp.Compare(a.Adjusted, b.Adjusted),
			cmp.Compare(a.P, b.P), cmp.Compare(math.Abs(b.Shift), math.Abs(a.Shift)))
	})
	for _, r := range tested[:min(len(tested), mostCauses)] {
		c.Rows = append(c.Rows, r.Cause)
	}
	c.Paths = paths(trials, seed)
	return c
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pairsOf counts the pairs of each block.
func pairsOf(trials []Observed) map[int]int {
	counts := map[int][2]int{}
	for _, o := range trials {
		n := counts[o.Block]
		n[truth(o.Arm == lab.Treatment)]++
		counts[o.Block] = n
	}
	pairs := map[int]int{}
	for b, n := range counts {
		pairs[b] = min(n[0], n[1])
	}
	return pairs
}

// rowKey tells rows apart.
type rowKey struct {
	kind, process, thread string
	group                 Group
	what                  string
}

// row is a cause with its value in each trial; NaN where the trial has none.
type row struct {
	lab.Cause
	values []float64
	wall   []float64 // of a thread's row: as long as it was at it, where values are its processor time
	delay  float64   // of a thread's row: by how much longer it was at it in the treatment's median
	order  int
	mean   float64 // of a request: how long it takes, in ms
}

type table struct {
	seed   uint64
	trials []Observed
	rows   map[rowKey]*row
	more   int
}

// of is a row, with 0 or NaN in each trial to begin with.
func (t *table) of(k rowKey, unit string, main bool, first float64) *row {
	r := t.rows[k]
	if r == nil {
		r = &row{order: len(t.rows), values: make([]float64, len(t.trials)), Cause: lab.Cause{
			Kind: k.kind, Process: k.process, Thread: k.thread, Main: main, Group: string(k.group), What: k.what, Unit: unit,
		}}
		for i := range r.values {
			r.values[i] = first
		}
		if k.kind == lab.CauseThread {
			r.wall = slices.Clone(r.values)
		}
		t.rows[k] = r
	}
	return r
}

// work adds a trial's self time: to its URL's row, to its group's and, of threads that run no pages, to the thread's.
func (t *table) work(trial int, list []Work) {
	for _, w := range list {
		add := func(k rowKey) {
			r := t.of(k, "ms", w.Main, 0)
			r.values[trial] += w.MS
			r.wall[trial] += cmp.Or(w.Wall, w.MS)
		}
		k := rowKey{kind: lab.CauseThread, process: w.Process, thread: w.Thread}
		if w.Main {
			k.process, k.thread = "", ""
		} else {
			add(k)
		}
		k.group = w.Group
		if w.Main {
			add(k)
		}
		if k.what = relative(w.URL, t.trials[trial].Page); k.what != "" && !isOwn(k.what) {
			add(k)
		}
	}
}

// isOwn says whether a URL is of the browser's own scripts, of which there are many: their groups and threads have
// rows.
func isOwn(url string) bool {
	scheme, _, _ := strings.Cut(url, ":")
	return scheme == "chrome" || scheme == "resource" || scheme == "chrome-extension" || scheme == "moz-extension" || scheme == "file"
}

// relative is a URL without its origin, where that is the page's, so that the arms of two origins have the same rows.
func relative(of, page string) string {
	u, err := url.Parse(of)
	p, perr := url.Parse(page)
	if err != nil || perr != nil || u.Scheme != p.Scheme || u.Host != p.Host || u.Host == "" {
		return of
	}
	u.Scheme, u.Host, u.User = "", "", nil
	if text := u.String(); text != "" {
		return text
	}
	return "/"
}

// asked is one request of one trial, in ms from the start.
type asked struct{ start, first, end, bytes float64 }

// requests adds the rows of requests.
func (t *table) requests() {
	all := map[string][]*asked{} // by method and URL, and by trial; nil where the trial has none
	var order []string
	for i, o := range t.trials {
		served := slices.Clone(o.Served)
		slices.SortStableFunc(served, func(a, b lab.Served) int { return cmp.Compare(a.Time, b.Time) })
		seen := map[string]int{}
		for _, s := range served {
			if s.Stage == lab.StageBox || s.Time < o.Zero-lab.Time(time.Second) {
				continue
			}
			name := lab.OneLine(s.Method, 20) + " " + relative(shortURL(s.URL), o.Page)
			if seen[name]++; seen[name] > 1 {
				name += " (" + strconv.Itoa(seen[name]) + ")"
			}
			if all[name] == nil {
				if len(order) == mostRequestKeys {
					t.more++
					continue
				}
				all[name] = make([]*asked, len(t.trials))
				order = append(order, name)
			}
			start := float64(s.Time-o.Zero) / 1e6
			first := start + max(s.FirstByte.Seconds()*1e3, 0)
			all[name][i] = &asked{start, first, max(start+s.Duration.Seconds()*1e3, first), float64(s.Bytes)}
		}
	}
	order, called := t.joined(order, all)
	for _, name := range order {
		t.request(name, cmp.Or(called[name], name), all)
	}
}

// request adds the rows of a request under what it is called.
func (t *table) request(name, called string, all map[string][]*asked) {
	mine := all[name]
	row := func(kind, unit string, first float64) *row {
		return t.of(rowKey{kind: kind, what: called}, unit, false, first)
	}
	count := row(lab.CauseCount, "requests", 0)
	if _, alone := t.aloneIn(mine); alone { // what an arm does not ask for has no times there, and takes none
		for i, a := range mine {
			if a != nil {
				count.values[i], count.mean = 1, max(count.mean, a.end-a.start)
			}
		}
		return
	}
	bytes := row(lab.CauseBytes, "bytes", math.NaN())
	wait, start := row(lab.CauseWait, "ms", math.NaN()), row(lab.CauseStart, "ms", math.NaN())
	// Answers of one size differ in their transfer by the link and by what else is on it: these share a row.
	receive := t.of(rowKey{kind: lab.CauseReceive, what: sameSize}, "ms", false, 0)
	if !sameBytes(mine) {
		receive = row(lab.CauseReceive, "ms", 0)
	}
	after, at := follows(name, all)
	start.After = after
	n := 0
	for i, a := range mine {
		if a == nil {
			continue
		}
		n++
		count.values[i], bytes.values[i] = 1, a.bytes
		wait.values[i], start.values[i] = a.first-a.start, a.start-at(i)
		receive.values[i] += a.end - a.first
		count.mean += a.end - a.start
	}
	count.mean /= float64(max(n, 1))
}

// sameSize names the row of transfers of all answers whose size is the same in all trials.
const sameSize = "answers of the same size"

func sameBytes(list []*asked) bool {
	bytes := -1.0
	for _, a := range list {
		if a != nil && bytes >= 0 && a.bytes != bytes {
			return false
		}
		if a != nil {
			bytes = a.bytes
		}
	}
	return true
}

// follows finds the latest event that each trial with a request has before it, in whichever arm, and the event's time.
func follows(name string, all map[string][]*asked) (what string, at func(trial int) float64) {
	what, at = "the start", func(int) float64 { return 0 }
	best := math.Inf(-1)
	for _, other := range slices.Sorted(maps.Keys(all)) {
		if other == name {
			continue
		}
		for _, one := range []struct {
			words string
			of    func(*asked) float64
		}{{"the first byte of ", func(a *asked) float64 { return a.first }}, {"the end of ", func(a *asked) float64 { return a.end }}} {
			sum, always := 0.0, true
			for i, mine := range all[name] {
				if mine == nil {
					continue
				}
				before := all[other][i]
				if before == nil || one.of(before) > mine.start {
					always = false
					break
				}
				sum += one.of(before)
			}
			if always && sum > best {
				best, what = sum, one.words+other
				at = func(trial int) float64 { return one.of(all[other][trial]) }
			}
		}
	}
	return what, at
}

// telling lists the rows that can matter, by the values of all trials and not by their arms: each needs two different
// values, and times need some ms. The fewer rows, the smaller the differences that can be named.
func (t *table) telling() (rows []*row, left int) {
	for _, r := range t.rows {
		low, high, sum, n := math.Inf(1), math.Inf(-1), 0.0, 0.0
		for _, v := range r.values {
			if !math.IsNaN(v) {
				low, high, sum, n = min(low, v), max(high, v), sum+math.Abs(v), n+1
			}
		}
		if !(high > low) || r.Unit == "ms" && (high-low < leastMS || sum/n < leastMS) {
			continue
		}
		rows = append(rows, r)
	}
	spread := func(r *row) (sum float64) {
		if r.Kind != lab.CauseThread {
			return 0
		}
		for _, v := range r.values {
			if !math.IsNaN(v) {
				sum += math.Abs(v)
			}
		}
		return sum
	}
	isWork := func(r *row) int { return truth(r.Kind == lab.CauseThread) }
	slices.SortFunc(rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(isWork(a), isWork(b)), cmp.Compare(spread(b), spread(a)), cmp.Compare(a.order, b.order))
	})
	// All of requests may come to more than there is room for: those of the first ones are kept, and half of the room
	// is for work.
	if len(rows) > mostRows {
		requests := slices.IndexFunc(rows, func(r *row) bool { return r.Kind == lab.CauseThread })
		if requests < 0 {
			requests = len(rows)
		}
		work := rows[requests:]
		take := min(requests, max(mostRows/2, mostRows-len(work)))
		left = len(rows) - mostRows
		rows = slices.Concat(rows[:take], work[:mostRows-take])
	}
	return rows, left
}

// blocks sorts values by block and arm.
func (t *table) blocks(values []float64) []stats.Block {
	at := map[int]int{}
	var blocks []stats.Block
	for i, o := range t.trials {
		if math.IsNaN(values[i]) {
			continue
		}
		n, ok := at[o.Block]
		if !ok {
			n = len(blocks)
			at[o.Block], blocks = n, append(blocks, stats.Block{})
		}
		if o.Arm == lab.Treatment {
			blocks[n].Treatment = append(blocks[n].Treatment, values[i])
		} else {
			blocks[n].Control = append(blocks[n].Control, values[i])
		}
	}
	return blocks
}

func (t *table) medians(values []float64) (control, treatment float64) {
	var of [2][]float64
	for i, o := range t.trials {
		if !math.IsNaN(values[i]) {
			n := truth(o.Arm == lab.Treatment)
			of[n] = append(of[n], values[i])
		}
	}
	median := func(v []float64) float64 {
		if len(v) == 0 {
			return 0
		}
		slices.Sort(v)
		return stats.Quantile(v, 0.5)
	}
	return median(of[0]), median(of[1])
}

// permutations of samples whose exact p takes too long.
const permutations = 9999

// test fills in a row's difference; false where there are not two pairs with values.
func (t *table) test(r *row) bool {
	blocks := t.blocks(r.values)
	interval, test, err := stats.ShiftInBlocks(blocks, 1-CausesLevel, permutations, t.seed)
	if err != nil {
		return false
	}
	r.Control, r.Treatment = t.medians(r.values)
	if r.wall != nil {
		control, treatment := t.medians(r.wall)
		r.delay = treatment - control
	}
	r.Shift, r.Low, r.High, r.Confidence, r.P, r.Adjusted = interval.Value, interval.Low, interval.High, interval.Confidence, test.P, test.P
	return true
}

// leastP is the smallest p-value that the trials can have: that of arms without any overlap.
func (t *table) leastP() float64 {
	values := make([]float64, len(t.trials))
	for i, o := range t.trials {
		values[i] = float64(i) + 1e6*float64(truth(o.Arm == lab.Treatment))
	}
	test, err := stats.AlignedRank(t.blocks(values), permutations, t.seed)
	if err != nil {
		return 1
	}
	return test.P
}

// explain computes what each named row explains: a group's or a thread's row what the named rows in it leave; a later
// start of a request what more work of pages and slower answers do not explain, as those come before it. A thread that
// has to wait for a processor delays what follows by more than its processor time: by as long as it was at it.
func explain(rows []*row) {
	same := func(a, b *row) bool { return math.Signbit(a.Shift) == math.Signbit(b.Shift) }
	less, more := 0.0, 0.0 // by how much work and waits end earlier and later
	for _, r := range rows {
		if r.Named && r.Unit == "ms" {
			r.Explains = math.Abs(r.Shift)
		}
		if r.Named && r.Kind == lab.CauseCount {
			r.Explains = math.Abs(r.Shift) * r.mean
		}
	}
	for _, r := range rows {
		if !r.Named || r.Kind != lab.CauseThread || r.What != "" {
			continue
		}
		for _, in := range rows {
			if in.Named && in != r && in.Kind == r.Kind && in.Process == r.Process && in.Thread == r.Thread && in.Main == r.Main && same(in, r) &&
				(r.Group == "" && (in.What != "" || in.Group != "") || r.Group == in.Group && in.What != "") {
				r.Explains = max(0, r.Explains-math.Abs(in.Shift))
				r.delay -= in.delay
			}
		}
	}
	for _, r := range rows {
		if !r.Named || !(r.Kind == lab.CauseThread && r.Main || r.Kind == lab.CauseWait) {
			continue
		}
		if r.Shift > 0 {
			more += max(r.Explains, r.delay)
		} else {
			less += max(r.Explains, -r.delay)
		}
	}
	for _, r := range rows {
		if !r.Named || r.Kind != lab.CauseStart {
			continue
		}
		if r.Shift > 0 {
			r.Explains = max(0, r.Explains-more)
		} else {
			r.Explains = max(0, r.Explains-less)
		}
	}
}
