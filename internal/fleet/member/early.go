package member

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"sync"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// early hands in whole trials while a run goes on, so that a box that vanishes leaves what it had. It is best effort:
// what fails is done at the end.
type early struct {
	*session
	part *part

	work   sync.WaitGroup
	turn   chan struct{} // capacity 1: one at a time
	last   time.Time
	trials int
}

func newEarly(s *session, p *part) *early {
	return &early{session: s, part: p, turn: make(chan struct{}, 1), last: s.Now()}
}

func (e *early) wait() { e.work.Wait() }

// handIn begins to hand in, unless that was done just now, or goes on.
func (e *early) handIn(ctx context.Context) {
	if e.Now().Sub(e.last).Abs() < e.Times.HandIn {
		return
	}
	select {
	case e.turn <- struct{}{}:
	default:
		return
	}
	e.last = e.Now()
	e.work.Go(func() {
		defer func() { <-e.turn }()
		if err := e.once(ctx); err != nil && ctx.Err() == nil {
			e.Log.Debug("whole trials wait to be handed in", "part", e.part.get().Part, "error", err)
		}
	})
}

func (e *early) once(ctx context.Context) error {
	k := e.part.get()
	if !e.Store.Has(k.Run) {
		return nil
	}
	root, err := e.Store.Files(k.Run)
	if err != nil {
		return err
	}
	all := &files{root: root}
	defer all.close()
	// run.json is replaced after each trial: what it says and what is handed in of it must be one text.
	f, _, err := store.OpenFile(root, "run.json")
	if err != nil {
		return err
	}
	defer f.Close()
	run, text, err := decodeKept(f)
	if err != nil {
		return err
	}
	if len(run.Trials) == e.trials {
		return nil
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	all.taken = map[string][]byte{digest: text}
	all.list = []fleet.File{{Path: "run.json", Bytes: int64(len(text)), SHA256: digest}}
	for _, t := range run.Trials {
		list, err := e.part.digest(root, path.Join("trials", store.TrialName(t.Number)), k.Stay)
		if err != nil {
			return err
		}
		all.list = append(all.list, list...)
	}
	if len(all.list) > fleet.MaxFiles {
		return errors.New("they have too many files")
	}
	missing, err := e.call.hold(ctx, k.Part, k.Token, all.list)
	e.heard(err)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		if err := e.send(ctx, k.Part, k.Token, all, missing); err != nil {
			return err
		}
		if missing, err = e.call.hold(ctx, k.Part, k.Token, all.list); err != nil || len(missing) > 0 {
			return err
		}
	}
	e.trials = len(run.Trials)
	return nil
}

// decodeKept reads a run.json, and returns its text as well.
func decodeKept(f io.Reader) (*lab.Run, []byte, error) {
	var text bytes.Buffer
	run, err := store.DecodeRun(io.TeeReader(f, &text))
	return run, text.Bytes(), err
}
