package main

import (
	"fmt"
	"path/filepath"

	"eidetic/analysis/bisect"
	"eidetic/internal/box/bisection"
	"eidetic/internal/box/bisects"
	"eidetic/internal/keep/store"
	"eidetic/internal/run/experiment"
)

// partOf finds the frame where the culprit and the revision before it part, in the recordings of the runs that
// confirmed it. It is nil where there are none here, as after a bisect on a box, whose reports show them.
func (c *BisectCmd) partOf(found *bisection.Result) (*bisection.Parting, error) {
	if !c.local || found.Kind != bisect.Culprit || len(found.Steps) != 1 {
		return nil, nil
	}
	part, err := bisects.PartOf(c.Out, found.Steps[0])
	if err != nil || part == nil {
		return nil, err
	}
	name := func(s bisection.Seen) string {
		return filepath.Join(c.Out, "runs", s.Run, "trials", store.TrialName(s.Trial), experiment.ReelFile)
	}
	part.Text += fmt.Sprintf(". To see them: appliance reel export %s --frame %d --out before.png, and %s --frame %d --out after.png",
		name(part.Shown[0]), part.Shown[0].Frame, name(part.Shown[1]), part.Shown[1].Frame)
	return part, nil
}
