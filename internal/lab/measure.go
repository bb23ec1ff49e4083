package lab

import "slices"

// Measure says what is measured on the recordings of a run besides what every load and every
// step has. Names and groups are those of internal/metric.
type Measure struct {
	Metrics []string `json:"metrics,omitempty" maxItems:"100" doc:"Measurements by name or by group. Groups: all (every index of a page load), rate, motion, blank, tearing, stable, window, response, paint, shift, colours, codes, machine, work" example:"[\"rate\",\"motion\",\"perceptual_speed_index_ms\"]"`
	Guards  []string `json:"guards,omitempty" maxItems:"20" doc:"Measurements that verdicts rest on besides those of every load or step; each is measured. NAME@REGION is that of a region" example:"[\"animation_fps\"]"`
	Steps   []string `json:"steps,omitempty" maxItems:"100" doc:"Paths of the steps that are measured so; without it all steps that have an end" example:"[\"search/scroll\"]"`
	// Regions and Ignore are written as in masks.
	Regions []MeasureRegion `json:"regions,omitempty" maxItems:"16" doc:"Parts of the content area that are measured besides the whole: their frame rate, stable frame and responses"`
	Ignore  []string        `json:"ignore,omitempty" maxItems:"32" doc:"Regions that do not count in any measurement, such as a carousel: X,Y,WIDTH,HEIGHT in pixels of the content area or in per cent of it" example:"[\"70%,0%,30%,20%\"]"`

	Tolerance    string  `json:"tolerance,omitempty" maxLength:"20" doc:"How far the channels of a pixel may each move without counting as changed: N, R,G,B, or auto, which measures the source's noise on the green page; without it 0" example:"auto"`
	UniquePixels int     `json:"unique_pixels,omitempty" minimum:"1" maximum:"100000000" doc:"Changed pixels that make a frame unique; more than 1: of a step of luma; without it 1" example:"2048"`
	LumaStep     int     `json:"luma_step,omitempty" minimum:"1" maximum:"255" doc:"Step of luma that counts with unique_pixels and for stable frames; without it 5"`
	Refresh      float64 `json:"refresh_hz,omitempty" minimum:"1" maximum:"1000" doc:"Refresh rate of the screen, if it differs from the recording's" example:"59.94"`
	Zoom         bool    `json:"zoom,omitempty" doc:"Whether motion may change the scale"`
	Blank        string  `json:"blank,omitempty" maxLength:"10" doc:"Colour of what is not drawn yet, or learn: what has one colour and is drawn later; without it learn" example:"#ff00ff"`
	KnownImages  bool    `json:"known_images,omitempty" doc:"Tearing: whether the images share no pixel value at any place, so that any two that share some are torn"`
	Quiet        float64 `json:"quiet_s,omitempty" minimum:"0.01" maximum:"60" doc:"How long a region is still when it has settled after an input; without it 0.5"`
	FrameCodes   bool    `json:"frame_codes,omitempty" doc:"Whether a script draws a strip of pixels onto the page on every animation frame, which ties the page's clock to the frames; it costs a little of the page's time"`
	MachineHz    float64 `json:"machine_hz,omitempty" minimum:"1" maximum:"100" doc:"How often a second the processor time, waits for a processor and memory of each process of the virtual device, counters of its browser (page faults, context switches; instructions where the processor counts them), the machine's pressure and, where it tells it, its energy are read: the timeline has rows of them, and trials and steps have the metrics of the group machine. Of a phone that adb drives the processes of its browser or app are read, at most 10 times a second. It takes at most 3 % of a processor, in both arms alike" example:"100"`
	Messages     bool    `json:"messages,omitempty" doc:"Whether a script in pages, their frames and workers tells of each message with others (postMessage of workers and ports, broadcasts, WebSockets, server-sent events, data channels) its time and size, for the timeline; it costs a little of the page's time"`
	Level        string  `json:"level,omitempty" enum:"objective,task,detail,debug" doc:"How much is observed besides, as one switch. objective: nothing; task: page_marks; detail: also machine_hz 100, where processes are seen; debug: also messages and the processor time of each thread of the browser" example:"detail"`
	Traceparent  bool    `json:"traceparent,omitempty" doc:"Whether each request of a recording that this run makes carries a field traceparent (W3C Trace Context), if the page sends none: appliance annotate --otlp puts the spans of the back end onto the requests that they served"`
	PageMarks    bool    `json:"page_marks,omitempty" doc:"Whether an observer in the page reports its marks and measures of User Timing, paints, long tasks, layout shifts and slow events; it costs a little of the page's time. With frame_codes it does so anyway"`
}

// MeasureRegion is a named part of the content area.
type MeasureRegion struct {
	Name string `json:"name" minLength:"1" maxLength:"40" pattern:"^[A-Za-z0-9 _-]+$" doc:"Letters, digits, spaces, - and _" example:"header"`
	Area string `json:"area" maxLength:"100" doc:"X,Y,WIDTH,HEIGHT in pixels of the content area or in per cent of it" example:"0%,0%,100%,20%"`
}

// Analysis is what is told of a measurement besides its numbers.
type Analysis struct {
	Settings map[string]string `json:"settings,omitempty"` // the thresholds that were used
	Notes    []string          `json:"notes,omitempty"`
	Regions  []Area            `json:"regions,omitempty"` // in pixels of the frame
	Ignored  []Area            `json:"ignored,omitempty"`
	Proposed []Area            `json:"proposed_ignore,omitempty"` // what never settled
	Colours  []ColourShare     `json:"colours,omitempty"`         // of the final frame
}

// Area is a named rectangle in pixels of the frame.
type Area struct {
	Name string `json:"name,omitempty"`
	X    int    `json:"x"`
	Y    int    `json:"y"`
	W    int    `json:"w"`
	H    int    `json:"h"`
}

// ColourShare is how much of an area has a colour.
type ColourShare struct {
	Colour  string  `json:"colour"` // #rrggbb
	Percent float64 `json:"percent"`
}

// PageMark is an instant that the page reported, with the first frame that shows a code that was
// drawn at or after it; −1 if none does.
type PageMark struct {
	Kind       string  `json:"kind"` // "mark", "measure", "paint", "longtask", "shift", "event", "element", "lcp", "hero", "load"
	Name       string  `json:"name"`
	Arrived    Time    `json:"arrived_ns"` // at the box
	PageMS     float64 `json:"page_ms"`    // performance.now()
	DurationMS float64 `json:"duration_ms,omitempty"`
	Value      float64 `json:"value,omitempty"` // a layout shift's score
	// Earliest and Latest bound the instant on the box's clock; 0 where the page's clock could not be joined
	// to it.
	Earliest Time `json:"earliest_ns,omitempty"`
	Latest   Time `json:"latest_ns,omitempty"`
	Frame    int  `json:"frame"`
	// TimeMS is the time of that frame since the trial's start.
	TimeMS float64 `json:"time_ms"`
	Box    *Area   `json:"box,omitempty"` // in pixels of the content area
}

// level is the number of a measure's level.
func (m *Measure) level() int {
	if m == nil {
		return 0
	}
	return max(slices.Index([]string{LevelObjective, LevelTask, LevelDetail, LevelDebug}, m.Level), 0)
}

// Levels of what is observed; each has what those before it have.
const (
	LevelObjective = "objective"
	LevelTask      = "task"
	LevelDetail    = "detail"
	LevelDebug     = "debug"
)

// Observes says whether an observer in the page reports its marks.
func (m *Measure) Observes() bool { return m != nil && m.PageMarks || m.level() >= 1 }

// Hz is how often a second the processes are read; 0 for never.
func (m *Measure) Hz() float64 {
	switch {
	case m == nil:
		return 0
	case m.MachineHz == 0 && m.level() >= 2:
		return 100
	}
	return m.MachineHz
}

// Listens says whether messages are told.
func (m *Measure) Listens() bool { return m != nil && m.Messages || m.level() >= 3 }

// Threads says whether the threads of the browser are read, too.
func (m *Measure) Threads() bool { return m.level() >= 3 }

// Traces says whether requests carry a traceparent while they are recorded.
func (m *Measure) Traces() bool { return m != nil && m.Traceparent }
