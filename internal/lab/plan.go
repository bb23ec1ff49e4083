package lab

import (
	"cmp"
	"math"
	"time"
)

// Plan is what is asked for. It is the body of a request to the service, the content
// of a plan file, and the plan in run.json; one type, so that a field has one name.
// The embedded Arm is the control. The tags "doc", "example" and the bounds become the
// plan's JSON Schema.
type Plan struct {
	Name   string `json:"name,omitempty" maxLength:"100" doc:"What you call it" example:"checkout page"`
	Device string `json:"device,omitempty" maxLength:"100" doc:"Name of the device; without it the first of the list. Runs of one device wait for each other" example:"virtual"`
	Arm    `yaml:",inline"`
	Trials int `json:"trials,omitempty" minimum:"1" maximum:"1000" default:"10" doc:"How many trials, of each arm"`
	// Miss is of the run, not of an arm: both arms are to see the same back end.
	Miss   string `json:"miss,omitempty" enum:"404,fill" default:"404" doc:"What is done with a request that the recording lacks: 404 answers with that status, and the trial is invalid; fill fetches it from its origin once, and from then on answers the same in all trials of both arms. A trial that fetched is invalid, and repeated" example:"fill"`
	Timing string `json:"timing,omitempty" maxLength:"40" default:"recorded" doc:"When a replay answers: recorded, none, or fixed:DURATION" example:"fixed:20ms"`
	// Times are in seconds, as people write them.
	Still     float64 `json:"still_s,omitempty" minimum:"0.2" maximum:"60" default:"1.5" doc:"A page has loaded when screen and network have been still for so many seconds"`
	Limit     float64 `json:"limit_s,omitempty" minimum:"1" maximum:"3600" default:"60" doc:"A load that takes longer is ended, and invalid"`
	Seed      uint64  `json:"seed,omitempty" default:"1" doc:"Of everything that is drawn by lot"`
	Tolerance float64 `json:"tolerance_ms,omitempty" minimum:"0" maximum:"60000" doc:"How late, in ms, the link or the recorder may be in a valid trial, and never more. Without it one frame (16.7), relaxed where the machine cannot keep that" example:"16.7"`
	// ExpectBlank is for pages that are to show nothing.
	ExpectBlank bool `json:"expect_blank,omitempty" doc:"Whether the page is to show nothing: without it a trial is invalid in which the screen does not change, or whose final picture is blank or the first one again"`
	// Steps make a journey. Without them a trial loads the page.
	Steps   []Step   `json:"steps,omitempty" maxItems:"200" doc:"What is done in a trial after another; without steps the page is loaded, and that is all. The first step opens the page"`
	Measure *Measure `json:"measure,omitempty" doc:"What is measured on the recordings besides what every load and step has"`
	// Treatment is nil where nothing is compared. What it leaves out is as in the control.
	Treatment *Arm `json:"treatment,omitempty" doc:"Compares: its trials take turns with those of the control, which is the request itself. What it leaves out is as in the control"`
	// Live is set only by the demo; the service refuses it.
	Live bool `json:"live,omitempty" hidden:"true" doc:"The page is loaded from its origins in every trial; nothing is replayed"`
}

// Arm is one side of a comparison. In the plan of a run, Archive is the path of a file.
type Arm struct {
	Page    string `json:"page,omitempty" format:"uri" minLength:"1" maxLength:"8192" doc:"URL under test" example:"https://www.shop.example/"`
	Archive string `json:"archive,omitempty" maxLength:"255" doc:"Recording to replay: its file name, or the ID of a run that made one. Without it the page is recorded first" example:"shop.wacz"`
	Link    string `json:"link,omitempty" maxLength:"1000" doc:"Access network: the name of a profile, or parameters. Without it native, which changes nothing" example:"rtt=28ms,down=5mbit,up=1mbit"`
	Match   string `json:"match,omitempty" enum:"strict,normal,loose" doc:"How far a request may differ from the recorded one that answers it. Without it normal: not in what can change the answer" example:"loose"`
	// Browser is nil for Chromium, and where a device at a port has its own.
	Browser *Browser `json:"browser,omitempty" doc:"Of the virtual device: a name (chromium, firefox, firefox-esr), or an object with command, profile, flags. Without it chromium"`
	State   string   `json:"state,omitempty" enum:"cold,warm" doc:"cold, and without it: the browser has an empty profile in each trial. warm: it has loaded the page before, in the same profile, and was started again"`
}

// The states of a browser at the beginning of a trial.
const (
	StateCold = "cold"
	StateWarm = "warm"
)

// NativeLink is the name of the link that changes nothing.
const NativeLink = "native"

// NormalMatch is the matching policy of a plan that names none.
const NormalMatch = "normal"

// The values of Plan.Miss.
const (
	Miss404  = "404"
	MissFill = "fill"
)

// NamedArm is an arm with its name, Control or Treatment.
type NamedArm struct {
	Name string
	Arm
}

// Arms lists the arms with every field filled in: the control, and the treatment if
// there is one.
func (p Plan) Arms() []NamedArm {
	control := p.Arm
	if control.Page == "" && len(p.Steps) > 0 {
		control.Page = p.Steps[0].Open
	}
	control.Link, control.Match = cmp.Or(control.Link, NativeLink), cmp.Or(control.Match, NormalMatch)
	arms := []NamedArm{{Control, control}}
	if p.Treatment == nil {
		return arms
	}
	t := *p.Treatment
	t.Page, t.Link, t.Match = cmp.Or(t.Page, control.Page), cmp.Or(t.Link, control.Link), cmp.Or(t.Match, control.Match)
	t.Browser, t.State = cmp.Or(t.Browser, control.Browser), cmp.Or(t.State, control.State)
	if t.Archive == "" && t.Page == control.Page {
		t.Archive = control.Archive
	}
	return append(arms, NamedArm{Treatment, t})
}

// WithArms returns the plan with the given arms.
func (p Plan) WithArms(arms []NamedArm) Plan {
	p.Arm, p.Treatment = arms[0].Arm, nil
	if len(arms) > 1 {
		p.Treatment = &arms[1].Arm
	}
	return p
}

// Total is the number of trials that the plan asks for, of all arms together.
func (p Plan) Total() int {
	if p.Treatment != nil {
		return 2 * p.Trials
	}
	return p.Trials
}

// WithDefaults returns the plan with the values that a field has that is left out.
func (p Plan) WithDefaults() Plan {
	p.Trials = cmp.Or(p.Trials, 10)
	p.Timing = cmp.Or(p.Timing, "recorded")
	p.Still, p.Limit = cmp.Or(p.Still, 1.5), cmp.Or(p.Limit, 60)
	p.Seed = cmp.Or(p.Seed, 1)
	return p
}

// StillTime is how long screen and network must be still before a load has ended.
func (p Plan) StillTime() time.Duration { return seconds(p.Still) }

// LimitTime is how long a load may take.
func (p Plan) LimitTime() time.Duration { return seconds(p.Limit) }

// ToleranceTime is how much blur a valid trial may have; 0 is the default.
func (p Plan) ToleranceTime() time.Duration { return seconds(p.Tolerance / 1e3) }

// seconds converts to a duration, and caps values that no duration can represent.
func seconds(s float64) time.Duration {
	ns := math.Round(s * 1e9)
	switch {
	case math.IsNaN(ns):
		return 0
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= math.MinInt64:
		return math.MinInt64
	}
	return time.Duration(ns)
}
