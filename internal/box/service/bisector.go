package service

import (
	"context"
	"errors"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/lab"
)

// bisector lets alerts begin bisects. It is an automation.Bisector.
type bisector struct{ *shared }

// errNoBisects is the error of a box whose bisects are off until its next start.
var errNoBisects = errors.New("bisects are off: their folder cannot be opened") // constant

// CheckRepository implements automation.Bisector.
func (b bisector) CheckRepository(name string) error {
	if b.bisects == nil {
		return errNoBisects
	}
	_, err := b.bisects.Repository(name)
	return err
}

// DeployHead implements automation.Bisector.
func (b bisector) DeployHead(ctx context.Context, repository string) (revision, reason string, err error) {
	if b.bisects == nil {
		return "", "", errNoBisects
	}
	return b.bisects.DeployHead(ctx, repository)
}

// PlanAt implements automation.Bisector.
func (b bisector) PlanAt(repository, revision string, p lab.Plan) (lab.Plan, error) {
	if b.bisects == nil {
		return p, errNoBisects
	}
	return b.bisects.PlanAt(repository, revision, p)
}

// Busy implements automation.Bisector.
func (b bisector) Busy(repository string) string {
	if b.bisects == nil {
		return ""
	}
	return b.bisects.Busy(repository)
}

// Begin implements automation.Bisector.
func (b bisector) Begin(ctx context.Context, o automation.Order) (id string, err error) {
	if b.bisects == nil {
		return "", errNoBisects
	}
	made, err := b.bisects.MakeOf(ctx, o.Repository, o.Good, o.Bad, o.Plan, bisects.Request{
		Name: o.Name, Metric: o.Metric, Pairs: o.Pairs, Minutes: o.Minutes, Spread: o.Spread, Once: o.Once, By: o.By,
	})
	var wrong *bisects.WrongError
	if errors.As(err, &wrong) {
		return "", &automation.WrongError{Err: err}
	}
	return made.ID, err
}

// Found implements automation.Bisector.
func (b bisector) Found(id string) (automation.Found, error) {
	if b.bisects == nil {
		return automation.Found{}, errNoBisects
	}
	one, err := b.bisects.Get(id)
	if err != nil {
		return automation.Found{}, err
	}
	return foundOf(one), nil
}

// foundOf is what a bisect has found, for the alert that it is of.
func foundOf(b bisects.Bisect) automation.Found {
	f := automation.Found{State: b.State, Error: b.Error}
	r := b.Result
	if r == nil || b.State != ownruns.StateDone {
		return f
	}
	f.Kind, f.Text, f.Trials = r.Kind, r.Text, r.Trials
	if len(r.Steps) > 0 {
		last := r.Steps[0].Revisions[len(r.Steps[0].Revisions)-1]
		f.Revision, f.Author, f.Subject, f.Change, f.Probability = last.Name, last.Author, last.Words, last.Change, r.Steps[0].Probability
	}
	return f
}
