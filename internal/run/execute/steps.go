package execute

import (
	"errors"
	"fmt"
	"slices"

	"eidetic/control"
	"eidetic/control/gesture"
	"eidetic/internal/lab"
	"eidetic/internal/run/device"
	"eidetic/internal/run/journey"
)

// Hands give a device the input of steps. What is nil the device cannot do.
type Hands struct {
	Controller control.Controller
	// Where tells where an element is; Open and Launch open a URL.
	Where  journey.Where
	Open   journey.Open
	Launch journey.Open
}

// errNotRunning says that there is no browser.
var errNotRunning = errors.New("no browser runs") // constant

// NeedsProtocol says whether steps need a browser's debugging protocol: for selectors, and for a URL that
// is opened later than by the first step.
func NeedsProtocol(steps []lab.Step) bool {
	return anyLater(steps, true, func(s lab.Step, later bool) bool { return s.Open != "" && later || len(lab.Selectors(s)) > 0 })
}

// LaunchesAgain says whether a step starts the program of a browser that runs.
func LaunchesAgain(steps []lab.Step) bool {
	return anyLater(steps, true, func(s lab.Step, later bool) bool { return s.Launch != "" && later })
}

// anyLater says whether a function is true of any step, and tells it which steps are not the first.
func anyLater(steps []lab.Step, outermost bool, is func(s lab.Step, later bool) bool) bool {
	for i, s := range steps {
		if is(s, !outermost || i > 0) || anyLater(s.Steps, false, is) {
			return true
		}
	}
	return false
}

// errFirefoxLaunch refuses a second start of Firefox.
var errFirefoxLaunch = errors.New("a second start of Firefox reaches the running one by the desktop's message bus, which a virtual device " + // constant
	"does not have: click a link, or use browser: chromium; as the first step, launch starts Firefox, too")

// checkNeeds returns an error, a *lab.StepError, for steps that an arm's browser cannot carry out.
func checkNeeds(steps []lab.Step, path string, b *lab.Browser) error {
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", path, i)
		verb, _ := s.Verb()
		first := path == "steps" && i == 0
		if b.Family() != lab.Chromium && len(lab.Selectors(s)) > 0 {
			return &lab.StepError{Path: at + "." + verb, Err: fmt.Errorf("css in %s: %w", b, device.ErrNoProtocol)}
		}
		if b.Family() != lab.Chromium && s.Open != "" && !first {
			return &lab.StepError{Path: at + ".open", Err: fmt.Errorf("%s: %w", b, device.ErrCannotOpen)}
		}
		if b.Family() == lab.Firefox && s.Launch != "" && !first {
			return &lab.StepError{Path: at + ".launch", Err: errFirefoxLaunch}
		}
		if err := checkNeeds(s.Steps, at+".steps", b); err != nil {
			return err
		}
	}
	return nil
}

// CheckSteps returns an error, a *lab.StepError, for steps that cannot be carried out.
func CheckSteps(steps []lab.Step) error {
	if err := gesture.Check(steps); err != nil {
		return err
	}
	return checkAll(steps, "steps")
}

func checkAll(steps []lab.Step, path string) error {
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", path, i)
		verb, value := s.Verb()
		if verb == lab.VerbOpen || verb == lab.VerbLaunch {
			if err := CheckPage(value); err != nil {
				return &lab.StepError{Path: at + "." + verb, Err: err}
			}
		}
		if err := checkAll(s.Steps, at+".steps"); err != nil {
			return err
		}
	}
	return nil
}

// player makes what carries out the plan's steps; nil without steps.
func (x *Execution) player() (*journey.Player, error) {
	all := slices.Concat(journeys(x.Plan)...)
	if len(all) == 0 {
		return nil, nil
	}
	hands := x.Rig.Hands
	if hands == nil {
		return nil, errors.New("steps: this device can be given no input but the key that starts a load")
	}
	templates, gestures, err := ReadFiles(x.files(), all)
	if err != nil {
		return nil, err
	}
	return &journey.Player{
		Controller: hands.Controller, Clock: clock, Templates: templates, Gestures: gestures,
		Where: hands.Where, Open: hands.Open, Launch: hands.Launch,
	}, nil
}
