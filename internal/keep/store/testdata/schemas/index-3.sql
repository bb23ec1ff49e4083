-- The index as of ac8af8e (git show ac8af8e:internal/keep/store/index.go).
CREATE TABLE runs (
	id     TEXT PRIMARY KEY,
	wall   INTEGER NOT NULL, -- Unix ns
	state  TEXT NOT NULL,
	stamp  TEXT NOT NULL,    -- of the files that the entry was read from
	-- Of a run that is done, elsewhere '': the key of its series, and what that is made of.
	series TEXT NOT NULL,
	name   TEXT NOT NULL,
	page   TEXT NOT NULL,
	link   TEXT NOT NULL,
	device TEXT NOT NULL,
	entry  TEXT NOT NULL,    -- JSON of Entry
	past   TEXT NOT NULL     -- JSON of Past, or ''
) STRICT;
CREATE INDEX runs_by_wall ON runs (wall DESC, id DESC);
CREATE INDEX runs_by_series ON runs (series, wall DESC, id DESC);
PRAGMA user_version = 3;
