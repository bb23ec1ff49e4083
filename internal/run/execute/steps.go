package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"eidetic/control"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/journey"
)

// Hands give a device the input of steps. What is nil the device cannot do.
type Hands struct {
	Controller control.Controller
	// Where tells where an element is; Open and Launch open a URL.
	Where  journey.Where
	Open   journey.Open
	Launch journey.Open
	// File and Used are those of [journey.Player].
	File func(name string) (string, error)
	Used func(ctx context.Context, memory bool) (lab.ProgramUse, error)
}

// errNotRunning says that there is no browser.
var errNotRunning = errors.New("no browser runs") // constant

// player makes what carries out the plan's steps; nil without steps.
func (x *Execution) player() (*journey.Player, error) {
	if !slices.ContainsFunc(x.Plan.Cells, func(c plan.Cell) bool { return len(c.Plan.Steps) > 0 }) {
		return nil, nil
	}
	hands := x.Rig.Hands
	if hands == nil {
		return nil, errors.New("steps: this device can be given no input but the key that starts a load")
	}
	return &journey.Player{
		Controller: hands.Controller, Clock: clock, Templates: x.Plan.Pictures, Gestures: x.Plan.Gestures,
		File: hands.File, Where: hands.Where, Open: hands.Open, Launch: hands.Launch, Used: hands.Used,
	}, nil
}

// prepareTexts tells before anything is recorded that a text of the plan cannot be given to the device.
func (x *Execution) prepareTexts(ctx context.Context) error {
	if x.Rig.Texts == nil {
		return nil
	}
	for _, cell := range x.Plan.Cells {
		if err := x.Rig.Texts(ctx, lab.Texts(cell.Plan.Steps)); err != nil {
			return fmt.Errorf("steps: %w", err)
		}
	}
	return nil
}

// FilesFolder is the folder, in a run's folder, of the files that its plan names.
const FilesFolder = "files"
