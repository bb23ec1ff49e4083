package trace

import (
	"cmp"
	"slices"
	"time"

	"eidetic/internal/lab"
)

// Browser is the kind of the tracks of a browser's own trace.
const Browser = "browser"

// Bounds of what of a browser's trace is on a timeline.
const (
	mostShown        = 4000 // stretches, the longest
	leastShown       = time.Millisecond
	mostShownThreads = 10
	mostCalls        = 24                   // functions of a call stack
	mostCall         = 120                  // bytes of each
	mergeGap         = 2 * time.Millisecond // samples of the same work that are so near are one stretch
)

// Shown is a stretch of a thread for the timeline, on the box's clock.
type Shown struct {
	Process string `json:"process"`
	Thread  string `json:"thread"`
	Number  int    `json:"n"` // tells threads of one name apart
	Main    bool   `json:"main,omitempty"`
	Name    string `json:"name"`
	Group   Group  `json:"group"`
	URL     string `json:"url,omitempty"`
	// Calls are its call stack, the innermost function first. Of Firefox's samples, the one that most of them share if
	// one has more than half.
	Calls []string `json:"calls,omitempty"`
	Start lab.Time `json:"start_ns"`
	End   lab.Time `json:"end_ns"`
}

// Kept is what a trial's work.json holds of its browser's trace.
type Kept struct {
	Work  []Work  `json:"work"`
	Shown []Shown `json:"shown"`
	// Stretches are what the page's thread did, and Fetches when it asked for what; for critical paths.
	Stretches []Stretch `json:"stretches,omitempty"`
	Fetches   []Fetch   `json:"fetches,omitempty"`
}

// Shown lists the longest stretches between two instants.
func (p *Profile) Shown(from, to lab.Time) (out []Shown) {
	find := p.calling
	if p.Sampled {
		find = p.sampled
	}
	long := find(from, to)
	long = slices.DeleteFunc(long, func(s Slice) bool { return s.End.Sub(s.Start) < leastShown })
	slices.SortStableFunc(long, func(a, b Slice) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
	for _, s := range long[:min(len(long), mostShown)] {
		t := p.Threads[s.Thread]
		name := s.Name
		if p.Sampled {
			name = string(s.Group)
		}
		out = append(out, Shown{t.Process, t.Name, s.Thread, t.Main, name, s.Group, s.URL, s.calls, s.Start, s.End})
	}
	return out
}

// calling are the slices of a trace that was not sampled, each with the functions that it lies in.
func (p *Profile) calling(from, to lab.Time) (out []Slice) {
	var open []Slice
	for _, s := range p.Slices {
		for len(open) > 0 && (open[len(open)-1].Thread != s.Thread || open[len(open)-1].End <= s.Start) {
			open = open[:len(open)-1]
		}
		inner := s
		isLong := s.End.Sub(s.Start) >= leastShown
		for i := len(open) - 1; i >= 0 && isLong; i-- {
			s.calls = append(s.calls, open[i].calls[0])
		}
		if len(inner.calls) > 0 && len(open) < mostCalls {
			open = append(open, inner)
		}
		if isLong && s.End >= from && s.Start <= to {
			out = append(out, s)
		}
	}
	return out
}

// sampled are the samples, those of the same work that are near each other as one, with the call stack of most of them.
func (p *Profile) sampled(from, to lab.Time) (out []Slice) {
	first, end := 0, 0 // of the samples that the last is of
	for i, s := range p.Slices {
		if s.End < from || s.Start > to {
			continue
		}
		if n := len(out) - 1; n >= 0 {
			last := &out[n]
			if last.Thread == s.Thread && last.Group == s.Group && last.URL == s.URL && s.Start.Sub(last.End) <= mergeGap {
				last.End, end = s.End, i+1
				continue
			}
			last.calls = mostCalled(p.Slices[first:end])
		}
		out, first, end = append(out, s), i, i+1
	}
	if n := len(out) - 1; n >= 0 {
		out[n].calls = mostCalled(p.Slices[first:end])
	}
	return out
}

// mostCalled is the call stack of more than half of some samples, nil where none has so many: the vote of Boyer and
// Moore finds the only one that can, and the count says whether it has.
func mostCalled(samples []Slice) (calls []string) {
	votes, n := 0, 0
	for _, s := range samples {
		switch {
		case votes == 0:
			calls, votes = s.calls, 1
		case slices.Equal(calls, s.calls):
			votes++
		default:
			votes--
		}
	}
	for _, s := range samples {
		if slices.Equal(calls, s.calls) {
			n++
		}
	}
	if 2*n <= len(samples) {
		return nil
	}
	return calls
}

// browserTracks lays out the stretches of a browser's threads: those of pages first, then those that were busiest.
func browserTracks(list []Shown) (out []Track) {
	type busy struct {
		track Track
		main  bool
		total lab.Time
	}
	var all []*busy
	at := map[int]*busy{}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Shown) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) })
	for _, s := range list[:min(len(list), mostShown)] {
		if s.End < s.Start {
			continue
		}
		b := at[s.Number]
		if b == nil {
			b = &busy{main: s.Main, track: Track{Kind: Browser, Name: lab.OneLine(s.Process, 40) + ": " + lab.OneLine(s.Thread, 40), Nested: true}}
			at[s.Number], all = b, append(all, b)
		}
		e := Event{
			Name: lab.OneLine(s.Name, 80), Start: s.Start, End: s.End, Earliest: s.Start, Latest: s.Start,
			Facts: []Fact{{"group", lab.OneLine(string(s.Group), 40)}},
		}
		if s.URL != "" {
			e.Facts = append(e.Facts, Fact{"for", shortURL(s.URL)})
		}
		for _, call := range s.Calls[:min(len(s.Calls), mostCalls)] {
			e.Stack = append(e.Stack, lab.OneLine(call, 2*mostCall))
		}
		b.total += e.End - e.Start
		b.track.Events = append(b.track.Events, e)
	}
	for _, b := range all {
		b.track.Events = nested(b.track.Events)
	}
	slices.SortStableFunc(all, func(a, b *busy) int {
		return cmp.Or(cmp.Compare(truth(b.main), truth(a.main)), cmp.Compare(b.total, a.total))
	})
	for _, b := range all[:min(len(all), mostShownThreads)] {
		out = append(out, b.track)
	}
	return out
}

// nested sets depths, cuts what reaches beyond what it lies in, and leaves out what lies too deep.
func nested(events []Event) (out []Event) {
	var open []lab.Time
	for _, e := range events {
		for len(open) > 0 && open[len(open)-1] <= e.Start {
			open = open[:len(open)-1]
		}
		if n := len(open); n > 0 {
			e.End = min(e.End, open[n-1])
		}
		if len(open) < mostDepth && e.End > e.Start {
			e.Depth = len(open)
			open, out = append(open, e.End), append(out, e)
		}
	}
	return out
}
