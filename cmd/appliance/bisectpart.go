package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
func (c *BisectCmd) partOf(found *bisection.Result) (*bisection.Parting, error) {
	if !c.local || found.Kind != bisect.Culprit || len(found.Steps) != 1 {
		return nil, nil
	}
	var films [2][]bisection.Film
	var open []io.Closer
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for _, id := range found.Steps[0].Runs {
		folder := filepath.Join(c.Out, "runs", id)
		run, err := store.ReadRun(folder)
		if errors.Is(err, fs.ErrNotExist) { // somebody has removed it
			continue
		} else if err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			return nil, err
		}
		open = append(open, root)
		for _, t := range run.Trials {
			arm := lab.ArmOrder(t.Arm)
			if !t.Valid || arm > 1 || len(films[arm]) == mostFilms {
				continue
			}
			if t, err = store.ReadTrial(root, t.Number); err != nil { // with its curves
				return nil, err
			}
			r, err := reel.Open(filepath.Join(folder, "trials", store.TrialName(t.Number), experiment.ReelFile))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return nil, err
			}
			open = append(open, r)
			films[arm] = append(films[arm], bisection.Film{Run: id, Trial: t, Frames: r})
		}
	}
	if len(films[0]) == 0 || len(films[1]) == 0 {
		return nil, errors.New("the runs that confirmed it have been removed")
	}
	part, err := bisection.Part(films[0], films[1], found.Steps[0].Size)
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
