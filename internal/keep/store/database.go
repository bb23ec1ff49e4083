package store

import (
	"context"
	"database/sql"
	"fmt"
)

// OpenDatabase opens a SQLite file that outlives the process and the power, for what cannot
// be rebuilt from the folders, and brings it to the newest version: steps[i] leads from
// version i to i+1, in one transaction. fresh says that there was no content before. [Damaged]
// says of an error whether it is about the file's content.
func OpenDatabase(ctx context.Context, path string, steps []string) (db *sql.DB, fresh bool, err error) {
	db, err = openKeeping(dsn(path, "FULL"))
	if err != nil {
		return nil, false, fmt.Errorf("open %s: %w", path, err)
	}
	fresh, err = migrate(ctx, db, steps)
	if err != nil {
		_ = db.Close()
		return nil, false, fmt.Errorf("open %s: %w", path, asKnown(err))
	}
	return db, fresh, nil
}

// migrate brings a database to the newest version.
func migrate(ctx context.Context, db *sql.DB, steps []string) (fresh bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	var version int
	if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return false, err
	}
	if version > len(steps) {
		return false, fmt.Errorf("its version is %d, and this appliance knows %d: it was written by a newer one", version, len(steps))
	}
	for _, step := range steps[version:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return false, err
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, len(steps))); err != nil {
		return false, err
	}
	return version == 0, tx.Commit()
}

// AsKnown adds ENOSPC to SQLite's error for a full disk, and a [lab.AwayError] to that for a locked file, so that callers
// can test for them.
func AsKnown(err error) error { return asKnown(err) }
