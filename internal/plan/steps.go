package plan

import (
	"errors"
	"fmt"
	"slices"

	"eidetic/control/gesture"
	"eidetic/internal/lab"
)

// NeedsProtocol says whether steps need a browser's debugging protocol: for selectors, and for a URL that
// is opened later than by the first step.
func (c Checked) NeedsProtocol() bool {
	return c.anyLater(func(s lab.Step, later bool) bool { return s.Open != "" && later || len(lab.Selectors(s)) > 0 })
}

// Touches is the most fingers that a step puts on a touch screen.
func (c Checked) Touches() (most int) {
	for _, cell := range c.Cells {
		for _, s := range cell.Plan.Steps {
			most = max(most, s.Touches())
		}
	}
	return most
}

// LaunchesAgain says whether a step starts the program of a browser that runs.
func (c Checked) LaunchesAgain() bool {
	return c.anyLater(func(s lab.Step, later bool) bool { return s.Launch != "" && later })
}

func (c Checked) anyLater(is func(s lab.Step, later bool) bool) bool {
	return slices.ContainsFunc(c.Cells, func(cell Cell) bool { return anyLater(cell.Plan.Steps, true, is) })
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

// checkNeeds returns an error, a *lab.FieldError, for steps that an arm's browser cannot carry out.
func checkNeeds(steps []lab.Step, path string, b *lab.Browser) error {
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", path, i)
		verb, _ := s.Verb()
		first := path == "steps" && i == 0
		if b.Family() != lab.Chromium && len(lab.Selectors(s)) > 0 {
			return &lab.FieldError{Path: at + "." + verb, Err: fmt.Errorf("css in %s: %w", b, lab.ErrNoProtocol)}
		}
		if b.Family() != lab.Chromium && s.Open != "" && !first {
			return &lab.FieldError{Path: at + ".open", Err: fmt.Errorf("%s: %w", b, lab.ErrCannotOpen)}
		}
		if b.Family() == lab.Firefox && s.Launch != "" && !first {
			return &lab.FieldError{Path: at + ".launch", Err: errFirefoxLaunch}
		}
		if err := checkNeeds(s.Steps, at+".steps", b); err != nil {
			return err
		}
	}
	return nil
}

// checkInput returns an error, *lab.FieldErrors joined, for steps that cannot be carried out.
func checkInput(steps []lab.Step) error {
	return errors.Join(gesture.Check(steps), checkAll(steps, "steps"))
}

func checkAll(steps []lab.Step, path string) error {
	var wrong []error
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", path, i)
		verb, value := s.Verb()
		if verb == lab.VerbOpen || verb == lab.VerbLaunch && value != lab.LaunchApp {
			if err := CheckPage(value); err != nil {
				wrong = append(wrong, &lab.FieldError{Path: at + "." + verb, Err: err})
			}
		}
		wrong = append(wrong, checkAll(s.Steps, at+".steps"))
	}
	return errors.Join(wrong...)
}
