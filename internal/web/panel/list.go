package panel

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/keep/store"
)

func (p *Panel) list(ctx context.Context, in *listInput) (*listBody, error) {
	jobs, err := p.queue.List(ctx)
	if err != nil {
		return nil, p.internalError(err)
	}
	want, err := in.filter(jobs)
	if err != nil {
		return nil, err
	}
	waiting, ended := p.withoutRun(jobs, want)
	var last *store.Entry // last run of the page before; nil for the first page
	if in.Before != "" {
		if i := slices.IndexFunc(waiting, func(e store.Entry) bool { return e.ID == in.Before }); i >= 0 {
			waiting = waiting[i+1:]
		} else if last, err = p.entry(ctx, in.Before, ended); err != nil {
			return nil, err
		} else {
			waiting = waiting[:0]
		}
	}
	entries, err := p.Store.RunsThat(ctx, want, last, in.Limit+1)
	if err != nil {
		return nil, p.internalError(err)
	}
	for _, e := range ended {
		if last == nil || newestFirst(e, *last) > 0 {
			entries = append(entries, e)
		}
	}
	for i, e := range entries {
		entries[i].State = stateIn(want.InQueue[e.ID], e.State)
	}
	slices.SortStableFunc(entries, newestFirst)
	body := Runs{Runs: append(stillWaiting(waiting, entries), entries...)}
	if len(body.Runs) > in.Limit {
		body.Runs = body.Runs[:in.Limit]
		body.Next = body.Runs[in.Limit-1].ID
	}
	err = p.addWaits(ctx, body.Runs)
	for _, add := range p.places {
		err = errors.Join(err, add(ctx, body.Runs))
	}
	if err != nil {
		return nil, p.internalError(err)
	}
	return &listBody{body}, nil
}

// inQueue says of a state whether the run waits or goes on.
func inQueue(state string) bool { return state == store.StateQueued || state == store.StateRunning }

// waits says what a run waits for, given its state.
func (p *Panel) waits(ctx context.Context, state, id string) (string, error) {
	if !inQueue(state) {
		return "", nil
	}
	all, err := p.queue.Waits(ctx, id)
	return all[id], err
}

// addWaits says of the runs in the queue what they wait for.
func (p *Panel) addWaits(ctx context.Context, runs []store.Entry) error {
	var ids []string
	for _, e := range runs {
		if inQueue(e.State) {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	all, err := p.queue.Waits(ctx, ids...)
	if err != nil {
		return err
	}
	for i, e := range runs {
		runs[i].Waits = all[e.ID]
	}
	return nil
}

// filter is what the request asks for, with the states of the runs in the queue.
func (in *listInput) filter(jobs []store.Job) (store.Filter, error) {
	f := store.Filter{
		Series: store.Series{Name: in.Name, Page: in.Page, Link: in.Link, Device: in.Device, Browser: in.Browser},
		Key:    in.Series, State: in.State, Verdict: in.Verdict, Kind: in.Kind, Since: in.Since, Until: in.Until, InQueue: map[string]string{},
	}
	for _, j := range jobs {
		if inQueue(j.State) {
			f.InQueue[j.ID] = j.State
		}
	}
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return f, huma.Error422UnprocessableEntity("no run is both since and until", &huma.ErrorDetail{
			Location: "query.until", Value: in.Until, Message: "it must be later than since",
		})
	}
	return f, nil
}

// stateOf returns the state of a run, given that in its folder.
func (p *Panel) stateOf(ctx context.Context, id, state string) string {
	if state != store.StateInterrupted {
		return state
	}
	job, err := p.queue.Get(ctx, id)
	if err != nil {
		return state
	}
	return stateIn(job.State, state)
}

// stateIn returns the state of a run, given those in the queue and in its folder: an interrupted run that is
// in the queue will go on.
func stateIn(queue, folder string) string {
	if folder == store.StateInterrupted && inQueue(queue) {
		return queue
	}
	return folder
}

// stillWaiting drops the jobs that have begun since the queue was read: entries lists them.
func stillWaiting(waiting, entries []store.Entry) []store.Entry {
	return slices.DeleteFunc(waiting, func(w store.Entry) bool {
		return slices.ContainsFunc(entries, func(e store.Entry) bool { return e.ID == w.ID })
	})
}

// newestFirst is the sort order of the list.
func newestFirst(a, b store.Entry) int {
	return cmp.Or(b.Wall.Compare(a.Wall), cmp.Compare(b.ID, a.ID))
}

// entry finds the run after which a page of the list begins.
func (p *Panel) entry(ctx context.Context, id string, ended []store.Entry) (*store.Entry, error) {
	if i := slices.IndexFunc(ended, func(e store.Entry) bool { return e.ID == id }); i >= 0 {
		return &ended[i], nil
	}
	e, err := p.Store.Entry(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, huma.Error404NotFound("before: there is no run " + clip(id) + ", so no page follows it; begin again without before")
	}
	if err != nil {
		return nil, p.internalError(err)
	}
	return &e, nil
}

// withoutRun lists the jobs that have no run folder: those that wait or were just taken,
// and those that ended before they had one.
func (p *Panel) withoutRun(jobs []store.Job, want store.Filter) (waiting, ended []store.Entry) {
	waiting = []store.Entry{}
	for _, j := range jobs {
		if p.Store.Has(j.ID) || !want.Matches(j) { // also an interrupted one
			continue
		}
		r := runOf(j)
		e := store.Entry{ID: r.ID, Name: r.Name, Wall: r.Wall, State: r.State, Error: r.Error, Page: r.Page, Summary: r.Summary}
		if inQueue(j.State) {
			waiting = append(waiting, e)
		} else {
			ended = append(ended, e)
		}
	}
	return waiting, ended
}
