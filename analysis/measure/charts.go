package measure

import (
	"slices"
	"strings"

	"eidetic/analysis/chart"
)

// NamedChart is a diagram with a short name for its file.
type NamedChart struct {
	Name string
	chart.Chart
}

// Charts draws each family of curves that is there: times in ms, one value of a column for each.
func Charts(times []float64, columns []Column) (out []NamedChart) {
	for _, f := range []struct {
		name, title string
		columns     []string
	}{
		{"load", "Load: pixels equal to the final frame, and visual progress", []string{"load", "progress"}},
		{"changes", "Pixels that differ from the frame before", []string{"changed", "luma_changed"}},
		{"displacement", "Displacement from frame to frame", []string{"dx", "dy"}},
		{"position", "Displacement since the start", []string{"x", "y"}},
		{"blank", "Share of the area that was not drawn", []string{"blank"}},
		{"stable", "What the rules for cameras saw", []string{"stable_entropy", "stable_camera"}},
		{"window", "Window: pixels equal to the final frame", []string{"window_load"}},
		{"shift", "Layout instability of each frame", []string{"shift"}},
	} {
		c := chart.Chart{Title: f.title, XUnit: "ms"}
		for _, col := range columns {
			if slices.Contains(f.columns, col.Name) || f.name == "changes" && strings.HasPrefix(col.Name, "changed ") {
				c.YUnit = col.Unit
				c.Series = append(c.Series, chart.Series{Name: col.Name, X: times, Y: col.Values})
			}
		}
		if len(c.Series) > 0 {
			out = append(out, NamedChart{f.name, c})
		}
	}
	return out
}
