package measure

import (
	"fmt"
	"image"
	"image/color"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Selection is which measurements were asked for, by name or group. Besides the groups,
// "load" is what every load has, and "all" is every index of a page load.
type Selection []string

// Check returns an error for a name that no measurement and no group has.
func (s Selection) Check() error {
	for _, name := range s {
		m, ok := metric.Named(name)
		if name != "all" && name != metric.Load && !slices.Contains(metric.Groups(), name) && !(ok && len(m.Entry().Groups) > 0) {
			return fmt.Errorf("there is no measurement %q: choose from all, load, %s, %s", name, strings.Join(metric.Groups(), ", "),
				strings.Join(metric.Names(metric.InGroup(metric.Load)), ", "))
		}
	}
	return nil
}

// Indices returns the indices of a page load among them.
func (s Selection) Indices() (also visual.Indices) {
	if slices.Contains(s, "all") {
		also |= visual.WPT | visual.Perceptual | visual.Contentful | visual.Speedline | visual.Completeness
	}
	for _, name := range s {
		switch m, _ := metric.Named(name); m {
		case metric.SpeedIndexWPT:
			also |= visual.WPT
		case metric.PerceptualIndex:
			also |= visual.Perceptual
		case metric.ContentfulIndex:
			also |= visual.Contentful
		case metric.SpeedlineIndex, metric.SpeedlinePerceptual:
			also |= visual.Speedline
		case metric.VisualReadiness, metric.MeanFirstChange, metric.MeanChanges, metric.Complete50, metric.Complete75,
			metric.Complete85, metric.Complete90, metric.Complete95, metric.Complete99, metric.Complete100:
			also |= visual.Completeness
		}
	}
	return also
}

// Groups returns the groups among them, also those of which one measurement is named.
func (s Selection) Groups() (out []string) {
	for _, g := range metric.Groups() {
		named := func(m metric.ID) bool {
			return slices.Contains(s, m.String()) && !slices.Contains(m.Entry().Groups, metric.Load)
		}
		if slices.Contains(s, g) || slices.ContainsFunc(metric.InGroup(g), named) {
			out = append(out, g)
		}
	}
	return out
}

// Of keeps the numbers that were asked for by group or by name.
func (s Selection) Of(r *Result) (out []Number) {
	for _, g := range s.Groups() {
		names := metric.Names(metric.InGroup(g))
		for _, n := range r.Numbers {
			if slices.Contains(names, n.Name) && (slices.Contains(s, g) || slices.Contains(s, n.Name)) {
				out = append(out, n)
			}
		}
	}
	return out
}

// ParseTolerance reads "6", "4,6,4", or "auto", which is measured with Noise where the
// green page stood.
func ParseTolerance(text string) (t visual.Tolerance, auto bool, err error) {
	switch text {
	case "":
		return t, false, nil
	case "auto":
		return t, true, nil
	}
	parts := strings.Split(text, ",")
	for i := range t {
		n, err := strconv.ParseUint(strings.TrimSpace(parts[min(i, len(parts)-1)]), 10, 8)
		if err != nil || len(parts) != 1 && len(parts) != 3 {
			return t, false, fmt.Errorf("%q: write a number from 0 to 255, three of them as R,G,B, or auto", text)
		}
		t[i] = uint8(n)
	}
	return t, false, nil
}

// AutoTolerance measures the source's noise on the synchronisation page.
func AutoTolerance(frames visual.Frames, o visual.SyncOptions) (visual.Tolerance, error) {
	area, first, last, err := visual.FindContent(frames, o)
	if err != nil {
		return visual.Tolerance{}, err
	}
	return visual.Noise(frames, area, first, last)
}

// ParseColour reads the colour of what is blank: #rrggbb, or learn, which is the zero value.
func ParseColour(text string) (color.RGBA, error) {
	if text == "" || text == "learn" {
		return color.RGBA{}, nil
	}
	if !regexp.MustCompile(`^#[0-9a-fA-F]{6}$`).MatchString(text) {
		return color.RGBA{}, fmt.Errorf("%q is no colour: write #ff00ff, or learn", text)
	}
	n, err := strconv.ParseUint(text[1:], 16, 32)
	return color.RGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 255}, err
}

// Request is what a plan asks for, checked. The zero value asks for nothing.
type Request struct {
	plan      lab.Measure
	selection Selection
	tolerance visual.Tolerance
	auto      bool
	blank     color.RGBA
	regions   []lab.Region // those of the plan, in its order
	ignore    []lab.Region
}

// regionName is what a region may be called.
var regionName = regexp.MustCompile(`^[A-Za-z0-9 _-]{1,40}$`)

// NewRequest checks what a plan asks for; nil asks for nothing. Its error is a *lab.FieldError
// whose path leads to the field.
func NewRequest(plan *lab.Measure) (Request, error) {
	if plan == nil {
		return Request{}, nil
	}
	wrong := func(field string, err error) (Request, error) {
		return Request{}, &lab.FieldError{Path: "measure." + field, Err: err}
	}
	r := Request{plan: *plan, selection: slices.Clone(Selection(plan.Metrics))}
	for i, name := range plan.Metrics {
		if err := (Selection{name}).Check(); err != nil {
			return wrong(fmt.Sprintf("metrics[%d]", i), err)
		}
		if slices.Contains(Selection{name}.Groups(), metric.Paint) && !plan.FrameCodes {
			return wrong(fmt.Sprintf("metrics[%d]", i), fmt.Errorf("%s: pages report their elements with frame_codes: true", name))
		}
		if err := needsMachine(name, plan); err != nil {
			return wrong(fmt.Sprintf("metrics[%d]", i), err)
		}
	}
	names := map[string]bool{}
	for i, g := range plan.Regions {
		at := fmt.Sprintf("regions[%d]", i)
		if !regionName.MatchString(g.Name) || names[g.Name] {
			return wrong(at+".name", fmt.Errorf("%q: 1 to 40 letters, digits, spaces, - or _, and no name twice", g.Name))
		}
		names[g.Name] = true
		area, err := lab.ParseRegion(g.Area)
		if err != nil {
			return wrong(at+".area", err)
		}
		r.regions = append(r.regions, area)
	}
	for i, text := range plan.Ignore {
		area, err := lab.ParseRegion(text)
		if err != nil {
			return wrong(fmt.Sprintf("ignore[%d]", i), err)
		}
		r.ignore = append(r.ignore, area)
	}
	for i, guard := range plan.Guards {
		name, region, of := strings.Cut(guard, metric.RegionMark)
		m, known := metric.Named(name)
		switch {
		case !known || len(m.Entry().Groups) == 0:
			return wrong(fmt.Sprintf("guards[%d]", i), fmt.Errorf("%q is not the name of a measurement; docs/metrics.md lists them", name))
		case of && !names[region]:
			return wrong(fmt.Sprintf("guards[%d]", i), fmt.Errorf("there is no region %q among measure.regions", region))
		case m.Entry().Better == metric.Neither:
			return wrong(fmt.Sprintf("guards[%d]", i), fmt.Errorf("%s is neither better nor worse when it is larger: it cannot decide a verdict", name))
		}
		if err := needsMachine(name, plan); err != nil {
			return wrong(fmt.Sprintf("guards[%d]", i), err)
		}
		r.selection = append(r.selection, name)
	}
	if plan.FrameCodes && !slices.Contains(r.selection, metric.Codes) {
		r.selection = append(r.selection, metric.Codes)
	}
	var err error
	if r.tolerance, r.auto, err = ParseTolerance(plan.Tolerance); err != nil {
		return wrong("tolerance", err)
	}
	if r.blank, err = ParseColour(plan.Blank); err != nil {
		return wrong("blank", err)
	}
	for _, n := range []struct {
		field          string
		v, least, most float64
	}{{"unique_pixels", float64(plan.UniquePixels), 1, 1e8}, {"luma_step", float64(plan.LumaStep), 1, 255},
		{"refresh_hz", plan.Refresh, 1, 1000}, {"quiet_s", plan.Quiet, 0.01, 60}, {"machine_hz", plan.MachineHz, 1, 100}} {
		if n.v != 0 && !(n.v >= n.least && n.v <= n.most) {
			return wrong(n.field, fmt.Errorf("%v is not within %v … %v", n.v, n.least, n.most))
		}
	}
	return r, nil
}

// needsMachine returns an error for a measurement of processes in a plan that does not have them read.
func needsMachine(name string, plan *lab.Measure) error {
	if plan.Hz() == 0 && slices.Contains(Selection{name}.Groups(), metric.Machine) {
		return fmt.Errorf("%s: say with machine_hz how often a second the processes are read, such as 100", name)
	}
	return nil
}

// Asked says whether anything was asked for.
func (r Request) Asked() bool {
	return len(r.selection) > 0 || len(r.plan.Ignore) > 0 || r.auto || r.tolerance != (visual.Tolerance{})
}

// FrameCodes says whether the page draws codes into its frames.
func (r Request) FrameCodes() bool { return r.plan.FrameCodes }

// MachineHz is how often a second processes are read; 0 for never.
func (r Request) MachineHz() float64 { return r.plan.Hz() }

// NeedsMachine says whether the plan itself asks for processes to be read, and not only its level.
func (r Request) NeedsMachine() bool { return r.plan.MachineHz > 0 }

// Threads says whether the browser's threads are read, too.
func (r Request) Threads() bool { return r.plan.Threads() }

// OfStep says whether a step is measured so.
func (r Request) OfStep(path string) bool {
	return len(r.plan.Steps) == 0 || slices.Contains(r.plan.Steps, path)
}

// Selection is what was asked for, guards included.
func (r Request) Selection() Selection { return r.selection }

// Options are the options of Run for a recording with a content area. Start, End, Origin and
// Events are the caller's.
func (r Request) Options(frames visual.Frames, content image.Rectangle) (Options, error) {
	o := Options{Content: content, Groups: groupsOfFrames(r.selection), Tolerance: r.tolerance, UniquePixels: r.plan.UniquePixels,
		LumaStep: r.plan.LumaStep, Zoom: r.plan.Zoom, Known: r.plan.KnownImages, BlankColour: r.blank,
		Quiet: time.Duration(r.plan.Quiet * 1e9)}
	if r.plan.Refresh > 0 {
		o.Refresh = time.Duration(1e9 / r.plan.Refresh)
	}
	if r.auto {
		var err error
		if o.Tolerance, err = AutoTolerance(frames, visual.SyncOptions{}); err != nil {
			return o, fmt.Errorf("tolerance auto: %w", err)
		}
	}
	for i, g := range r.plan.Regions {
		box := r.regions[i].In(content)
		if box.Empty() {
			return o, fmt.Errorf("region %q: %s is outside the content area of %d × %d", g.Name, g.Area, content.Dx(), content.Dy())
		}
		o.Regions = append(o.Regions, visual.Region{Name: g.Name, Area: box})
	}
	for _, area := range r.ignore {
		if box := area.In(content); !box.Empty() {
			o.Ignore = append(o.Ignore, box)
		}
	}
	return o, nil
}

// groupsOfFrames are the groups that frames tell.
func groupsOfFrames(s Selection) []string {
	return slices.DeleteFunc(s.Groups(), func(g string) bool { return g == metric.Machine || g == metric.Work })
}

// Named returns a number under the name that runs give it: NAME@REGION.
func (n Number) Named() lab.Measurement {
	m := n.Measurement
	if n.Region != "" {
		m.Name += metric.RegionMark + n.Region
	}
	return m
}

// AnalysisOf is what a run tells of a measurement besides its numbers.
func AnalysisOf(o Options, r *Result) *lab.Analysis {
	a := &lab.Analysis{Settings: map[string]string{"tolerance": o.Tolerance.String()}}
	for _, g := range o.Regions {
		a.Regions = append(a.Regions, AreaOf(g.Name, g.Area))
	}
	for _, box := range o.Ignore {
		a.Ignored = append(a.Ignored, AreaOf("", box))
	}
	if r != nil {
		a.Settings, a.Notes, a.Proposed, a.Colours = r.Settings, r.Notes, r.Proposed, r.Colours
	}
	return a
}

// AreaOf names a rectangle.
func AreaOf(name string, r image.Rectangle) lab.Area {
	return lab.Area{Name: name, X: r.Min.X, Y: r.Min.Y, W: r.Dx(), H: r.Dy()}
}
