// Package measure runs the analyses of moving screens over one recording: frame rate,
// movement, blank areas, tearing, stable frames, the window that opened and answers to
// inputs. Options name the groups, thresholds and regions; named numbers with their
// methods, a table with a row for each frame, and the settings that were used flow out.
package measure

import (
	"fmt"
	"image"
	"image/color"
	"slices"
	"strings"
	"time"

	"eidetic/analysis/cadence"
	"eidetic/analysis/motion"
	"eidetic/analysis/response"
	"eidetic/analysis/settle"
	"eidetic/analysis/tearing"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

// The groups of measurements.
const (
	Rate     = "rate"     // unique frames, intervals, missed refreshes, jank
	Motion   = "motion"   // displacement of a scrolled, panned or zoomed picture
	Blank    = "blank"    // what was not drawn yet while it moved
	Tearing  = "tearing"  // frames that show parts of two pictures
	Stable   = "stable"   // the stable frame by pixels, by entropy and for cameras
	Window   = "window"   // the window that opened, its load histogram
	Response = "response" // from inputs to what they changed
	Codes    = "codes"    // the page's own counter, clock and bits, drawn into each frame
	Shift    = "shift"    // layout instability: what moved without an input
	Colours  = "colours"  // key colours of the final frame
)

// Groups returns the names of all groups.
func Groups() []string {
	return []string{Rate, Motion, Blank, Tearing, Stable, Window, Response, Codes, Shift, Colours}
}

// Names returns the names of a group's measurements.
func Names(group string) []string {
	switch group {
	case Rate:
		return cadence.Names()
	case Motion:
		return motion.Names()
	case Blank:
		return motion.BlankNames()
	case Tearing:
		return tearing.Names()
	case Stable:
		return []string{"stable_2048_ms", "stable_4096_ms", "stable_entropy_ms", "stable_camera_ms"}
	case Window:
		return []string{"window_first_change_ms", "window_last_change_ms", "window_stable_ms", "window_speed_index_ms", "window_pixels"}
	case Response:
		return response.Names()
	case Codes:
		return codeNames()
	case Shift:
		return motion.ShiftNames()
	case Colours:
		return colourNames()
	}
	return nil
}

// Options says what is measured and by which thresholds. The zero value of a threshold is
// the default that Settings then tells.
type Options struct {
	Start, End int // frames; zero End: all
	Origin     lab.Event
	Content    image.Rectangle // empty: the whole frame
	Regions    []visual.Region // besides the content
	Ignore     []image.Rectangle
	Groups     []string

	Tolerance    visual.Tolerance
	UniquePixels int           // changed pixels that make a frame unique; zero: 1
	LumaStep     int           // step of luma that counts for stable frames; zero: 5
	Refresh      time.Duration // of the screen; zero: the recording's
	Zoom         bool          // movement may change the scale
	Known        bool          // tearing by the specification's rule for images that share no pixel
	BlankColour  color.RGBA    // zero alpha: learned
	Events       []lab.Event   // inputs
	Excuses      []lab.Event   // inputs after which layout may shift
	Quiet        time.Duration // after which a region has settled; zero: 500 ms
}

// Number is a measurement of a region.
type Number struct {
	Region string `json:"region,omitempty"` // "" for the content area
	lab.Measurement
}

// Column is one value for each frame from Start on.
type Column struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
}

// Result is what was measured.
type Result struct {
	Start    int               `json:"start_frame"`
	TimesMS  []float64         `json:"-"`
	Numbers  []Number          `json:"measurements"`
	Columns  []Column          `json:"columns,omitempty"`
	Settings map[string]string `json:"settings"`
	Notes    []string          `json:"notes,omitempty"`
	Stalls   []cadence.Stall   `json:"stalls,omitempty"`
	Tears    []tearing.Tear    `json:"tears,omitempty"`
	Window   *image.Rectangle  `json:"window,omitempty"`
	Answers  []response.Answer `json:"answers,omitempty"`
	Proposed []lab.Area        `json:"proposed_ignore,omitempty"` // what never settled
	Colours  []lab.ColourShare `json:"colours,omitempty"`
}

// run is one measurement in progress.
type run struct {
	frames visual.Frames
	o      Options
	r      *Result
	path   *motion.Path
}

// Run measures the groups in their order.
func Run(frames visual.Frames, o Options) (*Result, error) {
	for _, g := range o.Groups {
		if !slices.Contains(Groups(), g) {
			return nil, fmt.Errorf("there is no group %q: choose from %s", g, strings.Join(Groups(), ", "))
		}
	}
	f := frames.Format()
	if o.End == 0 {
		o.End = frames.Len()
	}
	if o.Start < 0 || o.Start >= o.End || o.End > frames.Len() {
		return nil, fmt.Errorf("frames %d … %d of a recording of %d: start must be before end and both inside", o.Start, o.End-1, frames.Len())
	}
	if o.Content.Empty() {
		o.Content = f.Bounds()
	}
	o.UniquePixels = max(o.UniquePixels, 1)
	if o.LumaStep == 0 {
		o.LumaStep = 5
	}
	if o.Quiet <= 0 {
		o.Quiet = 500 * time.Millisecond
	}
	if o.Origin == (lab.Event{}) {
		t := frames.Info(o.Start).Time
		o.Origin = lab.Event{Name: "start frame", Earliest: t, Latest: t}
	}
	m := &run{frames: frames, o: o, r: &Result{Start: o.Start, Settings: map[string]string{}}}
	middle := o.Origin.Earliest + (o.Origin.Latest-o.Origin.Earliest)/2
	for i := o.Start; i < o.End; i++ {
		m.r.TimesMS = append(m.r.TimesMS, float64(frames.Info(i).Time.Sub(middle))/1e6)
	}
	m.r.Settings["tolerance"] = o.Tolerance.String()
	if err := m.all(); err != nil {
		return nil, err
	}
	return m.r, nil
}

func (m *run) wants(groups ...string) bool {
	return slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(m.o.Groups, g) })
}

func (m *run) all() error {
	if m.wants(Rate, Stable, Response) || m.wants(Tearing) && m.o.Known {
		if err := m.changes(); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		wanted bool
		do     func() error
	}{
		{m.wants(Motion, Blank), m.motion},
		{m.wants(Blank), m.blank},
		{m.wants(Tearing) && !m.o.Known, m.tearing},
		{m.wants(Stable), m.stable},
		{m.wants(Window), m.window},
		{m.wants(Codes), m.codes},
		{m.wants(Shift), m.shift},
		{m.wants(Colours), m.keyColours},
	} {
		if part.wanted {
			if err := part.do(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *run) add(region string, ms ...lab.Measurement) {
	for _, one := range ms {
		m.r.Numbers = append(m.r.Numbers, Number{region, one})
	}
}

func (m *run) note(format string, args ...any) {
	m.r.Notes = append(m.r.Notes, fmt.Sprintf(format, args...))
}

func (m *run) column(name, unit string, values []float64) {
	m.r.Columns = append(m.r.Columns, Column{name, unit, values})
}

// changes measures what needs only which pixels changed.
func (m *run) changes() error {
	o := m.o
	regions := append([]visual.Region{{Name: "", Area: o.Content}}, o.Regions...)
	c, err := visual.Changes(m.frames, visual.ChangeOptions{Start: o.Start, End: o.End, Regions: regions, Ignore: o.Ignore,
		Tolerance: o.Tolerance, LumaStep: o.LumaStep})
	if err != nil {
		return err
	}
	for k, region := range c.Regions {
		if m.wants(Rate, Stable) {
			m.column(join("changed", region.Name), "pixels", floats(region.Changed))
			m.column(join("luma_changed", region.Name), "pixels", floats(region.LumaChanged))
		}
		if m.wants(Rate) {
			if err := m.rate(c, k); err != nil {
				return err
			}
		}
		if m.wants(Stable) {
			m.r.Settings["luma_step"] = fmt.Sprint(o.LumaStep)
			for _, most := range []int{2048, 4096} {
				m.instant(region.Name, fmt.Sprintf("stable_%d_ms", most), settle.ByPixels(c, k, most), fmt.Sprintf("the frame after the last "+
					"with more than %d pixels whose luma differs by %d or more from the frame before (Eideticker), tolerance %s", most, o.LumaStep,
					o.Tolerance))
			}
		}
		if m.wants(Response) {
			if err := m.response(c, k); err != nil {
				return err
			}
		}
	}
	if m.wants(Tearing) && o.Known {
		t := tearing.Known(c, 0)
		m.r.Tears = t.Tears
		m.add("", t.Measurements()...)
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
func (m *run) instant(region, name string, frame int, method string) {
	if frame < 0 {
		m.note("%s%s: the screen changes up to the last frame", of(region), name)
		return
	}
	i := frame - m.o.Start
	one := lab.Measurement{Name: name, Value: m.r.TimesMS[i], Unit: "ms", Method: method, Frames: []int{frame}}
	low, high := 0.0, float64(m.frames.Info(frame).Time.Sub(m.o.Origin.Earliest))/1e6
	if i > 0 {
		before := m.frames.Info(frame - 1)
		low = max(float64(before.Time.Sub(m.o.Origin.Latest)-before.Uncertainty)/1e6, 0)
		one.Frames = []int{frame - 1, frame}
	}
	one.Low, one.High = &low, &high
	m.add(region, one)
}

func (m *run) motion() error {
	p, err := motion.Track(m.frames, motion.Options{Start: m.o.Start, End: m.o.End, Area: m.o.Content,
		Tolerance: m.o.Tolerance, Zoom: m.o.Zoom})
	if err != nil {
		return err
	}
	m.path = p
	if !m.wants(Motion) {
		return nil
	}
	var o motion.SummaryOptions
	if len(m.o.Events) > 0 {
		o.Input = &m.o.Events[0]
	}
	o.Uncertainty = func(frame int) time.Duration { return m.frames.Info(frame).Uncertainty }
	s, err := p.Summarise(o)
	if err != nil {
		return err
	}
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
	return nil
}

func (m *run) blank() error {
	b, err := m.path.Blanks(m.frames, motion.BlankOptions{Colour: m.o.BlankColour, Ignore: m.o.Ignore})
	if err != nil {
		return err
	}
	m.r.Settings["blank"] = b.How
	m.add("", b.Measurements()...)
	m.column("blank", "%", b.Share)
	return nil
}

func (m *run) tearing() error {
	if m.o.Tolerance != (visual.Tolerance{}) {
		m.note("tearing is not looked for: the source has noise (tolerance %s); with images that share no pixels, --known-images finds it",
			m.o.Tolerance)
		return nil
	}
	t, err := tearing.Find(m.frames, tearing.Options{Start: m.o.Start, End: m.o.End, Area: m.o.Content})
	if err != nil {
		return err
	}
	m.r.Tears = t.Tears
	m.add("", t.Measurements()...)
	return nil
}

// shift measures layout instability; what a person did excuses what moves soon after.
func (m *run) shift() error {
	s, err := motion.Shifts(m.frames, motion.ShiftOptions{Start: m.o.Start, End: m.o.End, Area: m.o.Content, Ignore: m.o.Ignore, Inputs: m.o.Excuses})
	if err != nil {
		return err
	}
	m.add("", s.Measurements()...)
	m.column("shift", "", s.Scores)
	return nil
}

func (m *run) stable() error {
	var err error
	if m.r.Proposed, err = m.proposed(); err != nil {
		return err
	}
	o := settle.Options{Start: m.o.Start, End: m.o.End, Area: m.o.Content}
	for _, rule := range []struct {
		name, method string
		find         func(visual.Frames, settle.Options) (*settle.Curve, error)
	}{
		{"stable_entropy", "the frame after the last whose histogram's entropy (768 bins) differs by more than 0.05 from the mean of it and " +
			"the 5 before (Eideticker 2013, for cameras)", settle.Entropy},
		{"stable_camera", "the frame after the last in which the mean of a cell of 48 × 36 differs from the final picture by more than 7 times " +
			"its noise, exposure and flicker taken out", settle.Camera},
	} {
		c, err := rule.find(m.frames, o)
		if err != nil {
			return err
		}
		m.instant("", rule.name+"_ms", c.Stable, rule.method)
		m.column(rule.name, "", c.Values)
	}
	return nil
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
	names := map[string]string{"first_visual_change_ms": "window_first_change_ms", "last_visual_change_ms": "window_last_change_ms",
		"time_to_stable_ms": "window_stable_ms", "speed_index_ms": "window_speed_index_ms"}
	for _, one := range r.Measurements() {
		if name := names[one.Name]; name != "" {
			one.Name, one.Method = name, fmt.Sprintf("over the window's final rectangle %v: %s", box, one.Method)
			m.add("", one)
		}
	}
	m.add("", lab.Measurement{Name: "window_pixels", Value: float64(box.Dx() * box.Dy()), Unit: "pixels",
		Frames: []int{m.o.Start, m.o.End - 1},
		Method: fmt.Sprintf("the box %v of the largest connected part that differs between the first and the last frame", box)})
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
