-- A queue as of ac8af8e: with keys, without a version.
CREATE TABLE IF NOT EXISTS jobs (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	id      TEXT NOT NULL UNIQUE,
	device  TEXT NOT NULL,
	created INTEGER NOT NULL, -- Unix ns
	state   TEXT NOT NULL,
	error   TEXT NOT NULL DEFAULT '',
	request TEXT NOT NULL     -- JSON
) STRICT;
CREATE INDEX IF NOT EXISTS jobs_by_device ON jobs (device, state, seq);
CREATE TABLE IF NOT EXISTS keys (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	key     TEXT NOT NULL UNIQUE,
	request TEXT NOT NULL,    -- digest
	job     TEXT NOT NULL,    -- ID
	created INTEGER NOT NULL  -- Unix ns
) STRICT;
INSERT INTO jobs (id, device, created, state, error, request) VALUES
('20260101-100000-waits', 'laptop', 1767261600000000000, 'queued', '', '{"name":"waits","device":"laptop","page":"https://x.test/","link":"4g","trials":7,"still_s":1.5,"limit_s":60,"seed":1,"treatment":{"link":"3g"}}'),
('20260101-110000-runs', 'laptop', 1767265200000000000, 'running', '', '{"name":"runs","device":"laptop","page":"https://x.test/","timing":"fixed:20ms"}'),
('20260101-120000-failed', 'air', 1767268800000000000, 'failed', 'no lease', '{"page":"https://x.test/"}');
INSERT INTO keys (key, request, job, created) VALUES ('nightly-7', 'digest', '20260101-100000-waits', 1767261600000000000);
