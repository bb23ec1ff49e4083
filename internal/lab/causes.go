package lab

// BrowserTrace says what became of the browser's own trace of a trial.
type BrowserTrace struct {
	Browser string `json:"browser,omitempty"` // "Chromium" or "Firefox"
	// Pings are instants that the browser noted in its trace, with when that was by the box's clock.
	Pings []TracePing `json:"pings,omitempty"`
	// Void says why the trace is not used; the trial is none the worse for it.
	Void string `json:"void,omitempty"`
	// OffsetNS was added to the browser's times to get the box's, and BoundMS is by how much that may be wrong.
	OffsetNS int64   `json:"offset_ns"`
	BoundMS  float64 `json:"bound_ms"`
	Clock    string  `json:"clock,omitempty"` // how the clocks were joined
	// FromMS and ToMS are the window, in ms from the start, over which Work was summed up; in the trial's work.json.
	FromMS float64 `json:"from_ms"`
	ToMS   float64 `json:"to_ms"`
}

// TracePing is an instant that the browser noted under a name, between two of the box's.
type TracePing struct {
	Name     string `json:"name"`
	Earliest Time   `json:"earliest_ns"`
	Latest   Time   `json:"latest_ns"`
}

// Causes compares what browsers, servers and network did in the traced trials of two arms: why one is slower.
type Causes struct {
	Control   CausesArm `json:"control"`
	Treatment CausesArm `json:"treatment"`
	Pairs     int       `json:"pairs"`
	// End is the difference between the windows, which reach from the start to the last visual change.
	End Cause `json:"end"`
	// Rows are ordered: the first explains most. Named ones hold although Tested rows were looked at.
	Rows   []Cause  `json:"rows"`
	Tested int      `json:"tested"`
	Level  float64  `json:"level"`
	Notes  []string `json:"notes,omitempty"`
	// Paths are the critical paths to the first picture in which the arms part; nil where they are not known.
	Paths *CriticalPaths `json:"paths,omitempty"`
}

// CriticalPaths compares how the arms come to the first share of the page that one shows later than the other.
type CriticalPaths struct {
	// Share is that share of the visual progress, in percent; 0 is the first change. −1 if the arms part nowhere beyond
	// chance.
	Share float64 `json:"share_percent"`
	// Parting is when the arms show it, in ms, with the difference.
	Parting Cause `json:"parting"`
	// Control and Treatment are the paths of a typical trial each: the one nearest to its arm's median.
	Control   Path `json:"control"`
	Treatment Path `json:"treatment"`
	// Rows sum up the steps of all traced trials by what they are; those that are named hold although Tested rows were
	// looked at.
	Rows   []Cause  `json:"rows"`
	Tested int      `json:"tested"`
	Notes  []string `json:"notes,omitempty"`
}

// Path is the critical path of one trial.
type Path struct {
	Trial int        `json:"trial"`
	Frame int        `json:"frame"`
	Steps []PathStep `json:"steps"` // from the input to the picture, without gaps
}

// PathStep is a stretch of a critical path, in ms from the trial's start.
type PathStep struct {
	Kind   string  `json:"kind"`
	Group  string  `json:"group,omitempty"` // of work
	What   string  `json:"what,omitempty"`  // a URL, that of the page's own origin without the origin
	FromMS float64 `json:"from_ms"`
	ToMS   float64 `json:"to_ms"`
	// Inferred says that nothing measured says that this was waited for; Why is by what it was chosen.
	Inferred bool   `json:"inferred,omitempty"`
	Why      string `json:"why,omitempty"`
}

// The kinds of steps.
const (
	PathStart   = "start"   // from the input to the first request
	PathSend    = "send"    // from the page's asking to the box: names, connections, the link
	PathWait    = "wait"    // for the first byte of the answer, at the box
	PathReceive = "receive" // from the first byte to the last, at the box
	PathDeliver = "deliver" // from the box's last byte to the page
	PathWork    = "work"    // of the page's thread
	PathIdle    = "idle"    // the page's thread waits
	PathScreen  = "screen"  // from painting to the picture
	PathShort   = "short"   // several short steps; their sorts are in Why
)

// CausesArm is one arm of Causes.
type CausesArm struct {
	Trials   int     `json:"trials"` // with a whole trace
	Left     int     `json:"left"`   // traced trials that are left out: invalid, or their trace is void
	WindowMS float64 `json:"window_ms"`
}

// The kinds of causes.
const (
	CauseThread  = "thread"  // self time of threads
	CauseWait    = "wait"    // from a request to the first byte of its answer, at the box
	CauseReceive = "receive" // from the first byte to the last
	CauseStart   = "start"   // from what a request always follows to the request
	CauseCount   = "count"   // how often something is requested
	CauseBytes   = "bytes"   // of an answer
	CauseEnd     = "end"     // of the window
	CausePath    = "path"    // of the critical path; Thread is the kind of its steps
)

// Cause is one row: what it is, how much of it each arm has, and the difference.
type Cause struct {
	Kind string `json:"kind"`
	// Process, Thread, Main and Group are of threads; without a group it is the whole thread, without a URL the whole
	// group.
	Process string `json:"process,omitempty"`
	Thread  string `json:"thread,omitempty"`
	Main    bool   `json:"main,omitempty"`
	Group   string `json:"group,omitempty"`
	// What is a URL, that of the page's own origin without the origin; of requests with their method before it.
	What  string `json:"what,omitempty"`
	After string `json:"after,omitempty"` // of CauseStart: what the request always follows
	Unit  string `json:"unit"`
	// Control and Treatment are medians; Shift is the difference with its interval.
	Control    float64 `json:"control"`
	Treatment  float64 `json:"treatment"`
	Shift      float64 `json:"shift"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
	P          float64 `json:"p"`
	Adjusted   float64 `json:"adjusted"` // P, corrected for the number of rows
	// Named says that the row has changed; Explains is its part of the difference in ms that no other named row has.
	Named    bool    `json:"named"`
	Explains float64 `json:"explains_ms"`
}
