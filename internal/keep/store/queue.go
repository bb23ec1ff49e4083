package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"eidetic/internal/lab"
)

// Job is a run that waits in the queue or is being carried out.
type Job struct {
	ID      string    // of the run that it becomes
	Device  string    // jobs of one device run one after the other
	Created time.Time // when it was accepted
	State   string    // StateQueued or StateRunning; StateFailed or StateInterrupted when it left no run behind
	Error   string    // why it failed
	Plan    lab.Plan  // what was asked for
	// PlanError says why Plan could not be read: another version of the appliance wrote it.
	PlanError error
}

// MaxWaiting bounds the runs that wait: a script in a loop must not fill the disk. Their plans are read together, and
// each may have megabytes of files: [lab.MostPlanBytes] bounds them.
const MaxWaiting = 200

// maxLeft bounds the jobs that ended without a run and stay listed; lab.MostPlanBytes bounds their plans, too.
const maxLeft = 200

// ErrFull is returned for a job for which there is no room in the queue.
var ErrFull = fmt.Errorf("%d runs wait already, or runs whose plans have %d MiB with their files, which is the most: "+
	"cancel some of them, or ask again when one has ended", MaxWaiting, lab.MostPlanBytes>>20)

// ErrExists is returned for a job whose ID is in the queue already.
var ErrExists = errors.New("there is a job of this name already")

// queueSteps lead to the newest version.
func queueSteps() []string { return []string{queueSchema + keysSchema + answerSchema} }

const queueSchema = `
CREATE TABLE jobs (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	id      TEXT NOT NULL UNIQUE,
	device  TEXT NOT NULL,
	created INTEGER NOT NULL, -- Unix ns
	state   TEXT NOT NULL,
	error   TEXT NOT NULL DEFAULT '',
	request TEXT NOT NULL     -- the plan as JSON
) STRICT;
CREATE INDEX jobs_by_device ON jobs (device, state, seq);
`

// Queue keeps jobs in a SQLite file until they are done. Unlike the index, the queue
// cannot be rebuilt from the folders, so it has its own file, and a damaged file is an
// error.
type Queue struct{ db *sql.DB }

// OpenQueue opens the queue or makes an empty one. Jobs that were running when the last
// process ended become interrupted; waiting jobs keep waiting.
func OpenQueue(ctx context.Context, path string) (*Queue, error) {
	db, err := sql.Open("sqlite", dsn(path, "FULL")) // accepted jobs survive a power cut
	if err != nil {
		return nil, fmt.Errorf("open queue %s: %w", path, err)
	}
	return openQueue(ctx, db, path)
}

// MemoryQueue is a queue in memory, for a disk that cannot be written.
func MemoryQueue(ctx context.Context) (*Queue, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	db.SetMaxOpenConns(1) // an in-memory database belongs to one connection
	return openQueue(ctx, db, "in memory")
}

// Damaged says whether an error of [OpenQueue] is about the file's content. Other
// errors, such as a full disk, leave the file intact.
func Damaged(err error) bool { return isDamaged(err) }

func openQueue(ctx context.Context, db *sql.DB, path string) (*Queue, error) {
	_, err := migrate(ctx, db, queueSteps())
	if err == nil {
		_, err = db.ExecContext(ctx,
			`UPDATE jobs SET state = 'interrupted', error = 'the appliance was stopped while it ran' WHERE state = 'running'`)
	}
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open queue %s: %w", path, asKnown(err))
	}
	return &Queue{db}, nil
}

// Close closes the file.
func (q *Queue) Close() error { return q.db.Close() }

// Add appends a job, or returns ErrExists or ErrFull.
func (q *Queue) Add(ctx context.Context, j Job) error { return add(ctx, q.db, j) }

func add(ctx context.Context, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, j Job) error {
	plan, err := json.Marshal(j.Plan)
	if err != nil {
		return fmt.Errorf("add job: %w", err)
	}
	done, err := db.ExecContext(ctx, `INSERT INTO jobs (id, device, created, state, request) SELECT ?, ?, ?, 'queued', ?4
		FROM (SELECT count(*) AS n, total(octet_length(request)) AS bytes FROM jobs WHERE state = 'queued')
		WHERE n < ?5 AND bytes + octet_length(?4) <= ?6`,
		j.ID, j.Device, j.Created.UnixNano(), string(plan), MaxWaiting, lab.MostPlanBytes)
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		return ErrExists
	}
	if err != nil {
		return fmt.Errorf("add job: %w", asKnown(err))
	}
	if n, err := done.RowsAffected(); err != nil {
		return fmt.Errorf("add job: %w", err)
	} else if n == 0 {
		return ErrFull
	}
	return nil
}

// Next takes the oldest waiting job whose device has no running job, and marks it as
// running. It returns ErrNotFound if there is none.
func (q *Queue) Next(ctx context.Context) (Job, error) {
	row := q.db.QueryRowContext(ctx, `UPDATE jobs SET state = 'running' WHERE seq = (
		SELECT min(seq) FROM jobs WHERE state = 'queued' AND device NOT IN (SELECT device FROM jobs WHERE state = 'running'))
		RETURNING `+jobColumns)
	return scanJob(row)
}

// Release returns a job that was taken but not started to its place in the queue.
func (q *Queue) Release(ctx context.Context, id string) error {
	if _, err := q.db.ExecContext(ctx, `UPDATE jobs SET state = 'queued' WHERE id = ?`, id); err != nil {
		return fmt.Errorf("release job: %w", asKnown(err))
	}
	return nil
}

// Finish removes a job whose run has a folder; the folder records how the run ended.
func (q *Queue) Finish(ctx context.Context, id string) error {
	if _, err := q.db.ExecContext(ctx, `DELETE FROM jobs WHERE id = ?`, id); err != nil {
		return fmt.Errorf("finish job: %w", asKnown(err))
	}
	return nil
}

// Leave ends a job that has no run folder. The job stays listed as StateFailed or
// StateInterrupted, with the reason.
func (q *Queue) Leave(ctx context.Context, id, state, reason string) error {
	if _, err := q.db.ExecContext(ctx, `UPDATE jobs SET state = ?, error = ? WHERE id = ?`, state, reason, id); err != nil {
		return fmt.Errorf("finish job: %w", asKnown(err))
	}
	if _, err := q.db.ExecContext(ctx, `DELETE FROM jobs WHERE seq IN (SELECT seq FROM (
		SELECT seq, row_number() OVER newer AS n, sum(octet_length(request)) OVER newer AS bytes FROM jobs
		WHERE state NOT IN ('queued', 'running') WINDOW newer AS (ORDER BY seq DESC)) WHERE n > ? OR bytes > ?)`,
		maxLeft, lab.MostPlanBytes); err != nil {
		return fmt.Errorf("forget old jobs: %w", asKnown(err))
	}
	return nil
}

// Forget removes a job that waits or has ended. It returns false if the job is running
// or does not exist.
func (q *Queue) Forget(ctx context.Context, id string) (bool, error) {
	done, err := q.db.ExecContext(ctx, `DELETE FROM jobs WHERE id = ? AND state <> 'running'`, id)
	if err != nil {
		return false, fmt.Errorf("forget job: %w", asKnown(err))
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

// Get returns one job, or ErrNotFound.
func (q *Queue) Get(ctx context.Context, id string) (Job, error) {
	return scanJob(q.db.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM jobs WHERE id = ?`, id))
}

// Jobs lists all jobs, the newest first, without the files that were sent with their plans.
func (q *Queue) Jobs(ctx context.Context) ([]Job, error) {
	rows, err := q.db.QueryContext(ctx, `SELECT `+jobColumns+` FROM jobs ORDER BY seq DESC`)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	defer rows.Close()
	var jobs []Job
	for rows.Next() {
		j, err := scanJob(rows)
		if err != nil {
			return nil, err
		}
		j.Plan.Files = nil
		jobs = append(jobs, j)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return jobs, nil
}

// Line lists the jobs that have not ended, the oldest first, without what was asked for: a plan may be large.
func (q *Queue) Line(ctx context.Context) ([]Job, error) {
	rows, err := q.db.QueryContext(ctx, `SELECT id, device, state FROM jobs WHERE state IN ('queued', 'running') ORDER BY seq`)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	defer rows.Close()
	var jobs []Job
	for rows.Next() {
		var j Job
		if err := rows.Scan(&j.ID, &j.Device, &j.State); err != nil {
			return nil, fmt.Errorf("list jobs: %w", err)
		}
		jobs = append(jobs, j)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return jobs, nil
}

const jobColumns = `id, device, created, state, error, request`

func scanJob(row interface{ Scan(...any) error }) (Job, error) {
	var j Job
	var created int64
	var plan string
	err := row.Scan(&j.ID, &j.Device, &created, &j.State, &j.Error, &plan)
	if errors.Is(err, sql.ErrNoRows) {
		return j, ErrNotFound
	}
	if err != nil {
		return j, fmt.Errorf("read job: %w", err)
	}
	j.Created = time.Unix(0, created).UTC()
	if err := json.Unmarshal([]byte(plan), &j.Plan); err != nil {
		j.PlanError = fmt.Errorf("the plan of the job cannot be read: %w", err)
	}
	return j, nil
}
