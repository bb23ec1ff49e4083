package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// CopyDatabase writes a consistent copy of a database that may be in use (VACUUM INTO), carries
// out the statements of clean in the copy, and leaves nothing in it of what they removed.
func CopyDatabase(ctx context.Context, from, to string, clean ...string) error {
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("copy database: %w", err)
	}
	source, err := sql.Open("sqlite", dsn(from, "FULL"))
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	_, err = source.ExecContext(ctx, `VACUUM INTO ?`, to)
	if err = errors.Join(err, source.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", from, asKnown(err))
	}
	if len(clean) == 0 {
		return nil
	}
	copied, err := sql.Open("sqlite", to)
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	defer copied.Close()
	for _, statement := range append(clean, `VACUUM`) {
		if _, err := copied.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("copy %s: %w", from, asKnown(err))
		}
	}
	return nil
}

// CheckDatabase says what is wrong with a database file that came from somebody: a damaged one,
// or one with code (triggers, views) of its own.
func CheckDatabase(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return fmt.Errorf("check %s: %w", path, err)
	}
	defer db.Close()
	var code int
	var verdict string
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index')
		OR lower(sql) LIKE 'create virtual%'`).Scan(&code); err != nil {
		return fmt.Errorf("check %s: %w", path, err)
	}
	if code > 0 {
		return fmt.Errorf("check %s: it has triggers, views or virtual tables, which no file of the appliance has", path)
	}
	if err := db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&verdict); err != nil {
		return fmt.Errorf("check %s: %w", path, err)
	}
	if verdict != "ok" {
		return fmt.Errorf("check %s: it is damaged: %s", path, verdict)
	}
	return nil
}
