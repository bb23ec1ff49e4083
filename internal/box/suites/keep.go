package suites

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/suite"
)

// file holds what is known of a result in its folder, beside the result's own file.
const file = "request.json"

// maxFile bounds that file, and that of a suite.
const maxFile = 1 << 20

// kept is a result with its request.
type kept struct {
	Result
	ownruns.Held
	request  Request
	archives []string // recordings that the suite's plans name

	suite *suite.Suite
	// found is the result's own record: held while it is measured, and else read when it is asked for.
	found *suite.Result
	told  *told // what found says; nil if that was not computed since it changed
}

// About implements [ownruns.Errand].
func (b *kept) About() (id, state string, made time.Time) { return b.ID, b.State, b.Made }

// Owner implements [ownruns.Errand].
func (b *kept) Owner() string { return b.By }

// Replays implements [ownruns.Errand].
func (b *kept) Replays(name string) bool { return slices.Contains(b.archives, name) }

// told is what a result says.
type told struct {
	entries []Entry
	table   *suite.Table
	known   []suite.Known
}

// content is what the file has.
type content struct {
	Result   Result   `json:"result"`
	Request  asked    `json:"request"`
	Archives []string `json:"archives,omitempty"`
	Version  int      `json:"version"`
}

// asked is what a request has besides its result, on the disk.
type asked struct {
	On    *lab.On    `json:"on,omitempty"`
	Scope plan.Scope `json:"scope"`
	Opens bool       `json:"opens,omitempty"`
}

// save writes what is known of the result. Who calls it holds the keeper's lock.
func (b *kept) save() error {
	text, err := json.Marshal(content{b.Result, asked{b.request.On, b.request.Scope, b.request.Opens}, b.archives, 1})
	if err == nil {
		err = atomicfile.WriteFile(filepath.Join(b.Dir, file), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep result: %w", err)
	}
	return nil
}

// saveFound writes the result's own record.
func (b *kept) saveFound() error {
	if err := b.found.Write(b.Dir); err != nil {
		return fmt.Errorf("keep result: %w", err)
	}
	return nil
}

// readKept reads a result. One that was going on waits.
func readKept(dir string) (*kept, error) {
	var c content
	if err := ownruns.ReadFile(filepath.Join(dir, file), maxFile, &c); err != nil {
		return nil, err
	}
	if c.Version != 1 || c.Result.ID != filepath.Base(dir) {
		return nil, fmt.Errorf("%s is of version %d and result %.40q", file, c.Version, c.Result.ID)
	}
	if err := suite.CheckBrowsers(c.Result.Browsers); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r := c.Result
	b := &kept{Result: r, Held: ownruns.Held{Dir: dir}, archives: c.Archives, request: Request{
		Suite: r.Suite, Browsers: r.Browsers, Only: r.Only, Trials: r.Trials, Seed: r.Seed, Device: r.Device, Spread: r.Spread, By: r.By,
		On: c.Request.On, Scope: c.Request.Scope, Opens: c.Request.Opens,
	}}
	if b.IsGoing() {
		b.State, b.Now = ownruns.StateWaiting, nil
	}
	return b, nil
}

// open reads the result's own record, if it is not held.
func (b *kept) open() error {
	if b.found != nil {
		return nil
	}
	r, err := suite.ReadResult(b.Dir)
	if err != nil {
		return err
	}
	s, err := r.Source()
	if err != nil {
		return err
	}
	b.found, b.suite = r, s
	return nil
}

// rest lets go of the record of a result that is not measured any more; it is on the disk.
func (b *kept) rest() { b.found, b.suite = nil, nil }

// whole is the result with what it says. Who calls it holds the keeper's lock.
func (b *kept) whole() (Result, error) {
	if b.told == nil {
		if err := b.open(); err != nil {
			return Result{}, err
		}
		t := &told{entries: []Entry{}}
		for _, o := range b.found.Entries {
			e := entryOf(o)
			e.Films = filmsOf(b.suite.Entries[b.suite.Index(o.Entry)], o)
			t.entries = append(t.entries, e)
		}
		var err error
		if t.table, err = b.found.Table(); err != nil {
			return Result{}, err
		}
		if t.known, err = b.found.Knowns(); err != nil {
			return Result{}, err
		}
		b.told = t
		if !b.IsGoing() && b.Cancel == nil {
			b.rest()
		}
	}
	r := b.Result
	r.Entries, r.Table, r.Known = b.told.entries, b.told.table, b.told.known
	return r, nil
}

func entryOf(o suite.Outcome) Entry {
	e := Entry{Entry: o.Entry, Run: o.Run, State: o.State, Error: o.Error, Trials: len(o.Trials)}
	for _, t := range o.Trials {
		if t.Valid {
			e.Valid++
		}
	}
	return e
}

// filmsOf names for each browser the valid trial whose first mark is in the middle.
func filmsOf(e suite.Entry, o suite.Outcome) (films []Film) {
	names := e.Names() // a suite's check sees to it that there is one
	for _, browser := range o.Browsers {
		var valid []suite.Trial
		for _, t := range o.Trials {
			if _, has := t.Values[names[0]]; has && t.Valid && t.Browser == browser {
				valid = append(valid, t)
			}
		}
		slices.SortStableFunc(valid, func(a, b suite.Trial) int { return cmp.Compare(a.Values[names[0]], b.Values[names[0]]) })
		if len(valid) > 0 {
			films = append(films, Film{browser, valid[(len(valid)-1)/2].Number})
		}
	}
	return films
}

// count fills in how many runs have ended, and which go on.
func (b *kept) count() {
	b.Done, b.Failed, b.Now = 0, 0, nil
	for _, o := range b.found.Entries {
		switch o.State {
		case store.StateDone:
			b.Done++
		case suite.StateBegun:
			if b.IsGoing() {
				b.Now = append(b.Now, o.Run)
			}
		default:
			b.Failed++
		}
	}
	slices.Sort(b.Now)
}
