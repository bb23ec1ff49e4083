package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
)

// Errors that callers branch on, besides those of package store.
var (
	ErrNothing    = errors.New("nothing waits that this box can carry out")
	ErrLost       = errors.New("the lease is lost: the part was given to another box, or has ended")
	ErrUnknownBox = errors.New("no box of this fleet has this certificate: join it with a code from the head's panel")
	ErrCode       = errors.New("this code is unknown, used or too old: make a new one in the head's panel")
	ErrChanged    = errors.New("somebody else has changed it meanwhile: look at it again")
	ErrNameTaken  = errors.New("another box of the fleet has this name: choose another one")
)

// defaultLease is how long a lease lasts if Config does not say.
const defaultLease = 3 * time.Minute

// Config says where the ledger is kept.
type Config struct {
	// Database is postgres://… or the path of a SQLite file.
	Database string
	// Lease is how long a lease lasts without renewal; 0 is three minutes.
	Lease time.Duration
	// Now is the clock; nil is the machine's.
	Now func() time.Time
	// Log is for what goes wrong in the background; nil is nowhere.
	Log *slog.Logger
	// Assemble makes one run of the parts that have all ended. It is called again after an error and after a
	// crash, so it must give the same for the same parts. Without it this process assembles nothing.
	Assemble func(ctx context.Context, run Run) (Assembled, error)
}

// Assembled is what came of a run.
type Assembled struct {
	State string // done, failed or interrupted, as in run.json
	Error string
	Files []fleet.File
}

// Ledger is the head's database. It is safe for concurrent use, and on PostgreSQL for several processes.
type Ledger struct {
	write    *sql.DB // one connection on SQLite, which has one writer
	read     *sql.DB
	postgres bool
	lease    time.Duration
	now      func() time.Time
	log      *slog.Logger
	assemble func(ctx context.Context, run Run) (Assembled, error)
	allEnded chan struct{} // capacity 1: a run may wait for its assembly
	needs    needCache
	counted  struct { // see room
		mu         sync.Mutex
		n, waiting int64
	}
}

// Open opens the database and brings it to the newest version. Leases that nobody could renew because no head
// was there last anew from now. Like all calls, it returns a [lab.AwayError] while PostgreSQL is away.
func Open(ctx context.Context, c Config) (*Ledger, error) {
	l := &Ledger{lease: c.Lease, now: c.Now, log: c.Log, assemble: c.Assemble, allEnded: make(chan struct{}, 1)}
	if l.lease <= 0 {
		l.lease = defaultLease
	}
	if l.now == nil {
		l.now = time.Now
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if err := l.open(ctx, c.Database); err != nil {
		return nil, err
	}
	err := l.migrate(ctx)
	if err == nil {
		err = l.wake(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context, database string) error {
	if strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://") {
		config, err := pgx.ParseConfig(database)
		if err != nil {
			return fmt.Errorf("the address of the fleet's database: %w", err)
		}
		config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
		db := stdlib.OpenDB(*config)
		db.SetMaxOpenConns(postgresConnections)
		db.SetMaxIdleConns(postgresConnections)
		db.SetConnMaxIdleTime(time.Minute)
		l.write, l.read, l.postgres = db, db, true
		return nil
	}
	// The versions of our tables are in a table, because PostgreSQL has no user_version.
	db, _, err := store.OpenDatabase(ctx, database, nil)
	if err != nil {
		return fmt.Errorf("the fleet's database: %w", err)
	}
	db.SetMaxOpenConns(1)
	read, _, err := store.OpenDatabase(ctx, database, nil)
	if err != nil {
		_ = db.Close()
		return fmt.Errorf("the fleet's database: %w", err)
	}
	read.SetMaxOpenConns(sqliteReaders)
	l.write, l.read = db, read
	return nil
}

// Bounds on the connections of one head.
const (
	connectTimeout      = 10 * time.Second // if the address says none
	postgresConnections = 16
	sqliteReaders       = 4
)

// Shared says whether other heads may use the database as well.
func (l *Ledger) Shared() bool { return l.postgres }

// Close closes the database. Calls that go on fail.
func (l *Ledger) Close() error {
	if l.read == l.write {
		return l.write.Close()
	}
	return errors.Join(l.read.Close(), l.write.Close())
}

// needCache keeps parsed needs by the name of their queue, which is a digest of them.
type needCache struct {
	mu  sync.Mutex
	all map[string]waiting
}

// mostNeeds bounds the cache.
const mostNeeds = 10_000

func (c *needCache) get(queue string, parse func() (waiting, error)) (waiting, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w, ok := c.all[queue]; ok {
		return w, nil
	}
	w, err := parse()
	if err != nil {
		return w, err
	}
	if c.all == nil || len(c.all) >= mostNeeds {
		c.all = map[string]waiting{}
	}
	c.all[queue] = w
	return w, nil
}
