package automation

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"eidetic/internal/keep/store"
	"eidetic/internal/tell/history"
)

// Row is one number of a page that changed. What changed together is one alert: its own row, and others that are joined
// with it.
type Row struct {
	ID        int64  `json:"id"`
	SeriesKey string `json:"series" doc:"Key of the series, for /api/v1/history"`
	store.Series
	Kind   string   `json:"kind" enum:"step,verdict" doc:"step: the level of a line changed from run to run. verdict: a scheduled comparison says by itself that the treatment is slower; before is the control's median, low and high are the interval of the newest such comparison"`
	Metric string   `json:"metric" example:"speed_index_ms"`
	Line   string   `json:"line" enum:"control,treatment,difference" doc:"What is followed: the level of an arm, or treatment less control"`
	Also   []string `json:"also,omitempty" doc:"Of a verdict: the other metrics that it finds slower"`
	Unit   string   `json:"unit"`
	Label  string   `json:"label" doc:"The metric's name for people"`
	history.Step
	Confidence float64    `json:"confidence" doc:"1 − p: the share of series without a change in which chance does not do as much"`
	Seen       string     `json:"seen" doc:"The newest run when it was raised: the one with which it could be told from chance"`
	Bisection  *Bisection `json:"bisection,omitempty" doc:"The search for the revision that it comes from, of a run of a schedule that bisects"`
}

// tellingFirst sorts what a run brings so that the alert which others are joined with is the one that says most: one
// that is to be bisected, a verdict, and the difference before the levels.
func tellingFirst(all []found) {
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.rank(), b.rank()) })
}

func (f found) rank() (n int) {
	if f.Bisection == nil || f.Bisection.State == bisectionNone {
		n += 10
	}
	if f.Kind != KindVerdict {
		n += 5
	}
	return n - slices.Index(history.Lines(), f.Line)
}

// leadOf returns the alert that a new one is joined with, or nil: one of which nobody has said that it is over or may
// stay, that goes the same way, and that began with the same run, one beside it, since places are known to about one
// run, or between the same two revisions.
func leadOf(ctx context.Context, tx *sql.Tx, f found) (*Alert, error) {
	rows, err := tx.QueryContext(ctx, `SELECT alert FROM alerts WHERE trend = ?1 AND json_extract(alert, '$.of') IS NULL
		AND json_extract(alert, '$.resolved') IS NULL AND json_extract(alert, '$.accepted') IS NULL
		AND (wall BETWEEN ?2 AND ?3 OR json_extract(alert, '$.bisection.bad') = ?4) ORDER BY id`,
		f.Trend, stamp(f.before), stamp(f.after), f.revisionOf())
	if err != nil {
		return nil, err
	}
	all, err := scanAlerts(rows)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if slices.Contains(f.beside, a.Run) || a.Bisection.sameAs(f.Bisection) {
			return &a, nil
		}
	}
	return nil, nil
}

// revisionOf is the bad revision, or "".
func (f found) revisionOf() string {
	if f.Bisection == nil {
		return ""
	}
	return f.Bisection.Bad
}

// sameAs says whether two bisections are between the same two revisions.
func (b *Bisection) sameAs(c *Bisection) bool {
	return b != nil && c != nil && b.Bad != "" && b.Repository == c.Repository && b.Good == c.Good && b.Bad == c.Bad
}

// joinedTo is the alert as one that is joined with another: what was said of that is said of it too, and it is bisected
// if that is not.
func (a Alert) joinedTo(lead *Alert) Alert {
	a.Of, a.Done, a.Owner, a.Bug = lead.ID, lead.Done, lead.Owner, lead.Bug
	if b := lead.Bisection; b != nil && b.State != bisectionNone {
		a.Bisection = nil
	}
	return a
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// joined adds to alerts the rows that are joined with them.
func joined(ctx context.Context, db querier, all []Alert) error {
	place := map[int64]int{}
	ids := []int64{}
	for i, a := range all {
		place[a.ID], ids = i, append(ids, a.ID)
	}
	text, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	rows, err := db.QueryContext(ctx, `SELECT alert FROM alerts WHERE json_extract(alert, '$.of') IN (SELECT value FROM json_each(?)) ORDER BY id`, string(text))
	if err != nil {
		return err
	}
	others, err := scanAlerts(rows)
	for _, o := range others {
		a := &all[place[o.Of]]
		a.Rows = append(a.Rows, o.Row)
	}
	return err
}

// whole returns the alert that an ID stands for, which is that of a row too, with all its rows. The error of none is
// sql.ErrNoRows.
func whole(ctx context.Context, tx *sql.Tx, id int64) (a Alert, err error) {
	a, err = scanAlert(tx.QueryRowContext(ctx, `SELECT alert FROM alerts WHERE id = ?`, id))
	if err == nil && a.Of != 0 {
		a, err = scanAlert(tx.QueryRowContext(ctx, `SELECT alert FROM alerts WHERE id = ?`, a.Of))
	}
	if err != nil {
		return a, err
	}
	one := []Alert{a}
	err = joined(ctx, tx, one)
	return one[0], err
}

// saveWhole keeps an alert and what was said of it with each of its rows.
func saveWhole(ctx context.Context, tx *sql.Tx, a Alert) error {
	for _, r := range a.Rows {
		other := a
		other.Row, other.Of, other.Rows = r, a.ID, nil
		if err := saveAlert(ctx, tx, other); err != nil {
			return err
		}
	}
	return saveAlert(ctx, tx, a)
}
