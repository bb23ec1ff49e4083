package terminal

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"eidetic/internal/lab"
)

// clip shortens a text to so many characters.
func clip(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:max(most-1, 0)]) + "…"
}

// Table is a small table: its first column is one of names, and its last one is of words; the others are of numbers.
type Table struct {
	Head  []string
	rows  [][]string
	paint []string // of each row's last cell
	// bar is what is drawn of a row beside it, on a terminal that has room for n characters; nil for nothing.
	bar func(row, n int) string
}

// Add adds a row, whose last cell has a colour.
func (t *Table) Add(colour string, cells ...string) {
	t.rows, t.paint = append(t.rows, cells), append(t.paint, colour)
}

const (
	leastBar = 10
	mostBar  = 24
)

// Print prints the table. Where the terminal is too narrow there is one space between columns, and then the names are
// cut.
func (t *Table) Print(c *Console) {
	if len(t.rows) == 0 {
		return
	}
	widths := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	gap, all := 2, 0
	for _, n := range widths {
		all += n
	}
	total := func() int { return all + gap*(len(widths)-1) }
	if c.width > 0 && total() > c.width {
		gap = 1
		if over := total() - c.width; over > 0 {
			cut := min(over, max(0, widths[0]-8))
			widths[0], all = widths[0]-cut, all-cut
		}
	}
	room, clipped := min(c.width-total()-gap, mostBar), 0
	for i, row := range append([][]string{t.Head}, t.rows...) {
		var b strings.Builder
		for j, cell := range row {
			if utf8.RuneCountInString(cell) > widths[j] {
				cell, clipped = clip(cell, widths[j]), clipped+1
			}
			pad := strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell))
			switch last := j == len(t.Head)-1; {
			case j == 0:
				b.WriteString(cell + pad)
			case last && i > 0:
				b.WriteString(strings.Repeat(" ", gap) + c.paint(t.paint[i-1], cell) + pad)
			case last:
				b.WriteString(strings.Repeat(" ", gap) + cell + pad)
			default:
				b.WriteString(strings.Repeat(" ", gap) + pad + cell)
			}
		}
		if i > 0 && t.bar != nil && room >= leastBar {
			b.WriteString(strings.Repeat(" ", gap) + t.bar(i-1, room))
		}
		text := strings.TrimRight(b.String(), " ")
		if i == 0 {
			text = c.paint(faint, text)
		}
		fmt.Fprintln(c.out, text)
	}
	if clipped > 0 {
		fmt.Fprintln(c.out, c.paint(faint, fmt.Sprintf("%d %s cut for %d columns: | cat shows all", clipped, lab.Plural(clipped, "name is", "names are"), c.width)))
	}
}

// lengths are bars from 0, relative to the largest value.
func lengths(values []float64) func(row, n int) string {
	most := slices.Max(append(values, 0))
	return func(row, n int) string {
		if !(most > 0) || row >= len(values) || !(values[row] > 0) {
			return ""
		}
		return strings.Repeat("█", max(1, int(values[row]/most*float64(n)+0.5)))
	}
}

// span is an interval around an estimate.
type span struct{ low, value, high float64 }

// spans draw intervals on one axis with 0 in its middle.
func spans(all []span) func(row, n int) string {
	most := 0.0
	for _, s := range all {
		most = max(most, -s.low, s.low, -s.high, s.high)
	}
	return func(row, n int) string {
		if !(most > 0) || row >= len(all) {
			return ""
		}
		n -= 1 - n%2 // an odd number has a middle
		at := func(v float64) int { return min(max(int((v/most+1)/2*float64(n-1)+0.5), 0), n-1) }
		cells := []rune(strings.Repeat(" ", n))
		cells[n/2] = '│'
		for i := at(all[row].low); i <= at(all[row].high); i++ {
			cells[i] = '─'
		}
		cells[at(all[row].value)] = '●'
		return string(cells)
	}
}
