-- The index as of 9e7376b (git show 9e7376b:internal/keep/store/index.go).
CREATE TABLE runs (
	id     TEXT PRIMARY KEY,
	wall   INTEGER NOT NULL, -- Unix ns
	state  TEXT NOT NULL,
	stamp  TEXT NOT NULL,    -- of the files that the entry was read from
	entry  TEXT NOT NULL     -- JSON of Entry
) STRICT;
CREATE INDEX runs_by_wall ON runs (wall DESC, id DESC);
-- Runs that are done, each page and user of a run of many for itself.
CREATE TABLE pasts (
	id     TEXT NOT NULL,    -- of the run
	cell   INTEGER NOT NULL, -- from 0
	wall   INTEGER NOT NULL, -- of the run
	-- The key of the series, and what that is made of.
	series TEXT NOT NULL,
	name   TEXT NOT NULL,
	page   TEXT NOT NULL,
	link   TEXT NOT NULL,
	device TEXT NOT NULL,
	browser TEXT NOT NULL,
	past   TEXT NOT NULL,    -- JSON of Past
	PRIMARY KEY (id, cell)
) STRICT;
CREATE INDEX pasts_by_series ON pasts (series, wall DESC, id DESC);
PRAGMA user_version = 6;
