package report

import (
	"fmt"
	"html/template"
	"math"

	"eidetic/analysis/trace"
	"eidetic/internal/lab"
)

// Bounds of a run graph on a page.
const (
	mostGraphRows  = 40
	graphRowHeight = 26
	narrowest      = 0.15 // percent of the width; what is narrower is in the table alone
)

// runGraph is what the valid trials of a run spend their time in, on average.
type runGraph struct {
	Both   bool
	Rows   []graphRow
	Left   int // rows that are not shown
	Out    int // intervals that are in no row
	Bars   []graphBars
	Trials [2]int
}

// graphRow is a line of the table.
type graphRow struct {
	Name               string
	Indent             string
	Control, Treatment *trace.Node
	Difference         string
	Sign               string // slower, faster, or "" where nothing is known
}

// graphBars are the bars of an arm, each as long as its share of the longest arm's time.
type graphBars struct {
	Arm, Word string
	Height    int
	List      []graphBar
}

type graphBar struct {
	X, Width string // in percent
	Y        int
	Name     string
	Title    string
	Class    template.HTMLAttr
}

// graphs collects the run graphs of both arms.
type graphs struct{ control, treatment trace.Graph }

func (g *graphs) add(t *lab.Trial, tl *trace.Timeline) {
	switch {
	case !t.Valid:
	case t.Arm == lab.Treatment:
		g.treatment.Add(tl, t.Block)
	default:
		g.control.Add(tl, t.Block)
	}
}

// page lays the graphs out; nil if there is nothing in them.
func (g *graphs) page() *runGraph {
	p := &runGraph{Both: g.treatment.Trials() > 0, Out: g.control.Left + g.treatment.Left}
	p.Trials = [2]int{g.control.Trials(), g.treatment.Trials()}
	var other *trace.Graph
	if p.Both {
		other = &g.treatment
	}
	rows, left := trace.Beside(&g.control, other, mostGraphRows)
	if len(rows) == 0 {
		return nil
	}
	p.Left = left
	p.table(rows)
	longest := 0.0
	for arm := range 2 {
		longest = max(longest, spanOf(rows, arm))
	}
	for arm, word := range []string{armName(lab.Control), armName(lab.Treatment)} {
		if arm == 1 && !p.Both {
			break
		}
		b := graphBars{Arm: []string{lab.Control, lab.Treatment}[arm], Word: word}
		if !p.Both {
			b.Word = "All valid trials"
		}
		b.place(rows, arm, 0, 100/max(longest, 1e-9))
		b.Height += graphRowHeight
		p.Bars = append(p.Bars, b)
	}
	return p
}

func (p *runGraph) table(rows []*trace.GraphRow) {
	for _, r := range rows {
		one := graphRow{
			Name: lab.OneLine(r.Name, maxTimelineText), Indent: fmt.Sprintf("depth-%d", min(r.Depth, 6)), Control: r.Control,
			Treatment: r.Treatment, Sign: signOf(r),
		}
		switch d := r.Difference; {
		case d != nil:
			one.Difference = fmt.Sprintf("%s (%s … %s)", signedMS(d.Value), signedMS(d.Low), signedMS(d.High))
		case p.Both && r.Control == nil:
			one.Difference = "only in treatment"
		case p.Both && r.Treatment == nil:
			one.Difference = "only in control"
		}
		p.Rows = append(p.Rows, one)
		p.table(r.Children)
	}
}

func signedMS(ms float64) string {
	if math.Abs(ms) < 0.05 {
		return "0"
	}
	if ms < 0 {
		return fmt.Sprintf("−%.1f", -ms)
	}
	return fmt.Sprintf("+%.1f", ms)
}

// signOf says whether a row takes longer with the treatment, as far as its interval excludes 0.
func signOf(r *trace.GraphRow) string {
	switch d := r.Difference; {
	case d == nil:
	case d.Low > 0:
		return "slower"
	case d.High < 0:
		return "faster"
	}
	return ""
}

func nodeOf(r *trace.GraphRow, arm int) *trace.Node {
	if arm == 1 {
		return r.Treatment
	}
	return r.Control
}

// spanOf is how long the rows of an arm are, one after the other.
func spanOf(rows []*trace.GraphRow, arm int) (ms float64) {
	for _, r := range rows {
		if n := nodeOf(r, arm); n != nil {
			ms += max(n.Total, spanOf(r.Children, arm))
		}
	}
	return ms
}

// place lays rows side by side from x, in ms, and what lies in them below.
func (b *graphBars) place(rows []*trace.GraphRow, arm int, x, perMS float64) {
	for _, r := range rows {
		n := nodeOf(r, arm)
		if n == nil {
			continue
		}
		width := max(n.Total, spanOf(r.Children, arm))
		if width*perMS >= narrowest {
			y := r.Depth * graphRowHeight
			b.Height = max(b.Height, y)
			name := lab.OneLine(r.Name, maxTimelineText)
			one := graphBar{X: fmt.Sprintf("%.3f%%", x*perMS), Width: fmt.Sprintf("%.3f%%", width*perMS), Y: y, Name: name}
			one.Title = fmt.Sprintf("%s: %.1f ms in a trial, %.1f ms of it by itself, %.3g times", name, n.Total, n.Self, n.Count)
			if d := r.Difference; d != nil {
				one.Title += fmt.Sprintf("; treatment less control %s ms (95 %% interval %s … %s)", signedMS(d.Value), signedMS(d.Low), signedMS(d.High))
			}
			if s := signOf(r); s != "" && arm == 1 {
				one.Class = template.HTMLAttr(`class="` + s + `"`)
			}
			b.List = append(b.List, one)
			b.place(r.Children, arm, x, perMS)
		}
		x += width
	}
}
