package trace

import (
	"cmp"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// mostGroups bounds the rows of annotations; what more groups there are shares the last one.
const mostGroups = 50

// annotations turns notes into intervals and instants, a track for each group. end is when intervals end that
// nothing has ended.
func annotations(list []lab.Annotation, end lab.Time) (out []Track) {
	byGroup := map[string]*group{}
	var order []*group
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b lab.Annotation) int { return cmp.Compare(middle(a), middle(b)) })
	for _, a := range list {
		name := cmp.Or(a.Group, a.Source)
		g := byGroup[name]
		if a.Op == lab.AnnotateEnd && a.Group == "" && (g == nil || g.open(a.Text) < 0) { // of whatever group has begun it
			if i := slices.IndexFunc(order, func(g *group) bool { return g.open(a.Text) >= 0 }); i >= 0 {
				g = order[i]
			}
		}
		if g == nil {
			if len(order) == mostGroups {
				g = order[mostGroups-1]
			} else {
				g = &group{name: name, set: -1}
				order = append(order, g)
			}
			byGroup[name] = g
		}
		g.add(a)
	}
	for _, g := range order {
		g.closeAll(end)
		out = append(out, Track{Kind: Annotation, Name: g.name, Events: g.events})
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
}

func (g *group) add(a lab.Annotation) {
	now := middle(a)
	e := Event{Name: a.Text, Start: now, End: now, Earliest: a.Earliest, Latest: a.Latest, Colour: a.Colour, Facts: []Fact{{"from", a.Source}}}
	switch a.Op {
	case lab.AnnotateMark:
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
		e.Depth = len(g.begun)
		g.begun = append(g.begun, len(g.events))
		g.events = append(g.events, e)
	case lab.AnnotateEnd:
		if i := g.open(a.Text); i >= 0 {
			g.events[g.begun[i]].End = now
			g.begun = slices.Delete(g.begun, i, i+1)
		}
	}
}

// open is the place in begun of the newest open interval of a text, or of any where it is empty; −1 for none.
func (g *group) open(text string) int {
	for i := len(g.begun) - 1; i >= 0; i-- {
		if text == "" || g.events[g.begun[i]].Name == text {
			return i
		}
	}
	return -1
}

// closeAll ends what is still open, and says so.
func (g *group) closeAll(end lab.Time) {
	for _, i := range append(g.begun, g.set) {
		if i >= 0 {
			g.events[i].End = max(end, g.events[i].Start)
			g.events[i].Facts = append(g.events[i].Facts, Fact{"ended", "not before the trial did"})
		}
	}
}
