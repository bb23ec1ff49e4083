package main

import (
	"fmt"
	"path/filepath"

	"eidetic/analysis/bisect"
	"eidetic/capture/reel"
	"eidetic/internal/bisection"
	"eidetic/internal/experiment"
	"eidetic/internal/lab"
	"eidetic/internal/store"
)

// mostFilms bounds the recordings of each arm that are looked at.
const mostFilms = 20

// partOf finds the frame where the culprit and the revision before it part, in the recordings of the runs that
// confirmed it. It is nil where there are none here, as after a bisect on a box, whose reports show them.
func (c *BisectCmd) partOf(found *bisection.Result) *bisection.Parting {
	if !c.local || found.Kind != bisect.Culprit || len(found.Steps) != 1 {
		return nil
	}
	var films [2][]bisection.Film
	var open []*reel.Reader
	defer func() {
		for _, r := range open {
			_ = r.Close()
		}
	}()
	for _, id := range found.Steps[0].Runs {
		folder := filepath.Join(c.Out, "runs", id)
		run, err := store.ReadRun(folder)
		if err != nil { // somebody has removed it
			continue
		}
		for _, t := range run.Trials {
			arm := lab.ArmOrder(t.Arm)
			if !t.Valid || arm > 1 || len(films[arm]) == mostFilms {
				continue
			}
			r, err := reel.Open(filepath.Join(folder, "trials", store.TrialName(t.Number), experiment.ReelFile))
			if err != nil {
				continue
			}
			open = append(open, r)
			films[arm] = append(films[arm], bisection.Film{Run: id, Trial: t, Frames: r})
		}
	}
	part, err := bisection.Part(films[0], films[1], found.Steps[0].Size)
	if err != nil || part == nil {
		return nil
	}
	name := func(s bisection.Seen) string {
		return filepath.Join(c.Out, "runs", s.Run, "trials", store.TrialName(s.Trial), experiment.ReelFile)
	}
	part.Text += fmt.Sprintf(". To see them: appliance reel export %s --frame %d --out before.png, and %s --frame %d --out after.png",
		name(part.Shown[0]), part.Shown[0].Frame, name(part.Shown[1]), part.Shown[1].Frame)
	return part
}
