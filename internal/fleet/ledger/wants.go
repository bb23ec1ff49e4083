package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
)

// mostWants bounds the files that a box is told of at once.
const mostWants = 100

func (q querier) runFiles(ctx context.Context, run string) (files []fleet.File, err error) {
	var list string
	if err := q.row(ctx, `SELECT files FROM fleet_runs WHERE id = ?`, run).Scan(&list); err != nil {
		return nil, found(err, store.ErrNotFound)
	}
	if err := json.Unmarshal([]byte(list), &files); err != nil {
		return nil, fmt.Errorf("files of run %s: %w", run, err)
	}
	return files, nil
}

// Want asks for a file of an assembled run whose content stayed on a box. It returns store.ErrNotFound for a file that
// the run does not have; for one that does not stay there is nothing to do.
func (l *Ledger) Want(ctx context.Context, run, path string) error {
	return l.update(ctx, "want a file", func(tx *tx) error {
		files, err := tx.runFiles(ctx, run)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(files, func(f fleet.File) bool { return f.Path == path })
		if i < 0 {
			return store.ErrNotFound
		}
		if !files[i].Stays {
			return nil
		}
		parts, err := tx.parts(ctx, `p.run = ?`, run)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if p.Outcome == nil {
				continue
			}
			for _, f := range p.Outcome.Files {
				if f.SHA256 == files[i].SHA256 && f.Stays {
					_, err := tx.exec(ctx, `INSERT INTO fleet_wants (digest, box, part, path, made) VALUES (?, ?, ?, ?, ?)
						ON CONFLICT (digest, box) DO NOTHING`, f.SHA256, p.BoxID, p.ID, f.Path, at(tx.now))
					return err
				}
			}
		}
		return store.ErrNotFound
	})
}

// Wanted lists files that stayed on a box and that somebody wants to see, the oldest wish first.
func (l *Ledger) Wanted(ctx context.Context, boxID string) ([]fleet.Wanted, error) {
	all, err := l.reader().wanted(ctx, boxID)
	return all, named("list wanted files", err)
}

func (q querier) wanted(ctx context.Context, boxID string) (all []fleet.Wanted, err error) {
	err = q.each(ctx, func(scan func(...any) error) error {
		var w fleet.Wanted
		err := scan(&w.Part, &w.Path, &w.SHA256)
		all = append(all, w)
		return err
	}, `SELECT part, path, digest FROM fleet_wants WHERE box = ? ORDER BY made, digest LIMIT ?`, boxID, mostWants)
	return all, err
}

// Arrived says that the content of a wanted file is the head's now: the runs that wanted it no longer list it as
// staying.
func (l *Ledger) Arrived(ctx context.Context, digest string) error {
	return l.update(ctx, "keep a file that arrived", func(tx *tx) error {
		var runs, parts []string
		if err := tx.each(ctx, func(scan func(...any) error) error {
			var run, part string
			err := scan(&run, &part)
			runs, parts = append(runs, run), append(parts, part)
			return err
		}, `SELECT p.run, p.id FROM fleet_wants w JOIN fleet_parts p ON p.id = w.part WHERE w.digest = ? ORDER BY p.id`, digest); err != nil {
			return err
		}
		for i := range runs {
			files, err := tx.runFiles(ctx, runs[i])
			if err != nil {
				return err
			}
			if _, err := tx.exec(ctx, `UPDATE fleet_runs SET files = ? WHERE id = ?`, text(here(files, digest)), runs[i]); err != nil {
				return err
			}
			if files, err = tx.partFiles(ctx, parts[i]); err != nil {
				return err
			}
			if _, err := tx.exec(ctx, `UPDATE fleet_attempts SET files = ? WHERE part = ? AND state IN ('ended', 'kept')`, text(here(files, digest)), parts[i]); err != nil {
				return err
			}
		}
		_, err := tx.exec(ctx, `DELETE FROM fleet_wants WHERE digest = ?`, digest)
		return err
	})
}

// here marks files with a digest as the head's.
func here(files []fleet.File, digest string) []fleet.File {
	for i := range files {
		if files[i].SHA256 == digest {
			files[i].Stays = false
		}
	}
	return orEmpty(files)
}

// Digests lists the SHA-256 of all content of the head that something refers to: recordings of parts, and files of
// attempts and runs that do not stay on a box. A digest may come several times. What the list lacks after it has ended
// without an error, and what was older than the call, can be removed.
func (l *Ledger) Digests(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, source := range []struct{ query, what string }{
			{`SELECT archives FROM fleet_parts`, "recordings of a part"},
			{`SELECT files FROM fleet_attempts`, "files of a part"},
			{`SELECT files FROM fleet_runs`, "files of a run"},
		} {
			if !l.digestsOf(ctx, source.query, source.what, yield) {
				return
			}
		}
	}
}

func (l *Ledger) digestsOf(ctx context.Context, query, what string, yield func(string, error) bool) bool {
	rows, err := l.read.QueryContext(ctx, query)
	if err != nil {
		yield("", named("list digests", err))
		return false
	}
	defer rows.Close()
	for rows.Next() {
		var list string
		var files []struct {
			SHA256 string `json:"sha256"`
			Stays  bool   `json:"stays"`
		}
		err := rows.Scan(&list)
		if err == nil {
			err = json.Unmarshal([]byte(list), &files)
		}
		if err != nil {
			yield("", named(what, err))
			return false
		}
		for _, f := range files {
			if !f.Stays && !yield(f.SHA256, nil) {
				return false
			}
		}
	}
	if err := rows.Err(); err != nil {
		yield("", named("list digests", err))
		return false
	}
	return true
}
