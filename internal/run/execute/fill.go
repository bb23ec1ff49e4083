package execute

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/replay"
)

// FilledFile is the name, in a run's folder, of the archive of what the recordings lacked and the
// run fetched from origins.
const FilledFile = "filled.wacz"

// fill is what a run fetches of what its recordings lack: one view for all arms and trials. The
// zero value fetches nothing.
type fill struct {
	writer *archive.Writer
	view   *replay.View
}

// beginFill starts the archive of what will be fetched. Until the end of the run it is a working
// file, from which Conclude recovers it if the process is killed.
func (x *Execution) beginFill() error {
	w, err := archive.Create(filepath.Join(x.folder.Path(), FilledFile), archive.CreateOptions{
		Software: x.Software, Wall: x.begun, Seed: x.Plan.Seed, Title: x.ID + ": what its recording lacked",
	})
	if err != nil {
		return err
	}
	x.fill = fill{w, replay.NewView(w, x.begun)}
	return nil
}

// endFill closes the archive, or removes it if nothing was fetched, and ends the way to origins.
func (x *Execution) endFill() error {
	if x.fill.writer == nil {
		return nil
	}
	if x.Rig.Sealed != nil {
		x.Rig.Sealed()
	}
	if x.fill.view.Count() == 0 && x.fill.writer.Count() == 0 {
		return x.fill.writer.Discard()
	}
	if err := x.fill.writer.Close(); err != nil {
		return err
	}
	return describeFilled(x.folder.Path(), x.run)
}

// describeFilled notes the archive in the run.
func describeFilled(dir string, run *lab.Run) error {
	a, err := archive.Open(filepath.Join(dir, FilledFile))
	if err != nil {
		return fmt.Errorf("reading what was fetched: %w", err)
	}
	info := a.Info()
	info.File = FilledFile
	run.Filled = &info
	return nil
}

// recoverFilled makes the archive of the working file that a killed process left.
func recoverFilled(dir string, run *lab.Run) error {
	path := filepath.Join(dir, FilledFile)
	working := path + archive.WorkingSuffix
	if _, err := os.Lstat(path); err == nil { // killed after it was complete
		return errors.Join(describeFilled(dir, run), removeIfThere(working))
	}
	a, err := archive.Open(working)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("recovering what was fetched: %w", err)
	case len(a.Exchanges()) == 0 && len(a.Warnings()) == 0:
		return removeIfThere(working)
	case len(a.Exchanges()) == 0: // damaged: somebody may want to look at it
		return nil
	}
	if err := archive.Save(path, a); err != nil {
		return fmt.Errorf("recovering what was fetched: %w", err)
	}
	return errors.Join(describeFilled(dir, run), removeIfThere(working))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// filledWarning says which trials fetched what the recording lacks; "" for none.
func filledWarning(run *lab.Run) string {
	requests, trials, last := 0, 0, 0
	for _, t := range run.Trials {
		if t.Filled > 0 {
			requests, trials, last = requests+t.Filled, trials+1, t.Number
		}
	}
	switch {
	case requests == 0:
		return ""
	case trials == 1:
		return fmt.Sprintf("%d requests that the recording lacks were fetched from their origins in trial %d, which does not count; "+
			"all later trials, of both arms, got the same answers from %s.", requests, last, FilledFile)
	}
	return fmt.Sprintf("%d requests that the recording lacks were fetched from their origins in %d trials, which do not count, the last time in "+
		"trial %d; each was fetched once, and all other trials, of both arms, got the same answers from %s.", requests, trials, last, FilledFile)
}
