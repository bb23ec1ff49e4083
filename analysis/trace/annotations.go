package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// mostGroups bounds the rows of annotations. Further groups are drawn on the last row; they end only their own
// intervals.
const mostGroups = 50

// Bounds of the work with notes that never end: of a row's open intervals, and of the rows in which one without a group
// is looked for.
const (
	mostOpen     = 1000
	mostSearched = 1000
)

// annotations turns notes into intervals and instants, a track for each group. end is when intervals end that
// nothing has ended.
func annotations(list []lab.Annotation, end lab.Time) (out []Track) {
	byGroup := map[string]*group{}
	var order []*group
	inside := []string{lab.AnnotateEnd, lab.AnnotatePause, lab.AnnotateResume} // what is done to an interval that has begun
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b lab.Annotation) int { return cmp.Compare(middle(a), middle(b)) })
	for _, a := range list {
		name := cmp.Or(a.Group, a.Source)
		g := byGroup[name]
		if slices.Contains(inside, a.Op) && a.Group == "" && (g == nil || g.open(a.Text) < 0) { // of whatever group has begun it
			if i := slices.IndexFunc(order[:min(len(order), mostSearched)], func(g *group) bool { return g.open(a.Text) >= 0 }); i >= 0 {
				g = order[i]
			}
		}
		if g == nil {
			g = &group{name: name, set: -1}
			order = append(order, g)
			byGroup[name] = g
		}
		g.add(a)
	}
	for i, g := range order {
		g.closeAll(end)
		if i < mostGroups {
			out = append(out, Track{Kind: Annotation, Name: g.name, Events: g.events})
			continue
		}
		last := &out[mostGroups-1]
		last.Name = fmt.Sprintf("%d further groups", len(order)-mostGroups+1)
		last.Events = append(last.Events, g.events...)
	}
	return out
}

func middle(a lab.Annotation) lab.Time { return a.Earliest + (a.Latest-a.Earliest)/2 }

// group is the state of one row: which intervals are open.
type group struct {
	name   string
	events []Event
	set    int   // the interval of the newest AnnotateSet, −1 for none
	begun  []int // intervals of AnnotateBegin, the newest last
	// Of intervals that were paused: when each stretch of activity and of rest began, the open one last.
	turns map[int][]lab.Time
}

func (g *group) add(a lab.Annotation) {
	now := middle(a)
	e := Event{Name: a.Text, Start: now, End: now, Earliest: a.Earliest, Latest: a.Latest, Colour: a.Colour, Facts: []Fact{{"from", a.Source}}}
	switch a.Op {
	case lab.AnnotateSend, lab.AnnotateReceive:
		e.Facts = append(e.Facts, Fact{"message", a.Op})
		e.message, e.sends = cmp.Or(a.Key, a.Text), a.Op == lab.AnnotateSend
		g.events = append(g.events, weighed(e, a.Bytes))
	case lab.AnnotateMark:
		e = weighed(e, a.Bytes)
		g.events = append(g.events, e)
	case lab.AnnotateSpan:
		e.End = now + lab.Time(a.Lasts)
		g.events = append(g.events, e)
	case lab.AnnotateSet:
		if g.set >= 0 {
			g.events[g.set].End = now
			g.set = -1
		}
		if strings.TrimSpace(a.Text) != "" {
			g.set = len(g.events)
			g.events = append(g.events, e)
		}
	case lab.AnnotateBegin:
		if len(g.begun) == mostOpen {
			e.Facts = append(e.Facts, Fact{"ended", fmt.Sprintf("unknown: %d intervals of the row are open", mostOpen)})
			g.events = append(g.events, e)
			return
		}
		if n := len(g.begun); n > 0 { // below the deepest that is open: those above may have ended before
			e.Depth = min(g.events[g.begun[n-1]].Depth+1, mostDepth)
		}
		g.begun = append(g.begun, len(g.events))
		g.events = append(g.events, e)
	case lab.AnnotateEnd:
		if i := g.open(a.Text); i >= 0 {
			g.end(g.begun[i], now)
			g.begun = slices.Delete(g.begun, i, i+1)
		}
	case lab.AnnotatePause, lab.AnnotateResume:
		pause := a.Op == lab.AnnotatePause
		if i := g.find(func(i int) bool { return isNamed(g.events[i], a.Text) && g.isPaused(i) != pause }); i >= 0 {
			if g.turns == nil {
				g.turns = map[int][]lab.Time{}
			}
			g.turns[g.begun[i]] = append(g.turns[g.begun[i]], now)
		}
	}
}

// weighed adds the size of a message.
func weighed(e Event, bytes int64) Event {
	if bytes > 0 {
		e.Facts = append(e.Facts, Fact{"bytes", strconv.FormatInt(bytes, 10)})
		e.bytes = bytes
	}
	return e
}

func (g *group) isPaused(i int) bool { return len(g.turns[i])%2 == 1 }

// end ends an interval, and says what of it was its own time.
func (g *group) end(i int, now lab.Time) {
	e := &g.events[i]
	e.End = max(now, e.Start)
	turns := g.turns[i]
	if len(turns) == 0 {
		return
	}
	from, rest := e.Start, lab.Time(0)
	for n, at := range append(turns, e.End) {
		name, at := "active", min(at, e.End) // a program may pause it after the trial has ended
		if n%2 == 1 {
			name, rest = Paused, rest+at-from
		}
		e.Parts = append(e.Parts, Part{Name: name, Start: from, End: at})
		from = at
	}
	ms := func(t lab.Time) string { return strconv.FormatFloat(float64(t)/1e6, 'f', 3, 64) + " ms" }
	e.Facts = append(e.Facts, Fact{"active", ms(e.End - e.Start - rest)}, Fact{Paused, ms(rest)})
}

// open is the place in begun of the newest open interval of a text, or of any where it is empty; −1 for none.
func (g *group) open(text string) int {
	return g.find(func(i int) bool { return isNamed(g.events[i], text) })
}

func isNamed(e Event, text string) bool { return text == "" || e.Name == text }

// find is the place in begun of the newest open interval that is as asked, −1 for none.
func (g *group) find(is func(event int) bool) int {
	for i := len(g.begun) - 1; i >= 0; i-- {
		if is(g.begun[i]) {
			return i
		}
	}
	return -1
}

// closeAll ends what is still open, and says so.
func (g *group) closeAll(end lab.Time) {
	for _, i := range append(g.begun, g.set) {
		if i >= 0 {
			g.end(i, end)
			g.events[i].Facts = append(g.events[i].Facts, Fact{"ended", "not before the trial did"})
		}
	}
}
