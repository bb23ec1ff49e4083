package experiment

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/internal/lab"
)

// TestConditions: a trial waits until the device is cool enough, is invalid where it gets too hot within the trial or
// never cools down, and the run ends where the device does not tell what the plan asks for.
func TestConditions(t *testing.T) {
	hot, cool, charge := 41.0, 33.0, 80.0
	at := func(degrees float64, thermal string) lab.Conditions {
		return lab.Conditions{BatteryC: &degrees, BatteryPercent: &charge, Thermal: thermal}
	}
	for _, c := range []struct {
		name     string
		limits   lab.Limits
		readings []lab.Conditions // the last one stays
		want     string           // of the trial's first reason
		ends     string           // of the run's error
	}{
		{name: "cool", limits: lab.Limits{BatteryMaxC: 35}, readings: []lab.Conditions{at(cool, "none")}},
		{name: "waits", limits: lab.Limits{BatteryMaxC: 35}, readings: []lab.Conditions{at(hot, "light"), at(hot, "none"), at(cool, "none")}},
		{name: "never", limits: lab.Limits{BatteryMaxC: 35, Wait: 20}, readings: []lab.Conditions{at(hot, "none")},
			want: "within 20s: the battery has 41.0 °C, and at most 35 °C are asked for"},
		{name: "heats", limits: lab.Limits{BatteryMaxC: 35}, readings: []lab.Conditions{at(cool, "none"), at(hot, "none")},
			want: "at the trial's end the battery has 41.0 °C"},
		{name: "throttled", limits: lab.Limits{Thermal: "none"}, readings: []lab.Conditions{at(cool, "none"), at(cool, "moderate")},
			want: "at the trial's end the device slows itself down because of its heat (thermal: moderate)"},
		{name: "kept without limits", readings: []lab.Conditions{at(hot, "severe")}},
		{name: "untold", limits: lab.Limits{Power: "usb"}, readings: []lab.Conditions{at(cool, "none")},
			ends: "does not tell what power needs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{changes: []time.Duration{200 * time.Millisecond}}
				r := w.runner()
				asked := 0
				r.Conditions = func(context.Context) (lab.Conditions, error) {
					asked++
					return c.readings[min(asked, len(c.readings))-1], nil
				}
				p := plan()
				p.Limits = c.limits
				trial, err := r.Trial(t.Context(), p, 1, t.TempDir())
				if c.ends != "" {
					if err == nil || !strings.Contains(err.Error(), c.ends) {
						t.Errorf("Trial() = %v; want an error with %q", err, c.ends)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case c.want == "" && !trial.Valid:
					t.Errorf("the trial is invalid: %q", trial.Invalid)
				case c.want != "" && (trial.Valid || !strings.Contains(trial.Invalid[0], c.want)):
					t.Errorf("the trial is valid: %t, %q; want %q", trial.Valid, trial.Invalid, c.want)
				case trial.Conditions == nil:
					t.Error("the trial keeps no conditions")
				}
				if asked < len(c.readings) {
					t.Errorf("the device was asked %d times; want at least %d", asked, len(c.readings))
				}
			})
		})
	}
	r := (&world{}).runner()
	if err := r.awaitConditions(t.Context(), Plan{Limits: lab.Limits{Thermal: "none"}}, &lab.Trial{}); err == nil || IsBroken(err) {
		t.Errorf("limits of a device that tells nothing: %v; want an error that ends the run", err)
	}
	r.Conditions = func(context.Context) (lab.Conditions, error) { return lab.Conditions{}, errors.New("adb: no phone") }
	if err := r.awaitConditions(t.Context(), Plan{}, &lab.Trial{}); !IsBroken(err) {
		t.Errorf("a device that is gone: %v; want an error that ends the trial", err)
	}
}
