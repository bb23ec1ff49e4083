package panel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// fakeFleet is a head's fleet in memory: lab-1 has drifted, lab-2 is a box with a phone whose device names are hostile,
// and lab-3 is gone.
type fakeFleet struct {
	mu        sync.Mutex
	boxes     []Box
	reference *Reference
	measured  []string // what measured its reference
	rebased   bool     // lab-1's level was accepted
	codes     int
	lists     int
	broken    error
	rollout   *Rollout
	asked     BoxUpdate
}

const hostile = `<img src=x onerror="document.title='owned'">`

// fleetNow is when the fleet was heard of.
func fleetNow() time.Time { return time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC) }

func newFakeFleet() *fakeFleet {
	at := fleetNow()
	return &fakeFleet{
		boxes: []Box{
			{Name: "lab-1", ID: "b1", State: "running", Health: "drifting", Reason: "Looks finished rose by 5.1 %", Joined: at.AddDate(0, -1, 0), Seen: at,
				Software: "appliance 0.2.0", Cores: 8, Memory: 16 << 30, Labels: map[string]string{"room": "2.14"}, Pin: "3b1c",
				Devices: []BoxDevice{{Name: "virtual", Kind: "virtual", Ready: true, Screen: "1280x720 at 60 Hz", Browsers: []string{"chromium", "firefox-esr"},
					Health: "drifting", Reason: "Looks finished rose by 5.1 %", Run: "20261121-091400-demo", Doing: "trial 3 of 10",
					Levels: []BoxLevel{{"time_to_stable_ms", 5.1}, {"speed_index_ms", 0.4}}}}},
			{Name: "lab-2", ID: "b2", State: "idle", Health: "good", Joined: at.AddDate(0, -1, 0), Seen: at, Software: "appliance 0.2.0", Cores: 4, Memory: 8 << 30, Pin: "77aa",
				Devices: []BoxDevice{
					{Name: "virtual", Kind: "virtual", Ready: true, Browsers: []string{"chromium"}, Health: "good", Levels: []BoxLevel{{"time_to_stable_ms", -0.2}}},
					{Name: "a desk " + hostile, Kind: "port", Ready: false, Problem: "no lease yet " + hostile, Screen: "v4l2:/dev/video0",
						Controls: "ch9329:/dev/ttyUSB0", Labels: map[string]string{"model": "Pixel 8"}, Health: "unknown"},
				}},
			{Name: "lab-3", ID: "b3", State: "lost", Health: "unknown", Reason: hostile, Joined: at.AddDate(0, -2, 0), Seen: at.Add(-30 * time.Hour),
				Software: "appliance 0.1.9", Cores: 4, Memory: 4 << 30, Pin: "00ff"},
		},
		reference: &Reference{Plan: lab.Plan{Trials: 5, Arm: lab.Arm{Page: "https://www.shop.example/", Archive: "shop.wacz"}}, Every: "6h", ID: "r-3b1c"},
	}
}

func gone(name string) error {
	return &Refusal{http.StatusNotFound, fmt.Errorf("the fleet has no box %s", clip(name))}
}

func (f *fakeFleet) at(name string) int {
	return slices.IndexFunc(f.boxes, func(b Box) bool { return b.Name == name })
}

// device checks that there is one.
func (f *fakeFleet) device(name, device string) error {
	i := f.at(name)
	if i < 0 {
		return gone(name)
	}
	if !slices.ContainsFunc(f.boxes[i].Devices, func(d BoxDevice) bool { return d.Name == device }) {
		return &Refusal{http.StatusNotFound, fmt.Errorf("the box %s has no device %s", name, clip(device))}
	}
	return nil
}

func (f *fakeFleet) List(context.Context) ([]Box, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	return slices.Clone(f.boxes), f.broken
}

func (f *fakeFleet) NewCode(_ context.Context, by string) (JoinCode, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.codes++
	return JoinCode{fmt.Sprintf("eidetic-head://head.example:8443/K7QM3VTD9XW%d?pin=3b1c", f.codes), fleetNow().Add(time.Hour)}, nil
}

func (f *fakeFleet) Change(_ context.Context, name string, c BoxChange) (Box, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.at(name)
	if i < 0 {
		return Box{}, gone(name)
	}
	b := &f.boxes[i]
	if c.Labels != nil {
		if _, ok := (*c.Labels)["Colour"]; ok {
			return Box{}, &Refusal{http.StatusUnprocessableEntity, errors.New(`labels: "Colour" is no key of a label: use a-z, 0-9, _, . and -`)}
		}
		b.Labels = maps.Clone(*c.Labels)
	}
	for health, on := range map[string]*bool{"maintenance": c.Maintenance, "bad": c.Bad} {
		switch {
		case on != nil && *on:
			b.Health, b.Reason = health, ""
		case on != nil && b.Health == health:
			b.Health, b.Reason = "good", ""
		}
	}
	if c.Reason != nil {
		b.Reason = *c.Reason
	}
	return *b, nil
}

func (f *fakeFleet) Remove(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.at(name)
	if i < 0 {
		return gone(name)
	}
	f.boxes = slices.Delete(f.boxes, i, i+1)
	return nil
}

// Readings has twenty runs of a device that became slower at the fifteenth.
func (f *fakeFleet) Readings(_ context.Context, name, device string) (BoxReadings, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.device(name, device); err != nil {
		return BoxReadings{}, err
	}
	if name != "lab-1" {
		return BoxReadings{Box: name, Device: device, Health: "unknown", Why: "it has measured the reference too seldom: 0 of 5 runs"}, nil
	}
	r := BoxReadings{
		Box: name, Device: device, Health: "drifting", Why: "The level of Looks finished rose by 5.1 % (50.8 ms).",
		Changed: []string{"browser: Chromium 140 became Chromium 141"},
		Baselines: []BoxBaseline{{Metric: "time_to_stable_ms", Unit: "ms", Median: 1000, Low: 985, High: 1015, Drifted: !f.rebased},
			{Metric: "speed_index_ms", Unit: "ms", Median: 620, Low: 610, High: 630}},
		Calibration: &lab.Calibration{Reference: "r-3b1c", Until: fleetNow(), Runs: 20,
			Levels: []lab.CalibrationLevel{{Metric: "time_to_stable_ms", Unit: "ms", Median: 1050, Between: 4, Within: 18}}},
	}
	if f.rebased {
		r.Health, r.Why, r.Changed = "good", "It measures as it did.", nil
		r.Baselines[0].Median, r.Baselines[0].Low, r.Baselines[0].High = 1050, 1035, 1065
	}
	for i := range 20 {
		level := 1000 + float64(i*7%9-4)*2
		if i >= 14 {
			level += 50
		}
		at := fleetNow().Add(time.Duration(i-20) * 6 * time.Hour)
		if i == 14 && !f.rebased {
			r.Since = &at
		}
		r.Readings = append(r.Readings, BoxReading{Run: fmt.Sprintf("20261119-0000%02d-reference", i), At: at, Thrown: float64(i % 3), Stolen: 0.1, ClockMS: -1.5,
			Levels: []lab.CalibrationLevel{{Metric: "time_to_stable_ms", Unit: "ms", Median: level, Within: 18},
				{Metric: "speed_index_ms", Unit: "ms", Median: 620 + float64(i%5), Within: 9}}})
	}
	return r, nil
}

func (f *fakeFleet) Reference(context.Context) (*Reference, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reference, nil
}

func (f *fakeFleet) SetReference(_ context.Context, r Reference) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Plan.Archive == "nope.wacz" {
		return &Refusal{http.StatusUnprocessableEntity, errors.New("plan.archive: there is no recording nope.wacz")}
	}
	r.ID = "r-77aa"
	f.reference = &r
	return nil
}

func (f *fakeFleet) RemoveReference(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reference == nil {
		return &Refusal{http.StatusNotFound, errors.New("the fleet has no reference")}
	}
	f.reference = nil
	return nil
}

func (f *fakeFleet) Measure(_ context.Context, name, device string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.device(name, device); err != nil {
		return "", err
	}
	if f.reference == nil {
		return "", &Refusal{http.StatusConflict, errors.New("the fleet has no reference: set one first")}
	}
	f.measured = append(f.measured, name+"/"+device)
	return fmt.Sprintf("20261124-09000%d-reference", len(f.measured)), nil
}

func (f *fakeFleet) Rebase(_ context.Context, name, device string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.device(name, device); err != nil {
		return err
	}
	if name != "lab-1" {
		return &Refusal{http.StatusConflict, errors.New("it has measured the reference too seldom: 0 of 5 runs")}
	}
	f.rebased = true
	return nil
}

// Rollout is there once an update was asked for.
func (f *fakeFleet) Rollout(context.Context) (*Rollout, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rollout, nil
}

// Update takes any bundle that begins with "signed".
func (f *fakeFleet) Update(_ context.Context, u BoxUpdate) (Rollout, error) {
	text := make([]byte, 6)
	_, err := io.ReadFull(u.Bundle, text)
	_, copied := io.Copy(io.Discard, u.Bundle)
	var large *http.MaxBytesError
	if errors.As(errors.Join(err, copied), &large) {
		return Rollout{}, &Refusal{http.StatusRequestEntityTooLarge, errors.New("the update is too large")}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case string(text) != "signed":
		return Rollout{}, &Refusal{http.StatusUnprocessableEntity, errors.New("update: damaged: not an update bundle")}
	case slices.Contains(u.Boxes, "lab-9"):
		return Rollout{}, gone("lab-9")
	case f.rollout != nil && f.rollout.State == "running":
		return Rollout{}, &Refusal{http.StatusConflict, errors.New("the update to 1.4 goes on")}
	}
	f.asked = u
	at := fleetNow()
	f.rollout = &Rollout{ID: "20261124-090000-k7qm3v", Version: "1.4", State: "running", By: u.By, Began: at, Doing: "0 of 2 boxes updated; lab-1 ends what it carries out " + hostile,
		Boxes: []RolloutBox{{Name: "lab-1", State: "draining", Since: &at}, {Name: "lab-2", State: "waiting"}}}
	return *f.rollout, nil
}

func (f *fakeFleet) StopUpdate(_ context.Context, by string) (Rollout, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rollout == nil || f.rollout.State != "running" {
		return Rollout{}, &Refusal{http.StatusConflict, errors.New("no update goes on")}
	}
	f.rollout.State, f.rollout.Why = "stopped", "stopped by "+by
	return *f.rollout, nil
}

// headOf makes a panel's configuration that of a head.
func headOf(t *testing.T, c setup) (setup, *fakeFleet) {
	t.Helper()
	f := newFakeFleet()
	c.Boxes = f
	return c, f
}
