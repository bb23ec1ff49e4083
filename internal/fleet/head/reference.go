package head

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"eidetic/internal/box/automation"
	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/fleet/metrology"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

const (
	// mostReadings bounds what is read to judge a box.
	mostReadings = 500
	// measurePeriod is how often the head looks which device is due.
	measurePeriod = 20 * time.Second
	// lostAfter is how long a box may be silent before it counts as lost.
	lostAfter = 2 * time.Minute
)

// judged is what is known of a device: its readings, oldest first, and what follows from them.
type judged struct {
	readings []metrology.Reading
	found    metrology.Judgement
	normals  []metrology.Normal
	read     time.Time
}

// judgedFor is how long that is believed: lists, metrics and health ask for it of all devices, and another head may
// have more.
const judgedFor = 10 * time.Second

// device says what is known of a device by what it measured.
func (h *Head) device(ctx context.Context, boxID, device string) (judged, error) {
	key := boxID + fleet.DeviceMark + device
	h.mu.Lock()
	known, ok := h.known[key]
	changes := h.changes
	h.mu.Unlock()
	if ok && h.Now().Sub(known.read).Abs() < judgedFor {
		return known, nil
	}
	kept, err := h.ledger.Readings(ctx, boxID, device, mostReadings)
	if err != nil {
		return judged{}, err
	}
	d := judged{read: h.Now()}
	for _, text := range slices.Backward(kept) { // the newest comes first
		var r metrology.Reading
		if err := json.Unmarshal(text, &r); err != nil {
			return judged{}, fmt.Errorf("a reading of the box cannot be read: %w", err)
		}
		d.readings = append(d.readings, r)
	}
	d.found, d.normals = metrology.Judge(d.readings), metrology.Normals(d.readings)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changes == changes { // or it was read before a change
		h.known[key] = d
	}
	return d, nil
}

// forget has what is known of a device read anew.
func (h *Head) forget(boxID, device string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
	delete(h.known, boxID+fleet.DeviceMark+device)
}

// takeReading keeps what a run of the reference says of its box, and judges the box by it.
func (h *Head) takeReading(ctx context.Context, r ledger.Run, run *lab.Run) error {
	if r.Reference == "" || len(r.Parts) != 1 {
		return nil
	}
	p := r.Parts[0]
	reading, err := metrology.ReadingOf(run)
	if err != nil {
		h.Log.Warn("a reference run says nothing of its box", "run", r.ID, "box", p.Box, "why", err)
		return nil
	}
	h.judging.Lock()
	defer h.judging.Unlock()
	h.forget(p.BoxID, p.Device)
	known, err := h.device(ctx, p.BoxID, p.Device)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(known.readings, func(k metrology.Reading) bool { return k.Run == reading.Run }) {
		text, err := json.Marshal(reading)
		if err != nil {
			return err
		}
		if err := h.ledger.AddReading(ctx, p.BoxID, p.Device, text); err != nil {
			return err
		}
		h.forget(p.BoxID, p.Device)
	}
	return h.judge(ctx, p.BoxID)
}

// judge says of a box what its readings say, unless a person has said something else: what is in maintenance stays so,
// and what is bad stays bad until a person acts.
func (h *Head) judge(ctx context.Context, boxID string) error {
	boxes, err := h.ledger.Boxes(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(boxes, func(b ledger.Box) bool { return b.ID == boxID })
	if i < 0 || boxes[i].Health == fleet.HealthMaintenance || boxes[i].Health == fleet.HealthBad {
		return nil
	}
	health, reason := "", ""
	for _, d := range boxes[i].Offer.Devices {
		known, err := h.device(ctx, boxID, d.Name)
		if err != nil {
			return err
		}
		if found := known.found; len(known.readings) > 0 && worst(found.Health) > worst(health) {
			health, reason = found.Health, d.Name+": "+found.Why
		}
	}
	if health == "" {
		health = fleet.HealthUnknown
	}
	if health != boxes[i].Health {
		h.Log.Info("a box's health has changed", "box", boxes[i].Name, "health", health, "why", reason)
	}
	return h.ledger.SetHealth(ctx, boxID, health, lab.Clip(reason, 1000))
}

// worst orders healths.
func worst(health string) int {
	return slices.Index([]string{fleet.HealthGood, fleet.HealthUnknown, fleet.HealthDrifting, fleet.HealthBad}, health)
}

// reference is what all boxes measure, as the ledger keeps it.
type reference struct {
	Plan    lab.Plan          `json:"plan"` // its recording is named by its digest
	Archive fleet.ArchiveFile `json:"archive"`
	Every   string            `json:"every"` // as a schedule has it
	ID      string            `json:"id"`
	Name    string            `json:"name"` // of the recording, as it was given
}

// isDue says whether what was measured last is so old that it is measured again.
func (r *reference) isDue(last, now time.Time) bool {
	times, err := automation.ParseTimes(r.Every, "", "", last)
	return err == nil && !times.Next(last).After(now)
}

// referenceSetting is the name of the ledger's setting that holds the reference.
const referenceSetting = "reference"

// reference returns what all boxes measure, or nil.
func (h *Head) reference(ctx context.Context) (*reference, error) {
	text, err := h.ledger.Setting(ctx, referenceSetting)
	if errors.Is(err, store.ErrNotFound) || err == nil && len(text) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r reference
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("the reference cannot be read: %w", err)
	}
	return &r, nil
}

// keepMeasuring has each device measure the reference when it is due.
func (h *Head) keepMeasuring(ctx context.Context) {
	h.every(ctx, measurePeriod, nil, "boxes cannot be asked to measure the reference", h.measureDue)
}

func (h *Head) measureDue(ctx context.Context) error {
	ref, err := h.reference(ctx)
	if err != nil || ref == nil {
		return err
	}
	boxes, err := h.ledger.Boxes(ctx)
	if err != nil {
		return err
	}
	waiting, err := h.referenceRuns(ctx)
	if err != nil {
		return err
	}
	rolled, _, err := h.rollout(ctx)
	if err != nil {
		return err
	}
	for _, b := range boxes {
		if at := rolled.at(); h.Now().Sub(b.Seen) > lostAfter || at != nil && at.ID == b.ID { // the rollout asks for what it needs
			continue
		}
		for _, d := range b.Offer.Devices {
			place := b.Name + fleet.DeviceMark + d.Name
			if !d.Ready || waiting[place] || !measures(ref.Plan, d) {
				continue
			}
			known, err := h.device(ctx, b.ID, d.Name)
			if err != nil {
				return err
			}
			readings := known.readings
			if n := len(readings); n > 0 && readings[n-1].Reference == ref.ID && !ref.isDue(readings[n-1].At, h.Now()) {
				continue
			}
			if failed, err := h.failedLately(ctx, place, ref); err != nil || failed {
				if err != nil {
					return err
				}
				continue
			}
			if _, err := h.measure(ctx, ref, place, store.Once{}); err != nil {
				return fmt.Errorf("%s: %w", place, err)
			}
		}
	}
	return nil
}

// measures says whether a device can carry out the reference.
func measures(p lab.Plan, d fleet.OfferedDevice) bool {
	need, err := fleet.NeedOf(p)
	return err == nil && len(need.Could("", fleet.Offer{Devices: []fleet.OfferedDevice{d}})) > 0
}

// referenceRuns are the devices of which a run of the reference waits or goes on.
func (h *Head) referenceRuns(ctx context.Context) (map[string]bool, error) {
	runs, err := h.ledger.Runs(ctx, ledger.Filter{
		States: []string{store.StateQueued, store.StateRunning, stateAssembling}, Reference: true, Limit: mostListed,
	})
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, r := range runs {
		all[r.Reference] = true
	}
	return all, nil
}

// failedLately says whether the newest run of the reference on a device gave no reading, and is so young that another
// one would most likely give none either.
func (h *Head) failedLately(ctx context.Context, place string, ref *reference) (bool, error) {
	runs, err := h.ledger.Runs(ctx, ledger.Filter{Reference: true, Limit: mostListed})
	if err != nil {
		return false, err
	}
	for _, r := range runs {
		if r.Reference == place {
			return isEnd(r.State) && !ref.isDue(r.Created, h.Now()), nil
		}
	}
	return false, nil
}

// measure puts a run of the reference on a device into the queue.
func (h *Head) measure(ctx context.Context, ref *reference, place string, once store.Once) (run string, err error) {
	p := ref.Plan
	p.Name, p.Device = "reference "+strings.ReplaceAll(place, fleet.DeviceMark, " "), place
	need, err := fleet.NeedOf(p)
	if err != nil {
		return "", err
	}
	need.Reference = true
	own := p
	own.Device = ""
	return h.insert(ctx, ledger.NewRun{
		Plan: p, Series: "reference", Reference: place, Once: once,
		Parts: []ledger.NewPart{{Plan: own, Need: need, Archives: []fleet.ArchiveFile{ref.Archive}}},
	})
}
