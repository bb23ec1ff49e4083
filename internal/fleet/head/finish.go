package head

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/fleet/metrology"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// assemble is the ledger's: it puts a run together. A fault of this head's own disk or store says nothing of the run,
// whose parts are whole: it waits until a person has put that right.
func (h *Head) assemble(ctx context.Context, r ledger.Run) (ledger.Assembled, error) {
	made, err := h.putTogether(ctx, r)
	for _, own := range []error{blob.ErrNoRoom, blob.ErrRefused, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, fs.ErrPermission} {
		if errors.Is(err, own) {
			h.events.Publish(runqueue.Progress{Run: r.ID, State: store.StateRunning, Doing: "waits for the head's disk or store of files: see its log"})
			return made, &lab.AwayError{What: "the head's disk or store of files", Err: err}
		}
	}
	return made, err
}

// putTogether makes the run of parts that have all ended, keeps its files as blobs, and moves its folder into the store.
// It may be called again for the same run, here or by another head, and gives the same.
func (h *Head) putTogether(ctx context.Context, r ledger.Run) (ledger.Assembled, error) {
	root := filepath.Join(h.staging(), r.ID)
	if err := os.RemoveAll(root); err != nil {
		return ledger.Assembled{}, err
	}
	defer os.RemoveAll(root)
	parts := make([]partFolder, len(r.Parts))
	for i, p := range r.Parts {
		box, err := h.boxState(ctx, p)
		if err != nil {
			return ledger.Assembled{}, err
		}
		parts[i] = partFolder{dir: filepath.Join(root, "parts", p.ID), plan: p.Plan, box: box, device: p.Device, state: p.State}
		if p.Outcome != nil {
			parts[i].err = p.Outcome.Error
			if err := h.lay(ctx, p.Outcome.Files, parts[i].dir); err != nil {
				return ledger.Assembled{}, fmt.Errorf("part %s: %w", p.ID, err)
			}
			if parts[i].dir, err = nameByRun(parts[i].dir); err != nil {
				return ledger.Assembled{}, fmt.Errorf("part %s: %w", p.ID, err)
			}
		}
	}
	made, err := assemble(filepath.Join(root, "whole"), r.ID, r.Plan, r.Created, h.Now(), parts)
	if errors.Is(err, errNoFolder) {
		return ledger.Assembled{State: endOf(r), Error: reasonOf(r, err), Files: earlier(r)}, nil
	}
	if err != nil {
		return ledger.Assembled{}, err
	}
	files, err := (&blob.Lister{}).Manifest(ctx, made.dir)
	if err != nil {
		return ledger.Assembled{}, err
	}
	for _, f := range files {
		if _, _, err := h.keep(ctx, filepath.Join(made.dir, filepath.FromSlash(f.Path))); err != nil {
			return ledger.Assembled{}, fmt.Errorf("keep %s: %w", f.Path, err)
		}
	}
	files = append(append(files, stayed(r, made.before)...), earlier(r)...)
	if err := h.takeReading(ctx, r, made.run); err != nil {
		return ledger.Assembled{}, err
	}
	if err := h.Store.Adopt(made.dir, made.run); err != nil && !errors.Is(err, store.ErrPinned) {
		return ledger.Assembled{}, err
	}
	h.ended.ring()
	return ledger.Assembled{State: made.run.State, Error: made.run.Error, Files: files}, nil
}

// nameByRun renames a part's folder as its run.json names the run: a box that began a part anew has given it another
// name.
func nameByRun(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, "run.json"))
	if err != nil {
		return dir, nil // it left no run, or the reader of runs says what is wrong
	}
	defer f.Close()
	run, err := store.DecodeRun(f)
	if err != nil || run.ID == filepath.Base(dir) {
		return dir, nil
	}
	named := filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".folder", run.ID)
	if err := os.MkdirAll(filepath.Dir(named), 0o700); err != nil {
		return dir, err
	}
	return named, os.Rename(dir, named)
}

// lay puts the files of a part into a folder, as far as their content is here. Large ones that nobody writes into cost
// no room.
func (h *Head) lay(ctx context.Context, files []fleet.File, dir string) error {
	if err := fleet.CheckFiles(files); err != nil {
		return err
	}
	for _, f := range files {
		if f.Stays {
			continue
		}
		if err := h.place(ctx, f, filepath.Join(dir, filepath.FromSlash(f.Path))); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return nil
}

// place gives a file its path. What may be written into later is a copy of its own.
func (h *Head) place(ctx context.Context, f fleet.File, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if strings.Contains(f.Path, "/") || path.Ext(f.Path) == ".wacz" {
		return blob.Place(ctx, h.Blobs, f.SHA256, to)
	}
	return blob.Copy(ctx, h.Blobs, f.SHA256, to)
}

// endOf is the state of a run that left nothing.
func endOf(r ledger.Run) string {
	for _, p := range r.Parts {
		if p.State == store.StateFailed {
			return store.StateFailed
		}
	}
	return store.StateInterrupted
}

func reasonOf(r ledger.Run, err error) string {
	if r.Cancel {
		return "it was cancelled before anything was measured"
	}
	return err.Error()
}

// stayed lists the files that boxes keep until somebody wants them, at their places in the run's folder.
func stayed(r ledger.Run, before []int) (all []fleet.File) {
	cells := 0
	for i, p := range r.Parts {
		if p.Outcome != nil {
			for _, f := range p.Outcome.Files {
				if !f.Stays {
					continue
				}
				if place, keep := placeOf(f.Path, len(r.Parts) > 1, i, cells, before[i]); keep {
					f.Path = place
					all = append(all, f)
				}
			}
		}
		cells += len(p.Plan.Cells())
	}
	return all
}

// earlier lists what attempts handed in that were given back: nothing whole is lost.
func earlier(r ledger.Run) (all []fleet.File) {
	for _, p := range r.Parts {
		for _, a := range p.Attempts {
			for _, f := range a.Files {
				f.Path = path.Join(attemptsDir, fmt.Sprintf("%s-%d", p.ID, a.Attempt), f.Path)
				all = append(all, f)
			}
		}
	}
	if len(all) > fleet.MaxFiles {
		all = all[:fleet.MaxFiles]
	}
	return all
}

// boxState is what a run says of the box that made a part.
func (h *Head) boxState(ctx context.Context, p ledger.Part) (*lab.BoxState, error) {
	if p.BoxID == "" {
		return nil, nil
	}
	s := &lab.BoxState{Name: p.Box, ID: p.BoxID, Health: fleet.HealthUnknown}
	known, err := h.device(ctx, p.BoxID, p.Device)
	if err != nil {
		return nil, err
	}
	s.Health = known.found.Health
	if c := metrology.Calibrate(known.readings); c.Runs > 0 {
		s.Calibration = &c
	}
	return s, nil
}
