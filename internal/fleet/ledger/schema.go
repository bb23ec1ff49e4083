package ledger

import (
	"context"
	"fmt"
)

// steps lead the tables to the newest version: steps[i] leads from version i to i+1. The text is for SQLite and
// PostgreSQL alike; times are Unix nanoseconds.
func steps() []string { return []string{first} }

const first = `
CREATE TABLE fleet_state ( -- what there is one of: counters and times
	name TEXT PRIMARY KEY,
	n    BIGINT NOT NULL
);
INSERT INTO fleet_state (name, n) VALUES ('adding', 0), ('alive', 0), ('ends', 0), ('clock-1', 0), ('clock-2', 0), ('clock-3', 0), ('clock-4', 0);
CREATE TABLE fleet_codes (
	hash  TEXT PRIMARY KEY, -- SHA-256 of the code
	maker TEXT NOT NULL,
	made  BIGINT NOT NULL,
	until BIGINT NOT NULL,
	box   TEXT NOT NULL DEFAULT '' -- that used it
);
CREATE TABLE fleet_boxes (
	id          TEXT PRIMARY KEY,
	name        TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	joined      BIGINT NOT NULL,
	seen        BIGINT NOT NULL,
	offer       TEXT NOT NULL,
	labels      TEXT NOT NULL DEFAULT '{}', -- of the head's people
	health      TEXT NOT NULL,
	reason      TEXT NOT NULL DEFAULT '',
	removed     BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX fleet_boxes_name ON fleet_boxes (name) WHERE removed = 0;
CREATE UNIQUE INDEX fleet_boxes_fingerprint ON fleet_boxes (fingerprint) WHERE removed = 0;
CREATE TABLE fleet_needs ( -- queues in which parts wait
	queue TEXT PRIMARY KEY,
	need  TEXT NOT NULL,
	bars  TEXT NOT NULL -- boxes and devices that gave such a part back
);
CREATE TABLE fleet_series (
	series   TEXT NOT NULL,
	priority BIGINT NOT NULL,
	finish   BIGINT NOT NULL, -- virtual time at which its last part is through
	PRIMARY KEY (series, priority)
);
CREATE TABLE fleet_keys ( -- idempotency keys of requests for runs
	key     TEXT PRIMARY KEY,
	request TEXT NOT NULL,
	run     TEXT NOT NULL,
	made    BIGINT NOT NULL
);
CREATE INDEX fleet_keys_made ON fleet_keys (made);
CREATE TABLE fleet_runs (
	id        TEXT PRIMARY KEY,
	plan      TEXT NOT NULL,
	series    TEXT NOT NULL,
	priority  BIGINT NOT NULL,
	reference TEXT NOT NULL,
	state     TEXT NOT NULL,
	error     TEXT NOT NULL DEFAULT '',
	created   BIGINT NOT NULL,
	started   BIGINT NOT NULL DEFAULT 0,
	ended     BIGINT NOT NULL DEFAULT 0,
	cancel    BIGINT NOT NULL DEFAULT 0,
	open      BIGINT NOT NULL, -- parts that have not ended
	ends      BIGINT NOT NULL DEFAULT 0, -- place in the order of ends
	tries     BIGINT NOT NULL DEFAULT 0, -- to assemble it
	due       BIGINT NOT NULL DEFAULT 0, -- when the next try may begin
	files     TEXT NOT NULL DEFAULT '[]' -- of the assembled run
);
CREATE INDEX fleet_runs_created ON fleet_runs (created, id);
CREATE INDEX fleet_runs_state ON fleet_runs (state, created, id);
CREATE INDEX fleet_runs_due ON fleet_runs (due, id) WHERE state = 'assembling';
CREATE INDEX fleet_runs_series ON fleet_runs (series, state);
CREATE UNIQUE INDEX fleet_runs_ends ON fleet_runs (ends) WHERE ends > 0;
CREATE TABLE fleet_parts (
	id       TEXT PRIMARY KEY,
	run      TEXT NOT NULL,
	idx      BIGINT NOT NULL,
	plan     TEXT NOT NULL,
	archives TEXT NOT NULL,
	need     TEXT NOT NULL,
	bars     TEXT NOT NULL DEFAULT '[]',
	queue    TEXT NOT NULL,
	state    TEXT NOT NULL,
	priority BIGINT NOT NULL, -- 1 comes first
	tag      BIGINT NOT NULL, -- virtual time at which it starts
	n        BIGINT NOT NULL, -- place in the order in which parts were added
	attempt  BIGINT NOT NULL DEFAULT 0,
	outcome  TEXT NOT NULL DEFAULT '',
	ended    BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX fleet_parts_run ON fleet_parts (run, idx);
CREATE INDEX fleet_parts_queued ON fleet_parts (queue, priority, tag, n) WHERE state = 'queued';
CREATE INDEX fleet_parts_served ON fleet_parts (priority, tag) WHERE attempt > 0;
CREATE TABLE fleet_attempts ( -- leases, past and present
	part     TEXT NOT NULL,
	attempt  BIGINT NOT NULL,
	box      TEXT NOT NULL,
	device   TEXT NOT NULL,
	request  TEXT, -- SHA-256 of the box's name for its claim
	nonce    TEXT NOT NULL, -- from which, with the request, the token is made
	token    TEXT NOT NULL, -- SHA-256
	state    TEXT NOT NULL, -- live, vanished, returned or ended
	until    BIGINT NOT NULL,
	claimed  BIGINT NOT NULL,
	ended    BIGINT NOT NULL DEFAULT 0,
	why      TEXT NOT NULL DEFAULT '',
	progress TEXT NOT NULL DEFAULT '{}',
	files    TEXT NOT NULL DEFAULT '[]',
	PRIMARY KEY (part, attempt)
);
CREATE UNIQUE INDEX fleet_attempts_part ON fleet_attempts (part) WHERE state = 'live';
CREATE UNIQUE INDEX fleet_attempts_device ON fleet_attempts (box, device) WHERE state = 'live';
CREATE UNIQUE INDEX fleet_attempts_request ON fleet_attempts (box, request) WHERE request IS NOT NULL;
CREATE INDEX fleet_attempts_until ON fleet_attempts (until) WHERE state = 'live';
CREATE TABLE fleet_wants (
	digest TEXT NOT NULL,
	box    TEXT NOT NULL,
	part   TEXT NOT NULL,
	path   TEXT NOT NULL,
	made   BIGINT NOT NULL,
	PRIMARY KEY (digest, box)
);
CREATE INDEX fleet_wants_box ON fleet_wants (box);
CREATE TABLE fleet_readings (
	box     TEXT NOT NULL,
	device  TEXT NOT NULL,
	n       BIGINT NOT NULL,
	at      BIGINT NOT NULL,
	reading TEXT NOT NULL,
	PRIMARY KEY (box, device, n)
);
CREATE TABLE fleet_settings ( -- what people decide for the whole fleet
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL -- JSON
);
`

// migrateLock is the key of PostgreSQL's advisory lock under which one head migrates.
const migrateLock int64 = 0x65696465746963

// migrate brings the tables to the newest version.
func (l *Ledger) migrate(ctx context.Context) error {
	return l.update(ctx, "bring the tables to the newest version", func(tx *tx) error {
		if l.postgres { // one head at a time; the lock ends with the transaction
			if _, err := tx.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, migrateLock); err != nil {
				return err
			}
		}
		return tx.migrate(ctx, steps())
	})
}

// migrate carries out the steps that the database has not seen.
func (tx *tx) migrate(ctx context.Context, all []string) error {
	if _, err := tx.exec(ctx, `CREATE TABLE IF NOT EXISTS fleet_version (version BIGINT NOT NULL)`); err != nil {
		return err
	}
	var version int
	if err := tx.row(ctx, `SELECT coalesce(max(version), 0) FROM fleet_version`).Scan(&version); err != nil {
		return err
	}
	if version > len(all) {
		return fmt.Errorf("its version is %d, and this appliance knows %d: a newer one wrote it; start that one", version, len(all))
	}
	for _, step := range all[version:] {
		if _, err := tx.exec(ctx, step); err != nil {
			return err
		}
	}
	if _, err := tx.exec(ctx, `DELETE FROM fleet_version`); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `INSERT INTO fleet_version (version) VALUES (?)`, len(all))
	return err
}
