package trace

import (
	"cmp"
	"slices"

	"eidetic/internal/lab"
)

// SpanRow is one name on the timelines of an arm's trials: steps, measures of the page, intervals that were annotated.
// Times are in ms, and count all its intervals; Self leaves out what lies in intervals below it on the same row.
type SpanRow struct {
	Kind, Track, Name string
	Depth             int
	Trials            int // in which it occurs
	Count             float64
	Total, Self       float64 // of a trial, averaged over those trials
	Ran               float64 // what the browser computed meanwhile, likewise; 0 where that was not read
	// Counts are what was counted meanwhile, by CountMetrics, likewise, NaN for what was not; nil where nothing was.
	Counts                  []float64
	Shortest, Mean, Longest float64 // of one interval
}

// Spans tabulates the intervals of several trials. A profile averaged interval by interval would mean nothing, as their
// order and number differ; what is averaged here are the sums.
func Spans(list []*Timeline) []SpanRow {
	type key struct {
		kind, track, name string
		depth             int
	}
	type sums struct {
		SpanRow
		n    int
		seen map[int]bool
	}
	all := map[key]*sums{}
	var order []key
	for at, tl := range list {
		for _, track := range tl.Tracks {
			if track.Kind != Step && track.Kind != Annotation && track.Name != "Measures" {
				continue
			}
			self := selfTimes(track.Events)
			for i, e := range track.Events {
				if e.Instant() {
					continue
				}
				k := key{track.Kind, track.Name, e.Name, e.Depth}
				s := all[k]
				if s == nil {
					s = &sums{SpanRow: SpanRow{Kind: k.kind, Track: k.track, Name: k.name, Depth: k.depth}, seen: map[int]bool{}}
					all[k] = s
					order = append(order, k)
				}
				ms := float64(e.End-e.Start) / 1e6
				if s.n == 0 || ms < s.Shortest {
					s.Shortest = ms
				}
				s.n++
				s.seen[at] = true
				s.Total, s.Self, s.Ran, s.Longest = s.Total+ms, s.Self+float64(self[i])/1e6, s.Ran+e.RanMS, max(s.Longest, ms)
				s.addCounts(e.Counts)
			}
		}
	}
	var rows []SpanRow
	for _, k := range order {
		s := all[k]
		n := float64(len(s.seen))
		s.Trials, s.Mean = len(s.seen), s.Total/float64(s.n)
		s.Count, s.Total, s.Self, s.Ran = float64(s.n)/n, s.Total/n, s.Self/n, s.Ran/n
		for i := range s.Counts {
			s.Counts[i] /= n
		}
		rows = append(rows, s.SpanRow)
	}
	slices.SortStableFunc(rows, func(a, b SpanRow) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Track, b.Track), cmp.Compare(b.Total, a.Total))
	})
	return rows
}

// addCounts adds what was counted in one interval.
func (s *SpanRow) addCounts(counted []float64) {
	if counted != nil && s.Counts == nil {
		s.Counts = make([]float64, len(counted))
	}
	for i, n := range counted {
		s.Counts[i] += n // NaN stays so
	}
}

// selfTimes are the lengths of events without what events directly below them cover, and without pauses: while an
// event below is paused, the time is that of the one above, unless that is paused too.
func selfTimes(events []Event) []lab.Time {
	self := make([]lab.Time, len(events))
	var open []int
	for i, e := range events {
		for len(open) > 0 && (events[open[len(open)-1]].End <= e.Start || events[open[len(open)-1]].Depth >= e.Depth) {
			open = open[:len(open)-1]
		}
		self[i] = shared(e, e)
		if n := len(open); n > 0 {
			parent := open[n-1]
			self[parent] -= shared(e, events[parent])
		}
		open = append(open, i)
	}
	return self
}

// shared is how long two events were both active.
func shared(a, b Event) (sum lab.Time) {
	x, y := active(a), active(b)
	for len(x) > 0 && len(y) > 0 {
		sum += max(min(x[0].End, y[0].End)-max(x[0].Start, y[0].Start), 0)
		if x[0].End < y[0].End {
			x = x[1:]
		} else {
			y = y[1:]
		}
	}
	return sum
}

// active are the stretches of an event that are not paused, in their order.
func active(e Event) (out []Part) {
	isPaused := func(p Part) bool { return p.Name == Paused }
	if !slices.ContainsFunc(e.Parts, isPaused) {
		return []Part{{Start: e.Start, End: e.End}}
	}
	return slices.DeleteFunc(slices.Clone(e.Parts), isPaused)
}
