package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"eidetic/internal/lab"
)

// Entry is what a list shows of a run.
type Entry struct {
	ID      string        `json:"id" doc:"Identifier; sorts by time"`
	Name    string        `json:"name"`
	Kind    string        `json:"kind,omitempty" enum:"film,qualification" doc:"What it is if it executed no plan: a film of a device's screen, or the qualification of a grabber"`
	Wall    time.Time     `json:"wall" doc:"When the run started"`
	Elapsed float64       `json:"elapsed_s"`
	State   string        `json:"state" enum:"queued,running,done,failed,interrupted"`
	Error   string        `json:"error,omitempty"`
	Page    string        `json:"page" doc:"URL under test"`
	Trials  int           `json:"trials"`
	Valid   int           `json:"valid" doc:"Trials that entered the statistics"`
	Summary []lab.Summary `json:"summary"`
	// Comparison is the result of a run with two arms, in short.
	Comparison *Found `json:"comparison,omitempty"`
	// Waits is only of runs in the queue.
	Waits string `json:"waits,omitempty" doc:"What it waits for, or parts of it, in words" example:"virtual carries out 20261121-091400-demo, and it is next"`
	// Report says whether the folder has a report.html.
	Report bool `json:"report"`
	// On is of runs on the head of a fleet.
	On []string `json:"on,omitempty" doc:"Boxes and devices of a fleet that carried it out, or do so now" example:"lab-1/virtual"`
}

// Found is the verdict of a comparison and its words.
type Found struct {
	Verdict  string `json:"verdict" doc:"slower, faster, mixed, none (no difference was found) or unknown (too few trials)"`
	Headline string `json:"headline" doc:"The verdict as a sentence"`
	Detail   string `json:"detail" doc:"The number that it rests on"`
	Partial  bool   `json:"partial,omitempty" doc:"Whether the run ended before all its trials were done"`
}

// schemaVersion is kept in the file's user_version; a file of another version is replaced.
const schemaVersion = 10

const schema = `
CREATE TABLE runs (
	id     TEXT PRIMARY KEY,
	wall   INTEGER NOT NULL, -- Unix ns
	state  TEXT NOT NULL,
	stamp  TEXT NOT NULL,    -- of the files that the entry was read from
	-- What a list can be filtered by; see Filter.
	name   TEXT NOT NULL,
	page   TEXT NOT NULL,
	link   TEXT NOT NULL,
	device TEXT NOT NULL,
	browser TEXT NOT NULL,
	verdict TEXT NOT NULL,
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
`

// Index lists runs without reading their folders. All its content comes from the
// folders: a file that is missing, damaged or of another version is replaced by an
// empty one, which Rebuild fills.
type Index struct {
	db *sql.DB
	// Fresh says why OpenIndex made a new file; it is empty if the file was kept.
	Fresh  string
	memory bool
}

// memoryIndex makes an index without a file.
func memoryIndex() (*Index, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, fmt.Errorf("index in memory: %w", err)
	}
	db.SetMaxOpenConns(1) // an in-memory database belongs to one connection
	if err := prepare(db); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("index in memory: %w", err)
	}
	return &Index{db: db, memory: true}, nil
}

// OpenIndex opens the index file, or replaces it by an empty one if it is damaged.
func OpenIndex(path string) (*Index, error) {
	fresh := ""
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		fresh = "it was missing"
	}
	db, err := openIndex(path)
	if err != nil && isDamaged(err) {
		fresh = err.Error()
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("open index: replace the damaged file: %w", err)
			}
		}
		db, err = openIndex(path)
	}
	if err != nil {
		return nil, fmt.Errorf("open index %s: %w", path, err)
	}
	return &Index{db: db, Fresh: fresh}, nil
}

var errVersion = errors.New("the index is of another version")

func isDamaged(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return true
		}
	}
	return errors.Is(err, errVersion)
}

// asKnown adds to SQLite's error what callers know: ENOSPC for a full disk, and a [lab.AwayError] for a file that another
// program has locked for longer than the busy timeout, such as somebody's sqlite3 or a copying program.
func asKnown(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Code()&0xff == sqlite3.SQLITE_FULL || e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE:
		return fmt.Errorf("%w (%w)", syscall.ENOSPC, err)
	case e.Code()&0xff == sqlite3.SQLITE_BUSY:
		return &lab.AwayError{What: "a database of the appliance, which another program has locked,", Err: err}
	}
	return err
}

// dsn is the data source name of a database file that several processes may use:
// write-ahead log, and a busy timeout of five seconds.
func dsn(path, synchronous string) string {
	q := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(" + synchronous + ")"}, "_txlock": {"immediate"}}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

func openIndex(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(path, "NORMAL"))
	if err != nil {
		return nil, err
	}
	if err := prepare(db); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

func prepare(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var version, tables int
	if err := tx.QueryRow(`PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	if err := tx.QueryRow(`SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
		return err
	}
	switch {
	case version == schemaVersion:
		var verdict string
		if err := tx.QueryRow(`PRAGMA quick_check(1)`).Scan(&verdict); err != nil {
			return err
		}
		if verdict != "ok" {
			return fmt.Errorf("%w: %s", errVersion, verdict)
		}
		return nil
	case version != 0 || tables != 0:
		return fmt.Errorf("%w (%d)", errVersion, version)
	}
	if _, err := tx.Exec(schema); err != nil {
		return err
	}
	if _, err := tx.Exec(fmt.Sprintf(`PRAGMA user_version = %d`, schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// Close closes the file.
func (x *Index) Close() error { return x.db.Close() }

// Rebuild brings the index in line with the folders under root/runs. It reads only
// folders that are new or changed. A folder that cannot be read as a run is listed as
// interrupted, with the reason in Error, and is not modified.
func (x *Index) Rebuild(ctx context.Context, root string) error {
	known, err := x.stamps(ctx)
	if err != nil {
		return fmt.Errorf("rebuild index: %w", err)
	}
	folders, err := os.ReadDir(filepath.Join(root, runsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("rebuild index: %w", err)
	}
	for _, d := range folders {
		if !d.IsDir() || !ValidID(d.Name()) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("rebuild index: %w", err)
		}
		dir := filepath.Join(root, runsDir, d.Name())
		stamp := stampOf(dir)
		if known[d.Name()] != stamp {
			r := readRow(dir)
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				continue // the folder was removed after the listing
			}
			if err := x.put(ctx, r, stamp); err != nil {
				return fmt.Errorf("rebuild index: run %s: %w", d.Name(), err)
			}
		}
		delete(known, d.Name())
	}
	for id := range known {
		for _, table := range []string{`DELETE FROM pasts WHERE id = ?`, `DELETE FROM runs WHERE id = ?`} {
			if _, err := x.db.ExecContext(ctx, table, id); err != nil {
				return fmt.Errorf("rebuild index: %w", err)
			}
		}
	}
	return nil
}

func (x *Index) stamps(ctx context.Context) (map[string]string, error) {
	rows, err := x.db.QueryContext(ctx, `SELECT id, stamp FROM runs`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := map[string]string{}
	for rows.Next() {
		var id, stamp string
		if err := rows.Scan(&id, &stamp); err != nil {
			return nil, err
		}
		known[id] = stamp
	}
	return known, rows.Err()
}

// row is what the index holds for one run.
type row struct {
	Entry
	series Series    // of the run as a whole
	pasts  []pastRow // of its pages and users; none where the run is not done
}

// pastRow is what a history reads of a page and user.
type pastRow struct {
	series Series
	past   Past
}

func (x *Index) put(ctx context.Context, r row, stamp string) error {
	entry, err := json.Marshal(r.Entry)
	if err != nil {
		return err
	}
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	verdict := ""
	if r.Comparison != nil {
		verdict = r.Comparison.Verdict
	}
	if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO runs (id, wall, state, stamp, name, page, link, device, browser, verdict, entry)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, r.ID, r.Wall.UnixNano(), r.State, stamp, clip(r.series.Name), clip(r.series.Page), clip(r.series.Link),
		clip(r.series.Device), clip(r.series.Browser), verdict, string(entry)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM pasts WHERE id = ?`, r.ID); err != nil {
		return err
	}
	for i, p := range r.pasts {
		past, err := json.Marshal(p.past)
		if err != nil {
			return err
		}
		s := p.series
		if _, err := tx.ExecContext(ctx, `INSERT INTO pasts (id, cell, wall, series, name, page, link, device, browser, past)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, r.ID, i, r.Wall.UnixNano(), s.Key(), clip(s.Name), clip(s.Page), clip(s.Link),
			clip(s.Device), clip(s.Browser), string(past)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Runs returns at most limit entries that match, newest first, that follow last in that order. last
// need not be in the index; nil starts at the newest. A limit of 0 returns all.
func (x *Index) Runs(ctx context.Context, last *Entry, limit int, want Filter) ([]Entry, error) {
	if limit <= 0 {
		limit = -1
	}
	condition, args := want.where()
	if last != nil {
		condition += " AND (wall, id) < (?, ?)"
		args = append(args, last.Wall.UnixNano(), last.ID)
	}
	rows, err := x.db.QueryContext(ctx, `SELECT entry FROM runs WHERE `+condition+` ORDER BY wall DESC, id DESC LIMIT ?`, append(args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	defer rows.Close()
	entries := []Entry{}
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		var e Entry
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		entries = append(entries, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return entries, nil
}

// Get returns one entry, or ErrNotFound.
func (x *Index) Get(ctx context.Context, id string) (Entry, error) {
	var text string
	var e Entry
	err := x.db.QueryRowContext(ctx, `SELECT entry FROM runs WHERE id = ?`, id).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return e, ErrNotFound
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &e)
	}
	if err != nil {
		return e, fmt.Errorf("get run: %w", err)
	}
	return e, nil
}

// stampOf returns a text that changes when the files that an entry is made from change.
// It includes the inode, because a file may be replaced within one tick of the clock.
func stampOf(dir string) string {
	stamp := ""
	for _, name := range []string{RunFile, "report.html"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			stamp += fmt.Sprintf("%d/%d", info.Size(), info.ModTime().UnixNano())
			if sys, ok := info.Sys().(*syscall.Stat_t); ok {
				stamp += fmt.Sprintf("/%d", sys.Ino)
			}
			stamp += " "
		} else {
			stamp += "- "
		}
	}
	if isLocked(dir) {
		stamp += "held"
	}
	return stamp
}

// readRow reads a run's folder. It always returns a row, also for a folder that cannot be read.
func readRow(dir string) row {
	id := filepath.Base(dir)
	run, err := ReadRun(dir)
	if err != nil {
		e := Entry{ID: id, State: StateInterrupted, Error: err.Error(), Summary: []lab.Summary{}}
		if info, statErr := os.Stat(dir); statErr == nil {
			e.Wall = info.ModTime().UTC()
		}
		return row{Entry: e}
	}
	// Entries are short, whatever the run holds.
	e := Entry{
		ID: id, Name: clip(run.Name), Kind: clip(run.Kind), Wall: run.Wall, Elapsed: run.Elapsed, State: run.State, Error: clip(run.Error),
		Page: clip(run.Page), Trials: run.Measured(), Summary: []lab.Summary{}, On: onOf(run),
	}
	for _, s := range run.Summary[:min(len(run.Summary), 64)] {
		s.Metric, s.Unit, s.Arm, s.Warnings = clip(s.Metric), clip(s.Unit), clip(s.Arm), nil
		e.Summary = append(e.Summary, s)
	}
	if c := run.Comparison; c != nil {
		e.Comparison = &Found{Verdict: clip(c.Verdict), Headline: clip(c.Headline), Detail: clip(c.Detail), Partial: c.Partial}
	}
	for _, t := range run.Trials {
		if t.Valid {
			e.Valid++
		}
	}
	if info, err := os.Lstat(filepath.Join(dir, "report.html")); err == nil {
		e.Report = info.Mode().IsRegular()
	}
	r := row{Entry: e, series: seriesOf(run)}
	if run.State != StateDone || run.Kind != "" { // what executed no plan has no numbers to compare
		return r
	}
	for _, view := range run.Views() {
		series, past := pastOf(view, e.Report)
		r.pasts = append(r.pasts, pastRow{series, past})
	}
	return r
}

// clip shortens a text of a list to 1,000 bytes.
func clip(s string) string { return shorten(s, 1000) }

func shorten(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// sortTrials sorts trials by number: the experiment may have saved them as they ended.
func sortTrials(trials []*lab.Trial) {
	sort.SliceStable(trials, func(i, j int) bool { return trials[i].Number < trials[j].Number })
}
