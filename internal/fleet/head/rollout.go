package head

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/keep/store"
)

const (
	// rolloutPeriod is how often the head looks at the box whose turn it is; what the box says is looked at at once.
	rolloutPeriod = 2 * time.Second
	// returnWithin is how long a box may take from when it is told of an update to when it says that it runs it.
	returnWithin = 30 * time.Minute
	// measureWithin is how long a box's devices may take to measure the reference.
	measureWithin = 2 * time.Hour
	// settleFor is how long a box that measures no reference must run the new version: the boot loader gives an update
	// up after three tries of 90 seconds each, and their starts.
	settleFor = 8 * time.Minute
)

// The states of a rollout, and of a box in it.
const (
	rolloutRunning = "running"
	rolloutDone    = "done"
	rolloutStopped = "stopped"

	boxWaiting   = "waiting"
	boxDraining  = "draining"  // gets no new work; what it carries out ends
	boxMeasuring = "measuring" // measures the reference, unless it has a fresh reading
	boxUpdating  = "updating"  // is told to install the update
	boxChecking  = "checking"  // runs it, and measures the reference again
	boxUpdated   = "updated"
	boxSkipped   = "skipped"
	boxFailed    = "failed" // the rollout stopped at it
)

// rollout is an update that boxes install one after another, as the ledger keeps it. Each change of it is a step:
// whoever was killed before a step is done does it again.
type rollout struct {
	Update  fleet.Update `json:"update"`
	By      string       `json:"by"`                // name of the token
	Key     string       `json:"key,omitempty"`     // digest of the request's key
	Request string       `json:"request,omitempty"` // digest of the request
	Began   time.Time    `json:"began"`
	Ended   time.Time    `json:"ended,omitzero"`
	State   string       `json:"state"`
	Why     string       `json:"why,omitempty"`
	Boxes   []rolling    `json:"boxes"` // in their order
}

// rolling is a box in a rollout.
type rolling struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	State   string          `json:"state"`
	Why     string          `json:"why,omitempty"`
	Since   time.Time       `json:"since,omitzero"` // when the state began
	Devices []rollingDevice `json:"devices,omitempty"`
}

// rollingDevice is a device that measures the reference before and after.
type rollingDevice struct {
	Name   string   `json:"name"`
	Before string   `json:"before,omitempty"` // the run, unless there was a fresh reading
	After  []string `json:"after,omitempty"`  // the runs, of which the second is there only if the first was outside
}

// rolloutSetting is the name of the ledger's setting that holds the newest rollout.
const rolloutSetting = "rollout"

// rollout returns the newest one, or nil, and its text, with which it can be swapped.
func (h *Head) rollout(ctx context.Context) (*rollout, json.RawMessage, error) {
	text, err := h.ledger.Setting(ctx, rolloutSetting)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var r rollout
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, nil, fmt.Errorf("the rollout cannot be read: %w", err)
	}
	return &r, text, nil
}

// at is the box whose turn it is, or nil.
func (r *rollout) at() *rolling {
	if r == nil || r.State != rolloutRunning {
		return nil
	}
	i := slices.IndexFunc(r.Boxes, func(b rolling) bool { return !b.isThrough() })
	if i < 0 {
		return nil
	}
	return &r.Boxes[i]
}

func (b *rolling) isThrough() bool {
	return b.State == boxUpdated || b.State == boxSkipped || b.State == boxFailed
}

// tells is the update that a box is to install now, or nil.
func (r *rollout) tells(boxID string) *fleet.Update {
	if b := r.at(); b != nil && b.ID == boxID && b.State == boxUpdating {
		return &r.Update
	}
	return nil
}

// keepRolling carries the rollout on.
func (h *Head) keepRolling(ctx context.Context) {
	h.every(ctx, rolloutPeriod, h.rolling, "the update of the boxes cannot go on", func(ctx context.Context) error {
		for ctx.Err() == nil {
			if moved, err := h.roll(ctx); err != nil || !moved {
				return err
			}
		}
		return nil
	})
}

// roll takes one step, and says whether there may be another one at once.
func (h *Head) roll(ctx context.Context) (moved bool, err error) {
	r, text, err := h.rollout(ctx)
	if err != nil || r == nil || r.State != rolloutRunning {
		return false, err
	}
	var healths []ledger.BoxHealth
	judged := ""
	if one := r.at(); one == nil {
		r.State, r.Ended = rolloutDone, h.Now().UTC()
		h.Log.Info("the update of the boxes is done", "version", r.Update.Version)
	} else {
		t, err := h.turn(ctx, r, one)
		if err != nil {
			return false, fmt.Errorf("%s: %w", one.Name, err)
		}
		if err := t.step(ctx); err != nil {
			return false, fmt.Errorf("%s: %w", one.Name, err)
		}
		if !t.moved && t.health == nil {
			return false, nil
		}
		if t.health != nil {
			healths = append(healths, *t.health)
			if t.health.Health == fleet.HealthUnknown {
				judged = one.ID
			}
		}
		if t.moved {
			h.Log.Info("an update of the boxes", "version", r.Update.Version, "box", one.Name, "is", one.State, "why", one.Why)
		}
	}
	to, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	err = h.ledger.SwapSetting(ctx, rolloutSetting, text, to, healths...)
	if errors.Is(err, ledger.ErrChanged) { // a person, or another head
		return true, nil
	}
	if err == nil && judged != "" {
		err = h.judge(ctx, judged)
		h.bell.ring() // it gets runs again
	}
	return true, err
}

// needed lists the content that something refers to: what the ledger lists, the reference's recording, and the update
// that boxes fetch.
func (h *Head) needed(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		ref, err := h.reference(ctx)
		if err == nil && ref != nil && !yield(ref.Archive.SHA256, nil) {
			return
		}
		r, _, rollErr := h.rollout(ctx)
		if err = errors.Join(err, rollErr); err != nil {
			yield("", err)
			return
		}
		if r != nil && r.State == rolloutRunning && !yield(r.Update.SHA256, nil) {
			return
		}
		for digest, err := range h.ledger.Digests(ctx) {
			if !yield(digest, err) {
				return
			}
		}
	}
}
