package automation

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Bounds of workflows.
const (
	mostWorkflows = 200
	mostVersions  = 20 // of one workflow that are kept
	mostGone      = 1000
)

// Workflow is a plan that is kept under a name.
type Workflow struct {
	Name    string     `json:"name" example:"checkout"`
	Version int        `json:"version" doc:"Counts the plans that the name has had; it is also the ETag" example:"3"`
	Tags    []string   `json:"tags" doc:"Which alerts about its runs get"`
	Changed time.Time  `json:"changed" doc:"When this version was made"`
	By      string     `json:"by" doc:"Name of the token that made it" example:"nightly"`
	Page    string     `json:"page,omitempty" doc:"URL under test"`
	Plan    *lab.Plan  `json:"plan,omitempty" doc:"What it asks for; absent in lists"`
	Kept    []Revision `json:"versions,omitempty" doc:"The versions that are kept, newest first; absent in lists"`
}

// Revision is one version of a workflow.
type Revision struct {
	Version int       `json:"version"`
	Changed time.Time `json:"changed"`
	By      string    `json:"by"`
}

// Expect says what must be there for a change to be made.
type Expect struct {
	Version int  // the version of what is changed; 0: nothing of that name may be there
	Any     bool // there must be one, of whatever version
}

// met returns an error unless the version that there is, 0 for none, is as expected.
func (e Expect) met(version int) error {
	switch {
	case version > 0 && (e.Any || e.Version == version):
		return nil
	case e.Any || e.Version > 0:
		return ErrChanged
	case version > 0:
		return ErrExists
	}
	return nil
}

// PutWorkflow keeps a plan. The same plan with the same tags makes no new version.
func (k *Keeper) PutWorkflow(ctx context.Context, name string, plan lab.Plan, tags []string, by string, expect Expect) (Workflow, error) {
	if err := errors.Join(CheckName(name), checkTags(tags)); err != nil {
		return Workflow{}, err
	}
	if plan.From != nil || plan.Live {
		return Workflow{}, wrong("from and live are set by the box alone")
	}
	if k.Check != nil {
		if err := k.Check(plan); err != nil {
			return Workflow{}, &WrongError{err}
		}
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return Workflow{}, err
	}
	labels, err := json.Marshal(append([]string{}, tags...))
	if err != nil {
		return Workflow{}, err
	}
	err = k.in(ctx, "keep workflow", func(tx *sql.Tx) error {
		var version, gone, others, own, bytes, ownBytes int
		var was, had string
		err := tx.QueryRowContext(ctx, `SELECT w.version, w.gone, w.tags, coalesce((SELECT v.plan FROM versions v WHERE v.name = w.name AND v.version = w.version), '')
			FROM workflows w WHERE w.name = ?`, name).Scan(&version, &gone, &had, &was)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		present := version
		if gone != 0 {
			present = 0
		}
		if present > 0 && was == string(text) && had == string(labels) { // such as a request that is made again
			return nil
		}
		if err := expect.met(present); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT count(*),
			coalesce(sum((SELECT v.by FROM versions v WHERE v.name = w.name AND v.version = w.version) = ?2), 0),
			(SELECT coalesce(sum(length(plan)), 0) FROM versions), (SELECT coalesce(sum(length(plan)), 0) FROM versions WHERE by = ?2)
			FROM workflows w WHERE gone = 0 AND name <> ?1`, name, by).Scan(&others, &own, &bytes, &ownBytes); err != nil {
			return err
		}
		if present > 0 {
			others, own = 0, 0 // a version more is no workflow more
		}
		if err := lab.Room(others, own, mostWorkflows, ErrMany); err != nil {
			return err
		}
		if err := lab.Room(bytes+len(text)-1, ownBytes+len(text)-1, lab.MostPlanBytes, ErrMany); err != nil {
			return err
		}
		version++
		return execAll(ctx, tx, []statement{
			{`INSERT INTO workflows (name, version, gone, tags) VALUES (?1, ?2, 0, ?3)
				ON CONFLICT (name) DO UPDATE SET version = ?2, gone = 0, tags = ?3`, []any{name, version, string(labels)}},
			{`INSERT INTO versions (name, version, plan, made, by) VALUES (?, ?, ?, ?, ?)`, []any{name, version, string(text), stamp(k.Now()), by}},
			{`DELETE FROM versions WHERE name = ? AND version <= ?`, []any{name, version - mostVersions}},
		})
	})
	if err != nil {
		return Workflow{}, err
	}
	return k.Workflow(ctx, name, 0)
}

// statement is one of several in a transaction.
type statement struct {
	text string
	args []any
}

func execAll(ctx context.Context, tx *sql.Tx, all []statement) error {
	for _, s := range all {
		if _, err := tx.ExecContext(ctx, s.text, s.args...); err != nil {
			return err
		}
	}
	return nil
}

// Workflow returns a workflow with its plan: the version that is asked for, or with 0 the
// newest. The error is store.ErrNotFound, or [ErrVersion].
func (k *Keeper) Workflow(ctx context.Context, name string, version int) (Workflow, error) {
	w := Workflow{Name: name, Plan: &lab.Plan{}}
	var newest int
	var tags string
	err := k.db.QueryRowContext(ctx, `SELECT version, tags FROM workflows WHERE name = ? AND gone = 0`, name).Scan(&newest, &tags)
	if errors.Is(err, sql.ErrNoRows) {
		return w, store.ErrNotFound
	}
	if err != nil {
		return w, fmt.Errorf("read workflow: %w", err)
	}
	if w.Version = version; version == 0 {
		w.Version = newest
	}
	var made int64
	var plan string
	err = k.db.QueryRowContext(ctx, `SELECT plan, made, by FROM versions WHERE name = ? AND version = ?`, name, w.Version).Scan(&plan, &made, &w.By)
	if errors.Is(err, sql.ErrNoRows) {
		return w, ErrVersion
	}
	if err == nil {
		err = errors.Join(json.Unmarshal([]byte(plan), w.Plan), json.Unmarshal([]byte(tags), &w.Tags))
	}
	if err != nil {
		return w, fmt.Errorf("read workflow: %w", err)
	}
	w.Changed, w.Page = timeOf(made), w.Plan.FirstPage()
	rows, err := k.db.QueryContext(ctx, `SELECT version, made, by FROM versions WHERE name = ? ORDER BY version DESC`, name)
	if err != nil {
		return w, fmt.Errorf("read workflow: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var r Revision
		if err := rows.Scan(&r.Version, &made, &r.By); err != nil {
			return w, fmt.Errorf("read workflow: %w", err)
		}
		r.Changed = timeOf(made)
		w.Kept = append(w.Kept, r)
	}
	return w, rows.Err()
}

// Workflows lists the workflows by name, without their plans.
func (k *Keeper) Workflows(ctx context.Context) ([]Workflow, error) {
	rows, err := k.db.QueryContext(ctx, `SELECT w.name, w.version, w.tags, v.made, v.by, v.plan FROM workflows w
		JOIN versions v ON v.name = w.name AND v.version = w.version WHERE w.gone = 0 ORDER BY w.name`)
	if err != nil {
		return nil, fmt.Errorf("list workflows: %w", err)
	}
	defer rows.Close()
	all := []Workflow{}
	for rows.Next() {
		var w Workflow
		var made int64
		var tags, text string
		var plan lab.Plan
		if err := rows.Scan(&w.Name, &w.Version, &tags, &made, &w.By, &text); err != nil {
			return nil, fmt.Errorf("list workflows: %w", err)
		}
		if err := errors.Join(json.Unmarshal([]byte(text), &plan), json.Unmarshal([]byte(tags), &w.Tags)); err != nil {
			return nil, fmt.Errorf("list workflows: %s: %w", w.Name, err)
		}
		w.Changed, w.Page = timeOf(made), plan.FirstPage()
		all = append(all, w)
	}
	return all, rows.Err()
}

// RemoveWorkflow removes a workflow with its versions, unless a schedule starts it.
func (k *Keeper) RemoveWorkflow(ctx context.Context, name string, expect Expect) error {
	return k.in(ctx, "remove workflow", func(tx *sql.Tx) error {
		var version, used int
		err := tx.QueryRowContext(ctx, `SELECT version, (SELECT count(*) FROM schedules WHERE json_extract(asked, '$.workflow') = ?1)
			FROM workflows WHERE name = ?1 AND gone = 0`, name).Scan(&version, &used)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return store.ErrNotFound
		case err != nil:
			return err
		case !expect.Any && expect.Version != version:
			return ErrChanged
		case used > 0:
			return ErrInUse
		}
		return execAll(ctx, tx, []statement{
			{`UPDATE workflows SET gone = 1 WHERE name = ?`, []any{name}},
			{`DELETE FROM versions WHERE name = ?`, []any{name}},
			{`DELETE FROM workflows WHERE gone = 1 AND rowid NOT IN (SELECT rowid FROM workflows WHERE gone = 1 ORDER BY rowid DESC LIMIT ?)`,
				[]any{mostGone}},
		})
	})
}

// Start adds a run of a workflow to the queue. change is what of its plan is changed for this
// run; nil changes nothing.
func (k *Keeper) Start(ctx context.Context, w Workflow, change func(lab.Plan) (lab.Plan, error), once store.Once) (id string, err error) {
	plan := *w.Plan
	if change != nil {
		if plan, err = change(plan); err != nil {
			return "", err
		}
	}
	plan.From = &lab.Origin{Workflow: w.Name, Version: w.Version, Changed: change != nil}
	return k.Runs.Add(ctx, plan, once)
}

// merged are tags without repetitions, in order.
func merged(all ...[]string) []string {
	out := slices.Concat(all...)
	slices.Sort(out)
	return append([]string{}, slices.Compact(out)...)
}

// Plans lists the plans of all versions of each workflow, by its name.
func (k *Keeper) Plans(ctx context.Context) (map[string][]lab.Plan, error) {
	rows, err := k.db.QueryContext(ctx, `SELECT v.name, v.plan FROM versions v JOIN workflows w ON w.name = v.name WHERE w.gone = 0`)
	if err != nil {
		return nil, fmt.Errorf("list plans: %w", err)
	}
	defer rows.Close()
	all := map[string][]lab.Plan{}
	for rows.Next() {
		var name, text string
		var plan lab.Plan
		if err := rows.Scan(&name, &text); err != nil {
			return nil, fmt.Errorf("list plans: %w", err)
		}
		if err := json.Unmarshal([]byte(text), &plan); err != nil {
			return nil, fmt.Errorf("list plans: %s: %w", name, err)
		}
		all[name] = append(all[name], plan)
	}
	return all, rows.Err()
}
