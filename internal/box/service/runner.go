package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/experiment"
	"eidetic/internal/run/frequency"
	"eidetic/systemd"
)

// runner carries out the runs of the queue on the service's devices.
type runner struct {
	data     string
	runs     *store.Store
	devices  *deviceList
	notifier *systemd.Notifier
	disk     *disk // nil is one that is well
	retainer *retainer
	browsers plan.Browsers // of the configuration
	apps     plan.Apps
	// processors are held at one frequency during runs; nil leaves them as they are.
	processors *frequency.Machine
	log        *slog.Logger
	head       bool // boxes carry the runs out, each with the browsers of its own admin
}

// Accept implements runqueue.Runner.
func (r *runner) Accept(ctx context.Context, p lab.Plan) (lab.Plan, error) {
	if err := r.disk.refusal(); err != nil {
		if !r.retainer.makeRoom(ctx) {
			return p, err
		}
		r.disk.again()
		if err := r.disk.refusal(); err != nil {
			return p, err
		}
	}
	if p.Device == "" {
		all := r.devices.describe(ctx)
		if len(all) == 0 {
			return p, errors.New("there is no device: connect one to a port of the box")
		}
		p.Device = all[0].Name
	}
	d := r.devices.get(p.Device)
	if d == nil {
		return p, fmt.Errorf("device: there is no %q; there are: %s", p.Device, strings.Join(r.devices.list(), ", "))
	}
	if p.On != nil {
		return p, errors.New("on: this is one box; only the head of a fleet chooses among several (appliance head)")
	}
	if p.Live {
		return p, errors.New("live: the box has no such runs; appliance demo --live makes one")
	}
	checked, err := r.resolve(p)
	if err == nil {
		err = d.refuses(checked)
	}
	if err != nil {
		return p, err
	}
	if now := d.describe(ctx); !now.Ready {
		return p, fmt.Errorf("device %s: %s", p.Device, now.Problem)
	}
	return p, nil
}

// Run implements runqueue.Runner.
func (r *runner) Run(ctx context.Context, id string, p lab.Plan, progress func(runqueue.Progress)) error {
	if err := r.awaitRoom(ctx, progress); err != nil {
		return err
	}
	asked, err := r.resolve(p)
	if err != nil {
		return err
	}
	progress(runqueue.Progress{Doing: "waiting for the device"})
	d, err := r.await(ctx, p.Device)
	if err != nil {
		return err
	}
	if r.processors != nil {
		release, told, err := r.processors.Hold()
		if told != "" {
			progress(runqueue.Progress{Doing: "the processors have " + told, Of: asked.Total()})
		}
		if err != nil {
			r.log.Warn("the processors' frequency is left as it is", "error", err)
		}
		defer func() {
			if err := release(); err != nil {
				r.log.Error("the processors' frequency is not as it was before the run", "error", err)
			}
		}()
	}
	var pace experiment.Pace
	watch := &filmWatch{notifier: r.notifier, name: "capture " + p.Device}
	defer watch.hear(execute.FilmEnds)
	err = d.carryOut(ctx, id, asked, execute.News{
		Say:  func(text string) { progress(runqueue.Progress{Doing: text, Of: asked.Total()}) },
		Step: func(s experiment.Step) { progress(progressOf(s, asked.Plan, &pace)) },
		Film: watch.hear,
	})
	if wrong := r.disk.problem(); err != nil && ctx.Err() == nil && wrong != nil {
		err = fmt.Errorf("%w; %w", wrong, err)
	}
	return errors.Join(err, r.conclude(ctx, id, err))
}

// awaitRoom returns when a run can be written. A disk that has filled up since the runs in the queue were accepted is no
// reason to give them up, one after the other: they wait until somebody has made room.
func (r *runner) awaitRoom(ctx context.Context, progress func(runqueue.Progress)) error {
	if r.disk.problem() != nil && r.retainer.makeRoom(ctx) {
		r.disk.again()
	}
	for wrong := r.disk.problem(); wrong != nil; wrong = r.disk.problem() {
		progress(runqueue.Progress{Doing: "waiting: " + wrong.Error()})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(diskPeriod):
		}
	}
	return nil
}

// conclude writes into the run's folder how a run ended that could not write it
// itself: the process that measured was killed, or the disk was full.
func (r *runner) conclude(ctx context.Context, id string, cause error) error {
	if cause == nil || !r.runs.Has(id) {
		return nil
	}
	reason := cause.Error()
	if ctx.Err() != nil {
		reason = "it was stopped before it was done"
	}
	return execute.Conclude(filepath.Join(r.runs.Root(), "runs", id), reason)
}

// deviceLimit is how long a run waits for its device: after a restart the box has
// to find out the roles of its ports first.
const deviceLimit = 2 * time.Minute

// await returns a device when it is ready.
func (r *runner) await(ctx context.Context, name string) (measurable, error) {
	ctx, cancel := context.WithTimeout(ctx, deviceLimit)
	defer cancel()
	ticker := time.NewTicker(updatePeriod)
	defer ticker.Stop()
	for {
		problem := "it is no longer there"
		if d := r.devices.get(name); d != nil {
			now := d.describe(ctx)
			if now.Ready {
				return d, nil
			}
			problem = now.Problem
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("device %s: %s", name, problem)
		case <-ticker.C:
		}
	}
}

// progressOf returns a step as progress; steps before the first trial are the recording's.
func progressOf(s experiment.Step, p lab.Plan, pace *experiment.Pace) runqueue.Progress {
	if s.Trial == 0 {
		return runqueue.Progress{Of: p.Total(), Doing: "recording: " + s.Doing}
	}
	now := runqueue.Progress{Trial: s.Trial, Of: s.Of, Doing: cmp.Or(s.Note, s.Doing)}
	if left, known := pace.Left(s.Trial, s.Of, time.Now()); known {
		seconds := left.Round(time.Second).Seconds()
		now.Left = &seconds
	}
	return now
}

// resolve checks a plan with the files that were sent with it, and names the files of its recordings. The plan may name
// what its scope may name now, whenever it was asked for.
func (r *runner) resolve(p lab.Plan) (plan.Checked, error) {
	o := plan.Options{From: &plan.Folder{Sent: p.Files}, Scope: plan.ScopeOf(p), Browsers: r.browsers, Apps: r.apps, Elsewhere: r.head}
	if r.head { // no box obeys the admin of another machine
		o.Scope = plan.ScopeRun
	}
	asked, err := plan.Check(plan.Request{Plan: p}, o)
	if err != nil {
		return asked, err
	}
	return asked.WithArchives(func(field, name string) (string, error) {
		file, err := r.archive(name)
		if err != nil {
			err = &lab.FieldError{Path: field, Err: err}
		}
		return file, err
	})
}

// archive finds a recording by its file name or by the run that made it.
func (r *runner) archive(name string) (string, error) {
	if !store.ValidID(name) { // a valid ID is one element of a path
		return "", fmt.Errorf("%q is neither a file name nor the ID of a run", name)
	}
	for _, file := range []string{filepath.Join(r.data, UploadsDir, name), filepath.Join(r.runs.Root(), "runs", name, execute.ArchiveFile)} {
		info, err := os.Lstat(file)
		if err == nil && info.Mode().IsRegular() {
			return file, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
			return "", err
		}
	}
	return "", fmt.Errorf("there is no recording %q, and no run of that ID with one", name)
}

// filmWatch feeds the watchdog while a screen is recorded.
type filmWatch struct {
	notifier *systemd.Notifier
	name     string
	pulse    *systemd.Pulse
}

// hear gets the news of the recorder; it is called by one goroutine at a time.
func (w *filmWatch) hear(news execute.FilmNews) {
	switch {
	case news == execute.FilmBegins && w.pulse == nil:
		// The name is free: runs of one device follow one another.
		w.pulse, _ = w.notifier.Subsystem(w.name)
	case news == execute.FilmTurns && w.pulse != nil:
		w.pulse.Tick()
	case news == execute.FilmEnds && w.pulse != nil:
		w.pulse.End()
		w.pulse = nil
	}
}
