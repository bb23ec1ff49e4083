package terminal

import (
	"fmt"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/tell/suite"
)

// Marks prints the table of marks.
func Marks(to *Console, t *suite.Table) {
	if len(t.Rows) == 0 && len(t.Missing) == 0 {
		return
	}
	list := Table{Head: []string{"entry", "type"}}
	for i, b := range t.Browsers {
		b = Plain(b)
		list.Head = append(list.Head, b+" visual", "interactive")
		if i > 0 {
			list.Head = append(list.Head, "times "+Plain(t.Browsers[0]), "95 % interval")
		}
	}
	list.Head = append(list.Head, "finding")
	for _, row := range t.Rows {
		cells := []string{row.Entry, row.Type}
		for i := range t.Browsers {
			cells = append(cells, numberOf(row.Visual[i]), numberOf(row.Interactive[i]))
			if i > 0 {
				cells = append(cells, RatioCells(row.Ratios[i])...)
			}
		}
		list.Add("", append(cells, findings(row.Ratios))...)
	}
	last := []string{"geometric mean", ""}
	for i := range t.Browsers {
		score := ""
		if s := t.Scores[i]; s != nil {
			score = fmt.Sprintf("%.1f ± %.1f %%", s.Value, 50*(s.High-s.Low)/s.Value)
			if s.Confidence == 0 {
				score = fmt.Sprintf("%.1f", s.Value)
			}
		}
		last = append(last, score, "")
		if i > 0 {
			last = append(last, RatioCells(t.Ratios[i])...)
		}
	}
	list.Add("", append(last, findings(t.Ratios))...)
	list.Print(to)
	for _, m := range t.Missing {
		to.Line("Not in the table: " + Plain(m))
	}
	if len(t.Unmeasured) > 0 {
		to.Line("Not measured: " + Plain(strings.Join(t.Unmeasured, ", ")))
	}
	to.Line("Marks are medians, of times in ms, of rates in frames/s; the geometric mean counts a rate as its period. " +
		"A ratio above 1 is slower. Findings are corrected by Holm's method.")
}

func numberOf(v *float64) string {
	switch {
	case v == nil:
		return "–"
	case *v < 100:
		return fmt.Sprintf("%.1f", *v)
	}
	return fmt.Sprintf("%.0f", *v)
}

// RatioCells are the cells of a ratio and of its interval.
func RatioCells(r *suite.Ratio) []string {
	switch {
	case r == nil:
		return []string{"–", "–"}
	case r.Confidence == 0:
		return []string{fmt.Sprintf("%.3f", r.Value), "–"}
	}
	return []string{fmt.Sprintf("%.3f", r.Value), fmt.Sprintf("%.3f … %.3f", r.Low, r.High)}
}

// findings are those of all browsers but the first.
func findings(all []*suite.Ratio) string {
	var words []string
	for _, r := range all[min(1, len(all)):] {
		words = append(words, r.Finding())
	}
	return strings.Join(words, ", ")
}

// Known prints the table of known answers.
func Known(to *Console, all []suite.Known) {
	if len(all) == 0 {
		return
	}
	list := Table{Head: []string{"known answer", "browser", "knob", "page did", "measured", "worst trial", "bound", "blur", "trials", "holds"}}
	for _, k := range all {
		number := func(v *float64) string {
			if v == nil {
				return "–"
			}
			return fmt.Sprintf("%.2f", *v)
		}
		holds, colour, off := "yes", Green, fmt.Sprintf("%+.2f", k.Off)
		switch {
		case k.Measured == nil:
			holds, colour, off = "no trial: "+Plain(lab.Clip(k.Why, 100)), "", "–"
		case !k.Holds:
			holds, colour = "no", Red
		}
		list.Add(colour, k.Entry+": "+Plain(k.Metric), Plain(k.Browser),
			fmt.Sprintf("%g", k.Asked), number(k.Did), number(k.Measured), off,
			fmt.Sprintf("± %g", k.Within), blurOf(k), fmt.Sprint(k.Trials), holds)
	}
	list.Print(to)
}

// blurOf is by how much a bound in ms is wider.
func blurOf(k suite.Known) string {
	if k.Blur == 0 {
		return ""
	}
	return fmt.Sprintf("+ %.0f", k.Blur)
}
