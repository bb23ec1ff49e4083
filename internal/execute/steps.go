package execute

import (
	"errors"
	"fmt"

	"eidetic/control"
	"eidetic/control/gesture"
	"eidetic/internal/device"
	"eidetic/internal/journey"
	"eidetic/internal/lab"
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

// Needs is what steps need of a browser besides input.
type Needs struct {
	Protocol bool // its debugging protocol: for selectors, and for a URL that is opened later
	Launch   bool // that its program can be started again
}

// NeedsOf returns what the steps of a plan need.
func NeedsOf(steps []lab.Step) (n Needs) {
	for i, s := range steps {
		n.add(s, i == 0)
	}
	return n
}

func (n *Needs) add(s lab.Step, first bool) {
	n.Protocol = n.Protocol || s.Open != "" && !first || len(lab.Selectors(s)) > 0
	n.Launch = n.Launch || s.Launch != "" && !first
	for _, inner := range s.Steps {
		n.add(inner, false)
	}
}

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
	if len(x.Plan.Steps) == 0 {
		return nil, nil
	}
	hands := x.Rig.Hands
	if hands == nil {
		return nil, errors.New("steps: this device can be given no input but the key that starts a load")
	}
	templates, gestures, err := ReadFiles(x.files(), x.Plan.Steps)
	if err != nil {
		return nil, err
	}
	return &journey.Player{
		Controller: hands.Controller, Clock: clock, Templates: templates, Gestures: gestures,
		Where: hands.Where, Open: hands.Open, Launch: hands.Launch,
	}, nil
}
