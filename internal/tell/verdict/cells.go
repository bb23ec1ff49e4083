package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Many compares the arms of a run of many pages or users: all of them together, and each of them, in the
// order of the plan. A cell is one page for one user. Both are nil if the run has one arm.
//
// Each cell is compared as a run of its own would be. Together the changes are in percent of each cell's control,
// by stats.CompareTogether, in which cells have the weights of the plan. The verdict is the worst that any of them
// finds, so they share one level: half of it is for the guards of all cells together, the other half for the
// guards of the cells, evenly, and by Holm's method for such shares what is found leaves its part to the rest
// (stats.WeightedHolm). Where the plan has too few pairs for a verdict on a cell, all of the level is for the cells
// together, and the verdict theirs. In a run whose arms are equal everywhere, a false alarm anywhere has at most Level.
// The p-values of all exploratory metrics of all cells are one family of Benjamini and Hochberg's.
func Many(run *lab.Run, seed uint64) (together *lab.Comparison, each []*lab.Comparison) {
	return compareCells(run, levelLeft(run), seed)
}

// compareCells is Many, with the level of this one comparison.
func compareCells(run *lab.Run, level float64, seed uint64) (together *lab.Comparison, each []*lab.Comparison) {
	if !hasTreatment(run) {
		return nil, nil
	}
	views := run.Views()
	rows := 0.5 // the share of the level that the cells have
	if run.Plan.Trials < Least {
		rows = 0
	}
	all, cells := make([]*tested, len(views)), make([][]*block, len(views))
	for i, view := range views {
		var c *lab.Comparison
		c, cells[i] = begun(view, seed)
		r := ruleOf(view, level)
		r.times = 2 * len(views)
		all[i] = test(c, cells[i], r)
	}
	sum := testTogether(run, cells, all, ruleOf(run, level), rows, seed)
	correctAll(sum, all, rows, Level/level)
	sum.find()
	found := decide(sum.Effects) // of the cells together
	effects, open := slices.Clone(sum.Effects), false
	for i, t := range all {
		t.find()
		t.Verdict = decide(t.Effects)
		conclude(t.Comparison, views[i], level)
		each = append(each, t.Comparison)
		if rows > 0 {
			effects, open = append(effects, t.Effects...), open || t.Verdict == lab.Unknown
		}
	}
	if sum.Verdict = decide(effects); open && (sum.Verdict == lab.NoChange || sum.Verdict == lab.Equivalent) {
		sum.Verdict = lab.Unknown // nobody knows of one of the cells
	}
	if sum.Verdict == lab.Unknown {
		sum.Missing = missingOfEach(sum, each, level)
	}
	wordsOfMany(sum.Comparison, found, run, each, rows)
	return sum.Comparison, each
}

// testTogether tests the guards that several cells have, over all of them.
func testTogether(run *lab.Run, cells [][]*block, all []*tested, r rule, rows float64, seed uint64) *tested {
	c := &lab.Comparison{Level: Level, Seed: seed, Margin: run.Plan.Margin, Margins: run.Plan.Margins, Effects: []lab.Effect{}}
	for i, t := range all {
		c.Pairs, c.LeftOut = c.Pairs+t.Pairs, c.LeftOut+t.LeftOut
		if i == 0 {
			c.Control, c.Treatment = t.Control, t.Treatment
		} else if c.Control != t.Control || c.Treatment != t.Treatment {
			c.Control, c.Treatment = "as the plan says for each page", "as the plan says for each page"
		}
	}
	if rows > 0 {
		r.times = 2
	}
	sum := &tested{c, r, map[string]lab.Range{}, map[string]bool{}}
	guards, groups := groupsOf(cells, all, run.Plan.Cells(), r)
	for _, m := range guards {
		of := groups[m.name]
		if len(of) < min(2, len(cells)) {
			continue // the only cell that has it tells of it
		}
		sum.higher[m.name] = m.entry.Better == metric.Higher
		sum.measure(m, familyOf(m, len(guards), r), func(p stats.Plan) (lab.Effect, bool) {
			p.Seed ^= togetherSeed
			found, err := stats.CompareTogether(of, p)
			if err != nil {
				return lab.Effect{Metric: m.name, Unit: "%", Guard: true, P: 1}, false
			}
			return effectOf(compared{m.name, "%", m.entry, true}, found), true
		})
		if n := len(of); n < len(cells) {
			e := &sum.Effects[len(sum.Effects)-1]
			e.Warnings = append(e.Warnings, fmt.Sprintf("of the %d of %d that have it", n, len(cells)))
		}
	}
	return sum
}

// togetherSeed keeps the dithering of cells together from being that of the first cell.
const togetherSeed = 0x746f676574686572

// groupsOf lists the guards of all cells, and the values of each in the cells that have it.
func groupsOf(cells [][]*block, all []*tested, of []lab.Cell, r rule) (guards []compared, groups map[string][]stats.Group) {
	groups = map[string][]stats.Group{}
	for n, blocks := range cells {
		for _, m := range metrics(blocks, r) {
			if !m.guarded {
				continue
			}
			if _, known := groups[m.name]; !known {
				guards = append(guards, m)
				groups[m.name] = nil
			}
			values, step := valuesOf(m, blocks)
			if r.recordings {
				values, step = recordingsOf(m, blocks), 0
			}
			if isComparable(values) {
				groups[m.name] = append(groups[m.name], stats.Group{
					Blocks: values, Step: step, Covariates: covariatesOf(m, blocks, all[n].Covariates), Weight: of[n].Weight,
				})
			}
		}
	}
	return guards, groups
}

// isComparable says whether a cell's values have a pair, and a change in percent.
func isComparable(values []stats.Block) bool {
	pairs, control := 0, []float64{}
	for _, b := range values {
		pairs += min(len(b.Control), len(b.Treatment))
		control = append(control, b.Control...)
	}
	slices.Sort(control)
	return pairs > 0 && stats.Quantile(control, 0.5) != 0
}

// correctAll fills in the adjusted p-values of the cells, and of all of them together.
func correctAll(sum *tested, cells []*tested, rows, looks float64) {
	var guards, others []*lab.Effect
	var p, weights, exploratory []float64
	collect := func(t *tested, share float64) {
		n := 0.0
		for _, e := range t.Effects {
			if e.Guard {
				n++
			}
		}
		for i := range t.Effects {
			e := &t.Effects[i]
			if e.Guard {
				guards, p, weights = append(guards, e), append(p, e.P), append(weights, share/n)
			} else {
				others, exploratory = append(others, e), append(exploratory, e.P)
			}
		}
	}
	collect(sum, 1-rows)
	for _, t := range cells {
		collect(t, max(rows, nothing)/float64(len(cells)))
	}
	for i, adjusted := range stats.WeightedHolm(p, weights) {
		guards[i].Adjusted = min(adjusted*looks, 1)
	}
	for i, adjusted := range stats.BenjaminiHochberg(exploratory) {
		others[i].Adjusted = min(adjusted*looks, 1)
	}
}

// nothing is the share of hypotheses that are not tested: with it none is rejected before the others.
const nothing = 1e-9

// missingOfEach is about how many more pairs each cell needs.
func missingOfEach(sum *tested, each []*lab.Comparison, level float64) (pairs int) {
	if decide(sum.Effects) == lab.Unknown {
		if all := missing(sum.Comparison, level); all < mostMissing {
			pairs = int(math.Ceil(float64(all) / float64(len(each))))
		} else {
			pairs = mostMissing
		}
	}
	for _, c := range each {
		pairs = max(pairs, c.Missing)
	}
	return pairs
}

// wordsOfMany formats the verdict of many cells. found is that of all of them together.
func wordsOfMany(c *lab.Comparison, found string, run *lab.Run, each []*lab.Comparison, rows float64) {
	cells := run.Plan.Cells()
	v := ofArms(c)
	v.trials = func(e *lab.Effect) string { return fmt.Sprintf("%d pairs of trials", e.Pairs) }
	all := "over all " + counted(run.Plan) + " together"
	of := map[string][]string{} // the cells by what was found
	for i, one := range each {
		of[one.Verdict] = append(of[one.Verdict], lab.Clip(cells[i].Name, 120))
	}
	worse := append(slices.Clone(of[lab.Slower]), of[lab.Mixed]...)
	better := append(slices.Clone(of[lab.Faster]), of[lab.Mixed]...)
	where := func(finding string, names []string) string {
		if found == finding || len(names) == 0 {
			return all
		}
		return "for " + listed(names, 3)
	}
	switch c.Verdict {
	case lab.Slower:
		c.Headline = v.name + " is slower " + where(lab.Slower, worse)
	case lab.Faster:
		c.Headline = v.name + " is faster " + where(lab.Faster, better)
	case lab.Mixed:
		c.Headline = v.name + " is slower " + where(lab.Slower, worse) + " and faster " + where(lab.Faster, better)
	case lab.NoChange:
		c.Headline = v.none
	case lab.Equivalent:
		c.Headline = v.name + " is equivalent to the control within " + marginOf(c)
	default:
		c.Headline = v.few
		if c.Margin > 0 && c.Pairs >= Least*len(each) {
			c.Headline = "Whether the treatment differs by more than " + marginOf(c) + " is not known"
		}
	}
	parts := []string{all + " nothing could be compared"}
	if best := c.TellingOf(found); best != nil {
		parts[0] = v.change(best, true)
		if !strings.Contains(c.Headline, all) {
			parts[0] = all + " " + parts[0]
		}
		if found == lab.NoChange {
			parts[0] += fmt.Sprintf("; %s %% or more would have been detected with 80 %% probability", strings.TrimPrefix(lab.Change(best.MinimalEffect), "+"))
		}
	}
	for _, group := range []struct{ verdict, words string }{
		{lab.Slower, "slower: "}, {lab.Mixed, "slower and faster: "}, {lab.Faster, "faster: "}, {lab.Unknown, "not known: "},
	} {
		if names := of[group.verdict]; len(names) > 0 && (rows > 0 || group.verdict != lab.Unknown) {
			parts = append(parts, group.words+listed(names, 5))
		}
	}
	if rows == 0 {
		parts = append(parts, fmt.Sprintf("with fewer than %d pairs each, they are not judged one by one", Least))
	}
	if c.Verdict == lab.Unknown {
		parts = append(parts, fmt.Sprintf("%s, of each", morePairs(c.Missing)))
	}
	if text := sayServers(c, run); text != "" {
		parts = append(parts, text)
	}
	if text := machineOf(run); text != "" {
		parts = append(parts, text)
	}
	if n := len(run.Looks); n > 0 && run.Looks[n-1].Known {
		parts = append(parts, fmt.Sprintf("known at look %d of %d", n, run.Plan.Looks))
	}
	c.Detail = strings.Join(parts, "; ")
}

// counted says what a plan has many of.
func counted(p lab.Plan) string {
	pages := fmt.Sprintf("%d %s", len(p.Pages), lab.Plural(len(p.Pages), "page", "pages"))
	users := fmt.Sprintf("%d %s", len(p.Users), lab.Plural(len(p.Users), "user", "users"))
	switch {
	case len(p.Users) == 0:
		return pages
	case len(p.Pages) == 0:
		return users
	}
	return pages + " and " + users
}

// listed lists names, the first ones of many.
func listed(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
