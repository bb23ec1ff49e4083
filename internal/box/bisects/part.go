package bisects

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/capture/reel"
	"eidetic/internal/box/bisection"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// mostFilms bounds the recordings of each arm that are looked at.
const mostFilms = 20

// PartOf finds the frame where a culprit and the revision before it part, in the recordings of the runs that confirmed
// it, which are in a store's folder. It is nil if they do nowhere.
func PartOf(root string, step bisection.Step) (*bisection.Parting, error) {
	var films [2][]bisection.Film
	var open []io.Closer
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for _, id := range step.Runs {
		folder := filepath.Join(root, "runs", id)
		run, err := store.ReadRun(folder)
		if errors.Is(err, fs.ErrNotExist) { // somebody has removed it
			continue
		} else if err != nil {
			return nil, err
		}
		files, err := os.OpenRoot(folder)
		if err != nil {
			return nil, err
		}
		open = append(open, files)
		for _, t := range run.Trials {
			arm := lab.ArmOrder(t.Arm)
			if !t.Valid || arm > 1 || len(films[arm]) == mostFilms {
				continue
			}
			if t, err = store.ReadTrial(files, t.Number); err != nil { // with its curves
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
	return bisection.Part(films[0], films[1], step.Size)
}
