package automation

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Bisector deploys revisions, and finds the one that changed a number.
type Bisector interface {
	// CheckRepository returns an error for a repository that the configuration does not name.
	CheckRepository(name string) error
	// DeployHead deploys the newest revision of a repository. reason says why that could not be done.
	DeployHead(ctx context.Context, repository string) (revision, reason string, err error)
	// PlanAt is a plan with its treatment where a revision is.
	PlanAt(repository, revision string, p lab.Plan) (lab.Plan, error)
	// Busy names the bisect that has a repository, or "".
	Busy(repository string) string
	// Begin begins a bisect, or returns the one that was begun with the same order.
	Begin(ctx context.Context, o Order) (id string, err error)
	// Found says what a bisect has found; store.ErrNotFound if there is none.
	Found(id string) (Found, error)
}

// Bisecting says which revision a schedule's runs measure, and how the one is found that an alert comes from.
type Bisecting struct {
	Repository string `json:"repository" minLength:"1" maxLength:"60" doc:"Name of a repository in the box's configuration. Its newest revision is deployed before each run" example:"shop"`
	Pairs      int    `json:"pairs,omitempty" minimum:"10" maximum:"10000" doc:"How many pairs of trials a bisect makes at most; 800 without it"`
	Minutes    int    `json:"minutes,omitempty" minimum:"1" maximum:"100000" doc:"How long a bisect begins new experiments; without it there is no bound"`
	Spread     int    `json:"spread,omitempty" minimum:"1" maximum:"50" doc:"At a head: over how many runs at the same time, on as many boxes, the pairs of an experiment of a bisect are divided; 1 without it"`
}

// Order is what a bisect is asked for.
type Order struct {
	Name      string
	Plan      lab.Plan // of the run that is bad, of one page
	Good, Bad string   // revisions; no good one means the repository's
	Metric    string
	Bisecting
	Once string // of two orders with the same one
	By   string
}

// Found is what a bisect has found.
type Found struct {
	State string // waiting, running, done, failed, cancelled
	Error string
	Kind  string // culprit, none, several, unsure
	Text  string
	// Revision, Author and Subject are of the culprit, or of the most probable one.
	Revision, Author, Subject string
	Change                    string // its Change-Id of Gerrit, or ""
	Probability               float64
	Trials                    int
}

// States of a bisection of an alert, besides those of a bisect.
const (
	bisectionDue  = "due"  // it begins when the repository is free
	bisectionNone = "none" // there is nothing to bisect
)

// Bisection is the search for the revision that an alert comes from.
type Bisection struct {
	State       string  `json:"state" enum:"due,waiting,running,done,failed,cancelled,none" doc:"due: it begins when the schedule's run has ended. none: reason says why there is none. Others are those of the bisect"`
	ID          string  `json:"id,omitempty" doc:"Of the bisect, for /api/v1/bisects/{id}"`
	Repository  string  `json:"repository"`
	Run         string  `json:"run" doc:"The run of the schedule with which the alert was raised: what is measured is in its plan"`
	Good        string  `json:"good,omitempty" doc:"Revision of the last good run; absent if the repository says it"`
	Bad         string  `json:"bad,omitempty" doc:"Revision of the first bad run"`
	Reason      string  `json:"reason,omitempty" doc:"Why there is none, or why it failed"`
	Kind        string  `json:"kind,omitempty" doc:"When it is done: culprit, none, several or unsure" example:"culprit"`
	Revision    string  `json:"revision,omitempty" doc:"The culprit; of kind unsure, the most probable one"`
	Author      string  `json:"author,omitempty"`
	Subject     string  `json:"subject,omitempty" doc:"First line of its message"`
	Change      string  `json:"change,omitempty" doc:"Its Change-Id, where its message has one (Gerrit)"`
	Probability float64 `json:"probability,omitempty" doc:"That it is the culprit"`
	Trials      int     `json:"trials,omitempty" doc:"That the bisect made"`
	Text        string  `json:"text,omitempty" doc:"What was found, as a sentence"`
}

// bisectionOf is the bisection that an alert begins, or nil: its newest run is one of a schedule that bisects, and it
// says slower.
func (k *Keeper) bisectionOf(ctx context.Context, a Alert, run *lab.Run, past []store.Past) (*Bisection, error) {
	from := run.Plan.From
	if k.Bisector == nil || from == nil || from.Schedule == "" || a.Trend != lab.Slower {
		return nil, nil
	}
	s, err := k.Schedule(ctx, from.Schedule)
	if errors.Is(err, store.ErrNotFound) || err == nil && s.Bisect == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := &Bisection{State: bisectionDue, Repository: s.Bisect.Repository, Run: run.ID}
	if run.Plan.Treatment != nil && a.Line == lab.Control {
		b.State, b.Reason = bisectionNone, "the control became slower, and revisions are deployed to the treatment"
		return b, nil
	}
	i := slices.IndexFunc(past, func(p store.Past) bool { return p.ID == a.Run })
	b.Good, b.Bad = revisionBefore(past, i), revisionFrom(past, i)
	if b.Good == b.Bad { // the place of a step is known to about one run
		b.Good, b.Bad = cmp.Or(revisionBefore(past, i-1), b.Good), revisionFrom(past, i+1)
	}
	if b.Good == "" && b.Bad != "" {
		if b.Good, err = k.goodBefore(ctx, s.Name, run.ID, b.Bad); err != nil {
			return nil, err
		}
	}
	switch {
	case b.Bad == "":
		b.State, b.Reason = bisectionNone, "the runs do not say which revision they measured"
	case b.Good == b.Bad:
		b.State, b.Reason = bisectionNone, "the runs before and after it measured the same revision"
	}
	return b, nil
}

// goodBefore is the revision of the newest run before a schedule's run that was another and was not found slower: in a
// fleet another box may have made it, and then it is of another series.
func (k *Keeper) goodBefore(ctx context.Context, schedule, run, bad string) (string, error) {
	fired, err := k.Firings(ctx, schedule, 50)
	if err != nil {
		return "", err
	}
	before := false
	for _, f := range fired {
		if f.Run == run {
			before = true
			continue
		}
		if !before || f.Run == "" {
			continue
		}
		past, err := k.Store.Run(f.Run)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		from, slower := past.Plan.From, past.Comparison != nil && past.Comparison.Verdict == lab.Slower
		if from != nil && from.Revision != "" && from.Revision != bad && past.State == store.StateDone && !slower {
			return from.Revision, nil
		}
	}
	return "", nil
}

// revisionBefore is the revision of the newest run before the i-th that has one.
func revisionBefore(past []store.Past, i int) string {
	for _, p := range slices.Backward(past[:max(i, 0)]) {
		if p.Revision != "" {
			return p.Revision
		}
	}
	return ""
}

// revisionFrom is the revision of the i-th run, or of the first after it that has one.
func revisionFrom(past []store.Past, i int) string {
	for _, p := range past[min(max(i, 0), len(past)):] {
		if p.Revision != "" {
			return p.Revision
		}
	}
	return revisionBefore(past, i)
}

// bisectAll begins the bisections that are due, and takes what those have found that went on. Every change is kept
// before it is told of.
func (k *Keeper) bisectAll(ctx context.Context) error {
	if k.Bisector == nil {
		return nil
	}
	rows, err := k.db.QueryContext(ctx, `SELECT alert FROM alerts WHERE json_extract(alert, '$.bisection.state') IN (?, 'waiting', 'running', 'failed')
		ORDER BY id`, bisectionDue)
	if err != nil {
		return fmt.Errorf("list bisections: %w", err)
	}
	all, err := scanAlerts(rows)
	if err != nil {
		return fmt.Errorf("list bisections: %w", err)
	}
	var errs []error
	for _, a := range all {
		if err := k.bisect(ctx, a); err != nil {
			errs = append(errs, fmt.Errorf("bisection of alert %d: %w", a.ID, err))
		}
	}
	return errors.Join(errs...)
}

// bisect takes the bisection of an alert one step further.
func (k *Keeper) bisect(ctx context.Context, a Alert) error {
	b := *a.Bisection
	if b.State == bisectionDue {
		order, free, err := k.orderOf(ctx, a)
		if err != nil || !free {
			return err
		}
		if order == nil {
			b.State, b.Reason = bisectionNone, "the run or the schedule that the alert is of was removed"
			return k.bisected(ctx, a.ID, b)
		}
		if b.ID, err = k.Bisector.Begin(ctx, *order); err != nil {
			var wrong *WrongError
			if !errors.As(err, &wrong) {
				return err // it is tried again
			}
			b.State, b.Reason = bisectionNone, shorten(err.Error())
			return k.bisected(ctx, a.ID, b)
		}
	}
	f, err := k.Bisector.Found(b.ID)
	if errors.Is(err, store.ErrNotFound) {
		f, err = Found{State: "cancelled", Error: "the bisect was deleted"}, nil
	}
	if err != nil {
		return err
	}
	b.State, b.Reason, b.Kind, b.Text, b.Trials = f.State, f.Error, f.Kind, f.Text, f.Trials
	b.Revision, b.Author, b.Subject, b.Change, b.Probability = f.Revision, f.Author, f.Subject, f.Change, f.Probability
	if b == *a.Bisection {
		return nil
	}
	return k.bisected(ctx, a.ID, b)
}

// orderOf is the order for the bisection of an alert; nil if what it needs is gone. free says that the schedule has no
// run under way, which measures what is deployed.
func (k *Keeper) orderOf(ctx context.Context, a Alert) (o *Order, free bool, err error) {
	run, err := k.Store.Run(a.Bisection.Run)
	if errors.Is(err, store.ErrNotFound) || err == nil && run.Plan.From == nil {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	all, err := k.schedules(ctx)
	if err != nil {
		return nil, false, err
	}
	i := slices.IndexFunc(all, func(s scheduleRow) bool { return s.Name == run.Plan.From.Schedule })
	if i < 0 || all[i].Bisect == nil || all[i].Bisect.Repository != a.Bisection.Repository {
		return nil, true, nil
	}
	if going, err := k.goesOn(ctx, all[i]); err != nil || going != "" {
		return nil, false, err
	}
	for _, view := range run.Views() {
		if series := store.SeriesOf(view); series.Key() == a.SeriesKey {
			b := a.Bisection
			return &Order{
				Name: lab.Clip(strings.TrimSpace(cmp.Or(a.Name, a.Page)+fmt.Sprintf(", alert %d", a.ID)), 90), Plan: view.Plan,
				Good: b.Good, Bad: b.Bad, Metric: a.Metric, Bisecting: *all[i].Bisect, Once: fmt.Sprint(a.SeriesKey, " ", b.Good, " ", b.Bad),
				By: "schedule " + all[i].Name,
			}, true, nil
		}
	}
	return nil, true, nil
}

// bisected keeps what became of a bisection, and tells of its end those who are told of alerts.
func (k *Keeper) bisected(ctx context.Context, id int64, b Bisection) error {
	err := k.in(ctx, "keep a bisection", func(tx *sql.Tx) error {
		a, err := scanAlert(tx.QueryRowContext(ctx, `SELECT alert FROM alerts WHERE id = ?`, id))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		ended := b.State != "waiting" && b.State != "running"
		a.Bisection = &b
		if err := saveAlert(ctx, tx, a); err != nil || !ended {
			return err
		}
		if a.Of != 0 { // the alert tells, with what its row has found
			lead, err := whole(ctx, tx, a.ID)
			if err != nil {
				return err
			}
			lead.Bisection, a = a.Bisection, lead
		} else if a, err = whole(ctx, tx, a.ID); err != nil {
			return err
		}
		return k.publish(ctx, tx, Event{EventBisected, k.Now().UTC(), a})
	})
	k.Stir()
	return err
}

// deployment is that of a revision for a run of a schedule. It is under way, or done.
type deployment struct {
	done             bool
	at               time.Time // when it was done
	revision, reason string
}

// deployed says which revision is deployed for the run of a due time. It begins the deployment, and returns nil until
// that is done.
func (k *Keeper) deployed(ctx context.Context, seq int64, repository string) *deployment {
	k.deploying.Lock()
	defer k.deploying.Unlock()
	d, ok := k.deployments[seq]
	switch {
	case ok && d.done:
		delete(k.deployments, seq)
		return d
	case ok:
		return nil
	}
	k.deployments[seq] = &deployment{}
	k.deployers.Go(func() {
		revision, reason, err := k.Bisector.DeployHead(ctx, repository)
		if err != nil {
			reason = err.Error()
		}
		k.deploying.Lock()
		defer k.deploying.Unlock()
		if ctx.Err() != nil { // the next process deploys it
			delete(k.deployments, seq)
			return
		}
		*k.deployments[seq] = deployment{true, k.Now(), revision, reason}
		k.Stir()
	})
	return nil
}
