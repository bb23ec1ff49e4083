package lab

import (
	"cmp"
	"encoding/json"
	"math"
	"reflect"
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
	Trials int `json:"trials,omitempty" minimum:"1" maximum:"5000" default:"10" doc:"How many trials, of each arm"`
	// Miss is of the run, not of an arm: both arms are to see the same back end.
	Miss   string `json:"miss,omitempty" enum:"404,fill" default:"404" doc:"What is done with a request that the recording lacks: 404 answers with that status, and the trial is invalid; fill fetches it from its origin once, and from then on answers the same in all trials of both arms. A trial that fetched is invalid, and repeated" example:"fill"`
	Timing string `json:"timing,omitempty" maxLength:"40" doc:"When a replay answers: recorded, shared, none, or fixed:DURATION. shared: as recorded, but what both arms ask for takes the same time in both, the mean. Without it recorded, and shared where the run itself records another page or app for the treatment, as a server's speed on one occasion is no property of the page" example:"fixed:20ms"`
	// Times are in seconds, as people write them.
	Still      float64 `json:"still_s,omitempty" minimum:"0.2" maximum:"60" default:"1.5" doc:"A page has loaded when screen and network have been still for so many seconds"`
	Limit      float64 `json:"limit_s,omitempty" minimum:"0.2" maximum:"3600" default:"60" doc:"A load that takes longer is ended, and invalid"`
	Seed       uint64  `json:"seed,omitempty" default:"1" doc:"Seed of everything random"`
	Tolerance  float64 `json:"tolerance_ms,omitempty" minimum:"0" maximum:"60000" doc:"How late, in ms, the link or the recorder may be in a valid trial, and never more. Without it one frame (16.7), relaxed where the machine cannot keep that" example:"16.7"`
	Conditions *Limits `json:"conditions,omitempty" doc:"What the device's battery, heat and screen must keep: a trial waits for it, and is invalid if the device leaves it within the trial"`
	// ExpectBlank is for pages that are to show nothing.
	ExpectBlank bool   `json:"expect_blank,omitempty" doc:"Whether the page is meant to show nothing: without it, a trial in which the screen did not change, or ended blank or as it began, is invalid"`
	OnDialog    string `json:"on_dialog,omitempty" enum:"accept,dismiss" doc:"The answer to a page that asks a person something in a window of the browser's own (alert, confirm, prompt, print, a permission, whether to leave): the page goes on at once, and no window is shown. Without it the window is shown, and the trial is invalid" example:"accept"`
	// Steps make a journey. Without them a trial loads the page.
	Steps []Step `json:"steps,omitempty" maxItems:"200" doc:"What is done in a trial after another; without steps the page is loaded, and that is all. The first step opens the page"`
	// Files hold what the steps name, for a plan that is sent to a box.
	Files   map[string][]byte `json:"files,omitempty" doc:"The pictures, gestures and scripts that the plan names, by their names, in Base64: together at most 4 MiB. appliance run --box sends what lies beside the plan's file"`
	Measure *Measure          `json:"measure,omitempty" doc:"What is measured on the recordings besides what every load and step has"`
	// Looks, Margin and Primary fix how a comparison is judged, before any trial.
	Looks  int     `json:"looks,omitempty" minimum:"2" maximum:"10" doc:"Compares: the run looks at its comparison so often, evenly, the last time after all trials, and ends as soon as it knows that the treatment is slower, faster or, with margin_percent, equivalent. All looks together have the level of significance that one has" example:"4"`
	Margin float64 `json:"margin_percent,omitempty" minimum:"0" maximum:"100" doc:"Compares: differences of at most so many percent of the control do not matter. The treatment is slower or faster if it is by more, equivalent if it is by no more, and if neither is known, the run says how many pairs are missing" example:"3"`
	// Margins hold in place of Margin, which a plan with them has.
	Margins map[string]float64 `json:"margins_percent,omitempty" maxProperties:"50" doc:"Compares: the margins of metrics that have another than margin_percent, by the metric's name" example:"{\"time_to_stable_ms\": 10}"`
	Primary string             `json:"primary,omitempty" maxLength:"300" doc:"Compares: the one metric that the verdict rests on, in place of all guards" example:"speed_index_ms"`
	// Budgets are judged whether or not there is anything to compare.
	Budgets map[string]Budget `json:"budgets,omitempty" maxProperties:"50" doc:"The most that the medians of metrics may be, by the metric's name: of the treatment if there is one. A budget is kept, or not, if all of the median's 95 % interval says so; else it cannot be said with this many trials" example:"{\"speed_index_ms\": {\"max\": 1000}}"`
	// Recordings is 0 or 1 where each arm has one.
	Recordings int `json:"recordings,omitempty" minimum:"1" maximum:"30" doc:"Compares two pages that the run itself records: how often each is recorded, in an order that is drawn by lot. Each pair of trials replays one recording of each, whether the servers differ is a row of its own, and with timing: recorded the test counts recordings, as a server's speed on one occasion is one sample. Without it 6 with timing: recorded, else 1" example:"6"`
	// Find chooses how many of the trials are made.
	Find string `json:"find,omitempty" maxLength:"20" doc:"Compares: the smallest difference to be detected with 80 % probability, in ms or in percent of the control. After eight pairs the run chooses how many it makes of the trials that the plan has at most, by how much the loads of both arms together vary" example:"10ms"`
	// Covariates are filled in by the check of the plan, so that the run's own plan declares them.
	Covariates []string `json:"covariates,omitempty" maxItems:"5" enum:"key_to_request_ms,browser_settle_ms,meter_ms,page_meter_ms,meter_processor_ms,none" doc:"Compares: what is known of each trial before its arm can act, and taken out of its times in the test, those that tell most first: key_to_request_ms, browser_settle_ms, meter_ms, page_meter_ms, meter_processor_ms. Without it those that no arm can change, if the arms have one browser and one state; none for none" example:"[\"none\"]"`
	// Warmups are made before the measured trials.
	Warmups int `json:"warmups,omitempty" minimum:"1" maximum:"100" doc:"How many extra trials of each arm, page and user come before the others, so that the first ones that count find the machine, its caches and its network as the later ones do. They are kept, and enter no statistic" example:"2"`
	// Traces are made after the measured trials, as they cost time.
	Traces   int  `json:"traces,omitempty" minimum:"1" maximum:"500" doc:"How many extra trials of each arm, after the others, are made for the browser's own trace: they say why (docs/timeline.md), and enter no statistic. 10 name most causes" example:"10"`
	TraceAll bool `json:"trace_all,omitempty" doc:"Whether every trial is traced, and counts: the trace costs both arms alike some time"`
	// Treatment is nil where nothing is compared. What it leaves out is as in the control.
	Treatment *Arm `json:"treatment,omitempty" doc:"Compares: its trials take turns with those of the control, which is the request itself. What it leaves out is as in the control"`
	// Pages and Users make a run of many cells: each page for each user. See Cells.
	Pages []PlanPage `json:"pages,omitempty" maxItems:"50" doc:"Several pages or journeys in one run: each replaces page, archive and steps of the plan"`
	Users []PlanUser `json:"users,omitempty" maxItems:"20" doc:"Several users in one run: each page is loaded as each of them"`
	// Screen, Controls and Recipe replace those of a device at a port, for this run.
	Screen   *ScreenPart   `json:"screen,omitempty" doc:"How the screen of a device at a port is seen in this run, in place of what its configuration says"`
	Controls *ControlsPart `json:"controls,omitempty" doc:"How a device at a port is given input in this run, in place of what its configuration says"`
	Recipe   string        `json:"recipe,omitempty" maxLength:"40" doc:"What is known of the browser of a device at a port, in place of what its configuration says" example:"windows-chrome"`
	// Tags and Paths choose what of the plan a push needs.
	Tags  []string            `json:"tags,omitempty" maxItems:"14" doc:"What of the site the plan is about: a run that names tags carries it out only if one of them is among these" example:"[\"shop\"]"`
	Paths map[string][]string `json:"paths,omitempty" maxProperties:"200" doc:"Which tags a changed file needs, by patterns of paths in the repository (* within a folder, ** over folders), for appliance run --changed-paths. A file that no pattern matches needs the whole plan" example:"{\"src/cart/**\": [\"cart\"], \"docs/**\": []}"`
	// On is for the head of a fleet.
	On *On `json:"on,omitempty" doc:"For the head of a fleet: which boxes may carry the plan out, and how urgently"`
	// From is set only by the box.
	From *Origin `json:"from,omitempty" hidden:"true" doc:"The workflow of the box that the run came from"`
	// Scope is set only by the box, which lets a plan that is kept name what it could name when it was asked for.
	Scope string `json:"scope,omitempty" hidden:"true" doc:"admin: the plan names programs or files of the box, and was asked for by a token of that scope"`
	// Opened is set only by the box.
	Opened []string `json:"opened,omitempty" hidden:"true" doc:"Hosts of the plan's pages that are reached at addresses of this machine and of private networks, too: a token of the scope admin named them, on a panel that only this machine reaches"`
	// Live is set only by the demo; the service refuses it.
	Live bool `json:"live,omitempty" hidden:"true" doc:"The page is loaded from its origins in every trial; nothing is replayed"`
}

// MostPlanBytes bounds the plans together, with their files, of the runs that wait, and those of all workflows.
const MostPlanBytes = 64 << 20

// When a replay answers: as recorded, or as recorded with the same times in both arms for what both ask for.
const (
	TimingRecorded = "recorded"
	TimingShared   = "shared"
)

// Origin is where the plan of a run came from.
type Origin struct {
	Workflow string `json:"workflow" doc:"Name of the workflow on the box"`
	Version  int    `json:"version" doc:"Which of its versions"`
	Schedule string `json:"schedule,omitempty" doc:"Name of the schedule that started the run"`
	Changed  bool   `json:"changed,omitempty" doc:"Whether something of the plan was changed for this run alone"`
	Revision string `json:"revision,omitempty" doc:"The revision that the box deployed for the run"`
}

// Arm is one side of a comparison. In the plan of a run, Archive is the path of a file.
type Arm struct {
	Page    string `json:"page,omitempty" minLength:"1" maxLength:"8192" doc:"URL under test" example:"https://www.shop.example/"`
	Archive string `json:"archive,omitempty" maxLength:"255" doc:"Recording to replay: its file name, or the ID of a run that made one. Without it the page is recorded first" example:"shop.wacz"`
	Link    string `json:"link,omitempty" maxLength:"1000" doc:"Access network: the name of a profile, or parameters. Without it native, which changes nothing" example:"rtt=28ms,down=5mbit,up=1mbit"`
	Match   string `json:"match,omitempty" enum:"strict,normal,loose" doc:"How far a request may differ from the recorded one that answers it. Without it normal: not in what can change the answer; loose for a recording that another program made, of which no page was seeded" example:"loose"`
	// Browser is nil for Chromium, and where a device at a port has its own.
	Browser *Browser `json:"browser,omitempty" doc:"Of the virtual device: a name (chromium, firefox, firefox-esr), or an object with command, profile, flags. Without it chromium"`
	// App is nil where a browser opens the page.
	App     *App   `json:"app,omitempty" doc:"A program that each trial starts, in place of a browser: a name under apps: in the configuration, or an object with command (virtual device), package (Android) or recipe (keys). Times count from its start"`
	State   string `json:"state,omitempty" enum:"cold,warm,kept,rebooted,app-cold,app-warm" doc:"cold, and without it: the browser has an empty profile in each trial. warm: it has loaded the page before, in the same profile, and was started again. kept: the browser of a device at a port begins with what the last trial left in it. rebooted: a device at a port is started again before each trial, and then as cold. app-cold and app-warm are for plans whose first step is launch: no browser runs when the trial begins; app-cold: its profile is empty, and its program is not in memory; app-warm: it has run and loaded the page before. Without it a plan with an app has app-cold"`
	Process string `json:"process,omitempty" enum:"same,new" default:"same" doc:"same: the load begins on a page of the page's own site, and stays in that page's process of the browser. new: it begins on another site, so that a process is born within the load, which takes a tenth of a second or two and differs from load to load" example:"new"`
	Inject  string `json:"inject,omitempty" maxLength:"255" doc:"A script that is put into every document before the page's own: the name of a file beside the plan" example:"polyfill.js"`
	// User is set in the plan of a Cell.
	User *PlanUser `json:"-" yaml:"-"`
}

// The states of a browser at the beginning of a trial.
const (
	StateCold = "cold"
	StateWarm = "warm"
	// These are of a device at a port.
	StateKept     = "kept"
	StateRebooted = "rebooted"
	// With these the browser does not run yet: the trial starts it.
	StateAppCold = "app-cold"
	StateAppWarm = "app-warm"
)

// IsStart says whether the trials of the arm start the browser.
func (a Arm) IsStart() bool { return a.State == StateAppCold || a.State == StateAppWarm }

// IsWarm says whether the browser has loaded the page before the arm's trials.
func (a Arm) IsWarm() bool { return a.State == StateWarm || a.State == StateAppWarm }

// NativeLink is the name of the link that changes nothing.
const NativeLink = "native"

// The matching policies that a plan gets that names none: LooseMatch if its recording was imported.
const (
	NormalMatch = "normal"
	LooseMatch  = "loose"
)

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

// Arms lists the arms with every field filled in but Match, which depends on the recording: the control, and the
// treatment if there is one.
func (p Plan) Arms() []NamedArm {
	control := p.Arm
	if control.Page == "" && len(p.Steps) > 0 && control.App == nil {
		control.Page = cmp.Or(p.Steps[0].Open, p.Steps[0].Launch)
	}
	if control.App != nil {
		control.Page, control.State = cmp.Or(control.Page, control.App.page()), cmp.Or(control.State, StateAppCold)
	}
	control.Link = cmp.Or(control.Link, NativeLink)
	arms := []NamedArm{{Control, control}}
	if p.Treatment == nil {
		return arms
	}
	t := *p.Treatment
	if t.Page == "" && t.App != nil && IsAppPage(control.Page) { // another app asks for what is its own
		t.Page = t.App.page()
	}
	said, usual := reflect.ValueOf(&t).Elem(), reflect.ValueOf(control)
	for i := range said.NumField() {
		if f := said.Field(i); f.IsZero() && f.Addr().Interface() != any(&t.Archive) {
			f.Set(usual.Field(i))
		}
	}
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

// Compares says whether the plan has a second arm.
func (p Plan) Compares() bool {
	return p.Treatment != nil || len(p.Pages) > 0 && p.Pages[0].Treatment != nil
}

// Total is the number of trials that the plan asks for, of all arms, pages and users together, with warm-ups and
// without the trials that are made for traces.
func (p Plan) Total() int {
	each := (p.Trials + p.Warmups) * p.CellCount()
	if p.Compares() {
		return 2 * each
	}
	return each
}

// LooksAfter lists after how many pairs the run looks at its comparison: the last time after
// all, and only then if the plan has no looks.
func (p Plan) LooksAfter() []int {
	looks := max(p.Looks, 1)
	after := make([]int, looks)
	for i := range after {
		after[i] = (i + 1) * p.Trials / looks
	}
	return after
}

// mostToFind is the most trials of each arm of a plan that chooses how many it makes, and does not say at most how
// many.
const mostToFind = 60

// WithDefaults returns the plan with the values that a field has that is left out: those of the tags "default".
func (p Plan) WithDefaults() Plan {
	if p.Trials == 0 && p.Find != "" {
		p.Trials = mostToFind
	}
	if p.App != nil && len(p.Steps) == 0 && len(p.Pages) == 0 {
		p.Steps = []Step{{Name: "start", Launch: LaunchApp, Window: true}}
	}
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		usual, ok := v.Type().Field(i).Tag.Lookup("default")
		if f := v.Field(i); ok && f.IsZero() {
			if f.Kind() != reflect.String {
				_ = json.Unmarshal([]byte(usual), f.Addr().Interface()) // a test reads all tags
			} else {
				f.SetString(usual)
			}
		}
	}
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
