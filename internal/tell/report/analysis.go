package report

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// analysis is what is told of a measurement that the plan asked for, besides its numbers.
type analysis struct {
	Step     string
	Settings []pair
	Areas    []pair
	Colours  []lab.ColourShare
	Notes    []string
}

// pageMark is what the page reported, as the template shows it.
type pageMark struct{ Kind, Name, Page, Duration, Time, Frame string }

// marksOf lists what the page of a trial reported.
func marksOf(t *lab.Trial) (out []pageMark) {
	for _, m := range t.PageMarks[:min(len(t.PageMarks), maxThumbs)] {
		mark := pageMark{Kind: m.Kind, Name: m.Name, Page: precise(m.PageMS) + " ms", Frame: "none"}
		if m.DurationMS > 0 {
			mark.Duration = precise(m.DurationMS) + " ms"
		}
		if m.Frame >= 0 {
			mark.Frame, mark.Time = count(m.Frame), precise(m.TimeMS)+" ms"
		}
		out = append(out, mark)
	}
	return out
}

// chartsOf lists the diagrams of a trial.
func chartsOf(files *os.Root, t *lab.Trial) (out []link) {
	for _, role := range slices.Sorted(maps.Keys(t.Files)) {
		name, ok := strings.CutPrefix(role, "chart ")
		if !ok || len(out) == maxThumbs {
			continue
		}
		if a := artifactOf(files, t, role); a != nil {
			out = append(out, link{name, *a})
		}
	}
	return out
}

// analysesOf lists the analyses of a load, or of the steps of a journey.
func analysesOf(t *lab.Trial) (out []analysis) {
	add := func(step string, a *lab.Analysis) {
		if a == nil {
			return
		}
		one := analysis{Step: step, Colours: shownColours(a.Colours), Notes: a.Notes}
		for _, name := range slices.Sorted(maps.Keys(a.Settings)) {
			one.Settings = append(one.Settings, pair{strings.ReplaceAll(name, "_", " "), a.Settings[name]})
		}
		for _, kind := range []struct {
			what  string
			areas []lab.Area
		}{{"region", a.Regions}, {"ignored", a.Ignored}, {"never settles", a.Proposed}} {
			for _, box := range kind.areas {
				what := kind.what
				if what == "region" {
					what += " " + box.Name
				}
				one.Areas = append(one.Areas, pair{what, fmt.Sprintf("%d × %d at %d, %d", box.W, box.H, box.X-t.ContentX, box.Y-t.ContentY)})
			}
		}
		out = append(out, one)
	}
	add("", t.Analysis)
	for _, s := range t.Steps {
		add(s.Name, s.Analysis)
	}
	return out
}

// shownColours keeps the colours that are written as such: they become part of a style.
func shownColours(all []lab.ColourShare) (out []lab.ColourShare) {
	for _, c := range all {
		var n uint32
		if _, err := fmt.Sscanf(c.Colour, "#%06x", &n); err == nil && len(c.Colour) == 7 {
			out = append(out, lab.ColourShare{Colour: fmt.Sprintf("#%06x", n), Percent: c.Percent})
		}
	}
	return out
}
