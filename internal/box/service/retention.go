package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/credentials"
	"eidetic/internal/keep/retention"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

const (
	// retentionPeriod is how often the policy is applied, and roomPeriod how often the room on the disk is looked at.
	retentionPeriod, roomPeriod = time.Hour, time.Minute
	// steadyFor is how long the wall clock must go as the monotonic one does before evidence
	// may be too old: a box without a battery starts in another year, and learns the time later.
	steadyFor = time.Hour
	// maxDrift is how far the clocks may go apart between two looks.
	maxDrift = 10 * time.Second
	// allSeries is more series than there are.
	allSeries = 1 << 30
)

// retainer deletes evidence as the configuration says; it implements [panel.Retainer].
type retainer struct {
	policy retention.Policy
	runs   *store.Store
	jobs   func(context.Context) ([]store.Job, error) // of the queue
	keeper *automation.Keeper                         // nil keeps no workflows
	// ownRuns are what has runs made for itself.
	ownRuns []ownRuns
	// fleet says which runs the head of the fleet has not got yet, and why they are needed; nil knows none.
	fleet func() map[string]string
	// thinned is told of a run whose evidence was deleted; nil is nobody.
	thinned func(ctx context.Context, run string) error
	tokens  *credentials.Store
	log     *slog.Logger
	clock   steadyClock
	room    func(dir string) (free, total int64, err error)

	mu sync.Mutex // one at a time decides and deletes
}

// newRetainer keeps what the policy of the configuration keeps, and what the parts of the service need.
func (s *Service) newRetainer(
	runs *store.Store, jobs func(context.Context) ([]store.Job, error), keeper *automation.Keeper,
	own []ownRuns, tokens *credentials.Store,
) *retainer {
	r := &retainer{
		policy: s.Config.Retention, runs: runs, jobs: jobs, keeper: keeper, tokens: tokens, log: s.Log, room: roomOn, clock: newSteadyClock(),
		ownRuns: own,
	}
	return r
}

// ownRuns is something that has runs made for itself: bisects and suites.
type ownRuns struct {
	what  string                  // of one of them
	since func() time.Time        // since when runs may be its own, while it goes on; zero for none
	holds func(run string) string // names the one that replays the recording of a run
}

// roomOn returns the bytes that are free on a folder's file system, and all of them.
func roomOn(dir string) (free, total int64, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, 0, err
	}
	return int64(fs.Bavail) * fs.Bsize, int64(fs.Blocks) * fs.Bsize, nil
}

// steadyClock says whether the wall clock has gone as the monotonic one for a while.
type steadyClock struct {
	now   func() time.Time
	since func() time.Duration // the monotonic clock

	begun         bool
	lastWall      time.Time
	last, stepped time.Duration
}

// newSteadyClock returns the clocks of this machine.
func newSteadyClock() steadyClock {
	began := time.Now()
	return steadyClock{now: time.Now, since: func() time.Duration { return time.Since(began) }}
}

// look compares the clocks, and returns the time and whether it can be relied on.
func (c *steadyClock) look() (now time.Time, steady bool) {
	now, elapsed := c.now().Round(0), c.since()
	if drift := now.Sub(c.lastWall) - (elapsed - c.last); !c.begun || drift.Abs() > maxDrift {
		c.stepped = elapsed
	}
	c.begun, c.lastWall, c.last = true, now, elapsed
	return now, elapsed-c.stepped >= steadyFor
}

// Policy implements panel.Retainer.
func (r *retainer) Policy() retention.Policy { return r.policy }

// Preview implements panel.Retainer.
func (r *retainer) Preview(ctx context.Context, p retention.Policy) (panel.Retention, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.decide(ctx, p, true)
}

// Apply implements panel.Retainer.
func (r *retainer) Apply(ctx context.Context, p retention.Policy) (panel.Retention, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.decide(ctx, p, true)
	if err != nil {
		return d, err
	}
	return r.carryOut(ctx, d)
}

// decide reads the runs, and what they are needed for; r.mu is held.
func (r *retainer) decide(ctx context.Context, p retention.Policy, aged bool) (d panel.Retention, err error) {
	d.Policy = p
	needed, err := r.needed(ctx)
	if err != nil {
		return d, err
	}
	all, err := r.runs.Runs(ctx, "", 0)
	if err != nil {
		return d, err
	}
	var list []retention.Run
	for _, e := range all {
		run := retention.Run{ID: e.ID, Wall: e.Wall, Needed: needed[e.ID]}
		if run.Bytes, run.Evidence, err = r.runs.Sizes(e.ID); errors.Is(err, store.ErrNotFound) {
			continue // removed meanwhile
		} else if err != nil {
			return d, err
		}
		if e.State == store.StateRunning {
			run.Needed = "it goes on"
		} else if why := r.madeFor(e); why != "" {
			run.Needed = why
		} else if pin, err := r.runs.Pinned(e.ID); pin != nil || err != nil {
			run.Needed = pinnedBy(pin)
		}
		list = append(list, run)
	}
	now, _ := r.clock.look()
	if d.Free, d.Disk, err = r.room(r.runs.Root()); err != nil {
		return d, err
	}
	d.Decision = retention.Decide(p, list, d.Free, now, aged)
	return d, nil
}

// pinnedBy says who pinned a run, and why. A pin that cannot be read is nil, and one all the same.
func pinnedBy(pin *store.Pin) string {
	switch {
	case pin == nil:
		return "it is pinned, and the pin cannot be read"
	case pin.Why == "":
		return "it is pinned by " + pin.By
	}
	return "it is pinned by " + pin.By + ": " + pin.Why
}

// madeFor says which bisect or suite needs a run, or "".
func (r *retainer) madeFor(e store.Entry) string {
	for _, own := range r.ownRuns {
		if since := own.since(); !since.IsZero() && !e.Wall.Before(since) {
			return "it may be of the " + own.what + " that goes on"
		}
		if id := own.holds(e.ID); id != "" {
			return "the " + own.what + " " + id + " replays its recording"
		}
	}
	return ""
}

// needed says what the evidence of runs is needed for, by their IDs.
func (r *retainer) needed(ctx context.Context) (map[string]string, error) {
	needed := map[string]string{}
	recordings := func(p lab.Plan, why string) {
		for _, name := range p.Archives() {
			if filepath.IsAbs(name) { // the queue has the path of the run's file
				name = filepath.Base(filepath.Dir(name))
			}
			if needed[name] == "" {
				needed[name] = why
			}
		}
	}
	if r.fleet != nil {
		maps.Copy(needed, r.fleet())
	}
	jobs, err := r.jobs(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if j.State == store.StateQueued || j.State == store.StateRunning || j.State == store.StateInterrupted {
			needed[j.ID] = "it is in the queue"
			recordings(j.Plan, "run "+j.ID+" in the queue replays its recording")
		}
	}
	if r.keeper != nil {
		plans, err := r.keeper.Plans(ctx)
		if err != nil {
			return nil, err
		}
		for name, all := range plans {
			for _, p := range all {
				recordings(p, "the workflow "+name+" replays its recording")
			}
		}
		references, err := r.keeper.References(ctx, "", "", allSeries)
		if err != nil {
			return nil, err
		}
		for _, one := range references {
			needed[one.Run] = fmt.Sprintf("it is the reference %s@%d of %s", one.Branch, one.Version, one.Name)
		}
		if err := r.ofAlerts(ctx, needed); err != nil {
			return nil, err
		}
	}
	return needed, r.ofSeries(ctx, needed)
}

// ofAlerts keeps the runs at both sides of the step of each alert that is not over.
func (r *retainer) ofAlerts(ctx context.Context, needed map[string]string) error {
	alerts, err := r.keeper.Alerts(ctx, automation.Filter{Bad: true, Limit: 1000})
	if err != nil {
		return err
	}
	for _, a := range alerts {
		for _, row := range append(a.Rows, a.Row) {
			past, err := r.runs.Past(ctx, row.SeriesKey, 500)
			if err != nil {
				return err
			}
			for i, p := range past {
				if p.ID == row.Run || i+1 < len(past) && past[i+1].ID == row.Run {
					needed[p.ID] = "the open alert " + fmt.Sprint(a.ID) + " is about it"
				}
			}
		}
	}
	return nil
}

// ofSeries keeps the newest run of each series, to look at.
func (r *retainer) ofSeries(ctx context.Context, needed map[string]string) error {
	series, err := r.runs.Series(ctx, "", store.Series{}, allSeries)
	if err != nil {
		return err
	}
	for _, s := range series {
		past, err := r.runs.Past(ctx, s.Key, 1)
		if err != nil {
			return err
		}
		for _, p := range past {
			if needed[p.ID] == "" {
				needed[p.ID] = "it is the newest of its series"
			}
		}
	}
	return nil
}

// carryOut deletes what was decided; r.mu is held. A run that is used just now is left for the next time.
func (r *retainer) carryOut(ctx context.Context, d panel.Retention) (panel.Retention, error) {
	done, frees := []retention.Deletion{}, int64(0)
	var errs error
	for _, one := range d.Delete {
		if ctx.Err() != nil {
			errs = ctx.Err()
			break
		}
		freed, err := r.runs.Thin(one.Run, one.Why, r.clock.now())
		frees += freed
		if err == nil && r.thinned != nil {
			err = r.thinned(ctx, one.Run)
		}
		switch {
		case errors.Is(err, store.ErrHeld), errors.Is(err, store.ErrRead), errors.Is(err, store.ErrPinned), errors.Is(err, store.ErrNotFound):
			r.log.Info("the evidence of a run stays for now", "run", one.Run, "why", err)
		case err != nil:
			errs = errors.Join(errs, err)
		default:
			r.log.Info("the evidence of a run was deleted", "run", one.Run, "why", one.Why, "bytes", freed)
			done = append(done, one)
		}
	}
	d.Delete, d.Frees = done, frees
	return d, errs
}

// automatic applies the policy of the configuration, and notes in the log what it deleted.
func (r *retainer) automatic(ctx context.Context, aged bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, steady := r.clock.look()
	d, err := r.decide(ctx, r.policy, aged && steady)
	if err == nil {
		d, err = r.carryOut(ctx, d)
	}
	if err != nil && ctx.Err() == nil {
		r.log.Error("retention", "error", err)
	}
	if len(d.Delete) == 0 || err != nil && d.Frees == 0 {
		return
	}
	var names []string
	for _, one := range d.Delete {
		names = append(names, one.Run)
	}
	r.tokens.Record(credentials.Identity{Name: "retention"},
		fmt.Sprintf("deleted the evidence of %d runs, %d MB: %s", len(names), d.Frees/1_000_000, strings.Join(names, " ")), "this machine", 0)
}

// makeRoom applies the policy at once, because the disk is full. It returns false where there is none.
func (r *retainer) makeRoom(ctx context.Context) bool {
	if r == nil || !r.policy.Set() {
		return false
	}
	r.automatic(ctx, true)
	return true
}

// work applies the policy again and again until ctx is done.
func (r *retainer) work(ctx context.Context) {
	if !r.policy.Set() {
		return
	}
	ticker := time.NewTicker(roomPeriod)
	defer ticker.Stop()
	r.automatic(ctx, true)
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		r.mu.Lock()
		r.clock.look() // often, so that every step of the clock is seen
		r.mu.Unlock()
		free, _, err := r.room(r.runs.Root())
		if tight := err == nil && float64(free) < r.policy.KeepFreeGB*1e9; tight || time.Since(last) >= retentionPeriod {
			last = time.Now()
			r.automatic(ctx, true)
		}
	}
}
