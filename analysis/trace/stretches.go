package trace

import (
	"cmp"
	"slices"

	"eidetic/internal/lab"
)

// Bounds of what is kept of a trace for its critical path.
const (
	mostStretches = 4000
	mostFetches   = 2000
	// leastStretch is what of one kind of work counts by itself; shorter ones count to the one before.
	leastStretch = lab.Time(100e3)
)

// Stretch is a time in which the page's thread does one thing: stretches of a thread follow each other, with gaps where
// it waits. They are the thread's self time laid out on the axis.
type Stretch struct {
	Start lab.Time `json:"s"`
	End   lab.Time `json:"e"`
	Group Group    `json:"g"`
	URL   string   `json:"u,omitempty"`
}

// Fetch is when a page's process asked for something and had all of it, by the browser's own word; 0 where it does not
// say.
type Fetch struct {
	URL  string   `json:"u"`
	Sent lab.Time `json:"sent_ns"`
	Done lab.Time `json:"done_ns,omitempty"`
}

// Stretches lays out what the page's thread does between two instants: of the threads that run pages, the one with the
// most work.
func (p *Profile) Stretches(from, to lab.Time) []Stretch {
	var best []Stretch
	most := lab.Time(0)
	for i, n := 0, 0; i < len(p.Slices); i = n {
		for n = i; n < len(p.Slices) && p.Slices[n].Thread == p.Slices[i].Thread; {
			n++
		}
		if !p.Threads[p.Slices[i].Thread].Main {
			continue
		}
		list, sum := flat(p.Slices[i:n], from, to), lab.Time(0)
		for _, s := range list {
			sum += s.End - s.Start
		}
		if sum > most {
			best, most = list, sum
		}
	}
	least := leastStretch
	for best = joined(best, least); len(best) > mostStretches; best = joined(best, least) {
		least *= 2
	}
	return best
}

// flat lays the self times of nested slices of one thread beside each other.
func flat(list []Slice, from, to lab.Time) (out []Stretch) {
	var open []Slice
	at := from
	emit := func(s Slice, until lab.Time) {
		until = min(until, to)
		if until <= at {
			return
		}
		if n := len(out) - 1; n >= 0 && out[n].End == at && out[n].Group == s.Group && out[n].URL == s.URL {
			out[n].End = until
		} else {
			out = append(out, Stretch{at, until, s.Group, s.URL})
		}
		at = until
	}
	closeUntil := func(now lab.Time) {
		for n := len(open) - 1; n >= 0 && open[n].End <= now; n-- {
			emit(open[n], open[n].End)
			open = open[:n]
		}
		if n := len(open) - 1; n >= 0 {
			emit(open[n], now)
		}
	}
	for _, s := range list {
		closeUntil(s.Start)
		at = max(at, min(s.Start, to))
		open = append(open, s)
	}
	closeUntil(lab.Time(1<<63 - 1))
	return out
}

// joined adds what is shorter than least to what it follows without a gap.
func joined(list []Stretch, least lab.Time) (out []Stretch) {
	for _, s := range list {
		n := len(out) - 1
		if n >= 0 && s.Start-out[n].End < least && (s.End-s.Start < least || s.Group == out[n].Group && s.URL == out[n].URL) {
			out[n].End = max(out[n].End, s.End)
			continue
		}
		if s.End-s.Start >= least || n < 0 || s.Start-out[n].End >= least {
			out = append(out, s)
		}
	}
	return out
}

// sane sorts stretches that a file has, and cuts what overlaps.
func sane(list []Stretch) (out []Stretch) {
	list = slices.Clone(list[:min(len(list), mostStretches)])
	slices.SortStableFunc(list, func(a, b Stretch) int { return cmp.Compare(a.Start, b.Start) })
	end := lab.Time(-1 << 63)
	for _, s := range list {
		if s.Start = max(s.Start, end); s.End > s.Start {
			s.URL = shortURL(s.URL)
			out, end = append(out, s), s.End
		}
	}
	return out
}
