package execute

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/netlab/archive"
)

// begin makes the run's folder, or opens that of the same run that an earlier process began and
// did not end: its trials are kept, and the order of the others is the one drawn then.
func (x *Execution) begin() error {
	folder, run, err := store.Resume(x.Root, x.ID)
	if errors.Is(err, store.ErrNotFound) {
		if x.folder, err = store.Create(x.Root, x.run); err != nil {
			return err
		}
		if err = plan.Unpack(filepath.Join(x.folder.Path(), FilesFolder), x.Plan.Contents); err != nil {
			_ = x.folder.Close()
		}
		return err
	}
	if err != nil {
		return err
	}
	x.folder = folder
	if err = x.takeOver(run); err != nil {
		_ = folder.Close()
		return fmt.Errorf("the run cannot go on: %w", err)
	}
	return nil
}

// takeOver goes on with a run.
func (x *Execution) takeOver(run *lab.Run) error {
	if err := Resumable(run, x.Software); err != nil {
		return err
	}
	if !SamePlan(run, x.Plan) {
		return errors.New("its plan is another one")
	}
	if err := x.sameFiles(); err != nil {
		return err
	}
	added := closing(run)
	warnings := x.run.Warnings
	for _, text := range run.Warnings {
		if !slices.Contains(added, text) && !slices.Contains(warnings, text) {
			warnings = append(warnings, text)
		}
	}
	x.before, x.resumed = run.Elapsed, len(run.Trials) > 0
	run.State, run.Error, run.Summary, run.Comparison, run.Cells = store.StateRunning, "", []lab.Summary{}, nil, x.run.Cells
	run.Warnings, run.Environment, run.Plan, run.Link = warnings, x.run.Environment, x.run.Plan, x.run.Link
	run.Resumed = append(run.Resumed, lab.Resumption{Wall: x.begun, Trials: len(run.Trials)})
	x.run = run
	if !x.resumed { // nothing has been replayed, and what was recorded may not be whole
		_, recordings := armsOf(x.Plan)
		for _, r := range recordings {
			for _, file := range r.files() {
				path := filepath.Join(x.folder.Path(), file)
				if err := errors.Join(removeIfThere(path), removeIfThere(path+archive.WorkingSuffix)); err != nil {
					return err
				}
			}
		}
		films, err := atomicfile.WithPrefix(x.folder.Path(), recordingFolder) // of trials that would find their files there
		for _, film := range films {
			err = errors.Join(err, os.RemoveAll(film))
		}
		if err != nil {
			return err
		}
	}
	x.News.say("Going on after %d of at least %d trials, with the same order and seed", len(run.Trials), x.Plan.Total())
	return x.save()
}

// mostIdle is how often a run may go on without getting further.
const mostIdle = 2

// Resumable returns nil if this software can go on with a run as it was left, or the reason why not.
func Resumable(run *lab.Run, software string) error {
	idle := 0
	for _, r := range run.Resumed {
		if r.Trials == len(run.Trials) {
			idle++
		}
	}
	switch {
	case run.State != store.StateInterrupted:
		return fmt.Errorf("it is %s", run.State)
	case run.Environment.Appliance != software:
		return fmt.Errorf("%s began it, and this is %s: their trials may differ", run.Environment.Appliance, software)
	case run.Plan.Miss == lab.MissFill:
		return errors.New("with miss: fill, the later trials would not get what the earlier ones fetched")
	case run.Plan.Live:
		return errors.New("its loads are live")
	case idle >= mostIdle:
		return fmt.Errorf("it went on %d times after trial %d, and each time was interrupted in the next", idle, len(run.Trials))
	}
	return nil
}

// SamePlan says whether a run was made of a plan whose recordings are named by their files. A run notes how it matched,
// where its plan leaves that open.
func SamePlan(run *lab.Run, asked plan.Checked) bool {
	kept := run.Plan
	if !asked.IsMany() {
		arms, wanted := kept.Arms(), asked.Cells[0].Arms
		if len(arms) != len(wanted) {
			return false
		}
		for i := range arms {
			if wanted[i].Match == "" {
				arms[i].Match = ""
			}
		}
		kept = kept.WithArms(arms)
	}
	a, errA := json.Marshal(kept)
	b, errB := json.Marshal(keptPlan(asked))
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// sameFiles returns an error if a file that the plan names is not as it was.
func (x *Execution) sameFiles() error {
	for name, content := range x.Plan.Contents {
		kept, err := os.ReadFile(filepath.Join(x.folder.Path(), FilesFolder, name))
		if err != nil || !bytes.Equal(kept, content) {
			return fmt.Errorf("%s has changed since it began", name)
		}
	}
	return nil
}

// Unfinished returns the ID of the newest run of a plan in a store that can go on, or "".
func Unfinished(ctx context.Context, root string, asked plan.Checked, software string) (id string, err error) {
	if _, err := os.Stat(root); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	dirs, err := os.ReadDir(filepath.Join(root, "runs"))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	newest := time.Time{}
	for _, d := range dirs {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if !store.ValidID(d.Name()) {
			continue
		}
		run, err := store.ReadRun(filepath.Join(root, "runs", d.Name()))
		if err != nil || Resumable(run, software) != nil || !SamePlan(run, asked) || !run.Wall.After(newest) {
			continue
		}
		id, newest = run.ID, run.Wall
	}
	return id, nil
}
