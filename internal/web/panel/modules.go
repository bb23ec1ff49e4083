package panel

import (
	"context"
	"errors"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/automation"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Module is a feature of a panel: it registers its routes, and adds what it knows to those of others. A With… function
// makes one of all that the feature needs, so a feature that is not in [Config.Modules] has no routes, and no route asks
// whether another feature is there.
type Module func(*Panel)

// shared is what modules add to the routes of others. New fills in what holds without them.
type shared struct {
	queue   Queue
	answers Answers
	fleet   bool // boxes carry the runs out
	storage bool // evidence is deleted: there is a page for it
	devices bool // devices trust the panel's certificate authority
	// held says what replays a recording besides the runs of the queue, and kept what needs it under its name.
	held, kept []func(ctx context.Context, recording string) (why string, err error)
	// cited says why a run may not be deleted; removed is told when it was.
	cited   []func(ctx context.Context, run string) (why string, err error)
	removed []func(ctx context.Context, run string) error
	states  []func(context.Context, *Health)             // add to the health
	places  []func(context.Context, []store.Entry) error // say where runs in progress are carried out
	scraped map[string]collect                           // parts of the numbers for Prometheus
	// fetch brings a file of a run into its folder that is elsewhere; store.ErrNotFound says that it is nowhere.
	fetch func(ctx context.Context, run, file string) error
	// reference is the run that a name such as main@latest means for a run, and the version's name.
	reference func(ctx context.Context, run *lab.Run, name string) (id, version string, err error)
	// alertsOf are the newest open alerts of a series.
	alertsOf func(ctx context.Context, series string) ([]automation.Alert, error)
}

// alone is what holds without a module.
func alone() shared {
	nothing := func(context.Context, setGauge) error { return nil }
	return shared{
		queue: noQueue{runqueue.NewEvents()}, answers: noAnswers{},
		scraped: map[string]collect{"disk": nothing, "automation": nothing, "fleet": nothing},
		fetch:   func(context.Context, string, string) error { return store.ErrNotFound },
		reference: func(context.Context, *lab.Run, string) (id, version string, err error) {
			return "", "", huma.Error409Conflict("this panel keeps no references: name a run")
		},
		alertsOf: func(context.Context, string) ([]automation.Alert, error) { return nil, nil },
	}
}

// WithFiles brings files of runs into their folders that are elsewhere, and has it told when the files of a run were
// deleted.
func WithFiles(fetch func(ctx context.Context, run, file string) error, removed func(ctx context.Context, run string) error) Module {
	return func(p *Panel) { p.fetch, p.removed = fetch, append(p.removed, removed) }
}

// noQueue is the queue of a panel that starts no runs.
type noQueue struct{ events *runqueue.Events }

func (noQueue) Add(context.Context, lab.Plan, store.Once) (string, error) {
	return "", errors.New("this panel starts no runs")
}
func (noQueue) Cancel(context.Context, string) error                        { return store.ErrNotFound }
func (noQueue) Get(context.Context, string) (store.Job, error)              { return store.Job{}, store.ErrNotFound }
func (noQueue) List(context.Context) ([]store.Job, error)                   { return nil, nil }
func (noQueue) Waits(context.Context, ...string) (map[string]string, error) { return nil, nil }
func (noQueue) InProgress(context.Context) (string, error)                  { return "", nil }
func (q noQueue) Events() *runqueue.Events                                  { return q.events }

// noAnswers keeps no answer: a request that is repeated with its key is carried out again.
type noAnswers struct{}

func (noAnswers) Claim(context.Context, store.Once, time.Time) (*store.Answer, error) {
	return nil, nil
}
func (noAnswers) Unclaim(context.Context, string) error              { return nil }
func (noAnswers) Answer(context.Context, string, store.Answer) error { return nil }
