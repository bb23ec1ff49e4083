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
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"eidetic/internal/lab"
)

// Entry is what a list shows of a run.
type Entry struct {
	ID      string        `json:"id" doc:"Identifier; sorts by time"`
	Name    string        `json:"name"`
	Wall    time.Time     `json:"wall" doc:"When the run started"`
	Elapsed float64       `json:"elapsed_s"`
	State   string        `json:"state" enum:"queued,running,done,failed,interrupted"`
	Error   string        `json:"error,omitempty"`
	Page    string        `json:"page" doc:"URL under test"`
	Trials  int           `json:"trials"`
	Valid   int           `json:"valid" doc:"Trials that entered the statistics"`
	Summary []lab.Summary `json:"summary"`
	// Report says whether the folder has a report.html.
	Report bool `json:"report"`
}

// schemaVersion is in the file's user_version; another one means another layout.
const schemaVersion = 1

const schema = `
CREATE TABLE runs (
	id    TEXT PRIMARY KEY,
	wall  INTEGER NOT NULL, -- Unix ns
	state TEXT NOT NULL,
	stamp TEXT NOT NULL,    -- of the files that the entry was read from
	entry TEXT NOT NULL     -- JSON of Entry
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_wall ON runs (wall DESC, id DESC);
`

// Index lists runs without reading their folders. It holds nothing that the
// folders do not: when its file is missing, damaged or of another version it
// is made anew, and Rebuild fills it.
type Index struct {
	db *sql.DB
	// Fresh is set when OpenIndex had to make the file, and says why.
	Fresh string
}

// OpenIndex opens the index file or makes it anew.
func OpenIndex(path string) (*Index, error) {
	fresh := ""
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		fresh = "it was missing"
	}
	db, err := openIndex(path)
	if err != nil && damaged(err) {
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

func damaged(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return true
		}
	}
	return errors.Is(err, errVersion)
}

// dsn is the data source name for a database file that several processes may
// use: write-ahead log, five seconds of patience.
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

// Rebuild brings the index in line with the folders under root/runs: folders
// that are new or changed are read, the others are not. A folder that cannot
// be read as a run is listed as interrupted with the reason in Error, and is
// left as it is.
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
			if err := x.put(ctx, readEntry(dir), stamp); err != nil {
				return fmt.Errorf("rebuild index: run %s: %w", d.Name(), err)
			}
		}
		delete(known, d.Name())
	}
	for id := range known {
		if _, err := x.db.ExecContext(ctx, `DELETE FROM runs WHERE id = ?`, id); err != nil {
			return fmt.Errorf("rebuild index: %w", err)
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

func (x *Index) put(ctx context.Context, e Entry, stamp string) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = x.db.ExecContext(ctx, `INSERT INTO runs (id, wall, state, stamp, entry) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET wall = excluded.wall, state = excluded.state, stamp = excluded.stamp, entry = excluded.entry`,
		e.ID, e.Wall.UnixNano(), e.State, stamp, string(b))
	return err
}

// Runs returns at most limit entries, the newest first, that come after the
// entry with the ID before in that order ("" for the start). A limit of 0 is
// all of them.
func (x *Index) Runs(ctx context.Context, before string, limit int) ([]Entry, error) {
	if limit <= 0 {
		limit = -1
	}
	rows, err := x.db.QueryContext(ctx, `SELECT entry FROM runs
		WHERE ?1 = '' OR (wall, id) < (SELECT wall, id FROM runs WHERE id = ?1)
		ORDER BY wall DESC, id DESC LIMIT ?2`, before, limit)
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

// stampOf changes when what the entry is made of does.
func stampOf(dir string) string {
	stamp := ""
	for _, name := range []string{runFile, "report.html"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			stamp += fmt.Sprintf("%d/%d ", info.Size(), info.ModTime().UnixNano())
		} else {
			stamp += "- "
		}
	}
	if held(dir) {
		stamp += "held"
	}
	return stamp
}

// readEntry reads a run's folder; whatever is in there, there is an entry.
func readEntry(dir string) Entry {
	id := filepath.Base(dir)
	run, err := ReadRun(dir)
	if err != nil {
		e := Entry{ID: id, State: StateInterrupted, Error: err.Error(), Summary: []lab.Summary{}}
		if info, statErr := os.Stat(dir); statErr == nil {
			e.Wall = info.ModTime().UTC()
		}
		return e
	}
	// A list is short, whatever the run holds.
	e := Entry{
		ID: id, Name: clip(run.Name), Wall: run.Wall, Elapsed: run.Elapsed, State: run.State, Error: clip(run.Error),
		Page: clip(run.Page), Trials: len(run.Trials), Summary: []lab.Summary{},
	}
	for _, s := range run.Summary[:min(len(run.Summary), 64)] {
		s.Metric, s.Unit, s.Arm, s.Warnings = clip(s.Metric), clip(s.Unit), clip(s.Arm), nil
		e.Summary = append(e.Summary, s)
	}
	for _, t := range run.Trials {
		if t.Valid {
			e.Valid++
		}
	}
	if info, err := os.Lstat(filepath.Join(dir, "report.html")); err == nil {
		e.Report = info.Mode().IsRegular()
	}
	return e
}

// clip keeps a text of a list to 1,000 bytes.
func clip(s string) string {
	if len(s) > 1000 {
		return strings.ToValidUTF8(s[:1000], "") + "…"
	}
	return s
}

// sortTrials puts trials in order: the experiment may have saved them as they ended.
func sortTrials(trials []*lab.Trial) {
	sort.SliceStable(trials, func(i, j int) bool { return trials[i].Number < trials[j].Number })
}
