-- The index as of e93f01f (git show e93f01f:internal/keep/store/index.go).
CREATE TABLE runs (
	id    TEXT PRIMARY KEY,
	wall  INTEGER NOT NULL, -- Unix ns
	state TEXT NOT NULL,
	stamp TEXT NOT NULL,    -- of the files that the entry was read from
	entry TEXT NOT NULL     -- JSON of Entry
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_wall ON runs (wall DESC, id DESC);
PRAGMA user_version = 1;
