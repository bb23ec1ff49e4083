package store

import (
	"context"
	"fmt"
)

// Totals counts the runs that are kept.
type Totals struct {
	Runs          map[string]int // by state
	Trials, Valid int
}

// Totals counts runs and trials, from the index alone.
func (s *Store) Totals(ctx context.Context) (t Totals, err error) {
	index, err := s.refresh(ctx)
	if err != nil {
		return t, err
	}
	t.Runs = map[string]int{}
	rows, err := index.db.QueryContext(ctx, `SELECT state, count(*), sum(json_extract(entry, '$.trials')), sum(json_extract(entry, '$.valid'))
		FROM runs GROUP BY state`)
	if err != nil {
		return t, fmt.Errorf("count runs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var state string
		var runs, trials, valid int
		if err := rows.Scan(&state, &runs, &trials, &valid); err != nil {
			return t, fmt.Errorf("count runs: %w", err)
		}
		t.Runs[state], t.Trials, t.Valid = runs, t.Trials+trials, t.Valid+valid
	}
	return t, rows.Err()
}
