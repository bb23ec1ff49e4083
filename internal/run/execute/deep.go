package execute

import (
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"

	"eidetic/analysis/framecode"
	"eidetic/analysis/measure"
	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// chartFolder holds the diagrams of what a plan asks for.
const chartFolder = "charts"

// chartRole begins the roles of the diagrams among a trial's files, and areasRole is that of the
// picture of regions and of what is ignored.
const (
	chartRole = "chart "
	areasRole = "areas"
)

// Curves are what was measured in each frame of a load or a step, as in timeline.json.
type Curves struct {
	Step    string           `json:"step,omitempty"`
	First   int              `json:"first_frame"`
	TimesMS []float64        `json:"times_ms"`
	Columns []measure.Column `json:"columns"`
}

// timeline is the content of timeline.json.
type timeline struct {
	Spans  []*lab.Span `json:"spans"`
	Curves []Curves    `json:"curves"`
}

// deep measures what a plan asks for besides what every load and every step has.
type deep struct {
	frames visual.Frames
	o      measure.Options
	ask    measure.Request
	curves []Curves
}

// newDeep returns nil where nothing is asked for.
func newDeep(frames visual.Frames, content image.Rectangle, ask measure.Request) (*deep, error) {
	if !ask.Asked() {
		return nil, nil
	}
	o, err := ask.Options(frames, content)
	if err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	if ask.FrameCodes() { // what we draw ourselves is no content
		strip := framecode.Strip(content.Min).Intersect(content)
		o.Ignore = append(o.Ignore, strip)
	}
	return &deep{frames: frames, o: o, ask: ask}, nil
}

// widen adds to the options of a load or a step what the plan says of them.
func (d *deep) widen(o *visual.Options) {
	if d == nil {
		return
	}
	o.Also |= d.ask.Selection().Indices()
	o.Ignore = append(o.Ignore, d.o.Ignore...)
	o.Tolerance = d.o.Tolerance
	if d.ask.FrameCodes() {
		o.Drawn = framecode.Strip(o.Content.Min)
	}
}

// round4 keeps four decimals: more say nothing, and take room.
func round4(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// areaRectangle is the rectangle of an area.
func areaRectangle(a lab.Area) image.Rectangle { return image.Rect(a.X, a.Y, a.X+a.W, a.Y+a.H) }

// painted adds when the elements were painted that the page reported.
func (d *deep) painted(t *lab.Trial, r *visual.Result) error {
	if err := placeMarks(d.frames, t, r.End); err != nil {
		return err
	}
	ms, areas, err := paints(d.frames, r, t.PageMarks, d.o)
	if err != nil {
		return err
	}
	t.Measurements = append(t.Measurements, ms...)
	if t.Analysis != nil {
		t.Analysis.Regions = append(t.Analysis.Regions, areas...)
	}
	return nil
}

// measure measures the frames of a result and adds the numbers to those that it has. Answers count
// from first, and what moves after an input of excuses is no instability.
func (d *deep) measure(
	step string, r *visual.Result, ms []lab.Measurement, first lab.Event, excuses []lab.Event,
) ([]lab.Measurement, *lab.Analysis, error) {
	if d == nil {
		return ms, nil, nil
	}
	o := d.o
	o.Curves = true
	o.Start, o.End, o.Origin, o.Events, o.Excuses = r.Start, r.End, r.Origin, []lab.Event{first}, excuses
	if len(o.Groups) == 0 {
		return ms, measure.AnalysisOf(o, nil), nil
	}
	result, err := measure.Run(d.frames, o)
	if err != nil {
		return nil, nil, fmt.Errorf("measure: %w", err)
	}
	for _, n := range d.ask.Selection().Of(result) {
		named := n.Named()
		if !slices.ContainsFunc(ms, func(m lab.Measurement) bool { return m.Name == named.Name }) {
			ms = append(ms, named)
		}
	}
	curves := Curves{Step: step, First: result.Start, TimesMS: rounded(result.TimesMS)}
	for _, c := range result.Columns {
		c.Values = rounded(c.Values)
		curves.Columns = append(curves.Columns, c)
	}
	d.curves = append(d.curves, curves)
	return ms, measure.AnalysisOf(o, result), nil
}

// rounded rounds all values.
func rounded(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = round4(v)
	}
	return out
}

// writeTimeline writes spans and curves, and the diagrams of the curves.
func (d *deep) writeTimeline(dir string, t *lab.Trial) error {
	all := timeline{Spans: t.Spans, Curves: []Curves{}}
	if d != nil {
		all.Curves = append(all.Curves, d.curves...)
	}
	if err := writeJSON(dir, timelineFile, all); err != nil {
		return err
	}
	t.Files["timeline"] = timelineFile
	for i, set := range all.Curves {
		for _, c := range measure.Charts(set.TimesMS, set.Columns) {
			name, role := c.Name+".png", chartRole+c.Name
			if set.Step != "" {
				name, role = fmt.Sprintf("%02d-%s", i+1, name), chartRole+set.Step+": "+c.Name
				c.Title = set.Step + ": " + c.Title
			}
			if err := writePNG(filepath.Join(dir, chartFolder), name, c.Image()); err != nil {
				return err
			}
			t.Files[role] = chartFolder + "/" + name
		}
	}
	return nil
}

// writeAreas draws the regions, what is ignored and what never settled onto the last picture that was
// measured.
func (d *deep) writeAreas(dir string, t *lab.Trial) error {
	if d == nil {
		return nil
	}
	a, last := areasOf(t)
	if len(a.Regions)+len(a.Ignored)+len(a.Proposed) == 0 {
		return nil
	}
	r, err := reel.Open(filepath.Join(dir, experiment.ReelFile))
	if err != nil {
		return err
	}
	defer r.Close()
	img, err := measure.Overlay(r, min(last, r.Len()-1), contentOf(t), a)
	if err != nil {
		return err
	}
	if err := writePNG(dir, areasRole+".png", img); err != nil {
		return err
	}
	t.Files[areasRole] = areasRole + ".png"
	return nil
}

// areasOf collects the areas of a trial and of its steps, with the last frame that was measured.
func areasOf(t *lab.Trial) (*lab.Analysis, int) {
	all, last := &lab.Analysis{}, t.StartFrame+max(len(t.FrameTimes)-1, 0)
	add := func(a *lab.Analysis) {
		if a == nil {
			return
		}
		all.Regions, all.Ignored = a.Regions, a.Ignored // the same in every step
		for _, p := range a.Proposed {
			if !slices.Contains(all.Proposed, p) {
				all.Proposed = append(all.Proposed, p)
			}
		}
	}
	add(t.Analysis)
	for _, s := range t.Steps {
		add(s.Analysis)
	}
	return all, last
}

func writePNG(dir, name string, img image.Image) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if err := png.Encode(f, img); err != nil {
		f.Close()
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return f.Close()
}
