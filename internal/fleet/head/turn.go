package head

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"eidetic/image/update"
	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/fleet/metrology"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// turn is one look at the box whose turn it is in a rollout. step changes the rollout in memory; the caller keeps it.
type turn struct {
	h      *Head
	r      *rollout
	one    *rolling
	box    *ledger.Box // nil: it was removed
	now    time.Time
	moved  bool              // something of the rollout has changed
	health *ledger.BoxHealth // that the box gets together with the change
}

func (h *Head) turn(ctx context.Context, r *rollout, one *rolling) (*turn, error) {
	t := &turn{h: h, r: r, one: one, now: h.Now()}
	boxes, err := h.ledger.Boxes(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(boxes, func(b ledger.Box) bool { return b.ID == one.ID }); i >= 0 {
		t.box = &boxes[i]
	}
	return t, nil
}

// step looks at the box and takes what it is ready for.
func (t *turn) step(ctx context.Context) (err error) {
	if t.box == nil {
		t.to(boxSkipped, "it was removed from the fleet")
		return nil
	}
	if t.one.State != boxWaiting {
		t.hold()
	}
	switch t.one.State {
	case boxWaiting:
		t.begin()
	case boxDraining:
		err = t.drain(ctx)
	case boxMeasuring:
		err = t.measure(ctx)
	case boxUpdating:
		err = t.await()
	case boxChecking:
		err = t.check(ctx)
	}
	var because *halt
	if errors.As(err, &because) {
		t.stop(because)
		return nil
	}
	return err
}

// halt is why the rollout stops at the box.
type halt struct {
	why   string
	other bool // the box is, or may be, another one than before
}

func (e *halt) Error() string { return e.why }

// to begins another state of the box.
func (t *turn) to(state, why string) {
	t.moved = true
	t.one.State, t.one.Why, t.one.Since = state, lab.Clip(why, 500), t.now.UTC()
}

// release ends the box's turn: it gets runs again, unless a person has called it bad meanwhile.
func (t *turn) release(state, why string) {
	t.to(state, why)
	t.health = nil
	if t.box.Health != fleet.HealthBad {
		t.health = &ledger.BoxHealth{BoxID: t.box.ID, Health: fleet.HealthUnknown}
	}
}

// stop ends the rollout because of the box, which gets runs again if it is as it was before.
func (t *turn) stop(because *halt) {
	t.release(boxFailed, because.why)
	version := t.r.Update.Version
	if because.other && t.health != nil {
		t.health.Health = fleet.HealthMaintenance
		t.health.Reason = lab.Clip("update to "+version+": "+because.why+"; end the maintenance when the box is as it should be", 900)
	}
	t.r.State, t.r.Why, t.r.Ended = rolloutStopped, lab.Clip(t.box.Name+": "+because.why, 600), t.now.UTC()
}

// hold keeps new runs away from the box, also if somebody ended its maintenance meanwhile.
func (t *turn) hold() {
	if t.box.Health == fleet.HealthBad || t.box.Health == fleet.HealthMaintenance {
		return
	}
	t.health = &ledger.BoxHealth{BoxID: t.box.ID, Health: fleet.HealthMaintenance, Reason: "it is being updated to " + t.r.Update.Version}
}

func (t *turn) begin() {
	image, version := t.box.Offer.Image, t.r.Update.Version
	switch {
	case image == "":
		t.to(boxSkipped, "it has no updater: it does not run from the image")
	case update.Compare(image, version) == 0:
		t.to(boxUpdated, "it had this version already")
	case update.Compare(image, version) > 0:
		t.to(boxSkipped, "it runs "+image+", which is newer")
	case t.silent() > lostAfter:
		t.to(boxSkipped, "nothing was heard of it since "+t.box.Seen.UTC().Format(time.DateTime))
	case t.box.Health == fleet.HealthBad || t.box.Health == fleet.HealthMaintenance:
		t.to(boxSkipped, "its health is "+t.box.Health)
	default:
		t.to(boxDraining, "")
		t.hold()
	}
}

// silent is how long nothing was heard of the box.
func (t *turn) silent() time.Duration { return t.now.Sub(t.box.Seen) }

// drain waits until the box carries nothing out: neither for the fleet nor of its own.
func (t *turn) drain(ctx context.Context) error {
	if t.silent() > returnWithin {
		return &halt{why: fmt.Sprintf("nothing was heard of it for %v, before it was told to update", returnWithin)}
	}
	parts, err := t.h.ledger.UnderWay(ctx)
	if err != nil {
		return err
	}
	busy := slices.ContainsFunc(parts, func(p ledger.UnderWay) bool { return p.BoxID == t.box.ID }) ||
		slices.ContainsFunc(t.box.Offer.Devices, func(d fleet.OfferedDevice) bool { return d.Busy })
	if busy || t.box.Health != fleet.HealthMaintenance && t.box.Health != fleet.HealthBad { // or it may begin something yet
		return nil
	}
	ref, err := t.h.reference(ctx)
	if err != nil {
		return err
	}
	if ref != nil {
		for _, d := range t.box.Offer.Devices {
			if d.Ready && measures(ref.Plan, d) {
				t.one.Devices = append(t.one.Devices, rollingDevice{Name: d.Name})
			}
		}
	}
	t.to(boxMeasuring, "")
	return nil
}

// measure has the box's devices measure the reference, if they have no fresh reading; then the box is told.
func (t *turn) measure(ctx context.Context) error {
	if len(t.one.Devices) > 0 && t.now.Sub(t.one.Since) > measureWithin {
		return &halt{why: fmt.Sprintf("its devices did not measure the reference within %v, before it was told to update%s", measureWithin, t.problems())}
	}
	ref, err := t.h.reference(ctx)
	if err != nil {
		return err
	}
	for i := range t.one.Devices {
		d := &t.one.Devices[i]
		if ref == nil {
			break
		}
		if d.Before == "" {
			known, err := t.readings(ctx, d.Name)
			if err != nil {
				return err
			}
			if n := len(known); n > 0 && known[n-1].Reference == ref.ID && !ref.isDue(known[n-1].At, t.now) {
				continue
			}
			if d.Before, err = t.ask(ctx, ref, d.Name, "before"); err != nil {
				return err
			}
			t.moved = true
			return nil
		}
		if reading, err := t.result(ctx, d.Name, d.Before); err != nil || reading == nil {
			return err
		}
	}
	t.to(boxUpdating, "")
	return nil
}

// await waits for the box to say that it runs the update.
func (t *turn) await() error {
	offer := t.box.Offer
	switch {
	case offer.Image == t.r.Update.Version:
		t.to(boxChecking, "")
	case offer.Update != nil && offer.Update.ID == t.r.Update.ID:
		return &halt{why: "it does not run the update: " + offer.Update.Error}
	case t.now.Sub(t.one.Since) > returnWithin:
		return &halt{why: fmt.Sprintf("it did not come back with %s within %v", t.r.Update.Version, returnWithin), other: true}
	}
	return nil
}

// check has the box's devices measure the reference again, and compares.
func (t *turn) check(ctx context.Context) error {
	switch {
	case t.box.Offer.Image != t.r.Update.Version:
		return &halt{why: fmt.Sprintf("it went back to %s: the update did not become healthy", t.box.Offer.Image)}
	case t.silent() > returnWithin:
		return &halt{why: fmt.Sprintf("nothing was heard of it for %v after the update", returnWithin), other: true}
	case len(t.one.Devices) > 0 && t.now.Sub(t.one.Since) > measureWithin:
		return &halt{why: fmt.Sprintf("its devices did not measure the reference within %v after the update%s", measureWithin, t.problems()), other: true}
	}
	ref, err := t.h.reference(ctx)
	if err != nil {
		return err
	}
	if ref == nil || len(t.one.Devices) == 0 {
		if t.box.Seen.Sub(t.one.Since) >= settleFor {
			t.release(boxUpdated, "no device of it measures a reference: nothing was compared")
		}
		return nil
	}
	for i := range t.one.Devices {
		d := &t.one.Devices[i]
		found, err := t.compare(ctx, d)
		switch {
		case err != nil || found == goesOn:
			return err
		case found == asBefore:
			continue
		}
		run, err := t.ask(ctx, ref, d.Name, fmt.Sprintf("after %d", len(d.After)+1))
		if err != nil {
			return err
		}
		d.After, t.moved = append(d.After, run), true
		return nil
	}
	t.release(boxUpdated, "")
	return nil
}

// problems says which devices are not ready.
func (t *turn) problems() string {
	var all []string
	for _, d := range t.box.Offer.Devices {
		if !d.Ready {
			all = append(all, d.Name+" is not ready: "+d.Problem)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, "; ") + ")"
}

// comparison is what is known of a device after the update.
type comparison int

const (
	goesOn   comparison = iota // it measures
	again                      // it is to measure, for the first time or once more
	asBefore                   // its newest reading is where those before the update lie
)

// compare looks at what a device measured after the update. A first reading outside of those before is measured once
// more, because up to three in a hundred of steady boxes are (docs/fleet-health.md); a second one outside on the same
// side is a halt.
func (t *turn) compare(ctx context.Context, d *rollingDevice) (comparison, error) {
	if len(d.After) == 0 {
		return again, nil
	}
	var outside []metrology.Shift
	for n, run := range d.After {
		reading, err := t.result(ctx, d.Name, run)
		if err != nil || reading == nil {
			return goesOn, err
		}
		known, err := t.readings(ctx, d.Name)
		if err != nil {
			return goesOn, err
		}
		before := slices.DeleteFunc(slices.Clone(known), func(r metrology.Reading) bool { return slices.Contains(d.After, r.Run) })
		shifts, err := metrology.Against(before, *reading)
		if err != nil {
			return goesOn, &halt{why: fmt.Sprintf("%s: what it measured after the update (run %s) cannot be compared: %v", d.Name, run, err), other: true}
		}
		if n > 0 {
			shifts = metrology.Both(outside, shifts)
		}
		if outside = shifts; len(outside) == 0 {
			return asBefore, nil
		}
	}
	if len(d.After) == 1 {
		return again, nil
	}
	return goesOn, &halt{why: fmt.Sprintf("%s measures otherwise since the update: %s, in the runs %s", d.Name, outside[0].Text(),
		strings.Join(d.After, " and ")), other: true}
}

// readings are what a device measured, oldest first.
func (t *turn) readings(ctx context.Context, device string) ([]metrology.Reading, error) {
	t.h.forget(t.box.ID, device) // another head may have just added one
	known, err := t.h.device(ctx, t.box.ID, device)
	return known.readings, err
}

// ask puts a run of the reference into the queue. What it is for is its key: a head that was killed asks for the same
// run.
func (t *turn) ask(ctx context.Context, ref *reference, device, what string) (run string, err error) {
	key := fmt.Sprintf("rollout %s %s %s %s", t.r.Update.ID, t.one.ID, device, what) // the spaces keep it apart from people's keys
	return t.h.measure(ctx, ref, t.box.Name+fleet.DeviceMark+device, store.Once{Key: key, Request: key})
}

// result is the reading of a run, or nil while it goes on. An error says that there will be none.
func (t *turn) result(ctx context.Context, device, run string) (*metrology.Reading, error) {
	r, err := t.h.ledger.Run(ctx, run)
	if errors.Is(err, store.ErrNotFound) {
		return nil, t.noReading(device, run, "it was deleted")
	}
	if err != nil {
		return nil, err
	}
	if !isEnd(r.State) {
		return nil, nil
	}
	known, err := t.readings(ctx, device)
	if err != nil {
		return nil, err
	}
	for i := range known {
		if known[i].Run == run {
			return &known[i], nil
		}
	}
	return nil, t.noReading(device, run, strings.TrimSuffix("it is "+r.State+", "+r.Error, ", "))
}

func (t *turn) noReading(device, run, why string) error {
	return &halt{why: fmt.Sprintf("%s: the run %s of the reference gave no reading: %s", device, run, why), other: t.one.State == boxChecking}
}
