package service

import (
	"context"
	"sync"
	"time"

	"eidetic/internal/base/tempdir"
	"eidetic/internal/box/doctor"
	"eidetic/internal/plan"
	"eidetic/internal/run/errand"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/sandbox"
	"eidetic/internal/run/seat"
	"eidetic/internal/web/panel"
)

// virtualDevice is a browser on this machine, in namespaces that are made for
// each run. The browser can reach only the box, and the box only the connections
// that this process makes for it while it records.
type virtualDevice struct {
	data     string
	reach    sandbox.Reach // of origins
	commands sandbox.Commands
	// noSandbox is that of the configuration.
	noSandbox bool
	// browsers are those of the configuration.
	browsers plan.Browsers
	apps     plan.Apps
	// check returns what the machine lacks; it makes namespaces to find out whether it may.
	check func(context.Context) error

	mu   sync.Mutex
	good time.Time // when check last returned nil
	busy bool      // whether a run is in progress

	seat seat.Seat // at which people see its runs
}

func (v *virtualDevice) place() *seat.Seat { return &v.seat }

// forErrands has no screen and no network: the device is born in a run.
func (v *virtualDevice) forErrands() errand.Device {
	return errand.Device{Name: "virtual", Seat: &v.seat}
}

// goodFor is how long a good result of check is believed.
const goodFor = time.Minute

func (v *virtualDevice) describe(ctx context.Context) panel.Device {
	d := panel.Device{Name: "virtual", Kind: "virtual", Ready: true, Screen: "a virtual screen of this machine",
		Browsers: append(doctor.Browsers(), v.browsers.Names()...)}
	if err := v.problem(ctx); err != nil {
		d.Ready, d.Problem = false, err.Error()
	}
	return d
}

// problem returns what the machine lacks. Every open page of the panel asks every
// few seconds, so the check is not made during a run, which it would disturb.
func (v *virtualDevice) problem(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.busy || time.Since(v.good) < goodFor {
		return nil
	}
	err := v.check(ctx)
	if err == nil {
		v.good = time.Now()
	}
	return err
}

func (v *virtualDevice) setBusy(busy bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.busy = busy
}

func (*virtualDevice) refuses(p plan.Checked) error { return execute.CheckVirtual(p) }

func (v *virtualDevice) carryOut(ctx context.Context, id string, p plan.Checked, news execute.News) error {
	back, err := v.seat.Take(ctx, news.Waits)
	if err != nil {
		return err
	}
	defer back()
	v.setBusy(true)
	defer v.setBusy(false)
	reach := v.reach
	if len(p.Opened) > 0 {
		reach.OpenHosts(ctx, p.Opened)
	}
	t := sandbox.Task{
		Live: v.seat.Live, ID: id, Plan: p.Plan, Out: v.data, Origins: sandbox.OriginsOutside, Reach: reach, NoSandbox: v.noSandbox,
		Browsers: v.browsers, Apps: v.apps, KeepProcessors: true, // the runner holds them
	}
	if kind, err := sandbox.OriginsOf(p.Plan); err != nil {
		return err
	} else if kind == sandbox.OriginsSample {
		t.Origins = kind
	}
	if len(p.Contents) > 0 {
		folder, remove, err := tempdir.Make("", "eidetic-plan-")
		if err != nil {
			return err
		}
		defer remove()
		if err := plan.Unpack(folder, p.Contents); err != nil {
			return err
		}
		t.Files, t.Plan.Files = folder, nil
	}
	return t.RunWithEvents(ctx, v.commands, news)
}
