-- A queue as of 69072dd: without keys and without a version, with the requests of that time.
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
INSERT INTO jobs (id, device, created, state, error, request) VALUES
('20260101-100000-waits', 'laptop', 1767261600000000000, 'queued', '', '{"name":"waits","device":"laptop","page":"https://x.test/","archive":"shop.wacz","link":"4g","trials":7}'),
('20260101-110000-runs', 'laptop', 1767265200000000000, 'running', '', '{"name":"runs","device":"laptop","page":"https://x.test/","archive":"shop.wacz","browser":"chromium"}'),
('20260101-120000-failed', 'air', 1767268800000000000, 'failed', 'no lease', '{"page":"https://x.test/","archive":"shop.wacz"}');
