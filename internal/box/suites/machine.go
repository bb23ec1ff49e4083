package suites

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/suite"
)

// Lab has the runs of a suite made: on this machine, or by the queue of a box.
type Lab interface {
	// Check fills in what a plan leaves to the lab, and says what is wrong with it. It is called for all plans before
	// the first run.
	Check(e suite.Entry, q *plan.Request) error
	// Make has a run made, and returns its ID when it has ended. If earlier is one that was begun when this program was
	// killed, Make goes on with it if it can. begun is called with the run's ID before its first trial. An error with
	// an ID says why the run came to nothing; one without ends the work.
	Make(ctx context.Context, j Job, earlier suite.Outcome, begun func(id string) error) (id string, err error)
}

// Job is a run that a result lacks.
type Job struct {
	Entry suite.Entry
	Plan  plan.Request
	At    int // of the entry in the suite
}

// Machine carries out what a result lacks. What it has done is kept before it goes on, so that it can be killed at any
// moment.
type Machine struct {
	Suite  *suite.Suite
	Result *suite.Result // is changed while Keep's lock is held
	Only   []string      // entries; empty is all
	Lab    Lab
	Runs   string    // the folder that has the folder runs
	Sums   suite.Sum // nil is those of the files
	Spread int       // how many runs are made at the same time; 0 is 1
	// Keep changes the result and keeps it.
	Keep func(change func()) error
	// Begins is told of each run, and Ended what came of it.
	Begins func(j Job, n, of int)
	Ended  func(o suite.Outcome)
}

// Jobs lists the runs that the result lacks, with their plans checked. An error names file, line and field.
func (m *Machine) Jobs() (all []Job, err error) {
	var browsers []*lab.Browser
	for _, name := range m.Result.Browsers {
		browsers = append(browsers, browserOf(name))
	}
	for i, e := range m.Suite.Entries {
		if len(m.Only) > 0 && !slices.Contains(m.Only, e.Name) {
			continue
		}
		if m.isDone(e.Name) {
			continue
		}
		j := Job{Entry: e, At: i}
		if j.Plan, err = m.Suite.PlanOf(i, browsers, m.Result.Trials, m.Result.Seed); err != nil {
			return nil, err
		}
		if err = m.Lab.Check(e, &j.Plan); err != nil {
			return nil, m.Suite.Locate(i, err)
		}
		all = append(all, j)
	}
	return all, nil
}

// browserOf is the browser of a name, said even where it is the usual one.
func browserOf(name string) *lab.Browser {
	if b := lab.BrowserNamed(name); b != nil {
		return b
	}
	return &lab.Browser{Name: lab.Chromium}
}

func (m *Machine) isDone(entry string) bool {
	o := m.Result.Find(entry)
	return o != nil && o.State == store.StateDone
}

// Work has the runs made. It returns when they have ended, or soon after the context does.
func (m *Machine) Work(ctx context.Context, jobs []Job) error {
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(max(m.Spread, 1))
	var telling sync.Mutex
	for i, j := range jobs {
		if working.Err() != nil {
			break
		}
		group.Go(func() error {
			if working.Err() != nil {
				return working.Err()
			}
			telling.Lock()
			m.Begins(j, i+1, len(jobs))
			telling.Unlock()
			return m.one(working, j)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// one has a run made, or goes on with it.
func (m *Machine) one(ctx context.Context, j Job) error {
	var earlier suite.Outcome
	err := m.Keep(func() {
		if o := m.Result.Find(j.Entry.Name); o != nil {
			earlier = *o
		}
	})
	if err != nil {
		return err
	}
	id, why := m.Lab.Make(ctx, j, earlier, func(id string) error {
		return m.Keep(func() {
			m.Result.Put(suite.Outcome{Entry: j.Entry.Name, Browsers: m.Result.Browsers, Run: id, State: suite.StateBegun})
		})
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if id == "" {
		return why
	}
	sums := m.Sums
	if sums == nil {
		sums = suite.SumsIn(m.Runs)
	}
	o, err := suite.Take(m.Runs, j.Entry, m.Result.Browsers, id, sums)
	if err != nil {
		o.State, o.Error = store.StateFailed, strings.ToValidUTF8(errors.Join(why, err).Error(), "")
	}
	err = m.Keep(func() { m.Result.Put(o) })
	if err == nil {
		m.Ended(o)
	}
	return err
}

// IsComplete says whether every entry has ended well.
func (m *Machine) IsComplete() bool {
	return !slices.ContainsFunc(m.Suite.Entries, func(e suite.Entry) bool { return !m.isDone(e.Name) })
}
