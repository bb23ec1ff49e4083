package trace

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// behind are the facts that stand behind an event in text.
func behind() []string {
	return []string{"status", "bytes", "matched", "active", Paused, "browser's processor time", "ended", "time", "message", "came from", "on the way"}
}

// Text writes a timeline as a tree for people: each row with its events, the ms from the start and their length, what
// lies in others under them, at most so many events of a row. A row is written if only is empty or has its name or
// kind.
func Text(w io.Writer, tl *Timeline, only []string, most int) error {
	out := bufio.NewWriter(w)
	ms := func(at lab.Time) float64 { return float64(at-tl.Zero) / 1e6 }
	fmt.Fprintf(out, "Trial %d, %s: %s\n", tl.Trial, cmp.Or(tl.Arm, lab.Control), lab.OneLine(tl.Page, 200))
	fmt.Fprintln(out, "Times are ms since the input that starts the load: start, length, and ± how well the start is known.")
	for _, track := range tl.Tracks {
		if len(only) > 0 && !slices.Contains(only, track.Name) && !slices.Contains(only, track.Kind) {
			continue
		}
		fmt.Fprintf(out, "\n%s\n", lab.OneLine(track.Name, 100))
		for i, e := range track.Events {
			if i == most {
				fmt.Fprintf(out, "  and %d more\n", len(track.Events)-most)
				break
			}
			length := ""
			if !e.Instant() {
				length = fmt.Sprintf("%.1f", float64(e.End-e.Start)/1e6)
			}
			bound := ""
			if known := float64(e.Latest-e.Earliest) / 2e6; known >= 0.05 {
				bound = fmt.Sprintf("±%.1f", known)
			}
			fmt.Fprintf(out, "  %10.1f %9s %6s  %s%s%s\n", ms(e.Start), length, bound, strings.Repeat("  ", min(e.Depth, mostDepth)),
				lab.OneLine(e.Name, 120), factsOf(e))
		}
	}
	for i, note := range tl.Notes {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "Note: %s.\n", lab.OneLine(note, 400))
	}
	return out.Flush()
}

func factsOf(e Event) string {
	var list []string
	for _, f := range e.Facts {
		if slices.Contains(behind(), f.Name) && f.Value != "" {
			list = append(list, f.Name+" "+lab.OneLine(f.Value, 60))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "  [" + strings.Join(list, ", ") + "]"
}
