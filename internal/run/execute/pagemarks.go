package execute

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"eidetic/analysis/framecode"
	"eidetic/analysis/measure"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/netlab/inject"
	"eidetic/netlab/replay"
)

// pageAnnotation is the annotation by which a page reports its marks.
const pageAnnotation = "page"

// Bounds of what is kept of a page's reports, which come from the page's own scripts.
const (
	mostPageMarks = 2000
	mostMarkName  = 200
)

// observerScript is put into the pages of a plan that wants their marks.
func observerScript(heroes bool) string {
	return strings.NewReplacer("BOX_PATH", inject.BoxPath, "HEROES", strconv.FormatBool(heroes)).Replace(framecode.Reports)
}

// injected are the options of the script in the pages of a plan's replays.
func injected(p lab.Plan, script string) inject.Options {
	o := inject.Options{More: script, Dialog: p.OnDialog}
	switch m := p.Measure; {
	case m != nil && m.FrameCodes:
		o.After = framecode.Script + observerScript(true)
	case m.Observes():
		o.After = observerScript(false)
	}
	o.Messages = p.Measure.Listens()
	return o
}

// maskCodes returns a plan's steps; where pages draw codes into their frames, these count for no step's
// end.
func maskCodes(p lab.Plan) []lab.Step {
	if p.Measure == nil || !p.Measure.FrameCodes {
		return p.Steps
	}
	return masked(p.Steps, fmt.Sprintf("0,0,%d,%d", framecode.Cells*framecode.Side, framecode.Side))
}

func masked(steps []lab.Step, mask string) (out []lab.Step) {
	for _, s := range steps {
		s.Mask = append(slices.Clone(s.Mask), mask)
		s.Steps = masked(s.Steps, mask)
		out = append(out, s)
	}
	return out
}

// pageMarks keeps what the pages of a session report.
type pageMarks struct {
	pageClocks
	list []reported
}

// reported is a mark with the document that reported it.
type reported struct {
	lab.PageMark
	doc string
}

// add reads one report; what is no report of ours, or absurd, is left out.
func (m *pageMarks) add(n replay.Annotation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.read(n)
	if !ok {
		return
	}
	for _, mark := range readPageMarks(p.List, n.Time) {
		if len(m.list) < mostPageMarks {
			m.list = append(m.list, reported{mark, p.Doc})
		}
	}
}

// all returns the marks with their times on the box's clock, where that is joined to the page's by now.
func (m *pageMarks) all() []lab.PageMark {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]lab.PageMark, 0, len(m.list))
	for _, one := range m.list {
		if earliest, latest, ok := m.at(one.doc, one.PageMS); ok {
			one.Earliest, one.Latest = earliest, latest
		}
		out = append(out, one.PageMark)
	}
	return out
}

// readPageMarks reads the list of a report.
func readPageMarks(list []byte, arrived lab.Time) (out []lab.PageMark) {
	var body []struct {
		Kind     string    `json:"kind"`
		Name     string    `json:"name"`
		PageMS   float64   `json:"page_ms"`
		Duration float64   `json:"duration_ms"`
		Value    float64   `json:"value"`
		Box      []float64 `json:"box"`
	}
	if json.Unmarshal(list, &body) != nil {
		return nil
	}
	kinds := []string{"mark", "measure", "paint", "longtask", "shift", "event", "element", "lcp", "hero", "load"}
	for _, b := range body {
		sane := isPageTime(b.PageMS) && isPageTime(b.Duration) && isPageTime(b.Value)
		if !slices.Contains(kinds, b.Kind) || !sane || len(out) == mostPageMarks {
			continue
		}
		m := lab.PageMark{
			Kind: b.Kind, Name: lab.OneLine(b.Name, mostMarkName), Arrived: arrived, PageMS: b.PageMS, DurationMS: b.Duration, Value: b.Value,
			Frame: -1,
		}
		if len(b.Box) == 4 && !slices.ContainsFunc(b.Box, func(v float64) bool { return !(math.Abs(v) <= lab.MaxSide) }) {
			m.Box = &lab.Area{X: int(b.Box[0]), Y: int(b.Box[1]), W: int(b.Box[2]), H: int(b.Box[3])}
		}
		out = append(out, m)
	}
	return out
}

// placeMarks finds for each mark the first frame that shows a code that was drawn at or after it. A page's
// clock begins anew with each document: a mark is of the document that the frames showed last when the
// report arrived.
func placeMarks(frames visual.Frames, t *lab.Trial, end int) error {
	if len(t.PageMarks) == 0 {
		return nil
	}
	seen, _, err := framecode.Read(frames, t.StartFrame, end, contentOf(t).Min)
	if err != nil {
		return err
	}
	documents := framecode.Documents(seen)
	for i := range t.PageMarks {
		m := &t.PageMarks[i]
		for _, d := range documents {
			if frames.Info(d[0].Frame).Time > m.Arrived {
				break
			}
			m.Frame = framecode.FrameOf(d, m.PageMS)
		}
		if m.Frame >= 0 {
			m.TimeMS = round4(float64(frames.Info(m.Frame).Time.Sub(t.StartTime)) / 1e6)
		}
	}
	slices.SortStableFunc(t.PageMarks, func(a, b lab.PageMark) int { return int(min(max(a.PageMS-b.PageMS, -1), 1)) })
	return nil
}

// paints measures when the elements whose rectangles a page reported were painted for good: the newest
// rectangle of the largest paint, of heading and image, and of each named element.
func paints(frames visual.Frames, r *visual.Result, marks []lab.PageMark, o measure.Options) ([]lab.Measurement, []lab.Area, error) {
	newest := map[string]visual.Region{}
	var names []string
	for _, m := range marks {
		name := m.Name
		switch {
		case m.Box == nil || m.Kind != "lcp" && m.Kind != "hero" && m.Kind != "element":
			continue
		case m.Kind == "lcp":
			name = measure.LargestPaint
		}
		box := areaRectangle(*m.Box).Add(r.Content.Min).Intersect(r.Content)
		if box.Empty() {
			continue
		}
		if _, there := newest[name]; !there && len(names) < measure.MostHeroes {
			names = append(names, name)
		}
		newest[name] = visual.Region{Name: name, Area: box}
	}
	var regions []visual.Region
	var areas []lab.Area
	for _, name := range names {
		regions = append(regions, newest[name])
		areas = append(areas, measure.AreaOf(name, newest[name].Area))
	}
	ms, err := measure.Heroes(frames, r, regions, o)
	return ms, areas, err
}
