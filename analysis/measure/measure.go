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
	"eidetic/analysis/response"
	"eidetic/analysis/tearing"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

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
	Curves       bool          // counts of changed pixels are wanted for each frame, which takes longer
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
}

// Run measures the groups in their order.
func Run(frames visual.Frames, o Options) (*Result, error) {
	for _, g := range o.Groups {
		if !slices.Contains(metric.Groups(), g) {
			return nil, fmt.Errorf("there is no group %q: choose from %s", g, strings.Join(metric.Groups(), ", "))
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

// part is a part of the measurement: walk goes once over the frames, forwards, maybe beside
// others; tell adds what it found.
type part struct {
	walk func(visual.Frames) error
	tell func() error
}

func (m *run) all() error {
	var parts []part
	for _, one := range []struct {
		wanted bool
		parts  func() []part
	}{
		{m.wants(metric.Rate, metric.Stable, metric.Response) || m.wants(metric.Tearing) && m.o.Known, m.changes},
		{m.wants(metric.Motion, metric.Blank), m.motion},
		{m.wants(metric.Tearing) && !m.o.Known, m.tearing},
		{m.wants(metric.Stable), m.stable},
		{m.wants(metric.Shift), m.shift},
	} {
		if one.wanted {
			parts = append(parts, one.parts()...)
		}
	}
	var walks []func(visual.Frames) error
	for _, p := range parts {
		if p.walk != nil {
			walks = append(walks, p.walk)
		}
	}
	if err := each(m.frames, m.o.Start, m.o.End, walks); err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.tell(); err != nil {
			return err
		}
	}
	for _, one := range []struct {
		wanted bool
		do     func() error
	}{{m.wants(metric.Window), m.window}, {m.wants(metric.Codes), m.codes}, {m.wants(metric.Colours), m.keyColours}} {
		if one.wanted {
			if err := one.do(); err != nil {
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
