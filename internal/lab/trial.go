package lab

import (
	"strings"
	"time"
)

// Event is something done to the device or observed of it. It happened at some instant in
// [Earliest, Latest]; no latency finer than that interval may be reported.
type Event struct {
	Name     string `json:"name"` // "key", "text", "paste", "navigate", "sync", "done", "end"
	Detail   string `json:"detail,omitempty"`
	Earliest Time   `json:"earliest_ns"`
	Latest   Time   `json:"latest_ns"`
}

// EventsFile is the file of a trial's folder that has its events, one JSON object a line.
const EventsFile = "events.jsonl"

// The names of events whose detail is a text that was given to the device: character by character, or at once by the
// device's clipboard.
const (
	EventText  = "text"
	EventPaste = "paste"
)

// IsText says whether the event's detail is a text that was given to the device, which may be a password.
func (e Event) IsText() bool { return e.Name == EventText || e.Name == EventPaste }

// Measurement is a named number with its unit, the method that produced it, and the
// frames that it is based on.
type Measurement struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`             // "ms", "frames/s", "pixels", "%"
	Method string  `json:"method"`           // formula and flavour, with its source
	Frames []int   `json:"frames,omitempty"` // indices in the reel
	// Low and High bound the true value, given when frames were taken and how well the
	// start is known. They are nil if the method has no bounds.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// Span is an interval of a trial. Spans form a tree: objective → task → detail.
type Span struct {
	Name     string  `json:"name"`
	Level    string  `json:"level"` // "objective", "task", "detail"
	Start    Time    `json:"start_ns"`
	End      Time    `json:"end_ns"`
	Children []*Span `json:"children,omitempty"`
}

// End says by what the end of a trial was recognised.
type End string

// The ways a trial ends.
const (
	EndStable End = "stable" // the screen and the network were still for the plan's time
	EndRed    End = "red"    // the red page was seen
	EndDone   End = "done"   // the page called lab.done()
	EndLimit  End = "limit"  // the plan's time limit
)

// The arms of an experiment.
const (
	Control   = "control"
	Treatment = "treatment"
)

// ArmOrder sorts arms by name: the control, the treatment, then any other that a file
// may name. The order of the trials is no help, as it is random.
func ArmOrder(arm string) int {
	switch arm {
	case Control:
		return 0
	case Treatment:
		return 1
	}
	return 2
}

// Trial is one execution of a scenario, as it is written to trial.json.
type Trial struct {
	Number int    `json:"number"` // from 1
	Arm    string `json:"arm"`
	// Cell is the name of the trial's cell, in a run of many pages or users.
	Cell string `json:"cell,omitempty"`
	// Block is the number, from 1, of the group of trials within which the order of the
	// arms was randomised; 0 for a warm-up.
	Block int       `json:"block"`
	Page  string    `json:"page"`
	Wall  time.Time `json:"wall"` // start, for people
	Ended End       `json:"ended"`

	// Recording is the number, from 1, of the arm's recording that was replayed, where it has several.
	Recording int `json:"recording,omitempty"`

	// Valid trials enter the statistics; Invalid says why a trial is not valid.
	Valid   bool     `json:"valid"`
	Invalid []string `json:"invalid,omitempty"`
	// Faults are those reasons that do not depend on the tolerance.
	Faults []string `json:"faults,omitempty"`

	// Conditions and ConditionsAfter are the device's right before and after the trial; nil where it tells none.
	Conditions      *Conditions `json:"conditions,omitempty"`
	ConditionsAfter *Conditions `json:"conditions_after,omitempty"`

	// Warmup says that the trial was made before those that are counted, to warm the machine up.
	Warmup bool `json:"warmup,omitempty"`

	// Traced says that the trial was made for its browser's trace, besides those that are counted; Trace is what became
	// of the trace, nil where there is to be none.
	Traced bool          `json:"traced,omitempty"`
	Trace  *BrowserTrace `json:"trace,omitempty"`

	// Sampled says how the processes were read in a trial in which they were; nil else.
	Sampled *Sampled `json:"sampled,omitempty"`

	Requests int `json:"requests"`
	Misses   int `json:"misses"`
	// Recorded is how many exchanges of this page the recording has, and Asked how many
	// of them the trial requested; both are 0 if the recording may hold other pages too.
	Recorded int `json:"recorded,omitempty"`
	Asked    int `json:"asked,omitempty"`

	// Filled is how many requests that the recording lacks the trial fetched from their origins,
	// and FilledRequests the first of them.
	Filled         int             `json:"filled,omitempty"`
	FilledRequests []FilledRequest `json:"filled_requests,omitempty"`

	Frames     int  `json:"frames"`
	FramesLost int  `json:"frames_lost"`
	FirstFrame Time `json:"first_frame_ns"`
	StartFrame int  `json:"start_frame"` // the frame from which times count
	StartTime  Time `json:"start_ns"`    // the navigation: zero of FrameTimes and of every metric in ms
	// VideoLead is by how many ms the trial's video begins before StartTime.
	VideoLead  float64 `json:"video_lead_ms,omitempty"`
	ContentX   int     `json:"content_x"`
	ContentY   int     `json:"content_y"`
	ContentW   int     `json:"content_w"`
	ContentH   int     `json:"content_h"`
	FinalFrame string  `json:"final_frame_sha256"` // of the content area of the last frame, BGRX

	// Steps are the steps of a journey in the order in which they were carried out, a step
	// before those in it; nil for the load of one page.
	Steps []*TrialStep `json:"steps,omitempty"`

	// Blur is how late the instruments may have been; Machine is the machine's other load.
	Blur    *Blur    `json:"blur,omitempty"`
	Machine *Machine `json:"machine,omitempty"`

	// Before is what was known before the arm could act, by the names of the covariates; After is the meter again, when
	// the device's browser is gone.
	Before map[string]float64 `json:"before,omitempty"`
	After  map[string]float64 `json:"after,omitempty"`

	// Capture describes the quality of the recording.
	Capture *CaptureState `json:"capture,omitempty"`

	// Parts lists, in order, what the trial's time was spent on.
	Parts []TrialPart `json:"parts,omitempty"`

	Measurements []Measurement `json:"measurements"`
	Analysis     *Analysis     `json:"analysis,omitempty"`
	Dialogues    []Dialogue    `json:"dialogues,omitempty"`  // what the page asked a person, in a window of the browser's own
	PageMarks    []PageMark    `json:"page_marks,omitempty"` // what the page reported, placed on frames
	Spans        []*Span       `json:"spans,omitempty"`
	Events       []Event       `json:"events"`

	// LoadHistogram is, for each frame from StartFrame on, the share of the
	// content area's pixels that equal the final frame's, in percent.
	LoadHistogram []float64 `json:"load_histogram,omitempty"`
	// VisualProgress is SpeedIndex's own progress for the same frames, in percent.
	VisualProgress []float64 `json:"visual_progress,omitempty"`
	// FrameTimes holds the same frames' times in ms since the start.
	FrameTimes []float64 `json:"frame_times_ms,omitempty"`

	// NoLoad says why the recording shows no page load, "" if it shows one.
	NoLoad string `json:"no_load,omitempty"`
	// NoEvidence says why pictures or the film are missing.
	NoEvidence string `json:"no_evidence,omitempty"`
	// Files names the artifacts, relative to the trial's folder: "reel",
	// "video", "filmstrip", "heatmap", "replay", "events".
	Files map[string]string `json:"files"`
}

// FilledRequest is a request that was fetched from its origin in a trial.
type FilledRequest struct {
	Time     Time      `json:"time_ns"` // arrival
	Wall     time.Time `json:"wall"`    // the same, for people
	Method   string    `json:"method"`
	URL      string    `json:"url"`
	Status   int       `json:"status"`
	Bytes    int64     `json:"bytes"`
	Exchange string    `json:"exchange,omitempty"` // in the archive of what was fetched
	Error    string    `json:"error,omitempty"`    // why the origin did not answer
}

// TrialPart is one stretch of a trial's time.
type TrialPart struct {
	Name string  `json:"name"` // "birth", "settle", "load", "still", "stop", "analysis", "evidence"
	MS   float64 `json:"ms"`
	// Processor is the processor time in ms by consumer, if known: "appliance",
	// "browser", "screen", "link", "encoder". A part without it is included in the part
	// that follows.
	Processor map[string]float64 `json:"processor_ms,omitempty"`
}

// CaptureState describes the quality of a trial's recording. Times are in ms.
type CaptureState struct {
	Rate         float64        `json:"rate_hz"` // measured
	IntervalP99  float64        `json:"interval_p99_ms"`
	IntervalMax  float64        `json:"interval_max_ms"`
	Jitter       float64        `json:"jitter_ms"`
	Scheduling   string         `json:"scheduling"`      // "SCHED_FIFO", "nice -10" or "normal"
	MissedProven int            `json:"missed_proven"`   // missed ticks whose picture is known nevertheless
	MissedDrawn  int            `json:"missed_drawn"`    // missed ticks during which the screen changed
	NormalBound  float64        `json:"normal_bound_ms"` // usual uncertainty of the time of a change
	WorstBound   float64        `json:"worst_bound_ms"`  // worst uncertainty
	LostBecause  map[string]int `json:"lost_because,omitempty"`
	Irregular    int            `json:"irregular,omitempty"` // frames whose time does not fit their number
	Blue         []Blue         `json:"blue,omitempty"`      // stretches in which a grabber had no signal
	Source       *SourceState   `json:"source,omitempty"`    // of a device at a port
	Noise        *ScreenNoise   `json:"noise,omitempty"`     // of a screen that is not read exactly
}

// SourceState is what a device's screen was filmed by, as the source itself says.
type SourceState struct {
	Name   string      `json:"name"` // "v4l2:/dev/video0"
	Pixels PixelFormat `json:"pixels"`
	Chroma string      `json:"chroma,omitempty"` // "4:2:2": colours have a part of the resolution
	Width  int         `json:"width"`
	Height int         `json:"height"`
	Rate   float64     `json:"rate_hz"` // of the signal, or as the driver claims; CaptureState.Rate is measured
	// Notes hold the card's name, the colour space with its range, and the signal's mode.
	Notes       map[string]string `json:"notes,omitempty"`
	NotLossless string            `json:"not_lossless,omitempty"`
	// Latency is the interval that was subtracted from every picture's time, in ms.
	Latency []float64 `json:"latency_ms,omitempty"`
}

// Summary is one metric over the valid trials of one arm.
type Summary struct {
	Metric string  `json:"metric"`
	Unit   string  `json:"unit"`
	Arm    string  `json:"arm"`
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Q1     float64 `json:"q1"`
	Q3     float64 `json:"q3"`
	// Low and High bound the median at 95 % by order statistics, without assuming a
	// distribution; they are Min and Max if N is too small for that.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Warnings qualify the numbers: "n = 3 is too small for a 95 % interval".
	Warnings []string `json:"warnings,omitempty"`
}

// What a run is that executed no plan; see Run.Kind.
const (
	KindFilm          = "film"          // one trial without measurements: a film of a device's screen that a person asked for
	KindQualification = "qualification" // no trial: how well a grabber delivers what is on a screen
)

// Run is one execution of a plan, and the content of run.json; there, trials lack their
// per-frame series.
type Run struct {
	ID   string `json:"id"`   // sorts by time: 20261121-091400-demo
	Name string `json:"name"` // given by the person
	// Kind is KindFilm or KindQualification; "" is the execution of a plan.
	Kind    string    `json:"kind,omitempty"`
	Wall    time.Time `json:"wall"`
	Elapsed float64   `json:"elapsed_s"`
	State   string    `json:"state"` // "running", "done", "failed", "interrupted"
	Error   string    `json:"error,omitempty"`
	// Waits says what the run waits for, or parts of it. The panel tells it; no file has it.
	Waits string `json:"waits,omitempty"`

	Page    string      `json:"page"`    // URL under test
	Archive ArchiveInfo `json:"archive"` // what was replayed
	// Servers are the answers of the two servers of a comparison of addresses, where each was recorded several times.
	Servers []ServerRow `json:"servers,omitempty"`
	// ServersApart is set where each of two addresses was recorded once, and both arms have the same times.
	ServersApart *ServersApart `json:"servers_apart,omitempty"`
	// Assets are the answers in which the recordings of the arms differ, those first that differ by most bytes.
	Assets []AssetRow `json:"assets,omitempty"`
	// Filled is the archive of what the recording lacked and the run fetched; nil for nothing.
	Filled *ArchiveInfo `json:"filled,omitempty"`
	Link   Link         `json:"link"` // of the control
	Plan   Plan         `json:"plan"`

	// Tolerance is how late the instruments may be in a valid trial.
	Tolerance *Tolerance `json:"tolerance,omitempty"`

	// Environment is what could explain a difference between two runs.
	Environment Environment `json:"environment"`

	Trials  []*Trial  `json:"trials"`
	Summary []Summary `json:"summary"`
	// Comparison is set if the run has two arms and has ended. In a run of many pages or users it is
	// that of all cells together.
	Comparison *Comparison `json:"comparison,omitempty"`
	// Causes is set if the run has two arms with traced trials, and has ended.
	Causes *Causes `json:"causes,omitempty"`
	// Cells are the results of each page and user of a run of many, in the plan's order; Summary is
	// empty then.
	Cells []CellResult `json:"cells,omitempty"`
	// Resumed lists when the run went on after an interruption.
	Resumed []Resumption `json:"resumed,omitempty"`
	// Looks are those that were taken at the comparison before the run ended.
	Looks []Look `json:"looks,omitempty"`
	// Size is set if the plan left it to the run how many pairs are made (Plan.Find).
	Size *Size `json:"size,omitempty"`
	// Warnings are shown at the top of the report.
	Warnings []string `json:"warnings,omitempty"`
}

// Measurement returns the measurement of a name, or nil.
func (t *Trial) Measurement(name string) *Measurement {
	for i := range t.Measurements {
		if t.Measurements[i].Name == name {
			return &t.Measurements[i]
		}
	}
	return nil
}

// Value returns the value of a measurement; false if the trial lacks it.
func (t *Trial) Value(name string) (float64, bool) {
	if m := t.Measurement(name); m != nil {
		return m.Value, true
	}
	return 0, false
}

// Values maps the names of measurements to their values, for machines that need one number. It is never nil.
func Values(all []Measurement) map[string]float64 {
	values := make(map[string]float64, len(all))
	for _, m := range all {
		values[m.Name] = m.Value
	}
	return values
}

// IsExtra says whether the trial was not made to be counted: a warm-up, or one for a trace.
func (t *Trial) IsExtra() bool { return t.Traced || t.Warmup }

// Superseded begins the reason of a trial that was made again because another was less exact, and was not needed.
const Superseded = "superseded: "

// IsSuperseded reports that nothing else is against the trial.
func (t *Trial) IsSuperseded() bool {
	return !t.Valid && len(t.Faults) == 0 && len(t.Invalid) == 1 && strings.HasPrefix(t.Invalid[0], Superseded)
}

// Measured counts the trials that were made to be counted.
func (r *Run) Measured() (n int) {
	for _, t := range r.Trials {
		if !t.IsExtra() {
			n++
		}
	}
	return n
}

// CellResult is what a run of many pages or users found for one of them.
type CellResult struct {
	Name string `json:"name"`           // as Trial.Cell
	Page string `json:"page,omitempty"` // name of the page
	User string `json:"user,omitempty"` // name of the user
	URL  string `json:"url"`            // of the control's page
	// Archive is what the control replayed; nil before it was opened.
	Archive *ArchiveInfo `json:"archive,omitempty"`
	// Report is the file of the cell's own report, in the run's folder.
	Report     string      `json:"report,omitempty"`
	Summary    []Summary   `json:"summary"`
	Comparison *Comparison `json:"comparison,omitempty"`
	// Causes is as that of a run of one page.
	Causes *Causes `json:"causes,omitempty"`
	// Box is the one of a fleet that made the cell's trials, where a run's pages went to several.
	Box *BoxState `json:"box,omitempty"`
}

// Views lists the cells of a run, each as a run of one page. A run of one page is its only view.
func (r *Run) Views() []*Run {
	if !r.Plan.IsMany() {
		return []*Run{r}
	}
	cells := r.Plan.Cells()
	views := make([]*Run, 0, len(cells))
	for i, c := range cells {
		v := *r
		v.Name = strings.TrimPrefix(r.Name+" · "+c.Name, " · ")
		v.Cells, v.Plan, v.Page, v.Trials = nil, c.Plan, c.Plan.Arms()[0].Page, []*Trial{}
		v.Archive, v.Summary, v.Comparison, v.Causes, v.Assets = ArchiveInfo{}, nil, nil, nil, nil
		for _, t := range r.Trials {
			if t.Cell == c.Name {
				v.Trials = append(v.Trials, t)
			}
		}
		if i < len(r.Cells) && r.Cells[i].Name == c.Name {
			found := r.Cells[i]
			v.Summary, v.Comparison, v.Causes = found.Summary, found.Comparison, found.Causes
			if found.Archive != nil {
				v.Archive = *found.Archive
			}
		}
		views = append(views, &v)
	}
	return views
}

// Resumption is a time at which an interrupted run went on.
type Resumption struct {
	Wall   time.Time `json:"wall"`
	Trials int       `json:"trials"` // that it had by then
}

// ArchiveInfo describes a recording in a report.
type ArchiveInfo struct {
	File      string   `json:"file"`
	SHA256    string   `json:"sha256"`
	Exchanges int      `json:"exchanges"`
	Bytes     int64    `json:"bytes"` // of the file
	BodyBytes int64    `json:"body_bytes"`
	Hosts     []string `json:"hosts"`
	Protocols []string `json:"protocols"`
}
