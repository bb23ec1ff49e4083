package head

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/fleet/metrology"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

// codeValid is how long a box can join by a code.
const codeValid = time.Hour

// Boxes is what the panel shows of the fleet.
func (h *Head) Boxes() panel.Boxes { return people{h} }

// people implements panel.Boxes.
type people struct{ h *Head }

func refuse(status int, format string, args ...any) error {
	return &panel.Refusal{Status: status, Err: fmt.Errorf(format, args...)}
}

// List implements panel.Boxes.
func (p people) List(ctx context.Context) ([]panel.Box, error) {
	boxes, err := p.h.ledger.Boxes(ctx)
	if err != nil {
		return nil, err
	}
	busy, err := p.busy(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]panel.Box, 0, len(boxes))
	for _, b := range boxes {
		one, err := p.describe(ctx, b, busy)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b panel.Box) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// busy maps BOX/DEVICE to the part that it carries out.
func (p people) busy(ctx context.Context) (map[string]ledger.UnderWay, error) {
	parts, err := p.h.ledger.UnderWay(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]ledger.UnderWay{}
	for _, part := range parts {
		all[part.BoxID+fleet.DeviceMark+part.Device] = part
	}
	return all, nil
}

func (p people) describe(ctx context.Context, b ledger.Box, busy map[string]ledger.UnderWay) (panel.Box, error) {
	out := panel.Box{
		Name: b.Name, ID: b.ID, State: "idle", Health: b.Health, Reason: b.Reason, Joined: b.Joined, Seen: b.Seen,
		Software: b.Offer.Software, Image: b.Offer.Image,
		Cores: b.Offer.Cores, Memory: b.Offer.Memory, Labels: b.Offer.Labels, Pin: b.Fingerprint,
		Devices: []panel.BoxDevice{},
	}
	reserved := len(b.Offer.Devices) > 0
	for _, d := range b.Offer.Devices {
		one := panel.BoxDevice{
			Name: d.Name, Kind: d.Kind, Ready: d.Ready, Problem: d.Problem, Screen: d.Screen, Controls: d.Controls,
			Browsers: d.Browsers, Labels: d.Labels,
		}
		if part, ok := busy[b.ID+fleet.DeviceMark+d.Name]; ok {
			one.Run, one.Doing, out.State = part.Run, part.Progress.Doing, "running"
		}
		known, err := p.h.device(ctx, b.ID, d.Name)
		if err != nil {
			return out, err
		}
		one.Health, one.Reason = known.found.Health, known.found.Why
		for _, n := range known.normals {
			one.Levels = append(one.Levels, panel.BoxLevel{Metric: n.Metric, Percent: n.Percent})
		}
		reserved = reserved && d.Busy
		out.Devices = append(out.Devices, one)
	}
	if out.State == "idle" && reserved {
		out.State = "reserved"
	}
	if p.h.Now().Sub(b.Seen) > lostAfter {
		out.State = "lost"
	}
	return out, nil
}

func (p people) box(ctx context.Context, name string) (ledger.Box, error) {
	b, err := p.h.ledger.Box(ctx, name)
	if errors.Is(err, ledger.ErrUnknownBox) || errors.Is(err, store.ErrNotFound) {
		return b, refuse(http.StatusNotFound, "there is no box %.70q in the fleet", name)
	}
	return b, err
}

func (p people) device(ctx context.Context, name, device string) (ledger.Box, fleet.OfferedDevice, error) {
	b, err := p.box(ctx, name)
	if err != nil {
		return b, fleet.OfferedDevice{}, err
	}
	i := slices.IndexFunc(b.Offer.Devices, func(d fleet.OfferedDevice) bool { return d.Name == device })
	if i < 0 {
		return b, fleet.OfferedDevice{}, refuse(http.StatusNotFound, "the box %s has no device %.70q", b.Name, device)
	}
	return b, b.Offer.Devices[i], nil
}

// NewCode implements panel.Boxes.
func (p people) NewCode(ctx context.Context, by string) (panel.JoinCode, error) {
	if p.h.Pin == "" {
		return panel.JoinCode{}, refuse(http.StatusConflict,
			"the head has no certificate (panel.plain_http), and boxes could not know it again: serve it with TLS")
	}
	code, err := p.h.ledger.NewCode(ctx, by, codeValid)
	if err != nil {
		return panel.JoinCode{}, err
	}
	return panel.JoinCode{Link: fleet.Link{Host: p.h.Address, Code: code, Pin: p.h.Pin}.String(), Expires: p.h.Now().Add(codeValid).UTC()}, nil
}

// Change implements panel.Boxes.
func (p people) Change(ctx context.Context, name string, c panel.BoxChange) (out panel.Box, err error) {
	b, err := p.box(ctx, name)
	if err != nil {
		return out, err
	}
	health, reason := b.Health, b.Reason
	set := func(yes *bool, to string) {
		switch {
		case yes == nil:
		case *yes:
			health = to
		case health == to:
			health, reason = fleet.HealthUnknown, ""
		}
	}
	if c.Maintenance != nil && *c.Maintenance && c.Bad != nil && *c.Bad {
		return out, refuse(http.StatusUnprocessableEntity, "a box is in maintenance or bad, not both")
	}
	set(c.Maintenance, fleet.HealthMaintenance)
	set(c.Bad, fleet.HealthBad)
	if c.Reason != nil {
		reason = *c.Reason
	}
	if c.Labels != nil {
		if err := (fleet.Offer{Labels: *c.Labels}).Check(); err != nil {
			return out, refuse(http.StatusUnprocessableEntity, "labels: %w", err)
		}
		if err := p.h.ledger.SetLabels(ctx, b.ID, maps.Clone(*c.Labels)); err != nil {
			return out, err
		}
	}
	if health != b.Health || reason != b.Reason {
		if err := p.h.ledger.SetHealth(ctx, b.ID, health, reason); err != nil {
			return out, err
		}
		if health == fleet.HealthUnknown { // it may be known at once
			if err := p.h.judge(ctx, b.ID); err != nil {
				return out, err
			}
		}
	}
	p.h.waiters.wakeBox(b.ID)
	if b, err = p.box(ctx, name); err != nil {
		return out, err
	}
	busy, err := p.busy(ctx)
	if err != nil {
		return out, err
	}
	return p.describe(ctx, b, busy)
}

// Remove implements panel.Boxes.
func (p people) Remove(ctx context.Context, name string) error {
	b, err := p.box(ctx, name)
	if err != nil {
		return err
	}
	if err := p.h.ledger.RemoveBox(ctx, b.ID); err != nil {
		return err
	}
	p.h.bell.ring()
	return nil
}

// Readings implements panel.Boxes.
func (p people) Readings(ctx context.Context, name, device string) (out panel.BoxReadings, err error) {
	b, _, err := p.device(ctx, name, device)
	if err != nil {
		return out, err
	}
	known, err := p.h.device(ctx, b.ID, device)
	if err != nil {
		return out, err
	}
	readings, found := known.readings, known.found
	out = panel.BoxReadings{
		Box: b.Name, Device: device, Health: found.Health, Why: found.Why, Changed: []string{}, Readings: []panel.BoxReading{},
		Baselines: baselinesOf(known.normals),
	}
	if !found.Since.IsZero() {
		out.Since = &found.Since
	}
	for _, f := range found.Changed {
		out.Changed = append(out.Changed, fmt.Sprintf("%s: %s → %s", f.Name, f.Before, f.After))
	}
	if c := metrology.Calibrate(readings); c.Runs > 0 {
		out.Calibration = &c
	}
	for _, r := range readings {
		out.Readings = append(out.Readings, readingOf(r))
	}
	return out, nil
}

// Reference implements panel.Boxes.
func (p people) Reference(ctx context.Context) (*panel.Reference, error) {
	ref, err := p.h.reference(ctx)
	if err != nil || ref == nil {
		return nil, err
	}
	plan := ref.Plan
	plan.Archive = ref.Name
	return &panel.Reference{Plan: plan, Every: ref.Every, ID: ref.ID}, nil
}

// SetReference implements panel.Boxes. The panel has looked at its form.
func (p people) SetReference(ctx context.Context, r panel.Reference) error {
	if err := p.h.Check(r.Plan); err != nil {
		return refuse(http.StatusUnprocessableEntity, "plan: %w", err)
	}
	name := r.Plan.Archive
	plan, files, err := p.h.withRecordings(ctx, r.Plan)
	var rejected *runqueue.RejectedError
	if err != nil && !errors.As(err, &rejected) {
		return err
	}
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "plan.%w", err)
	}
	plan.Name = ""
	ref := reference{Plan: plan, Archive: files[0], Every: r.Every, Name: name}
	if ref.ID, err = metrology.ReferenceDigest(plan, ref.Archive.SHA256); err != nil {
		return err
	}
	text, err := json.Marshal(ref)
	if err != nil {
		return err
	}
	return p.h.ledger.SetSetting(ctx, referenceSetting, text)
}

// RemoveReference implements panel.Boxes.
func (p people) RemoveReference(ctx context.Context) error {
	return p.h.ledger.SetSetting(ctx, referenceSetting, nil)
}

// Measure implements panel.Boxes.
func (p people) Measure(ctx context.Context, name, device string) (string, error) {
	b, d, err := p.device(ctx, name, device)
	if err != nil {
		return "", err
	}
	ref, err := p.h.reference(ctx)
	switch {
	case err != nil:
		return "", err
	case ref == nil:
		return "", refuse(http.StatusConflict, "there is no reference yet: choose its plan first (PUT /api/v1/reference)")
	case !measures(ref.Plan, d):
		return "", refuse(http.StatusConflict, "%s of %s cannot carry out the reference: it has no such browser", d.Name, b.Name)
	}
	place := b.Name + fleet.DeviceMark + d.Name
	waiting, err := p.h.referenceRuns(ctx)
	if err != nil {
		return "", err
	}
	if waiting[place] {
		return "", refuse(http.StatusConflict, "%s measures the reference already, or is about to", place)
	}
	r, _, err := p.h.rollout(ctx)
	if err != nil {
		return "", err
	}
	if at := r.at(); at != nil && at.ID == b.ID { // what it measures counts as before or after
		return "", refuse(http.StatusConflict, "%s is being updated to %s, which measures the reference: measure when that is through", b.Name, r.Update.Version)
	}
	return p.h.measure(ctx, ref, place, store.Once{})
}

// Rebase implements panel.Boxes.
func (p people) Rebase(ctx context.Context, name, device string) error {
	b, _, err := p.device(ctx, name, device)
	if err != nil {
		return err
	}
	p.h.judging.Lock()
	defer p.h.judging.Unlock()
	p.h.forget(b.ID, device)
	known, err := p.h.device(ctx, b.ID, device)
	if err != nil {
		return err
	}
	readings, found := known.readings, known.found
	if len(readings) == 0 {
		return refuse(http.StatusConflict, "%s of %s has not measured the reference yet", device, b.Name)
	}
	from := found.SinceRun
	if from == "" {
		from = readings[len(readings)-1].Run
	}
	rebased, err := metrology.Rebase(readings, from)
	if err != nil {
		return err
	}
	texts := make([]json.RawMessage, len(rebased))
	for i, r := range rebased {
		if texts[i], err = json.Marshal(r); err != nil {
			return err
		}
	}
	if err := p.h.ledger.SetReadings(ctx, b.ID, device, texts); err != nil {
		return err
	}
	p.h.forget(b.ID, device)
	return p.h.judge(ctx, b.ID)
}

// Devices lists the devices of all boxes, for forms; each is called BOX/DEVICE.
func (h *Head) Devices(ctx context.Context) []panel.Device {
	boxes, err := h.ledger.Boxes(ctx)
	if err != nil {
		h.Log.Error("the boxes cannot be listed", "error", err)
		return nil
	}
	var all []panel.Device
	for _, b := range boxes {
		lost := h.Now().Sub(b.Seen) > lostAfter
		for _, d := range b.Offer.Devices {
			one := panel.Device{
				Name: b.Name + fleet.DeviceMark + d.Name, Kind: d.Kind, Ready: d.Ready && !lost, Problem: d.Problem, Screen: d.Screen,
			}
			if lost {
				one.Problem = fmt.Sprintf("nothing was heard of the box since %s", b.Seen.UTC().Format(time.DateTime))
			}
			all = append(all, one)
		}
	}
	return all
}

// Knows says whether a request is of a box that has joined.
func (h *Head) Knows(r *http.Request) bool {
	_, err := h.boxOf(r)
	return err == nil
}

func baselinesOf(normals []metrology.Normal) []panel.BoxBaseline {
	all := []panel.BoxBaseline{}
	for _, n := range normals {
		all = append(all, panel.BoxBaseline{Metric: n.Metric, Unit: n.Unit, Median: n.Median, Low: n.Low, High: n.High, Drifted: n.Drifted})
	}
	return all
}

// readingOf is a reading for people.
func readingOf(r metrology.Reading) panel.BoxReading {
	one := panel.BoxReading{Run: r.Run, At: r.At, Levels: []lab.CalibrationLevel{}, Stolen: 100 * r.Stolen}
	if r.Trials > 0 {
		one.Thrown = 100 * float64(r.Thrown) / float64(r.Trials)
	}
	for _, l := range r.Levels {
		one.Levels = append(one.Levels, lab.CalibrationLevel{
			Metric: l.Metric, Unit: l.Unit, Median: l.Median, Within: l.Spread, Runs: 1, Trials: l.N,
		})
	}
	return one
}
