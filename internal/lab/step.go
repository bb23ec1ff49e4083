package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Step is one thing that is done to a device in a trial, with the end that it has on the
// screen. Exactly one of the verbs (Open … Steps) is set. Targets, regions and ends are written
// in a small language, the same in a plan and on a command line; see ParseTarget, ParseRegion
// and ParseEnd.
type Step struct {
	Name string `json:"name,omitempty" maxLength:"60" doc:"Of the step in reports; a named step is measured. Names are unique within their parent" example:"add to basket"`
	// Tags are what [plan.Request.Select] selects by.
	Tags []string `json:"tags,omitempty" maxItems:"14" doc:"What of the site the step is about: a run that names tags leaves the step out if it has tags and none of these" example:"[\"search\"]"`

	Open   string `json:"open,omitempty" maxLength:"8192" doc:"Opens a URL. The first step of a plan opens the page of its arm, by a key on the synchronisation page; a later one is opened by the browser's debugging protocol, which Chromium has" example:"https://www.shop.example/"`
	Click  string `json:"click,omitempty" maxLength:"1000" doc:"Clicks a target: pixels (640,360), a share of the content area (50%,40%), a picture on the screen (picture lamp.png), or an element (css #buy), whose place Chromium tells by its debugging protocol" example:"picture lamp.png"`
	Move   string `json:"move,omitempty" maxLength:"1000" doc:"Moves the pointer to a target"`
	Type   string `json:"type,omitempty" maxLength:"10000" doc:"Types a text"`
	Key    string `json:"key,omitempty" maxLength:"100" doc:"Presses a key or chord" example:"Ctrl+L"`
	Scroll string `json:"scroll,omitempty" maxLength:"100" doc:"Turns the wheel by notches: DY, down where positive, or DX,DY; at says where" example:"5"`
	Drag   string `json:"drag,omitempty" maxLength:"1000" doc:"Presses the button at a target, moves it to another at constant speed, and releases it" example:"50%,80% to 50%,20%"`
	Pan    string `json:"pan,omitempty" maxLength:"1000" doc:"Like drag, at the speed of a finger: it starts slowly and is fast when it is released" example:"50%,80% to 50%,20%"`
	Pinch  string `json:"pinch,omitempty" maxLength:"1000" doc:"Two fingers move apart from a target by a factor, or together where it is less than 1" example:"50%,50% by 2"`
	Rotate string `json:"rotate,omitempty" maxLength:"1000" doc:"Two fingers turn around a target by degrees, clockwise where positive" example:"50%,50% by 90"`
	Replay string `json:"replay,omitempty" maxLength:"255" doc:"Repeats a recorded gesture: the name of its file, beside the plan; or of several, of which each trial takes one as often as its weight says" example:"slow.jsonl weight 3, fast.jsonl"`
	Choose string `json:"choose,omitempty" maxLength:"255" doc:"Chooses a file in the browser's file dialogue, which a click on at opens: the name of a file beside the plan; the virtual device alone" example:"photo.jpg"`
	Wait   string `json:"wait,omitempty" maxLength:"1000" doc:"Waits for a time (500ms) or for an end (still 1s)" example:"still 1s"`
	Launch string `json:"launch,omitempty" maxLength:"1000" doc:"app, as the first step of a plan with an app: starts it. Else starts the browser's program with a URL, as a program does in which somebody clicks a link: a running Chromium shows it in a new tab. As the first step, with the state app-cold or app-warm, it measures the browser's start" example:"https://www.shop.example/help"`
	Idle   string `json:"idle,omitempty" maxLength:"20" doc:"Waits for a time, and measures what still changes on the screen meanwhile" example:"5s"`
	Mark   string `json:"mark,omitempty" maxLength:"200" doc:"Writes a name into the event log"`
	Steps  []Step `json:"steps,omitempty" maxItems:"100" doc:"Steps within this one: a step is an objective, the steps in it are tasks, those in a task details"`

	Repeat  int     `json:"repeat,omitempty" minimum:"1" maximum:"100" doc:"How often the step is done; the name of each repetition ends with its number" example:"3"`
	At      string  `json:"at,omitempty" maxLength:"1000" doc:"Where scroll turns the wheel, without it the middle of the content area; or what choose clicks"`
	Button  string  `json:"button,omitempty" enum:"left,middle,right" doc:"Of the pointer; without it left"`
	Fingers int     `json:"fingers,omitempty" minimum:"1" maximum:"5" doc:"Fingers that drag and pan move side by side, on a touch screen: two scroll; without it the pointer, or one finger" example:"2"`
	Over    float64 `json:"over_ms,omitempty" minimum:"0" maximum:"60000" doc:"How long scroll, drag, pan, pinch, rotate and type last, in ms; without it 300 for drag, pan, pinch and rotate, and as fast as possible for the others" example:"400"`
	Rate    float64 `json:"rate_hz,omitempty" minimum:"1" maximum:"1000" doc:"Events a second of drag, pan, pinch and rotate; without it 125, as of an ordinary mouse" example:"1000"`
	Late    float64 `json:"late_ms,omitempty" minimum:"0.1" maximum:"1000" doc:"How late an event of scroll, drag, pan, pinch, rotate or replay may be in a valid trial, in ms; without it one frame (16.7)"`

	Pings  int    `json:"pings,omitempty" minimum:"1" maximum:"200" doc:"Measures responsiveness: the input is given so many times, each at a random phase of the screen's refresh and after the region has come to rest; measured is how soon the region answers" example:"30"`
	Echo   int    `json:"echo,omitempty" minimum:"1" maximum:"200" doc:"After the pings Caps Lock is pressed so many times: measured is how soon the device switches the keyboard's light on, which is what input alone takes" example:"10"`
	Region string `json:"region,omitempty" maxLength:"100" doc:"Where pings are answered: X,Y,WIDTH,HEIGHT in pixels of the content area or in per cent of it; without it the whole area" example:"0%,20%,100%,80%"`
	Window bool   `json:"window,omitempty" doc:"The step opens a window, menu or dialogue: its rectangle is found, and measured on its own"`

	End   string   `json:"end,omitempty" maxLength:"1000" doc:"What ends the step, judged on pictures: still 1s, still 30 frames in REGION, picture FILE, changed, colour #ff0000 in REGION, red, done NAME, network 1s; several are joined by and. Without it a named step ends when it has changed the screen, and screen and network are still for still_s" example:"picture basket.png and network 500ms"`
	Limit float64  `json:"limit_s,omitempty" minimum:"0.1" maximum:"3600" doc:"How long the step may take to its end; without it limit_s of the plan. A step that takes longer ends the trial, which is invalid"`
	Mask  []string `json:"mask,omitempty" maxItems:"32" doc:"Regions that do not count, such as a blinking caret: X,Y,WIDTH,HEIGHT in pixels of the content area or in per cent of it" example:"[\"10%,0%,30%,10%\"]"`
}

// The verbs of a step.
const (
	VerbOpen   = "open"
	VerbClick  = "click"
	VerbMove   = "move"
	VerbType   = "type"
	VerbKey    = "key"
	VerbScroll = "scroll"
	VerbDrag   = "drag"
	VerbPan    = "pan"
	VerbPinch  = "pinch"
	VerbRotate = "rotate"
	VerbReplay = "replay"
	VerbChoose = "choose"
	VerbWait   = "wait"
	VerbLaunch = "launch"
	VerbIdle   = "idle"
	VerbMark   = "mark"
	VerbSteps  = "steps"
)

// field is a verb with its value in a step.
type field struct{ verb, value string }

func (s Step) fields() []field {
	all := []field{{VerbOpen, s.Open}, {VerbClick, s.Click}, {VerbMove, s.Move}, {VerbType, s.Type}, {VerbKey, s.Key},
		{VerbScroll, s.Scroll}, {VerbDrag, s.Drag}, {VerbPan, s.Pan}, {VerbPinch, s.Pinch}, {VerbRotate, s.Rotate},
		{VerbReplay, s.Replay}, {VerbChoose, s.Choose}, {VerbWait, s.Wait}, {VerbLaunch, s.Launch}, {VerbIdle, s.Idle}, {VerbMark, s.Mark}}
	if len(s.Steps) > 0 {
		all = append(all, field{VerbSteps, "steps"})
	}
	return slices.DeleteFunc(all, func(f field) bool { return f.value == "" })
}

// Verb returns the step's verb and its value; "" for a step that has none.
func (s Step) Verb() (verb, value string) {
	if all := s.fields(); len(all) > 0 {
		return all[0].verb, all[0].value
	}
	return "", ""
}

// Verbs lists all verbs.
func Verbs() []string {
	return []string{VerbOpen, VerbClick, VerbMove, VerbType, VerbKey, VerbScroll, VerbDrag, VerbPan, VerbPinch, VerbRotate,
		VerbReplay, VerbChoose, VerbWait, VerbLaunch, VerbIdle, VerbMark, VerbSteps}
}

// FieldError is an error of a field of a plan. Path leads to it: steps[2].click, or treatment.link.
type FieldError struct {
	Path string
	Err  error
}

func (e *FieldError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the error without its place.
func (e *FieldError) Unwrap() error { return e.Err }

// maxDepth is the deepest nesting of steps: objective, task, detail.
const maxDepth = 3

// MaxSteps is the most steps that a trial may have, repetitions included.
const MaxSteps = 500

// CheckSteps returns an error, a *FieldError, for steps that cannot be carried out.
func CheckSteps(steps []Step) error {
	if len(steps) == 0 {
		return nil
	}
	if steps[0].Open == "" && steps[0].Launch == "" {
		return &FieldError{"steps[0]", fmt.Errorf("the first step opens a page: begin with open: URL, or with launch: URL to measure the browser's start")}
	}
	if steps[0].Repeat > 1 {
		return &FieldError{"steps[0].repeat", fmt.Errorf("the first step leads from the synchronisation page, and cannot be repeated")}
	}
	if steps[0].Pings > 0 {
		return &FieldError{"steps[0].pings", fmt.Errorf("the first step leads from the synchronisation page: give the pings in a later step")}
	}
	if err := checkSteps(steps, "steps", 1); err != nil {
		return err
	}
	if n := countSteps(steps); n > MaxSteps {
		return &FieldError{"steps", fmt.Errorf("%d steps with all repetitions; at most %d", n, MaxSteps)}
	}
	return nil
}

// StepName is the name of the nth of s's repetitions, both from 0, where s is the ith of its parent's
// steps. A step without a name has its verb and number.
func StepName(s Step, i, n int) string {
	name := s.Name
	if name == "" {
		verb, _ := s.Verb()
		name = fmt.Sprintf("%s %d", verb, i+1)
	}
	if s.Repeat > 1 {
		name = fmt.Sprintf("%s %d", name, n+1)
	}
	return name
}

// StepPaths lists the paths of all steps, of each repetition, as reports name them.
func StepPaths(steps []Step) (paths []string) {
	for i, s := range steps {
		for n := range max(s.Repeat, 1) {
			name := StepName(s, i, n)
			paths = append(paths, name)
			for _, inner := range StepPaths(s.Steps) {
				paths = append(paths, name+"/"+inner)
			}
		}
	}
	return paths
}

func countSteps(steps []Step) (n int) {
	for _, s := range steps {
		n = min(n+max(s.Repeat, 1)*(1+countSteps(s.Steps)), MaxSteps+1)
	}
	return n
}

func checkSteps(steps []Step, path string, depth int) error {
	if depth > maxDepth {
		return &FieldError{path, fmt.Errorf("steps nest at most %d deep: objective, task, detail", maxDepth)}
	}
	names := map[string]int{}
	var wrong []error // of all steps: who writes them mends them together
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", path, i)
		if first, twice := names[s.Name]; twice && s.Name != "" {
			wrong = append(wrong, &FieldError{at + ".name", fmt.Errorf("%q is the name of %s[%d], too: give each step a name of its own", s.Name, path, first)})
		}
		names[s.Name] = i
		if strings.ContainsAny(s.Name, "/\n") {
			wrong = append(wrong, &FieldError{at + ".name", fmt.Errorf("%q: a name holds no slash and no line break", s.Name)})
		}
		wrong = append(wrong, s.Check(at), checkSteps(s.Steps, at+".steps", depth+1))
	}
	return errors.Join(wrong...)
}

// Check returns an error, a *FieldError whose path begins with at, for a step that cannot be
// carried out. The steps in it are not checked.
func (s Step) Check(at string) error {
	all := s.fields()
	if len(all) != 1 {
		if len(all) == 0 {
			return &FieldError{at, fmt.Errorf("the step does nothing: give it one of %s; in YAML a value that begins with # is a comment, so quote it",
				strings.Join(Verbs(), ", "))}
		}
		return &FieldError{at, fmt.Errorf("the step has %s and %s: a step does one thing; put several into steps", all[0].verb, all[1].verb)}
	}
	verb, value := all[0].verb, all[0].value
	parts := map[string]func() error{
		"end":     func() error { _, err := ParseEnd(s.End); return err },
		"at":      func() error { return s.checkAt(verb) },
		"pings":   func() error { return s.checkPings(verb) },
		"echo":    func() error { return s.checkEcho() },
		"region":  func() error { return s.checkRegion() },
		"window":  func() error { return s.checkWindow(verb) },
		"fingers": func() error { return s.checkFingers(verb) },
		"over_ms": func() error { return between(s.Over, 0, 60000) },
		"limit_s": func() error { return between(s.Limit, 0, 3600) },
		"rate_hz": func() error { return between(s.Rate, 0, 1000) },
		"late_ms": func() error { return between(s.Late, 0, 1000) },
		"repeat":  func() error { return between(float64(s.Repeat), 0, 100) },
		verb:      func() error { return checkVerb(verb, value) },
		"button": func() error {
			if !slices.Contains([]string{"", "left", "middle", "right"}, s.Button) {
				return fmt.Errorf("%q: left, middle or right", s.Button)
			}
			return nil
		},
	}
	if s.End == "" {
		delete(parts, "end")
	}
	for _, name := range []string{verb, "at", "button", "fingers", "over_ms", "rate_hz", "late_ms", "repeat", "pings", "echo", "region", "window", "end", "limit_s"} {
		if f := parts[name]; f != nil {
			if err := f(); err != nil {
				return &FieldError{at + "." + name, err}
			}
		}
	}
	for i, m := range s.Mask {
		if _, err := ParseRegion(m); err != nil {
			return &FieldError{fmt.Sprintf("%s.mask[%d]", at, i), err}
		}
	}
	return nil
}

// pingable are the verbs whose input can be given again and again.
func pingable() []string {
	return []string{VerbClick, VerbMove, VerbType, VerbKey, VerbScroll, VerbDrag, VerbPan, VerbPinch, VerbRotate, VerbReplay}
}

func (s Step) checkPings(verb string) error {
	switch {
	case s.Pings == 0:
		return nil
	case !slices.Contains(pingable(), verb):
		return fmt.Errorf("%s gives no input that could be repeated: one of %s does", verb, strings.Join(pingable(), ", "))
	case s.End != "":
		return fmt.Errorf("such a step ends with its last answer: leave out its end")
	case s.Window:
		return fmt.Errorf("a window opens once: leave out window, or pings")
	}
	return between(float64(s.Pings), 1, 200)
}

func (s Step) checkAt(verb string) error {
	switch {
	case s.At != "":
		_, err := ParseTarget(s.At)
		return err
	case verb == VerbChoose:
		return fmt.Errorf("name what opens the file dialogue, such as at: 50%%,40%%")
	}
	return nil
}

func (s Step) checkFingers(verb string) error {
	if s.Fingers != 0 && verb != VerbDrag && verb != VerbPan {
		return fmt.Errorf("only drag and pan move several fingers side by side; pinch and rotate have two")
	}
	return between(float64(s.Fingers), 0, 5)
}

// Touches is how many fingers a touch screen must have for the step and those in it; 0 is no touch screen.
func (s Step) Touches() int {
	n := s.Fingers
	if s.Pinch != "" || s.Rotate != "" {
		n = 2
	}
	for _, inner := range s.Steps {
		n = max(n, inner.Touches())
	}
	return n
}

func (s Step) checkEcho() error {
	if s.Echo != 0 && s.Pings == 0 {
		return fmt.Errorf("it is compared with the answers to pings: give their number (pings: 30)")
	}
	return between(float64(s.Echo), 0, 200)
}

func (s Step) checkRegion() error {
	if s.Region == "" {
		return nil
	}
	if s.Pings == 0 {
		return fmt.Errorf("it says where pings are answered: give their number (pings: 30), or write the region into the end (still 1s in %s)", s.Region)
	}
	_, err := ParseRegion(s.Region)
	return err
}

func (s Step) checkWindow(verb string) error {
	if s.Window && (verb == VerbWait || verb == VerbIdle || verb == VerbMark || verb == VerbMove) {
		return fmt.Errorf("%s opens no window", verb)
	}
	return nil
}

func between(v, least, most float64) error {
	if !(v >= least && v <= most) {
		return fmt.Errorf("%v is not within %v … %v", v, least, most)
	}
	return nil
}

// checkVerb returns an error for a value that a verb cannot have.
func checkVerb(verb, value string) error {
	var err error
	switch verb {
	case VerbClick, VerbMove:
		_, err = ParseTarget(value)
	case VerbScroll:
		_, _, err = ParseNotches(value)
	case VerbDrag, VerbPan:
		_, _, err = ParseWay(value)
	case VerbPinch:
		_, _, err = ParsePinch(value)
	case VerbRotate:
		_, _, err = ParseRotate(value)
	case VerbWait:
		_, _, err = ParseWait(value)
	case VerbReplay:
		_, err = ParseProfiles(value)
	case VerbChoose:
		err = CheckFileName(value)
	case VerbIdle:
		_, err = ParseIdle(value)
	}
	return err
}

// ParseIdle reads how long a step watches a screen that is left alone.
func ParseIdle(text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || d < 100*time.Millisecond || d > 10*time.Minute {
		return 0, fmt.Errorf("%q: write a time from 100ms to 10m, such as 5s", text)
	}
	return d, nil
}

// ParseWait reads a time to wait, or an end to wait for.
func ParseWait(text string) (time.Duration, *Ending, error) {
	if d, err := time.ParseDuration(strings.TrimSpace(text)); err == nil {
		if d < 0 || d > time.Hour {
			return 0, nil, fmt.Errorf("%v: wait between 0s and 1h", d)
		}
		return d, nil, nil
	}
	e, err := ParseEnd(text)
	if err != nil {
		return 0, nil, fmt.Errorf("%w; or wait for a time: 500ms", err)
	}
	return 0, &e, nil
}
