package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
)

// Between compares two runs made at different times: the control of run with the control
// of reference, which becomes the control of the result. A difference of at most margin,
// in percent of the reference, counts as none: the machine, the hour or the browser
// may have changed between the runs. The margins that the run's plan has for single metrics hold in its place.
//
// scales is nil where one box measured both. Else it has, by metric, the ratio of what the run's box measures to what
// that of the reference does. The run's numbers are divided by it. Metrics without a ratio cannot be compared, and are
// left out.
func Between(reference, run *lab.Run, margin float64, seed uint64, scales map[string]stats.Scale) *lab.Comparison {
	t, b := testBetween(reference, run, margin, seed, scales, 1)
	correct(t.Effects, 1)
	t.find()
	t.Verdict = decide(t.Effects)
	sayBetween(t, b)
	return t.Comparison
}

// BetweenMany is Between for runs of many pages or users: of each cell of the run that the reference has too, in the
// order of the run's plan, nil for one that it does not have. All share the level evenly, by Holm's method. The verdict
// is the worst that is found of any.
func BetweenMany(reference, run *lab.Run, margin float64, seed uint64, scales map[string]stats.Scale) (
	together *lab.Comparison, each []*lab.Comparison,
) {
	known := map[string]*lab.Run{}
	for i, view := range reference.Views() {
		known[reference.Plan.Cells()[i].Name] = view
	}
	together = &lab.Comparison{Level: Level, Seed: seed, Effects: []lab.Effect{}, Control: reference.ID, Treatment: run.ID}
	views, cells := run.Views(), run.Plan.Cells()
	each = make([]*lab.Comparison, len(views))
	var all []*tested
	var blocks []*block
	for i, view := range views {
		from := known[cells[i].Name]
		if from == nil {
			continue
		}
		of := margin
		if view.Plan.Margin != run.Plan.Margin { // the page has its own
			of = view.Plan.Margin
		}
		t, b := testBetween(from, view, of, seed, scales, len(views))
		all, blocks, each[i] = append(all, t), append(blocks, b), t.Comparison
		together.Pairs, together.LeftOut = together.Pairs+t.Pairs, together.LeftOut+t.LeftOut
	}
	correctAll(&tested{Comparison: together}, all, 1, 1)
	var effects []lab.Effect
	open := false
	for i, t := range all {
		t.find()
		t.Verdict = decide(t.Effects)
		sayBetween(t, blocks[i])
		effects, open = append(effects, t.Effects...), open || t.Verdict == lab.Unknown
	}
	if together.Verdict = decide(effects); open && together.Verdict == lab.NoChange {
		together.Verdict = lab.Unknown // nobody knows of one of the cells
	}
	sayBetweenMany(together, rule{margin: margin, margins: run.Plan.Margins}, cells, each)
	return together, each
}

// testBetween compares the controls of two runs. many is how many such comparisons share the level.
func testBetween(reference, run *lab.Run, margin float64, seed uint64, scales map[string]stats.Scale, many int) (*tested, *block) {
	b := &block{}
	c := &lab.Comparison{Level: Level, Seed: seed, Effects: []lab.Effect{}, Control: reference.ID, Treatment: run.ID}
	for _, one := range []struct {
		run *lab.Run
		to  *[]*lab.Trial
	}{{reference, &b.control}, {run, &b.treatment}} {
		for _, t := range one.run.Trials {
			switch {
			case t.Arm != lab.Control || t.IsExtra():
			case t.Valid:
				*one.to = append(*one.to, t)
			default:
				c.LeftOut++
			}
		}
	}
	c.Pairs = min(len(b.control), len(b.treatment))
	r := rule{level: Level, margin: margin, margins: run.Plan.Margins, asked: asked(run), scales: scales, times: many}
	t := testOf(c, []*block{b}, r, func(m compared, values []stats.Block, p stats.Plan) (stats.Comparison, error) {
		margin := r.marginOf(m.name) / 100
		if p.Scale != nil {
			return stats.Across(values[0].Control, values[0].Treatment, margin, p)
		}
		return stats.Independent(values[0].Control, values[0].Treatment, margin*math.Abs(stats.Median(values[0].Control)), p)
	})
	return t, b
}

// ofMore says of how much more a difference is that does not count as none; "" without margins.
func (r rule) ofMore() string {
	switch {
	case len(r.margins) > 0:
		return "more than its margin"
	case r.margin > 0:
		return fmt.Sprintf("more than %g %%", r.margin)
	}
	return ""
}

// sayBetween puts the comparison of a run with an earlier one into words.
func sayBetween(t *tested, b *block) {
	c, more := t.Comparison, t.ofMore()
	none := "No difference from the reference was found"
	if more != "" {
		none = "No difference of " + more + " from the reference was found"
	}
	c.Headline, c.Detail = words(c, voice{
		name: "The run", none: none,
		few: "Too few trials to tell whether the run is slower than the reference",
		least: fmt.Sprintf("%d valid %s of the reference and %d of the run, at least %d of each are needed", len(b.control),
			lab.Plural(len(b.control), "trial", "trials"), len(b.treatment), Least),
		trials: func(e *lab.Effect) string {
			return fmt.Sprintf("%d and %d trials", having(b.control, e.Metric), having(b.treatment, e.Metric))
		},
	})
	if c.Verdict == lab.Slower || c.Verdict == lab.Faster {
		c.Headline += " than the reference"
		if more != "" {
			c.Headline += ", by " + more
		}
	}
}

// sayBetweenMany does the same of many cells.
func sayBetweenMany(c *lab.Comparison, r rule, cells []lab.Cell, each []*lab.Comparison) {
	of := map[string][]string{} // the cells by what was found
	var lacking []string
	compared := 0
	for i, one := range each {
		name := lab.Clip(cells[i].Name, 120)
		if one == nil {
			lacking = append(lacking, name)
			continue
		}
		compared++
		of[one.Verdict] = append(of[one.Verdict], name)
	}
	worse, better := append(slices.Clone(of[lab.Slower]), of[lab.Mixed]...), append(slices.Clone(of[lab.Faster]), of[lab.Mixed]...)
	by := ""
	if more := r.ofMore(); more != "" {
		by = ", by " + more
	}
	switch c.Verdict {
	case lab.Slower:
		c.Headline = "The run is slower than the reference for " + listed(worse, 3) + by
	case lab.Faster:
		c.Headline = "The run is faster than the reference for " + listed(better, 3) + by
	case lab.Mixed:
		c.Headline = "The run is slower than the reference for " + listed(worse, 3) + " and faster for " + listed(better, 3) + by
	case lab.NoChange:
		c.Headline = strings.Replace("No difference"+by+" from the reference was found", ", by", " of", 1)
	default:
		c.Headline = "Too few trials to tell whether the run is slower than the reference"
	}
	parts := []string{fmt.Sprintf("%d of %d pages and users are compared", compared, len(each))}
	for _, group := range []struct{ verdict, words string }{
		{lab.Slower, "slower: "}, {lab.Mixed, "slower and faster: "}, {lab.Faster, "faster: "}, {lab.Unknown, "not known: "},
	} {
		if names := of[group.verdict]; len(names) > 0 {
			parts = append(parts, group.words+listed(names, 5))
		}
	}
	if len(lacking) > 0 {
		parts = append(parts, "not in the reference: "+listed(lacking, 5))
	}
	c.Detail = strings.Join(parts, "; ")
}

// having counts the trials that have a metric.
func having(trials []*lab.Trial, metric string) (n int) {
	for _, t := range trials {
		if t.Measurement(metric) != nil {
			n++
		}
	}
	return n
}
