-- A box's automation as of 7839aba, version 1.
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
INSERT INTO workflows VALUES ('checkout', 2, 0, '["team-checkout"]');
INSERT INTO versions VALUES ('checkout', 1, '{"page":"https://x.test/","trials":5}', 1767261600000000000, 'box'),
	('checkout', 2, '{"page":"https://x.test/","trials":9}', 1767265200000000000, 'nightly');
INSERT INTO schedules VALUES ('nightly', 1, '{"workflow":"checkout","cron":"30 2 * * 1-5","zone":"UTC"}', 1767261600000000000, 'box', 1767261600000000000, 0, 0, '');
INSERT INTO firings (schedule, due, at, missed, state, run, reason) VALUES ('nightly', 1767261600000000000, 1767261601000000000, 0, 'run', '20260101-100000-a', '');
INSERT INTO hooks VALUES ('abc', 'chat', 'https://127.0.0.1:1/', '["run.finished"]', 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5', 0, '', 1767261600000000000, 'box');
INSERT INTO deliveries (id, hook, event, body, made, state, attempts, tried, next, status, error)
	VALUES ('e1', 'abc', 'run.finished', '{}', 1767261600000000000, 'waiting', 0, 0, 1767261600000000000, 0, '');
INSERT INTO told VALUES ('20260101-100000-a', 1767261600000000000);
INSERT INTO alerts (series, metric, trend, wall, raised, acked, alert) VALUES ('0123456789abcdef', 'speed_index_ms', 'slower', 1767261600000000000, 1767261600000000000, 0, '{"metric":"speed_index_ms","trend":"slower","run":"20260101-100000-a"}');
PRAGMA user_version = 1;
