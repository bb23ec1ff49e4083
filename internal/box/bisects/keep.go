package bisects

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/box/bisection"
	"eidetic/internal/box/ownruns"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// file holds a bisect in its folder, beside its journal.
const file = "bisect.json"

// maxFile bounds that file.
const maxFile = 16 << 20

// kept is a bisect with its request.
type kept struct {
	Bisect
	ownruns.Held
	request Request
	runs    []string    // that it asked for
	answer  chan string // of the hook, while Deploying is set; capacity 1

	underWay []string // runs that are followed
}

// About implements [ownruns.Errand].
func (b *kept) About() (id, state string, made time.Time) { return b.ID, b.State, b.Made }

// Owner implements [ownruns.Errand].
func (b *kept) Owner() string { return b.By }

// content is what the file has.
type content struct {
	Bisect  Bisect   `json:"bisect"`
	Request asked    `json:"request"`
	Runs    []string `json:"runs"`
	Version int      `json:"version"`
}

// asked is a request on the disk.
type asked struct {
	Plan       plan.Request         `json:"plan"`
	Revisions  []bisection.Revision `json:"revisions"`
	URL        string               `json:"url"`
	Secret     string               `json:"secret"`
	Limit      time.Duration        `json:"limit_ns"`
	Confidence float64              `json:"confidence"`
	Least      float64              `json:"least"`
	Pairs      int                  `json:"pairs"`
	Seed       uint64               `json:"seed"`
	Spread     int                  `json:"spread,omitempty"`
	Repository string               `json:"repository,omitempty"`
	Minutes    int                  `json:"minutes,omitempty"`
	Once       string               `json:"once,omitempty"`
}

// save writes the bisect. Who calls it holds the keeper's lock.
func (b *kept) save() error {
	q := b.request
	a := asked{
		q.Plan, q.Revisions, q.URL, q.Secret.Reveal(), q.Limit, q.Confidence, q.Least, q.Pairs, q.Seed, q.Spread, q.Repository, q.Minutes, q.Once,
	}
	text, err := json.Marshal(content{b.Bisect, a, b.runs, 1})
	if err == nil {
		err = atomicfile.WriteFile(filepath.Join(b.Dir, file), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep bisect: %w", err)
	}
	return nil
}

// readKept reads a bisect. One that was going on waits.
func readKept(dir string) (*kept, error) {
	var c content
	if err := ownruns.ReadFile(filepath.Join(dir, file), maxFile, &c); err != nil {
		return nil, err
	}
	if c.Version != 1 || c.Bisect.ID != filepath.Base(dir) {
		return nil, fmt.Errorf("%s is of version %d and bisect %.40q", file, c.Version, c.Bisect.ID)
	}
	if err := errors.Join(bisection.CheckRevisions(c.Request.Revisions), c.Request.Plan.CheckRevisions()); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	q := c.Request
	b := &kept{Bisect: c.Bisect, Held: ownruns.Held{Dir: dir}, runs: c.Runs, request: Request{
		Name: c.Bisect.Name, Plan: q.Plan, Revisions: q.Revisions, URL: q.URL, Secret: lab.NewSecret(q.Secret),
		Limit: q.Limit, Metric: c.Bisect.Metric,
		Confidence: q.Confidence, Least: q.Least, Pairs: q.Pairs, Seed: q.Seed, Spread: q.Spread, By: c.Bisect.By,
		Repository: q.Repository, Minutes: q.Minutes, Once: q.Once,
	}}
	b.Revisions = q.Revisions
	if b.Going() {
		b.State, b.Run, b.Deploying = ownruns.StateWaiting, "", nil
	}
	return b, nil
}
