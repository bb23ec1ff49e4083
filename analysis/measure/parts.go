package measure

import (
	"fmt"
	"image"
	"strings"
	"time"

	"eidetic/analysis/cadence"
	"eidetic/analysis/motion"
	"eidetic/analysis/response"
	"eidetic/analysis/settle"
	"eidetic/analysis/tearing"
	"eidetic/analysis/visual"
	"eidetic/internal/metric"
)

// changes measures what needs only which pixels changed.
func (m *run) changes() []part {
	o := m.o
	var c *visual.Curves
	luma := m.wants(metric.Stable) || o.UniquePixels > 1
	some := !o.Curves && !luma && !(m.wants(metric.Tearing) && o.Known) // whether anything changed is enough
	return []part{{func(frames visual.Frames) (err error) {
		regions := append([]visual.Region{{Name: "", Area: o.Content}}, o.Regions...)
		c, err = visual.Changes(frames, visual.ChangeOptions{Start: o.Start, End: o.End, Regions: regions, Ignore: o.Ignore,
			Tolerance: o.Tolerance, LumaStep: o.LumaStep, NoLuma: !luma, Any: some})
		return err
	}, func() error {
		for k := range c.Regions {
			if err := m.changed(c, k, luma, some); err != nil {
				return err
			}
		}
		if m.wants(metric.Tearing) && o.Known {
			t := tearing.Known(c, 0)
			m.r.Tears = t.Tears
			m.add("", t.Measurements()...)
		}
		return nil
	}}}
}

// changed tells of one region.
func (m *run) changed(c *visual.Curves, k int, luma, some bool) error {
	region := c.Regions[k]
	if m.wants(metric.Rate, metric.Stable) && !some {
		m.column(join("changed", region.Name), "pixels", floats(region.Changed))
		if luma {
			m.column(join("luma_changed", region.Name), "pixels", floats(region.LumaChanged))
		}
	}
	if m.wants(metric.Rate) {
		if err := m.rate(c, k); err != nil {
			return err
		}
	}
	if m.wants(metric.Stable) {
		m.r.Settings["luma_step"] = fmt.Sprint(m.o.LumaStep)
		how := fmt.Sprintf("a step of luma of %d, tolerance %s", m.o.LumaStep, m.o.Tolerance)
		m.instant(region.Name, metric.Stable2048, settle.ByPixels(c, k, 2048), how)
		m.instant(region.Name, metric.Stable4096, settle.ByPixels(c, k, 4096), how)
	}
	if m.wants(metric.Response) {
		return m.response(c, k)
	}
	return nil
}

func (m *run) rate(c *visual.Curves, k int) error {
	region := c.Regions[k]
	frames := make([]cadence.Frame, len(c.Infos))
	for i, info := range c.Infos {
		changed := region.Changed[i] > 0
		if m.o.UniquePixels > 1 {
			changed = region.LumaChanged[i] >= m.o.UniquePixels
		}
		frames[i] = cadence.Frame{Index: c.Start + i, Time: info.Time, Seq: info.Seq, Changed: changed}
	}
	r, err := cadence.Measure(frames, cadence.Options{Refresh: m.o.Refresh})
	if err != nil {
		return err
	}
	rule := fmt.Sprintf("frames in which any pixel differs from the frame before by more than %s", m.o.Tolerance)
	if m.o.UniquePixels > 1 {
		rule = fmt.Sprintf("frames with at least %d pixels whose luma differs by %d or more from the frame before", m.o.UniquePixels, m.o.LumaStep)
	}
	m.r.Settings["unique_pixels"], m.r.Settings["refresh_ms"] = fmt.Sprint(m.o.UniquePixels), fmt.Sprintf("%.3f", r.RefreshMS)
	m.add(region.Name, r.Measurements(rule)...)
	if k == 0 {
		m.r.Stalls = r.Stalls
	}
	if len(r.Intervals) == 0 {
		m.note("%sfewer than two frames changed: there is no frame rate", of(region.Name))
	}
	return nil
}

func (m *run) response(c *visual.Curves, k int) error {
	if len(m.o.Events) == 0 {
		if k == 0 {
			m.note("no inputs are known: name a log with --events, and its inputs with --input")
		}
		return nil
	}
	answers, err := response.Measure(c, k, m.o.Events, response.Options{Pixels: m.o.UniquePixels, Quiet: m.o.Quiet})
	if err != nil {
		return err
	}
	m.r.Settings["quiet_ms"] = fmt.Sprint(m.o.Quiet.Milliseconds())
	name := c.Regions[k].Name
	if name == "" {
		name = "the content area"
	}
	m.add(c.Regions[k].Name, response.Measurements(answers, name)...)
	if k == 0 {
		m.r.Answers = answers
	}
	return nil
}

// instant adds the time of a frame with the bounds that every instant has.
func (m *run) instant(region string, what metric.ID, frame int, details ...string) {
	if frame < 0 {
		m.note("%s%s: the screen changes up to the last frame", of(region), what)
		return
	}
	i := frame - m.o.Start
	one := what.Measure(m.r.TimesMS[i], []int{frame}, details...)
	low, high := 0.0, float64(m.frames.Info(frame).Time.Sub(m.o.Origin.Earliest))/1e6
	if i > 0 {
		before := m.frames.Info(frame - 1)
		low = max(float64(before.Time.Sub(m.o.Origin.Latest)-before.Uncertainty)/1e6, 0)
		one.Frames = []int{frame - 1, frame}
	}
	one.Low, one.High = &low, &high
	m.add(region, one)
}

func (m *run) motion() []part {
	o := motion.Options{Start: m.o.Start, End: m.o.End, Area: m.moving(), Tolerance: m.o.Tolerance, Zoom: m.o.Zoom}
	if m.wants(metric.Blank) {
		o.Blank = &motion.BlankOptions{Colour: m.o.BlankColour, Ignore: m.o.Ignore}
	}
	var p *motion.Path
	return []part{{func(frames visual.Frames) (err error) {
		p, err = motion.Track(frames, o)
		return err
	}, func() error {
		if m.wants(metric.Motion) {
			m.moved(p)
		}
		if b := p.Blank; b != nil {
			m.r.Settings["blank"] = b.How
			m.add("", b.Measurements()...)
			m.column("blank", "%", b.Share)
		}
		return nil
	}}}
}

// leastMoving is how much of the content area, in percent, is looked at for movement and tears when what is ignored is
// cut off.
const leastMoving = 95

// moving is the content area without ignored areas at its edges that are narrow enough to be cut off over its whole
// side, as the strip of frame codes is: what moves, and what is torn, is told by whole rows and columns.
func (m *run) moving() image.Rectangle {
	area := m.o.Content
	for _, r := range m.o.Ignore {
		if r = r.Intersect(area); r.Empty() {
			continue
		}
		best := image.Rectangle{}
		for _, rest := range []image.Rectangle{
			{area.Min.Add(image.Pt(0, r.Max.Y-area.Min.Y)), area.Max}, {area.Min, image.Pt(area.Max.X, r.Min.Y)},
			{area.Min.Add(image.Pt(r.Max.X-area.Min.X, 0)), area.Max}, {area.Min, image.Pt(r.Min.X, area.Max.Y)},
		} {
			if !rest.Empty() && rest.Dx()*rest.Dy() > best.Dx()*best.Dy() {
				best = rest
			}
		}
		if 100*best.Dx()*best.Dy() >= leastMoving*m.o.Content.Dx()*m.o.Content.Dy() {
			area = best
		}
	}
	if area != m.o.Content {
		m.r.Settings["area of movement and tears"] = fmt.Sprintf("%dx%d+%d+%d", area.Dx(), area.Dy(), area.Min.X, area.Min.Y)
	}
	return area
}

// moved tells of a movement.
func (m *run) moved(p *motion.Path) {
	var o motion.SummaryOptions
	if len(m.o.Events) > 0 {
		o.Input = &m.o.Events[0]
	}
	o.Uncertainty = func(frame int) time.Duration { return m.frames.Info(frame).Uncertainty }
	s := p.Summarise(o)
	m.add("", s.Measurements()...)
	if s.First < 0 {
		m.note("the picture did not move as a whole")
	}
	if s.Unexplained > 0 {
		m.note("%d frames changed in a way that is no movement of the picture as a whole", s.Unexplained)
	}
	columns := make([][]float64, 6)
	for _, step := range p.Steps {
		for k, v := range []float64{step.DX, step.DY, step.Scale, step.X, step.Y, step.Share} {
			columns[k] = append(columns[k], v)
		}
	}
	for k, name := range []string{"dx", "dy", "scale", "x", "y", "explained"} {
		m.column(name, []string{"pixels", "pixels", "", "pixels", "pixels", "%"}[k], columns[k])
	}
}

func (m *run) tearing() []part {
	if m.o.Tolerance != (visual.Tolerance{}) {
		return []part{{nil, func() error {
			m.note("tearing is not looked for: the source has noise (tolerance %s); with images that share no pixels, --known-images finds it",
				m.o.Tolerance)
			return nil
		}}}
	}
	var t *tearing.Result
	return []part{{func(frames visual.Frames) (err error) {
		t, err = tearing.Find(frames, tearing.Options{Start: m.o.Start, End: m.o.End, Area: m.moving()})
		return err
	}, func() error {
		m.r.Tears = t.Tears
		m.add("", t.Measurements()...)
		return nil
	}}}
}

// shift measures layout instability; what a person did excuses what moves soon after.
func (m *run) shift() []part {
	var s *motion.Shift
	return []part{{func(frames visual.Frames) (err error) {
		s, err = motion.Shifts(frames, motion.ShiftOptions{Start: m.o.Start, End: m.o.End, Area: m.o.Content, Ignore: m.o.Ignore,
			Inputs: m.o.Excuses})
		return err
	}, func() error {
		m.add("", s.Measurements()...)
		m.column("shift", "", s.Scores)
		return nil
	}}}
}

// stable are the rules for cameras, and what never settles.
func (m *run) stable() []part {
	o := settle.Options{Start: m.o.Start, End: m.o.End, Area: m.o.Content, Ignore: m.o.Ignore}
	out := []part{m.proposed(o)}
	for _, rule := range []struct {
		metric metric.ID
		find   func(visual.Frames, settle.Options) (*settle.Curve, error)
	}{{metric.StableEntropy, settle.Entropy}, {metric.StableCamera, settle.Camera}} {
		var c *settle.Curve
		out = append(out, part{func(frames visual.Frames) (err error) {
			c, err = rule.find(frames, o)
			return err
		}, func() error {
			m.instant("", rule.metric, c.Stable)
			m.column(strings.TrimSuffix(rule.metric.String(), "_ms"), "", c.Values)
			return nil
		}})
	}
	return out
}

func (m *run) window() error {
	box, err := response.Window(m.frames, m.o.Start, m.o.End, m.o.Tolerance)
	if err != nil {
		m.note("%v", err)
		return nil
	}
	m.r.Window = &box
	r, err := visual.Analyze(m.frames, visual.Options{Start: m.o.Start, End: m.o.End, Origin: m.o.Origin, Content: box, Ignore: m.o.Ignore,
		Baseline: visual.BaselineStart, Tolerance: m.o.Tolerance})
	if err != nil {
		return err
	}
	over := fmt.Sprintf("the rectangle is %v", box)
	of := map[string]metric.ID{metric.FirstChange.String(): metric.WindowFirstChange, metric.LastChange.String(): metric.WindowLastChange,
		metric.TimeToStable.String(): metric.WindowStable, metric.SpeedIndex.String(): metric.WindowSpeedIndex}
	for _, one := range r.Measurements() {
		if what := of[one.Name]; what != 0 {
			n := what.Measure(one.Value, one.Frames, over)
			n.Low, n.High = one.Low, one.High
			m.add("", n)
		}
	}
	m.add("", metric.WindowPixels.Measure(float64(box.Dx()*box.Dy()), []int{m.o.Start, m.o.End - 1}, over))
	m.column("window_load", "%", r.LoadHistogram)
	return nil
}

func join(name, region string) string {
	if region == "" {
		return name
	}
	return name + " " + region
}

func of(region string) string {
	if region == "" {
		return ""
	}
	return region + ": "
}

func floats(n []int) []float64 {
	out := make([]float64, len(n))
	for i, v := range n {
		out[i] = float64(v)
	}
	return out
}
