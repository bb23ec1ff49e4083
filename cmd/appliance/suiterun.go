package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/doctor"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/execute"
	"eidetic/internal/tell/suite"
	"eidetic/netlab/link"
)

// suiteMachine carries out the runs of a suite on this machine. What it has done is in the result's file before it goes
// on, so that it can be killed at any moment.
type suiteMachine struct {
	suite  *suite.Suite
	result *suite.Result
	out    string
	only   []string
	bar    *progress
	quiet  bool
	run    RunCmd
}

// suiteJob is one run of a suite.
type suiteJob struct {
	at       int // of the entry
	browsers []string
	plan     plan.Request
}

// all carries out what the result lacks.
func (m *suiteMachine) all(ctx context.Context) error {
	jobs, err := m.jobs()
	if err != nil {
		return usage(err)
	}
	if len(jobs) > 0 {
		if err := doctor.CheckVirtualDevice(ctx); err != nil {
			return cannot(err)
		}
	}
	for i, j := range jobs {
		m.bar.say("%s, %d of %d", m.suite.Entries[j.at].Name, i+1, len(jobs))
		if err := m.one(ctx, j); err != nil {
			return err
		}
	}
	if m.result.Ended.IsZero() && m.complete() {
		m.result.Ended = time.Now().UTC()
	}
	return m.write()
}

// complete says whether every entry of the suite has ended well.
func (m *suiteMachine) complete() bool {
	for _, e := range m.suite.Entries {
		for _, pair := range m.result.Pairs() {
			if !m.done(e.Name, pair) {
				return false
			}
		}
	}
	return true
}

func (m *suiteMachine) done(entry string, browsers []string) bool {
	o := m.result.Find(entry, browsers)
	return o != nil && o.State == store.StateDone
}

// jobs lists the runs that the result lacks, with their plans checked.
func (m *suiteMachine) jobs() (all []suiteJob, err error) {
	found := map[string]*lab.Browser{}
	for _, name := range m.result.Browsers {
		if found[name], err = browserFound(name); err != nil {
			return nil, err
		}
	}
	for i, e := range m.suite.Entries {
		if len(m.only) > 0 && !slices.Contains(m.only, e.Name) {
			continue
		}
		for _, pair := range m.result.Pairs() {
			if m.done(e.Name, pair) {
				continue
			}
			j := suiteJob{at: i, browsers: pair}
			browsers := []*lab.Browser{found[pair[0]]}
			if len(pair) > 1 {
				browsers = append(browsers, found[pair[1]])
			}
			if j.plan, err = m.suite.PlanOf(i, browsers, m.result.Trials, m.result.Seed); err != nil {
				return nil, err
			}
			if err = m.archive(e, &j.plan); err != nil {
				return nil, err
			}
			o := plan.Options{Scope: plan.ScopePerson, Traces: link.OpenFile, From: &plan.Folder{Path: m.run.beside}}
			if _, err = plan.Check(j.plan, o); err != nil {
				return nil, m.suite.Locate(i, err)
			}
			all = append(all, j)
		}
	}
	return all, nil
}

// archive finds the recording of an entry beside the suite, and checks its hash.
func (m *suiteMachine) archive(e suite.Entry, q *plan.Request) error {
	if q.Archive == "" {
		return nil
	}
	file := q.Archive
	if !filepath.IsAbs(file) {
		file = filepath.Join(m.run.beside, file)
	}
	if sum, err := suite.HashOf(file); err != nil {
		return fmt.Errorf("entry %s: archive: %w", e.Name, err)
	} else if e.SHA256 != "" && sum != e.SHA256 {
		return fmt.Errorf("entry %s: archive: %s is another recording: its SHA-256 is %s, and the suite asks for %s", e.Name, file, sum, e.SHA256)
	}
	return q.Set("archive", file)
}

// one carries out a run, or goes on with it.
func (m *suiteMachine) one(ctx context.Context, j suiteJob) error {
	e := m.suite.Entries[j.at]
	task, asked, err := m.run.task(ctx, j.plan)
	if err != nil {
		return usage(m.suite.Locate(j.at, err))
	}
	task.ID = store.NewID(time.Now(), m.suite.Name+"-"+e.Name)
	if o := m.result.Find(e.Name, j.browsers); o != nil && o.State == suite.StateBegun {
		run, err := store.ReadRun(filepath.Join(m.out, "runs", o.Run))
		switch {
		case err == nil && run.State == store.StateDone: // it was killed between the run's end and its own note of that
			return m.take(e, j, o.Run, nil)
		case err == nil && execute.Resumable(run, versionLine()) == nil && execute.SamePlan(run, asked):
			task.ID = o.Run
		}
	}
	m.result.Put(suite.Outcome{Entry: e.Name, Browsers: j.browsers, Run: task.ID, State: suite.StateBegun})
	if err := m.write(); err != nil {
		return err
	}
	err = task.RunWithEvents(ctx, ownCommands(), execute.News{
		Say: func(text string) {
			if !m.quiet {
				m.bar.say("%s", visible(text))
			}
		},
		Step: m.bar.step, Film: func(execute.FilmNews) {},
	})
	if ctx.Err() != nil {
		return cannot(errors.New("interrupted; the same command goes on"))
	}
	return m.take(e, j, task.ID, err)
}

// take notes what came of a run; it may have failed.
func (m *suiteMachine) take(e suite.Entry, j suiteJob, id string, failed error) error {
	o, err := suite.Take(m.out, e, j.browsers, id)
	if err != nil {
		o.State, o.Error = store.StateFailed, client.Plain(errors.Join(failed, err).Error())
	}
	if o.State != store.StateDone {
		m.bar.say("%s: %s", e.Name, visible(o.Error))
	}
	m.result.Put(o)
	return m.write()
}

func (m *suiteMachine) write() error {
	if err := m.result.Write(m.out); err != nil {
		return cannot(err)
	}
	return nil
}
