package terminal

import (
	"fmt"

	"eidetic/internal/lab"
	"eidetic/internal/tell/compare"
)

// Between prints how two runs compare.
func Between(to *Console, found *compare.Between) {
	Headline(to, found.Comparison.Verdict, found.Comparison.Headline, found.Comparison.Detail)
	judged := "run"
	if found.Adjusted != nil {
		judged = "run, adjusted"
	}
	if len(found.Cells) > 0 {
		printBetween(to, found.Cells, judged)
	} else {
		Effects(to, found.Comparison, "reference", judged, "with --json")
	}
	for _, w := range found.Warnings {
		to.Line("Warning: " + Plain(w))
	}
	if len(found.Different) > 0 {
		to.Line("Besides, these are not alike, and may be the reason:")
		for _, f := range found.Different {
			to.Line(fmt.Sprintf("  %s: %s, then %s", Plain(f.Name), Plain(f.Before), Plain(f.After)))
		}
	}
}

// printBetween prints a line for each page and user of two runs: the guard that tells most.
func printBetween(to *Console, all []compare.Cell, judged string) {
	t := &Table{Head: []string{"", "reference", judged, "change", "95 % interval", ""}}
	rows, left := shortened(all, func(one compare.Cell) int { return rankOf(one.Comparison) })
	for _, one := range rows {
		t.addCompared(Plain(one.Name), one.Comparison)
	}
	t.Print(to)
	if left > 0 {
		to.Line(more(left, "page and user", "pages and users", "with --json"))
	}
}

// tellingOf is what was found of two runs, or of the page and user that tells most.
func tellingOf(found *compare.Between) *lab.Comparison {
	for _, one := range found.Cells {
		if one.Comparison != nil && one.Comparison.Verdict == found.Comparison.Verdict {
			return one.Comparison
		}
	}
	return found.Comparison
}
