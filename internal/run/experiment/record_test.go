package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/internal/lab"
)

// TestRecord: what interrupts the pictures of a load that is recorded spoils it between the start and the end only.
func TestRecord(t *testing.T) {
	page := []time.Duration{200 * time.Millisecond, 900 * time.Millisecond}
	const s, ms = time.Second, time.Millisecond
	for name, c := range map[string]struct {
		world   world
		spoilt  string
		ended   lab.End
		invalid string
		least   time.Duration // from the birth to the key
	}{
		"no interruption":            {world: world{changes: page}, ended: lab.EndStable},
		"before the start":           {world: world{changes: page, silences: []silence{{from: 100 * ms, to: 8 * s}}}, ended: lab.EndStable, least: 8 * s},
		"twice before the start":     {world: world{changes: page, silences: []silence{{from: 100 * ms, to: s}, {from: 1500 * ms, to: 3 * s}}}, ended: lab.EndStable, least: 3 * s},
		"on the green page":          {world: world{changes: page, silences: []silence{{from: 800 * ms, to: 7 * s}}}, ended: lab.EndStable, least: 7 * s},
		"while the page loads":       {world: world{changes: page, silences: []silence{{key: true, from: 300 * ms, to: 6 * s}}}, spoilt: "interrupted: it was silent"},
		"while the page gets still":  {world: world{changes: page, silences: []silence{{key: true, from: 2 * s, to: 3 * s}}}, spoilt: "interrupted: it was silent"},
		"when the page was at rest":  {world: world{changes: page, silences: []silence{{key: true, from: 2450 * ms, to: 9 * s}}}, ended: lab.EndStable},
		"before the start, for ever": {world: world{changes: page, silences: []silence{{from: 100 * ms, to: time.Hour}}}, spoilt: "green synchronisation page within 45s: it was silent"},
		"a device that ends":         {world: world{changes: page, diesAfter: 300 * ms}, spoilt: "the browser crashed"},
		"a browser without a page":   {world: world{slowBy: time.Hour}, invalid: "did not show the green synchronisation page"},
		"a page that never shows":    {world: world{}, ended: lab.EndLimit, invalid: "did not come to rest"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := c.world
				trial, err := w.runner().Record(t.Context(), plan(), dir)
				var spoilt *SpoiltError
				if c.spoilt != "" {
					if !errors.As(err, &spoilt) || !strings.Contains(err.Error(), c.spoilt) {
						t.Errorf("Record() = %v, want a SpoiltError with %q", err, c.spoilt)
					}
					if w.analysed > 0 {
						t.Error("what is recorded again was measured")
					}
					return
				}
				if err != nil || trial.Ended != c.ended || !strings.Contains(strings.Join(trial.Invalid, "; "), c.invalid) {
					t.Fatalf("Record() = a load that ended by %q, invalid because %q, %v; want %q, %q", trial.Ended, trial.Invalid, err, c.ended, c.invalid)
				}
				if took := w.pressed.Sub(w.born); w.pressed != 0 && took < c.least+plan().Settle/2 {
					t.Errorf("the start was %v after the birth, want it after the silence and some stillness: %v", took, c.least+plan().Settle/2)
				}
			})
		})
	}
}

// TestFullDisk: when the disk takes no more of the film, neither a recording nor a trial is tried again, and the error
// blames nobody else.
func TestFullDisk(t *testing.T) {
	for name, try := range map[string]func(ctx context.Context, r *Runner, dir string) error{
		"recording": func(ctx context.Context, r *Runner, dir string) error {
			_, err := r.Record(ctx, plan(), dir)
			return err
		},
		"trial": func(ctx context.Context, r *Runner, dir string) error {
			_, err := r.Trial(ctx, plan(), 1, dir)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := world{changes: []time.Duration{200 * time.Millisecond}, full: fmt.Errorf("write screen.reel: %w", syscall.ENOSPC)}
				err := try(t.Context(), w.runner(), dir)
				var spoilt *SpoiltError
				if !errors.Is(err, syscall.ENOSPC) || errors.As(err, &spoilt) || IsBroken(err) || !strings.Contains(err.Error(), "make room") {
					t.Errorf("the error is %v; want a final one that says to make room", err)
				}
			})
		})
	}
}

// briefJourney is a journey of one step, which ends at an instant after the key.
type briefJourney time.Duration

func (j briefJourney) Begin(Film) (Play, error) { return j, nil }

func (j briefJourney) Run(ctx context.Context, s Scene) error {
	return lab.Wait(ctx, s.Navigate.Latest.Add(time.Duration(j)).Sub(now()))
}

// TestListenOnAfterOtherEnds: what a browser asks for once a journey has come to its end, or a page has said that it has
// loaded, is recorded with it: a replay whose end is seen a little later asks for it too.
func TestListenOnAfterOtherEnds(t *testing.T) {
	const ms = time.Millisecond
	done := func(since time.Duration) *lab.Event { return doneAfter(600*ms, since) }
	for name, c := range map[string]struct {
		world   world
		journey Journey
		done    func(time.Duration) *lab.Event
		ended   lab.End
	}{
		"a journey": {journey: briefJourney(700 * ms), ended: lab.EndSteps},
		"lab.done":  {done: done, ended: lab.EndDone},
		"red":       {world: world{final: lab.SyncRed()}, ended: lab.EndRed},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := c.world
				w.changes = []time.Duration{200 * ms, 600 * ms}
				w.traffic = func(since time.Duration) Traffic {
					traffic := Traffic{LastActivity: w.pressed.Add(300 * ms)}
					if since >= 1500*ms { // the icon of the tab, say
						traffic.LastActivity = w.pressed.Add(1500 * ms)
					}
					if c.done != nil {
						traffic.Done = c.done(since)
					}
					return traffic
				}
				r, p := w.runner(), plan()
				if r.Journey = c.journey; c.journey != nil {
					p.Steps = []lab.Step{{Name: "open", Open: p.Page}}
				}
				trial, err := r.Record(t.Context(), p, dir)
				if err != nil || trial.Ended != c.ended {
					t.Fatalf("Record() ended by %q, %v; want %q", trial.Ended, err, c.ended)
				}
				end := trial.Events[len(trial.Events)-1].Latest.Sub(w.pressed)
				if end < 3300*ms || end > 4600*ms || w.rested < 600*ms || w.rested > 800*ms {
					t.Errorf("recorded until %v, and at rest after %v; want two times the stillness more, and 0.6s to 0.8s", end, w.rested)
				}
			})
		})
	}
}

// TestListenOn: what a page at rest asks for late is recorded with it, above all what its service worker loads.
func TestListenOn(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for name, c := range map[string]struct {
		workers int
		asks    []time.Duration // after the key
		end     time.Duration   // of the recording
	}{
		"nothing more":                 {asks: []time.Duration{300 * ms}, end: 3300 * ms},
		"what comes late":              {asks: []time.Duration{300 * ms, 2500 * ms}, end: 5400 * ms},
		"polls that never end":         {asks: []time.Duration{300 * ms, 2500 * ms, 4 * s, 5 * s, 6 * s, 7 * s, 8 * s}, end: 5400 * ms},
		"what a service worker loads":  {workers: 1, asks: []time.Duration{300 * ms, 7 * s}, end: 12400 * ms},
		"a service worker's own polls": {workers: 1, asks: []time.Duration{300 * ms, 7 * s, 11 * s, 13 * s}, end: 12400 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := world{changes: []time.Duration{200 * ms, 900 * ms}}
				w.traffic = func(since time.Duration) Traffic {
					last := c.asks[0]
					for _, at := range c.asks {
						if at <= since {
							last = at
						}
					}
					return Traffic{LastActivity: w.pressed.Add(last), Workers: c.workers}
				}
				trial, err := w.runner().Record(t.Context(), plan(), dir)
				if err != nil || trial.Ended != lab.EndStable {
					t.Fatalf("Record() ended by %q, %v", trial.Ended, err)
				}
				end := trial.Events[len(trial.Events)-1].Latest.Sub(w.pressed)
				if end < c.end-200*ms || end > c.end+200*ms || w.rested < 2300*ms || w.rested > 2600*ms {
					t.Errorf("recorded until %v, and at rest after %v; want %v and 2.4s", end, w.rested, c.end)
				}
			})
		})
	}
}

// TestRecordWhatNoBrowserShows: no picture changes after an empty answer or a file to save, and the recording ends all the same.
func TestRecordWhatNoBrowserShows(t *testing.T) {
	for unseen, want := range map[bool]lab.End{true: lab.EndStable, false: lab.EndLimit} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := world{}
			w.traffic = func(time.Duration) Traffic {
				return Traffic{Requests: 1, LastActivity: w.pressed.Add(300 * time.Millisecond), Unseen: unseen}
			}
			trial, err := w.runner().Record(t.Context(), plan(), dir)
			if err != nil || trial.Ended != want {
				t.Errorf("unseen %v: Record() ended by %q, %v; want %q", unseen, trial.Ended, err, want)
			}
		})
	}
}
