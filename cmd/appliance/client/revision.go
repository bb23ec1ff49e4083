package client

import (
	"fmt"

	"eidetic/internal/box/bisection/revplan"
)

// CheckRevisions returns an error unless the plan can be carried out with any two revisions as its arms.
func (r *Request) CheckRevisions() error {
	if err := revplan.Plan(r.body).Check(); err != nil {
		return fmt.Errorf("%s: %w", r.file, err)
	}
	return nil
}

// Records says whether each revision has to be recorded: the plan names no recording.
func (r *Request) Records() bool { return revplan.Plan(r.body).Records() }

// Metric is what a bisect looks at unless it is told.
func (r *Request) Metric() string { return revplan.Plan(r.body).Metric() }

// Recording returns the request that has the page of a revision recorded, and loaded once.
func (r *Request) Recording(revision string) *Request {
	return &Request{body: revplan.Plan(r.body).Recording(revision), file: r.file, text: r.text}
}

// Between returns the request for a comparison of two revisions.
func (r *Request) Between(c revplan.Comparison) *Request {
	return &Request{body: revplan.Plan(r.body).Between(c), file: r.file, text: r.text}
}
