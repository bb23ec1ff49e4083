package head

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
)

const (
	// followPeriod is how often a head looks for runs that another one ended.
	followPeriod = 2 * time.Second
	// fetchedAtOnce is the size of a file up to which it comes from a store elsewhere before anybody asks for it.
	fetchedAtOnce = 1 << 20
)

// follow moves runs that have ended into the store, and tells those who wait for them. It also tells how runs go of
// which boxes tell another head.
func (h *Head) follow(ctx context.Context) {
	seq, told := int64(0), map[string]ledger.UnderWay{}
	h.every(ctx, followPeriod, h.ended, "runs that have ended cannot be taken over", func(ctx context.Context) error {
		for {
			runs, last, err := h.ledger.EndedSince(ctx, seq)
			if err != nil {
				return err
			}
			if len(runs) == 0 {
				return h.overhear(ctx, told)
			}
			for _, r := range runs {
				if err := h.takeOver(ctx, r); err != nil {
					return fmt.Errorf("run %s: %w", r.ID, err)
				}
				h.events.Publish(runqueue.Progress{Run: r.ID, State: r.State, Error: r.Error})
			}
			seq = last
		}
	})
}

// overhear tells what boxes told another head, of parts that are under way in a database that heads share. told is what
// was told so far.
func (h *Head) overhear(ctx context.Context, told map[string]ledger.UnderWay) error {
	if !h.ledger.Shared() {
		return nil
	}
	all, err := h.ledger.UnderWay(ctx)
	if err != nil {
		return err
	}
	before := maps.Clone(told)
	clear(told)
	for _, one := range all {
		if told[one.Part] = one; one != before[one.Part] {
			h.news(ctx, one.Run, one.Box+": "+one.Progress.Doing, one.Progress)
		}
	}
	return nil
}

// takeOver makes the folder of a run that has ended, unless it is there.
func (h *Head) takeOver(ctx context.Context, r ledger.Run) error {
	if h.Store.Has(r.ID) {
		return nil
	}
	files, err := h.ledger.RunFiles(ctx, r.ID)
	if err != nil {
		return err
	}
	dir := filepath.Join(h.staging(), "known", r.ID)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	any := false
	for _, f := range files {
		if f.Stays || !h.comesAtOnce(f) {
			continue
		}
		err := h.place(ctx, f, filepath.Join(dir, filepath.FromSlash(f.Path)))
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrDigest) { // the store gives no other answer tomorrow
			h.Log.Error("the store has lost a file of a run, which is shown without it", "run", r.ID, "file", f.Path, "error", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		any = true
	}
	if !any {
		return nil // it left nothing
	}
	run, err := store.ReadRun(dir)
	if err != nil {
		h.Log.Error("a run of another head cannot be shown", "run", r.ID, "error", err)
		return nil // later ones can
	}
	return h.Store.Adopt(dir, run)
}

// attemptsDir is the folder, in a run's, of what attempts handed in that were given back.
const attemptsDir = "attempts"

func inAttempt(name string) bool { return strings.HasPrefix(name, attemptsDir+"/") }

// comesAtOnce says whether a file is put into a run's folder before anybody asks for it.
func (h *Head) comesAtOnce(f fleet.File) bool {
	_, here := h.Blobs.(*blob.Folder)
	return !inAttempt(f.Path) && (here || f.Bytes <= fetchedAtOnce)
}

// fetchLimit is how long a person waits for a file that comes from a box.
const fetchLimit = 30 * time.Second

// Fetch brings a file of a run into its folder that is not there yet: from the store of blobs, or from the box on which
// it stayed. The error is store.ErrNotFound if the run has no such file, or says who has been asked for it.
func (h *Head) Fetch(ctx context.Context, run, name string) error {
	files, err := h.ledger.RunFiles(ctx, run)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Path == name {
			return h.fetch(ctx, run, f)
		}
	}
	return store.ErrNotFound
}

// SHA256 is that of a file of a run, wherever the file is. The error is os.ErrNotExist if the run has no such file.
func (h *Head) SHA256(ctx context.Context, run, name string) (string, error) {
	files, err := h.ledger.RunFiles(ctx, run)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if f.Path == name {
			return f.SHA256, nil
		}
	}
	return "", os.ErrNotExist
}

func (h *Head) fetch(ctx context.Context, run string, f fleet.File) error {
	asked := false
	limited, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	for {
		rung := h.ended.wait()
		_, has, err := h.Blobs.Has(limited, f.SHA256)
		if err == nil && has {
			break
		}
		if err == nil && !asked {
			asked, err = true, h.ledger.Want(limited, run, f.Path)
			h.wished.ring()
		}
		if err != nil {
			return err
		}
		select {
		case <-rung:
		case <-time.After(time.Second): // it may come to another head
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return ErrAsked
		}
	}
	// Beside its place first, so that nobody reads half of it.
	dir := filepath.Join(h.Store.Root(), "runs", run)
	if _, err := os.Lstat(dir); err != nil {
		return store.ErrNotFound
	}
	err := h.place(ctx, f, filepath.Join(dir, filepath.FromSlash(f.Path)))
	if errors.Is(err, os.ErrExist) {
		return nil // somebody else asked for it too
	}
	return err
}

// ErrAsked says that a file stayed on a box, which has not sent it yet.
var ErrAsked = errors.New("the file stayed on the box that measured; the box has been asked for it: try again in a while") // constant
