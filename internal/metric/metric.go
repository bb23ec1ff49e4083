// Package metric is the one registry of what is measured. Whatever measures names a metric by a value such as
// FirstChange and makes its measurement with ID.Measure; report, panel, guards, exports, history, the truth bench
// and the tables of docs/metrics.md take label, unit, definition and direction from its entry. To add a metric:
// the function that measures it, its ID and entry in entries.go, and its definition in the document that the entry
// names (go test ./internal/metric -update writes the table there).
package metric

import (
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// ID is a metric. The zero value is none: what a file names that another version wrote.
type ID uint8

// Better says which values of a metric are better.
type Better string

// The directions. Neither is that of a distance.
const (
	Lower   Better = "lower"
	Higher  Better = "higher"
	Neither Better = "neither"
)

// Scope is what a metric is measured of.
type Scope string

// The scopes. A step of a journey that has an end has the metrics of a load as well, from its own input.
const (
	OfLoad    Scope = "load"
	OfStep    Scope = "step"
	OfJourney Scope = "journey"
	OfRun     Scope = "run" // of every trial, whatever it does
)

// Groups of metrics, by whose names they are asked for.
const (
	Load     = "load"     // what every load has, and the indices of a page load
	Rate     = "rate"     // unique frames, intervals, missed refreshes, jank
	Motion   = "motion"   // displacement of a scrolled, panned or zoomed picture
	Blank    = "blank"    // what was not drawn yet while it moved
	Tearing  = "tearing"  // frames that show parts of two pictures
	Stable   = "stable"   // the stable frame by pixels, by entropy and for cameras
	Window   = "window"   // the window that opened, its load histogram
	Response = "response" // from inputs to what they changed
	Codes    = "codes"    // the page's own counter, clock and bits, drawn into each frame
	Paint    = "paint"    // elements whose rectangles the page reported
	Shift    = "shift"    // layout instability: what moved without an input
	Colours  = "colours"  // key colours of the final frame
	Machine  = "machine"  // processor time, waits and memory of the browser
	Work     = "work"     // what the main threads of pages did, by the browser's own trace
)

// Groups returns the names of the groups besides Load.
func Groups() []string {
	return []string{Rate, Motion, Blank, Tearing, Stable, Window, Response, Codes, Paint, Shift, Colours, Machine, Work}
}

// Entry is what is known of a metric.
type Entry struct {
	Name  string `json:"name" doc:"As in files and plans; that of a step has the step's path and / before it, that of a region @ and the region's name behind it" example:"speed_index_ms"`
	Unit  string `json:"unit" doc:"Empty for a number without one" example:"ms"`
	Label string `json:"label" doc:"The name for people" example:"SpeedIndex"`
	Short string `json:"short" doc:"What it says, in a few words" example:"Mean time to appear, over the whole screen"`
	// Says begins the sentence that ends with the value; without it, the sentence says LABEL is.
	Says   string `json:"-"`
	Method string `json:"method" doc:"The definition"`
	Source string `json:"source,omitempty" doc:"The paper, standard or tool that the definition follows" example:"browsertime"`
	Better Better `json:"better" enum:"lower,higher,neither" doc:"Which values are better"`
	// Instant is set if the value is the time of one frame, and so known only to the interval since the frame before.
	Instant bool     `json:"instant" doc:"Whether it is the time of one frame, known to the interval since the frame before"`
	Guard   bool     `json:"guard" doc:"Whether verdicts rest on it without being asked to"`
	Scope   Scope    `json:"scope" enum:"load,step,journey,run" doc:"What it is measured of"`
	Groups  []string `json:"groups,omitempty" doc:"The groups by which a plan asks for it"`
	Doc     string   `json:"doc" doc:"Where it is documented" example:"docs/metrics.md#page-loads"`
}

// All lists the metrics, the most telling first.
func All() []ID {
	var all []ID
	for m := ID(1); m < count; m++ {
		all = append(all, m)
	}
	return all
}

// Entry returns what is known of the metric.
func (m ID) Entry() Entry {
	e := entries[m]
	e.Groups = slices.Clone(e.Groups)
	return e
}

// String returns the metric's name.
func (m ID) String() string { return entries[m].Name }

// Label returns the metric's name for people.
func (m ID) Label() string { return entries[m].Label }

// Measure returns a measurement of the metric that rests on frames of the reel. Details say how this one was made,
// beyond the definition.
func (m ID) Measure(value float64, frames []int, details ...string) lab.Measurement {
	e := entries[m]
	return lab.Measurement{Name: e.Name, Value: value, Unit: e.Unit, Frames: frames, Method: e.Text(details...)}
}

// In returns the metric's value in a trial of one load; 0 if the trial lacks it.
func (m ID) In(t *lab.Trial) float64 {
	v, _ := t.Value(m.String())
	return v
}

// Text is the definition with its source, and with the details of one measurement.
func (e Entry) Text(details ...string) string {
	text := e.Method
	if e.Source != "" {
		text += " (" + e.Source + ")"
	}
	return strings.Join(append([]string{text}, details...), "; ")
}

// Named returns the metric of a name; false if there is none.
func Named(name string) (ID, bool) {
	for i := range entries {
		if i > 0 && entries[i].Name == name {
			return ID(i), true
		}
	}
	return 0, false
}

// InGroup lists the metrics of a group.
func InGroup(group string) []ID {
	return slices.DeleteFunc(All(), func(m ID) bool { return !slices.Contains(entries[m].Groups, group) })
}

// Guards lists the metrics of a page load that decide verdicts and whose level a history watches, the most telling
// first.
func Guards() []ID {
	return slices.DeleteFunc(All(), func(m ID) bool { return !entries[m].Guard || entries[m].Scope != OfLoad })
}

// Names are the names of metrics.
func Names(list []ID) []string {
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = m.String()
	}
	return names
}
