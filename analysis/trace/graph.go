package trace

import (
	"cmp"
	"slices"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
)

// mostNodes bounds a run graph: pages may annotate what they like.
const mostNodes = 5000

// Node is a name in a run graph: the intervals of one name that lie in the same ones. Times are in ms of a trial,
// averaged over all trials of the graph, those without the name included.
type Node struct {
	Kind, Name string
	Count      float64
	Total      float64
	Self       float64 // without what lies in the nodes below
	First      float64 // when it begins, averaged over the trials that have it
	Children   []*Node // in the order in which they begin

	totals []float64 // of each trial; those at the end may be missing
	counts int
	self   float64
	firsts float64
	trials int
	last   int // the trial that was added last; they count from 1
	byName map[nodeName]*Node
}

type nodeName struct{ kind, name string }

// Graph sums up the intervals of several trials by name and place: steps, measures of the page, annotated intervals. It
// takes them one after the other, so that only sums are kept.
type Graph struct {
	Left   int // intervals that are left out, as the graph is full
	root   Node
	blocks []int
	nodes  int
}

// Add adds a trial of a block.
func (g *Graph) Add(tl *Timeline, block int) {
	g.blocks = append(g.blocks, block)
	for _, track := range tl.Tracks {
		if track.Kind != Step && track.Kind != Annotation && track.Name != "Measures" {
			continue
		}
		parent := &g.root
		if track.Kind == Annotation {
			parent = g.below(parent, track.Kind, track.Name)
		}
		g.addTrack(parent, withoutPage(track, tl.Page), tl.Zero)
	}
}

// withoutPage is a track in which the load of the trial's page has the same name in all trials: arms may load different
// pages.
func withoutPage(track Track, page string) Track {
	if track.Kind == Step && page != "" {
		track.Events = slices.Clone(track.Events)
		for i := range track.Events {
			if e := &track.Events[i]; e.Name == "load "+page {
				e.Name = "load of the page"
			}
		}
	}
	return track
}

func (g *Graph) addTrack(top *Node, track Track, zero lab.Time) {
	if top == nil {
		g.Left += len(track.Events)
		return
	}
	self := selfTimes(track.Events)
	type place struct {
		node  *Node
		event Event
	}
	var open []place
	for i, e := range track.Events {
		if e.Instant() {
			continue
		}
		for len(open) > 0 && (open[len(open)-1].event.End <= e.Start || open[len(open)-1].event.Depth >= e.Depth) {
			open = open[:len(open)-1]
		}
		parent := top
		if len(open) > 0 {
			parent = open[len(open)-1].node
		}
		n := g.below(parent, track.Kind, e.Name)
		if n == nil {
			g.Left++
			continue
		}
		n.take(e, self[i], zero, len(g.blocks))
		if top != &g.root && parent == top { // the row of a group is as long as what is on it
			top.take(e, 0, zero, len(g.blocks))
			top.counts--
		}
		open = append(open, place{n, e})
	}
}

// take adds an interval of trial n, which counts from 1.
func (n *Node) take(e Event, self, zero lab.Time, trial int) {
	ms := float64(e.End-e.Start) / 1e6
	for len(n.totals) < trial {
		n.totals = append(n.totals, 0)
	}
	n.totals[trial-1] += ms
	n.counts++
	n.self += float64(self) / 1e6
	if n.last != trial {
		n.last, n.trials, n.firsts = trial, n.trials+1, n.firsts+float64(e.Start-zero)/1e6
	}
}

// below returns the node of a name in another; nil if the graph is full.
func (g *Graph) below(parent *Node, kind, name string) *Node {
	key := nodeName{kind, name}
	if c := parent.byName[key]; c != nil {
		return c
	}
	if g.nodes == mostNodes {
		return nil
	}
	g.nodes++
	c := &Node{Kind: kind, Name: name}
	if parent.byName == nil {
		parent.byName = map[nodeName]*Node{}
	}
	parent.byName[key] = c
	parent.Children = append(parent.Children, c)
	return c
}

// Trials is how many were added.
func (g *Graph) Trials() int { return len(g.blocks) }

// Roots are the nodes that lie in no other.
func (g *Graph) Roots() []*Node {
	g.average(g.root.Children)
	return g.root.Children
}

func (g *Graph) average(nodes []*Node) {
	all := float64(max(len(g.blocks), 1))
	for _, n := range nodes {
		n.Total = 0
		for _, ms := range n.totals {
			n.Total += ms / all
		}
		n.Count, n.Self, n.First = float64(n.counts)/all, n.self/all, n.firsts/float64(max(n.trials, 1))
		g.average(n.Children)
	}
	slices.SortStableFunc(nodes, func(a, b *Node) int { return cmp.Compare(a.First, b.First) })
}

// GraphRow is a line of two run graphs: what both have, or one of them.
type GraphRow struct {
	Kind, Name         string
	Depth              int
	Control, Treatment *Node // nil where the arm does not have it
	// Difference is that of the totals in blocks, treatment less control; nil where there are too few for one, and
	// where one arm alone has the row: what is not there does not take 0 ms.
	Difference *stats.Interval
	Children   []*GraphRow
}

// Total is the larger of both arms.
func (r *GraphRow) Total() (ms float64) {
	for _, n := range []*Node{r.Control, r.Treatment} {
		if n != nil {
			ms = max(ms, n.Total)
		}
	}
	return ms
}

// Confidence is that of the intervals of run graphs, of each row alone.
const Confidence = 0.95

// Beside lays the run graphs of two arms beside each other; treatment is nil for a run of one. The rows with the
// largest totals are shown, and left says how many others there are.
func Beside(control, treatment *Graph, most int) (rows []*GraphRow, left int) {
	var others []*Node
	if treatment != nil {
		others = treatment.Roots()
	}
	rows = beside(control.Roots(), others, 0)
	var all []*GraphRow
	each(rows, func(r *GraphRow) { all = append(all, r) })
	if len(all) > most {
		// A row comes before those in it, which do not take longer; ties are decided by order.
		slices.SortStableFunc(all, func(a, b *GraphRow) int { return cmp.Compare(b.Total(), a.Total()) })
		kept := map[*GraphRow]bool{}
		for _, r := range all[:most] {
			kept[r] = true
		}
		rows, left = only(rows, kept), len(all)
		each(rows, func(*GraphRow) { left-- })
	}
	if treatment != nil {
		each(rows, func(r *GraphRow) {
			if r.Control != nil && r.Treatment != nil {
				r.Difference = difference(control, treatment, r.Control, r.Treatment)
			}
		})
	}
	return rows, left
}

func each(rows []*GraphRow, do func(*GraphRow)) {
	for _, r := range rows {
		do(r)
		each(r.Children, do)
	}
}

// only drops all rows but some, and what lies in those that are dropped.
func only(rows []*GraphRow, kept map[*GraphRow]bool) []*GraphRow {
	rows = slices.DeleteFunc(rows, func(r *GraphRow) bool { return !kept[r] })
	for _, r := range rows {
		r.Children = only(r.Children, kept)
	}
	return rows
}

func beside(control, treatment []*Node, depth int) (rows []*GraphRow) {
	byName := map[nodeName]*GraphRow{}
	with := func(n *Node) *GraphRow {
		key := nodeName{n.Kind, n.Name}
		if byName[key] == nil {
			byName[key] = &GraphRow{Kind: n.Kind, Name: n.Name, Depth: depth}
			rows = append(rows, byName[key])
		}
		return byName[key]
	}
	for _, n := range control {
		with(n).Control = n
	}
	for _, n := range treatment {
		with(n).Treatment = n
	}
	for _, r := range rows {
		var below [2][]*Node
		for i, n := range []*Node{r.Control, r.Treatment} {
			if n != nil {
				below[i] = n.Children
			}
		}
		r.Children = beside(below[0], below[1], depth+1)
	}
	slices.SortStableFunc(rows, func(a, b *GraphRow) int { return cmp.Compare(a.first(), b.first()) })
	return rows
}

func (r *GraphRow) first() float64 {
	if r.Control != nil {
		return r.Control.First
	}
	return r.Treatment.First
}

// difference compares the totals of a node in both arms, block by block.
func difference(cg, tg *Graph, control, treatment *Node) *stats.Interval {
	at := map[int]int{}
	var blocks []stats.Block
	add := func(g *Graph, n *Node, into func(*stats.Block) *[]float64) {
		for i, block := range g.blocks {
			k, ok := at[block]
			if !ok {
				k, blocks = len(blocks), append(blocks, stats.Block{})
				at[block] = k
			}
			ms := 0.0
			if n != nil && i < len(n.totals) {
				ms = n.totals[i]
			}
			values := into(&blocks[k])
			*values = append(*values, ms)
		}
	}
	add(cg, control, func(b *stats.Block) *[]float64 { return &b.Control })
	add(tg, treatment, func(b *stats.Block) *[]float64 { return &b.Treatment })
	const permutations = 2000
	i, _, err := stats.ShiftInBlocks(blocks, Confidence, permutations, 1)
	if err != nil || i.Confidence < Confidence-1e-9 {
		return nil
	}
	return &i
}
