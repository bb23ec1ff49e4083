package automation

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Bounds of what is looked at for runs that have ended.
const (
	newestRuns = 500
	mostTold   = 20_000
)

// Finished is what a run.finished says.
type Finished struct {
	Run      string    `json:"run"` // identifier
	Name     string    `json:"name,omitempty"`
	Page     string    `json:"page,omitempty"`
	Began    time.Time `json:"began"`
	Elapsed  float64   `json:"elapsed_s"`
	State    string    `json:"state"` // done, failed or interrupted
	Error    string    `json:"error,omitempty"`
	Trials   int       `json:"trials"`
	Valid    int       `json:"valid"`
	Verdict  string    `json:"verdict,omitempty"` // of a run with two arms
	Headline string    `json:"headline,omitempty"`
	Detail   string    `json:"detail,omitempty"`
	From     *From     `json:"from,omitempty"`
	API      string    `json:"api"` // path on the box
	Report   string    `json:"report,omitempty"`
}

// From is where a run came from, in an event.
type From struct {
	Workflow string `json:"workflow"`
	Version  int    `json:"version"`
	Schedule string `json:"schedule,omitempty"`
	Revision string `json:"revision,omitempty"`
}

func fromOf(o *lab.Origin) *From {
	if o == nil {
		return nil
	}
	return &From{o.Workflow, o.Version, o.Schedule, o.Revision}
}

// knowAll takes the runs that there are for told: a box that gets this software has years of
// them.
func (k *Keeper) knowAll(ctx context.Context) error {
	ended, err := k.ended(ctx)
	if err != nil {
		return err
	}
	return k.in(ctx, "note the runs", func(tx *sql.Tx) error {
		for _, e := range ended {
			if err := k.told(ctx, tx, e.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

func (k *Keeper) told(ctx context.Context, tx *sql.Tx, id string) error {
	return execAll(ctx, tx, []statement{
		{`INSERT OR IGNORE INTO told (run, at) VALUES (?, ?)`, []any{id, stamp(k.Now())}},
		{`DELETE FROM told WHERE rowid <= (SELECT max(rowid) FROM told) - ?`, []any{mostTold}},
	})
}

// ended lists the newest runs that have ended, the oldest first. A run that is in the queue
// goes on, whatever its folder says.
func (k *Keeper) ended(ctx context.Context) ([]store.Entry, error) {
	jobs, err := k.Runs.List(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := k.Store.RunsAfter(ctx, nil, newestRuns)
	if err != nil {
		return nil, err
	}
	// The queue is read again: a run that was in it and in no folder may have got one since.
	going := map[string]bool{}
	for _, j := range jobs {
		going[j.ID] = j.State == store.StateQueued || j.State == store.StateRunning
	}
	var out []store.Entry
	for _, e := range entries {
		if e.Kind == "" && !going[e.ID] && e.State != store.StateRunning && e.State != store.StateQueued {
			out = append(out, e)
		}
	}
	for _, j := range jobs {
		if !going[j.ID] && !k.Store.Has(j.ID) {
			out = append(out, store.Entry{ID: j.ID, Name: j.Plan.Name, Wall: j.Created, State: j.State, Error: j.Error, Page: j.Plan.FirstPage()})
		}
	}
	slices.SortFunc(out, func(a, b store.Entry) int { return a.Wall.Compare(b.Wall) })
	return out, nil
}

// Tell tells of the runs that have ended and were not told of.
func (k *Keeper) Tell(ctx context.Context) error {
	ended, err := k.ended(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range ended {
		var known int
		if err := k.db.QueryRowContext(ctx, `SELECT count(*) FROM told WHERE run = ?`, e.ID).Scan(&known); err != nil {
			return fmt.Errorf("read what was told: %w", err)
		}
		if known == 0 {
			if err := k.tell(ctx, e); err != nil {
				errs = append(errs, fmt.Errorf("run %s: %w", e.ID, err))
			}
		}
	}
	return errors.Join(errs...)
}

// tell raises the alerts that a run brings, and publishes its end with them, all at once.
func (k *Keeper) tell(ctx context.Context, e store.Entry) error {
	f := Finished{Run: e.ID, Name: e.Name, Page: e.Page, Began: e.Wall, Elapsed: e.Elapsed, State: e.State, Error: e.Error, Trials: e.Trials,
		Valid: e.Valid, API: "/api/v1/runs/" + e.ID}
	if e.Comparison != nil {
		f.Verdict, f.Headline, f.Detail = e.Comparison.Verdict, e.Comparison.Headline, e.Comparison.Detail
	}
	if e.Report {
		f.Report = "/runs/" + e.ID + "/report.html"
	}
	var steps []found
	if run, err := k.Store.Run(e.ID); err == nil {
		f.From = fromOf(run.Plan.From)
		if e.State == store.StateDone {
			if steps, err = k.look(ctx, run); err != nil {
				return err
			}
		}
	} else if job, err := k.Runs.Get(ctx, e.ID); err == nil {
		f.From = fromOf(job.Plan.From)
	}
	err := k.in(ctx, "tell of a run", func(tx *sql.Tx) error {
		if err := k.told(ctx, tx, e.ID); err != nil {
			return err
		}
		if err := k.publish(ctx, tx, Event{EventFinished, k.Now().UTC(), f}); err != nil {
			return err
		}
		return k.raise(ctx, tx, steps)
	})
	k.Stir()
	return err
}
