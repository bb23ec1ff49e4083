// Package automation is what a box does by itself: named workflows, schedules that start
// them, alerts about the steps of a page's history, and webhooks that tell others.
//
// Into it flow plans and times that people give, and the news of the queue of runs; runs that
// it adds to the queue and events that it posts flow out. All that it keeps is in a SQLite
// file, and every decision is written there before it is carried out: a process that is killed
// anywhere starts no run twice and loses no event. An event may be posted twice, with the
// same ID, if the process ends between the answer and its note of it.
//
// Times are those of the wall clock, which a box without a battery sets only when it reaches a
// time server: [Times] and [Keeper.Work] say what happens when it steps.
package automation

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"eidetic/internal/box/mail"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/history"
)

// Runs is the queue of runs.
type Runs interface {
	Add(ctx context.Context, plan lab.Plan, once store.Once) (id string, err error)
	Get(ctx context.Context, id string) (store.Job, error)
	List(ctx context.Context) ([]store.Job, error)
	Events() *runqueue.Events
}

// Sender posts events; a webhook.Sender is one.
type Sender interface {
	CheckHost(ctx context.Context, url string) error
	Post(ctx context.Context, p webhook.Post) (webhook.Answer, error)
}

// Config holds what a Keeper needs.
type Config struct {
	File   string // of SQLite
	Runs   Runs
	Store  *store.Store
	Sender Sender
	// Mail sends a message; nil where the configuration names no server.
	Mail func(ctx context.Context, m mail.Message) error
	// Bisector is nil where no alert is bisected.
	Bisector Bisector
	// Check says what is wrong with a plan, without regard to whether its device is there
	// now; nil checks nothing.
	Check func(lab.Plan) error
	Now   func() time.Time // the wall clock; nil is time.Now
	// Pauses are the times between the attempts of a delivery; nil are Pauses().
	Pauses []time.Duration
	// Patience is how long a schedule's run waits for the queue to accept it; 0 is five
	// minutes: after power comes back, devices take a while to appear.
	Patience time.Duration
	Log      *slog.Logger // nil discards
}

// Keeper keeps workflows, schedules, alerts and webhooks. Its schedules and deliveries are
// carried out while [Keeper.Work] runs.
type Keeper struct {
	Config
	db     *sql.DB
	fresh  bool // nobody has been told of the runs that there are
	finder *history.Finder
	wake   chan struct{} // capacity 1: there may be something to do

	deploying   sync.Mutex
	deployments map[int64]*deployment // of the times that wait for one
	deployers   sync.WaitGroup
}

// Open opens the file, or makes it.
func Open(ctx context.Context, c Config) (*Keeper, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Pauses == nil {
		c.Pauses = Pauses()
	}
	if c.Patience == 0 {
		c.Patience = 5 * time.Minute
	}
	db, fresh, err := store.OpenDatabase(ctx, c.File, schema())
	if err != nil {
		return nil, err
	}
	k := &Keeper{
		Config: c, db: db, fresh: fresh, finder: history.NewFinder(), wake: make(chan struct{}, 1), deployments: map[int64]*deployment{},
	}
	if fresh {
		if err := k.knowAll(ctx); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return k, nil
}

// Close closes the file.
func (k *Keeper) Close() error { return k.db.Close() }

// schema lists the steps from an empty file to the newest version.
func schema() []string {
	return []string{`
CREATE TABLE workflows (
	name    TEXT PRIMARY KEY,
	version INTEGER NOT NULL,
	gone    INTEGER NOT NULL, -- removed; the row stays, so that a version is never given twice
	tags    TEXT NOT NULL     -- JSON
) STRICT;
CREATE TABLE versions (
	name    TEXT NOT NULL,
	version INTEGER NOT NULL,
	plan    TEXT NOT NULL,    -- JSON
	made    INTEGER NOT NULL, -- Unix ns, as all times
	by      TEXT NOT NULL,
	PRIMARY KEY (name, version)
) STRICT;
CREATE TABLE schedules (
	name     TEXT PRIMARY KEY,
	revision INTEGER NOT NULL,
	asked    TEXT NOT NULL,    -- JSON of Timing
	made     INTEGER NOT NULL,
	by       TEXT NOT NULL,
	anchor   INTEGER NOT NULL, -- from which "every" counts
	next     INTEGER NOT NULL, -- when it is due; 0: to be found
	handled  INTEGER NOT NULL, -- the last time that was due and dealt with; 0: none
	run      TEXT NOT NULL     -- the last that it started
) STRICT;
CREATE TABLE firings (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	schedule TEXT NOT NULL,
	due      INTEGER NOT NULL,
	at       INTEGER NOT NULL,
	missed   INTEGER NOT NULL,
	state    TEXT NOT NULL,
	run      TEXT NOT NULL,
	reason   TEXT NOT NULL
) STRICT;
CREATE INDEX firings_by_schedule ON firings (schedule, seq);
CREATE TABLE hooks (
	id     TEXT PRIMARY KEY,
	name   TEXT NOT NULL UNIQUE,
	url    TEXT NOT NULL,
	events TEXT NOT NULL, -- JSON
	secret TEXT NOT NULL,
	paused INTEGER NOT NULL,
	reason TEXT NOT NULL, -- why the box paused it
	made   INTEGER NOT NULL,
	by     TEXT NOT NULL
) STRICT;
CREATE TABLE deliveries (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	id       TEXT NOT NULL, -- of the event
	hook     TEXT NOT NULL,
	event    TEXT NOT NULL,
	body     TEXT NOT NULL,
	made     INTEGER NOT NULL,
	state    TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	tried    INTEGER NOT NULL, -- 0: not yet
	next     INTEGER NOT NULL, -- when it is tried again
	status   INTEGER NOT NULL, -- of HTTP; 0: no answer
	error    TEXT NOT NULL
) STRICT;
CREATE INDEX deliveries_by_state ON deliveries (state, next);
CREATE TABLE told (
	run TEXT PRIMARY KEY,
	at  INTEGER NOT NULL
) STRICT;
CREATE TABLE alerts (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	series  TEXT NOT NULL,    -- key
	metric  TEXT NOT NULL,
	trend   TEXT NOT NULL,
	wall    INTEGER NOT NULL, -- of the first run of the new level
	raised  INTEGER NOT NULL,
	acked   INTEGER NOT NULL, -- 0: open
	alert   TEXT NOT NULL     -- JSON of Alert
) STRICT;
CREATE INDEX alerts_by_series ON alerts (series, metric, trend);
`, `
ALTER TABLE hooks ADD COLUMN way TEXT NOT NULL DEFAULT '';       -- how it is told; '' are events
ALTER TABLE deliveries ADD COLUMN path TEXT NOT NULL DEFAULT ''; -- below the hook's address
`, `
CREATE TABLE refs (
	id        INTEGER PRIMARY KEY AUTOINCREMENT,
	name      TEXT NOT NULL,    -- of the run
	branch    TEXT NOT NULL,
	version   INTEGER NOT NULL, -- counts those of name and branch
	run       TEXT NOT NULL,
	reference TEXT NOT NULL,    -- JSON of RunReference
	UNIQUE (name, branch, version)
) STRICT;
CREATE INDEX refs_by_run ON refs (run);
`}
}

// Stir makes Work look for something to do.
func (k *Keeper) Stir() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// name is what workflows, schedules and webhooks may be called.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,59}$`) // constant

const mostTags = 14

// WrongError says what is wrong with what somebody gave.
type WrongError struct{ Err error }

func (e *WrongError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *WrongError) Unwrap() error { return e.Err }

func wrong(format string, args ...any) error { return &WrongError{fmt.Errorf(format, args...)} }

// Errors that callers tell apart.
var (
	ErrChanged = errors.New("it was changed since")                 // constant
	ErrExists  = errors.New("there is one of this name already")    // constant
	ErrMany    = errors.New("there are too many: remove one first") // constant
	ErrDone    = errors.New("it was acknowledged already")          // constant

	ErrResolved = errors.New("it was resolved already")                 // constant
	ErrInUse    = errors.New("a schedule starts it: remove that first") // constant
	ErrVersion  = errors.New("only the newest versions of it are kept") // constant
)

// CheckName returns an error for a name that nothing may have.
func CheckName(text string) error {
	if !name.MatchString(text) {
		return wrong("name %.70q: 1 to 60 lower-case letters, digits, dots, dashes and underscores, a letter or digit first", text)
	}
	return nil
}

func checkTags(tags []string) error {
	if len(tags) > mostTags {
		return wrong("tags: %d are too many, at most %d", len(tags), mostTags)
	}
	if err := plan.CheckTags(tags); err != nil {
		return wrong("tags: %w", err)
	}
	return nil
}

// in carries out f in a transaction.
func (k *Keeper) in(ctx context.Context, doing string, f func(tx *sql.Tx) error) error {
	tx, err := k.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, store.AsKnown(err))
	}
	defer tx.Rollback()
	if err = f(tx); err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, store.AsKnown(err))
	}
	return nil
}

// stamp is a time as it is stored; the zero time is 0.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// timeOf is the time of a stamp.
func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// timeIf is timeOf for a field that is left out where there is none.
func timeIf(ns int64) *time.Time {
	if ns == 0 {
		return nil
	}
	t := timeOf(ns)
	return &t
}

// CheckFile says why a file cannot be opened, or brings it to the newest version.
func CheckFile(ctx context.Context, file string) error {
	db, _, err := store.OpenDatabase(ctx, file, schema())
	if err != nil {
		return err
	}
	return db.Close()
}
