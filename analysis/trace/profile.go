package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Group is what a stretch of a thread's time went to: the task groups of Lighthouse and of the developer tools.
type Group string

// The groups.
const (
	ParseGroup   Group = "parse HTML and CSS"
	StyleGroup   Group = "style and layout"
	PaintGroup   Group = "paint and composite"
	CompileGroup Group = "compile scripts"
	ScriptGroup  Group = "run scripts"
	GarbageGroup Group = "garbage collection"
	OtherGroup   Group = "other"
)

// Bounds of a browser's own trace.
const (
	MaxTrace     = 256 << 20 // bytes of JSON
	maxTraceItem = 48 << 20  // bytes of one value in it: an event, a thread of a Gecko profile
	mostSlices   = 500_000
	mostThreads  = 2000
	mostTraceURL = 2000 // bytes of a URL
)

// ErrVoid marks what makes a trace useless.
var ErrVoid = errors.New("the browser's trace is void") // constant

// Profile is a browser's own trace of a trial.
type Profile struct {
	Browser string // "Chromium" or "Firefox"
	Threads []Thread
	// Slices are the stretches of all threads: by thread, then by beginning, those that hold others first. Times are
	// the browser's until Shift.
	Slices []Slice
	// Fetches are what pages asked for, where the browser says when.
	Fetches []Fetch
	// Sampled says that the slices were made of samples.
	Sampled bool
	// Synced holds when the browser noted each mark of its clock, by the mark's name.
	Synced map[string]lab.Time
	// Monotonic says that the browser's times are the machine's CLOCK_MONOTONIC, by its own word.
	Monotonic bool
	// Wall is when the browser's clock was zero, by the wall clock; the zero time where it does not say.
	Wall time.Time
	// Complete is from when on the trace is known to be whole: a browser may forget its oldest samples.
	Complete lab.Time
}

// Thread is a thread of a browser's process. Names have no numbers: the threads of a pool share one.
type Thread struct {
	Process, Name string
	PID, TID      int
	// Main says that the thread runs pages: their scripts, styles and layout.
	Main bool
}

// Slice is a stretch of a thread's time.
type Slice struct {
	Thread     int
	Name       string
	Group      Group
	URL        string // of the script, style sheet, document or picture that the work is for; "" for none
	Start, End lab.Time
	Depth      int
	Busy       time.Duration // the processor time in it, and in what lies in it; −1 where it is not known

	own bool // Group is its own, and not its parent's
	// calls are the functions of a sample, the innermost first, shared by all samples of one stack; of a stretch that
	// was not sampled, its own function.
	calls []string
}

// Shift moves all times by an offset.
func (p *Profile) Shift(by time.Duration) {
	for i := range p.Slices {
		p.Slices[i].Start, p.Slices[i].End = p.Slices[i].Start.Add(by), p.Slices[i].End.Add(by)
	}
	for name, at := range p.Synced {
		p.Synced[name] = at.Add(by)
	}
	for i := range p.Fetches {
		f := &p.Fetches[i]
		if f.Sent = f.Sent.Add(by); f.Done != 0 {
			f.Done = f.Done.Add(by)
		}
	}
	if p.Complete != 0 {
		p.Complete = p.Complete.Add(by)
	}
}

// sort puts slices in order.
func (p *Profile) sort() {
	slices.SortStableFunc(p.Slices, func(a, b Slice) int {
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
}

// nest cuts slices that reach beyond what holds them, and hands group and URL down to what has none of its own.
func (p *Profile) nest() {
	var open []int
	for i := range p.Slices {
		s := &p.Slices[i]
		for n := len(open); n > 0; n = len(open) {
			top := p.Slices[open[n-1]]
			if top.Thread == s.Thread && s.Start < top.End {
				break
			}
			open = open[:n-1]
		}
		if n := len(open); n > 0 {
			parent := p.Slices[open[n-1]]
			s.End = min(s.End, parent.End)
			if !s.own {
				s.Group = parent.Group
			}
			s.URL = cmp.Or(s.URL, parent.URL)
		}
		s.Depth = len(open)
		open = append(open, i)
	}
}

// Work is how long threads of one kind worked on one thing.
type Work struct {
	Process string  `json:"process"`
	Thread  string  `json:"thread"`
	Main    bool    `json:"main,omitempty"` // the threads of pages
	Group   Group   `json:"group"`
	URL     string  `json:"url,omitempty"`
	MS      float64 `json:"ms"` // self time
	// Wall is how long the thread was at it, with the time in which it waited for a processor or something else.
	Wall float64 `json:"wall_ms,omitempty"`
}

// Measured are the metrics of that.
func Measured(list []Work) []lab.Measurement {
	sums := map[metric.ID]float64{}
	for _, w := range list {
		if !w.Main {
			continue
		}
		sums[metric.MainWork] += w.MS
		switch w.Group {
		case CompileGroup, ScriptGroup:
			sums[metric.ScriptWork] += w.MS
		case StyleGroup:
			sums[metric.LayoutWork] += w.MS
		case PaintGroup:
			sums[metric.PaintWork] += w.MS
		case ParseGroup, GarbageGroup, OtherGroup:
		}
	}
	var out []lab.Measurement
	for _, m := range metric.InGroup(metric.Work) {
		out = append(out, m.Measure(round(sums[m]), nil))
	}
	return out
}

// mostWork bounds the rows of Work: the smallest are added to those of the same group without a URL.
const mostWork = 400

// Work sums up self time between two instants: the processor time of a stretch less that of others in it, so that a
// thread that waits for a processor is not taken for one that works. Where the processor time of a stretch is not
// known, it has the share of its length that what it lies in has, and all of it at the top.
func (p *Profile) Work(from, to lab.Time) []Work {
	type key struct {
		process, thread string
		main            bool
		group           Group
		url             string
	}
	type spent struct{ self, wall time.Duration }
	sums := map[key]spent{}
	self, wall := make([]time.Duration, len(p.Slices)), make([]time.Duration, len(p.Slices))
	share := make([]float64, len(p.Slices)) // of a slice's length in which the thread had a processor
	var open []int
	for i, s := range p.Slices {
		n := len(open)
		for ; n > 0; n-- {
			if top := p.Slices[open[n-1]]; top.Thread == s.Thread && s.Start < top.End {
				break
			}
		}
		open = open[:n]
		share[i] = 1
		if n > 0 {
			share[i] = share[open[n-1]]
		}
		if length := s.End.Sub(s.Start); s.Busy >= 0 && length > 0 {
			share[i] = min(float64(s.Busy)/float64(length), 1)
		}
		inside := max(min(s.End, to).Sub(max(s.Start, from)), 0)
		self[i], wall[i] = time.Duration(share[i]*float64(inside)), inside
		if n > 0 {
			self[open[n-1]] -= self[i]
			wall[open[n-1]] -= inside
		}
		open = append(open, i)
	}
	for i, s := range p.Slices {
		if self[i] > 0 {
			t := p.Threads[s.Thread]
			k := key{t.Process, t.Name, t.Main, s.Group, s.URL}
			sum := sums[k]
			sums[k] = spent{sum.self + self[i], sum.wall + wall[i]}
		}
	}
	out := make([]Work, 0, len(sums))
	for k, d := range sums {
		out = append(out, Work{k.process, k.thread, k.main, k.group, k.url, float64(d.self) / 1e6, float64(d.wall) / 1e6})
	}
	byTime := func(a, b Work) int {
		return cmp.Or(cmp.Compare(b.MS, a.MS), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.URL, b.URL))
	}
	slices.SortFunc(out, byTime)
	if len(out) <= mostWork {
		return out
	}
	out, small := out[:mostWork:mostWork], out[mostWork:]
	rest := map[key]Work{}
	for _, w := range small {
		w.URL = ""
		k := key{w.Process, w.Thread, w.Main, w.Group, ""}
		sum := rest[k]
		w.MS, w.Wall = w.MS+sum.MS, w.Wall+sum.Wall
		rest[k] = w
	}
	for k, more := range rest {
		same := func(w Work) bool {
			return key{w.Process, w.Thread, w.Main, w.Group, w.URL} == k
		}
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i].MS, out[i].Wall = out[i].MS+more.MS, out[i].Wall+more.Wall
		} else {
			out = append(out, more)
		}
	}
	slices.SortFunc(out, byTime)
	return out
}

// rationed is a reader of which each value may take so much, and all together so much: encoding/json keeps a whole
// value in memory.
type rationed struct {
	r         io.Reader
	all, item int64
}

func (r *rationed) Read(b []byte) (int, error) {
	left := min(r.all, r.item)
	if left <= 0 {
		return 0, fmt.Errorf("%w: it is larger than %d MB, or one entry is larger than %d MB: trace a shorter load", ErrVoid, MaxTrace>>20, maxTraceItem>>20)
	}
	n, err := r.r.Read(b[:min(int64(len(b)), left)])
	r.all, r.item = r.all-int64(n), r.item-int64(n)
	return n, err
}

// shortURL bounds a URL, and leaves out its fragment.
func shortURL(url string) string {
	url, _, _ = strings.Cut(url, "#")
	if strings.HasPrefix(url, "data:") {
		url, _, _ = strings.Cut(url, ",")
	}
	return lab.OneLine(url, mostTraceURL)
}

// poolName is a thread's or process's name without the numbers that tell the members of a pool apart.
func poolName(name string) string {
	name, _, _ = strings.Cut(name, "/")
	if i := strings.LastIndex(name, "#"); i > 0 {
		name = name[:i]
	}
	return lab.OneLine(strings.TrimRight(name, "0123456789 "), 80)
}
