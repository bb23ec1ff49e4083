package lab

// EndSteps says that all steps of a journey came to their ends.
const EndSteps End = "steps"

// TrialStep is one step of a trial, as it was carried out and measured.
type TrialStep struct {
	// Name is the path of the step: its name, after those of the steps that it is in. A step
	// without a name has its verb and number.
	Name  string `json:"name"`
	Level string `json:"level"` // "objective", "task", "detail"
	Verb  string `json:"verb"`
	// Place leads to the step in the plan: steps[2].steps[0].
	Place string `json:"place"`
	// Input is when the device got the step's input: from the earliest time of its first event
	// to the latest of its last; First is that first event.
	Input Event `json:"input"`
	First Event `json:"first"`
	// Expect is the end that was asked for, in words of the plan; empty where the step ended
	// with its input. Default is set where the plan left the end out.
	Expect  string   `json:"expect,omitempty"`
	Default bool     `json:"default,omitempty"`
	Mask    []string `json:"mask,omitempty"`
	// End says by what the step ended: the kinds of the conditions ("changed+still+network"),
	// "input", "limit", or "failed" for a step whose input could not be given.
	End string `json:"end"`
	// Met is since when the conditions held, and Seen when that was found out, during the trial.
	Met  Time `json:"met_ns,omitempty"`
	Seen Time `json:"seen_ns,omitempty"`
	// Network is the latest activity of the network when the end was found.
	Network Time `json:"network_ns,omitempty"`
	// Aim is where the input went, in pixels of the screen, with the size of what was found.
	AimX int `json:"aim_x,omitempty"`
	AimY int `json:"aim_y,omitempty"`
	AimW int `json:"aim_w,omitempty"`
	AimH int `json:"aim_h,omitempty"`
	// FoundBy says who told where the aim is, if the input was aimed at a selector.
	FoundBy string `json:"found_by,omitempty"`
	// Late is by how much the latest event of a scheduled gesture missed its time, in ms.
	Late float64 `json:"late_ms,omitempty"`

	// Pings are the inputs of a step that measures responsiveness, and Answers what they brought
	// about in Region.
	Pings   []Event  `json:"pings,omitempty"`
	Answers []Answer `json:"answers,omitempty"`
	Region  string   `json:"region,omitempty"`
	// Echoes are the times from Caps Lock to the keyboard's light; the Source of each is the time between two
	// questions about the light.
	Echoes []AnswerTime `json:"echoes,omitempty"`
	// Window is where the window is that the step opened, x, y, width and height in pixels of the
	// screen; Opens is set if one was to be looked for.
	Opens  bool  `json:"opens,omitempty"`
	Window []int `json:"window,omitempty"`
	// Used is what the program's processes had used at the beginning and at the end of an idle time, if they are seen.
	Used []ProgramUse `json:"used,omitempty"`
	// Restless are regions of the content area, as of Mask, that kept changing at the step's end.
	Restless []string `json:"restless,omitempty"`

	Valid   bool     `json:"valid"`
	Invalid []string `json:"invalid,omitempty"`

	Requests int `json:"requests"` // that came from the step's input until its end
	Misses   int `json:"misses"`

	// StartFrame is the step's first picture, EndFrame the one on which its end was decided.
	StartFrame int    `json:"start_frame"`
	EndFrame   int    `json:"end_frame"`
	FinalFrame string `json:"final_frame_sha256,omitempty"` // of the content area without the masks

	Measurements []Measurement `json:"measurements,omitempty"`
	Analysis     *Analysis     `json:"analysis,omitempty"`

	// The step's curves, as those of a trial; they are not in run.json.
	LoadHistogram  []float64 `json:"load_histogram,omitempty"`
	VisualProgress []float64 `json:"visual_progress,omitempty"`
	FrameTimes     []float64 `json:"frame_times_ms,omitempty"`
}

// Answer is what one input brought about: the first frame that changed, and the last one before
// the region was quiet, both −1 where there was none.
type Answer struct {
	First   int         `json:"first_frame"`
	Settled int         `json:"settled_frame"`
	ToFirst AnswerTime  `json:"to_first_change"`
	ToStill *AnswerTime `json:"to_settled,omitempty"`
}

// AnswerTime is the time from an input to a frame, in ms. Low and High bound it: the input was
// somewhere in an interval, Input ms wide, and what the frame shows came after the frame before it
// was taken, Source ms earlier.
type AnswerTime struct {
	MS     float64 `json:"ms"`
	Low    float64 `json:"low_ms"`
	High   float64 `json:"high_ms"`
	Input  float64 `json:"input_ms"`
	Source float64 `json:"source_ms"`
}

// The ends of a step besides the kinds of its conditions.
const (
	StepInput  = "input"
	StepLimit  = "limit"
	StepFailed = "failed"
	StepPings  = "pings"
	StepIdle   = "idle"
)

// FailedFile is the picture of the screen when a step failed, in the folder of its trial or recording.
const FailedFile = "failed-step.png"

// Measured says whether a step has measurements of its own: it had an end to reach, was pinged, or
// watched the screen.
func (s *TrialStep) Measured() bool { return s.Expect != "" || len(s.Pings) > 0 || s.Verb == VerbIdle }

// Levels of steps, from the outside.
func Levels() []string { return []string{"objective", "task", "detail"} }
