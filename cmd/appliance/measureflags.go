package main

import (
	"strings"

	"eidetic/internal/lab"
)

// measureFlags say what is measured on the recordings besides what every load has.
type measureFlags struct {
	Metrics    []string `placeholder:"LIST" help:"Also measure these, by name or group, separated by commas: all (every index of a page load), rate, motion, blank, tearing, stable, window, response, shift, colours. See docs/metrics.md."`
	Guard      []string `placeholder:"LIST" help:"With --against: measurements that the verdict rests on besides those of every load, such as layout_instability; each is measured."`
	Regions    []string `sep:"none" placeholder:"NAME=X,Y,W,H" help:"Also measure this part of the content area, in pixels or per cent (header=0%,0%,100%,20%); may be repeated."`
	Ignore     []string `sep:"none" placeholder:"X,Y,W,H" help:"Part of the content area that does not count, such as a carousel; may be repeated."`
	FrameCodes bool     `help:"Draw a code onto the page in each animation frame, which places what the page reports (marks, largest paint, long tasks) on frames."`
	PageMarks  bool     `help:"Have an observer in the page report its marks, paints, long tasks, layout shifts and slow events, for the timeline."`
}

// plan is nil where nothing is asked for. What is wrong with it the check of plans says.
func (f measureFlags) plan() *lab.Measure {
	m := lab.Measure{Metrics: f.Metrics, Guards: f.Guard, Ignore: f.Ignore, FrameCodes: f.FrameCodes, PageMarks: f.PageMarks}
	for _, text := range f.Regions {
		name, area, _ := strings.Cut(text, "=")
		m.Regions = append(m.Regions, lab.MeasureRegion{Name: name, Area: area})
	}
	if len(m.Metrics)+len(m.Guards)+len(m.Ignore)+len(m.Regions) == 0 && !m.FrameCodes && !m.PageMarks {
		return nil
	}
	return &m
}
