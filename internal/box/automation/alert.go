package automation

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/history"
)

// Bounds of alerts.
const (
	// recentRuns is how far back a step may lie that an alert is raised for: what has stood
	// for longer is history and no news.
	recentRuns = 50
	// nearRuns is how far the place of one step may move when more runs are known: as far as
	// change points are found to be off, in runs.
	nearRuns    = 5
	mostMetrics = 8
	mostAlerts  = 5000
)

// Kinds of alerts.
const (
	KindStep    = "step"    // a line of a history changed its level
	KindVerdict = "verdict" // a scheduled comparison says by itself that the treatment is slower
)

// Alert says that a metric's level changed from run to run, or that a scheduled comparison finds its treatment slower.
type Alert struct {
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
	Confidence float64          `json:"confidence" doc:"1 − p: the share of series without a change in which chance does not do as much"`
	Seen       string           `json:"seen" doc:"The newest run when it was raised: the one with which it could be told from chance"`
	Raised     time.Time        `json:"raised"`
	Tags       []string         `json:"tags" doc:"Those of the workflow that the run came from, and those of the acknowledgement"`
	Done       *Acknowledgement `json:"acknowledged,omitempty" doc:"Absent while it is open"`
	Resolved   *Acknowledgement `json:"resolved,omitempty" doc:"Set when somebody said that it is over"`
	Accepted   *Acceptance      `json:"accepted,omitempty" doc:"Set when somebody accepted it for a time"`
	Bisection  *Bisection       `json:"bisection,omitempty" doc:"The search for the revision that it comes from, of a run of a schedule that bisects"`
}

// Acceptance says that an alert is known and may stay for a time.
type Acceptance struct {
	By     string    `json:"by" doc:"Name of the token"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
	Until  time.Time `json:"until" doc:"From then on it counts as if nobody had accepted it"`
}

// Acknowledgement says that somebody has taken note of an alert.
type Acknowledgement struct {
	By   string    `json:"by" doc:"Name of the token"`
	At   time.Time `json:"at"`
	Note string    `json:"note,omitempty"`
}

// found is a step of a history, as an alert, and the time within which the first run of the
// new level of the same step may lie.
type found struct {
	Alert
	from, to time.Time
}

// look finds the recent steps of the series that a run belongs to: one for each page and user of a run of many.
func (k *Keeper) look(ctx context.Context, run *lab.Run) (all []found, err error) {
	for _, view := range run.Views() {
		one, err := k.lookAt(ctx, view)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

func (k *Keeper) lookAt(ctx context.Context, run *lab.Run) ([]found, error) {
	series := store.SeriesOf(run)
	key := series.Key()
	past, err := k.Store.Past(ctx, key, history.MaxRuns)
	if err != nil {
		return nil, err
	}
	if len(past) == 0 { // its folder was removed meanwhile
		return nil, nil
	}
	var tags []string
	if from := run.Plan.From; from != nil {
		flow, err := k.Workflow(ctx, from.Workflow, 0)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		tags = flow.Tags
	}
	runs := history.Runs(past)
	var out []found
	about := Alert{SeriesKey: key, Series: series, Kind: KindStep, Seen: past[len(past)-1].ID, Tags: merged(tags)}
	for _, name := range watchedMetrics(past, run.Plan.Primary) {
		for _, line := range history.LinesOf(past) {
			m, err := k.finder.Of(ctx, past, runs, name, line)
			if err != nil {
				return nil, err
			}
			for _, s := range m.Steps {
				i := slices.IndexFunc(past, func(p store.Past) bool { return p.ID == s.Run })
				if i < 0 || len(past)-i > recentRuns {
					continue
				}
				one := about
				one.Metric, one.Line, one.Unit, one.Label, one.Step, one.Confidence = name, line, m.Unit, m.Label, s, 1-s.P
				if one.Bisection, err = k.bisectionOf(ctx, one, run, past); err != nil {
					return nil, err
				}
				out = append(out, found{one, past[max(i-nearRuns, 0)].Wall, past[min(i+nearRuns, len(past)-1)].Wall})
			}
		}
	}
	i := slices.IndexFunc(past, func(p store.Past) bool { return p.ID == run.ID })
	if slower, since := history.Slower(past[:i+1]); len(slower) > 0 {
		one, first := about, slower[0]
		one.Kind, one.Line = KindVerdict, history.Difference
		one.Metric, one.Unit, one.Label = first.Metric, first.Unit, metric.Label(first.Metric)
		one.Step, one.Confidence, one.Seen = history.StepOf(first, since, runs), 1-first.P, run.ID
		for _, c := range slower[1:] {
			one.Also = append(one.Also, c.Metric)
		}
		if one.Bisection, err = k.bisectionOf(ctx, one, run, past[:i+1]); err != nil {
			return nil, err
		}
		out = append(out, found{Alert: one})
	}
	return out, nil
}

// watchedMetrics lists what alerts are raised for: the guards that the runs have, and the
// plan's primary metric.
func watchedMetrics(past []store.Past, primary string) []string {
	var names []string
	for _, a := range history.Metrics(past) {
		if metric.IsGuard(a.Metric) || a.Metric == primary {
			names = append(names, a.Metric)
		}
	}
	return names[:min(len(names), mostMetrics)]
}

// known is an alert that was raised before.
type known struct {
	Alert
	used bool // for one of the steps that were found
}

// raise keeps the steps that no alert was raised for, and publishes them. An open alert takes
// over what is now known of its step.
func (k *Keeper) raise(ctx context.Context, tx *sql.Tx, all []found) error {
	before := map[string][]*known{}
	for _, f := range all {
		if f.Kind == KindVerdict {
			if known, err := k.knownVerdict(ctx, tx, f.Alert); err != nil || known {
				if err != nil {
					return err
				}
				continue
			}
			if err := k.raiseNew(ctx, tx, f.Alert); err != nil {
				return err
			}
			continue
		}
		place := f.SeriesKey + " " + f.Metric + " " + f.Line + " " + f.Trend
		if _, ok := before[place]; !ok {
			raised, err := raisedBefore(ctx, tx, f.Alert)
			if err != nil {
				return err
			}
			before[place] = raised
		}
		if old := nearest(before[place], f); old != nil {
			old.used = true
			if old.settled() {
				continue
			}
			f.ID, f.Seen, f.Raised, f.Tags, f.Bisection = old.ID, old.Seen, old.Raised, old.Tags, old.Bisection
			if err := saveAlert(ctx, tx, f.Alert); err != nil {
				return err
			}
			continue
		}
		if err := k.raiseNew(ctx, tx, f.Alert); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM alerts WHERE id <= (SELECT max(id) FROM alerts) - ?`, mostAlerts)
	return err
}

// lineOf is the line of an alert, in SQL.
const lineOf = `coalesce(json_extract(alert, '$.line'), '` + lab.Control + `')`

// settled says whether somebody has said something of an alert: from then on its numbers stay.
func (a Alert) settled() bool { return a.Done != nil || a.Resolved != nil || a.Accepted != nil }

// raiseNew keeps an alert and publishes it.
func (k *Keeper) raiseNew(ctx context.Context, tx *sql.Tx, a Alert) error {
	a.Raised = k.Now().UTC()
	done, err := tx.ExecContext(ctx, `INSERT INTO alerts (series, metric, trend, wall, raised, acked, alert) VALUES (?, ?, ?, ?, ?, 0, '')`,
		a.SeriesKey, a.Metric, a.Trend, stamp(a.Wall), stamp(a.Raised))
	if err != nil {
		return err
	}
	if a.ID, err = done.LastInsertId(); err != nil {
		return err
	}
	if err := saveAlert(ctx, tx, a); err != nil {
		return err
	}
	return k.publish(ctx, tx, Event{EventRaised, a.Raised, a})
}

// knownVerdict says whether a verdict is news to nobody: an alert says already that the difference of one of its metrics is for the
// worse. One that is open takes over the numbers of the newest verdict; one that became a step has better ones.
func (k *Keeper) knownVerdict(ctx context.Context, tx *sql.Tx, a Alert) (known bool, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT alert FROM alerts WHERE series = ? AND `+lineOf+` = ? AND trend = ? ORDER BY id DESC`,
		a.SeriesKey, a.Line, a.Trend)
	if err != nil {
		return false, err
	}
	all, err := scanAlerts(rows)
	if err != nil {
		return false, err
	}
	names := append([]string{a.Metric}, a.Also...)
	for _, old := range all {
		if !slices.ContainsFunc(names, func(name string) bool { return name == old.Metric || slices.Contains(old.Also, name) }) {
			continue
		}
		if old.Resolved != nil {
			continue
		}
		if old.Kind == KindVerdict && !old.settled() && old.Metric == a.Metric {
			a.ID, a.Raised, a.Tags, a.Seen, a.Also, a.Bisection = old.ID, old.Raised, old.Tags, old.Seen, merged(old.Also, a.Also), old.Bisection
			return true, saveAlert(ctx, tx, a)
		}
		return true, nil
	}
	return false, nil
}

// raisedBefore lists the alerts of a series, a metric, a line and a direction.
func raisedBefore(ctx context.Context, tx *sql.Tx, a Alert) ([]*known, error) {
	rows, err := tx.QueryContext(ctx, `SELECT alert FROM alerts WHERE series = ? AND metric = ? AND `+lineOf+` = ? AND trend = ? ORDER BY id`,
		a.SeriesKey, a.Metric, a.Line, a.Trend)
	if err != nil {
		return nil, err
	}
	found, err := scanAlerts(rows)
	all := []*known{}
	for _, one := range found {
		all = append(all, &known{Alert: one})
	}
	return all, err
}

// nearest returns the alert that a step was raised as, or nil. One alert stands for one step.
func nearest(all []*known, f found) (best *known) {
	for _, a := range all {
		if a.used || a.Wall.Before(f.from) || a.Wall.After(f.to) {
			continue
		}
		if best == nil || a.Wall.Sub(f.Wall).Abs() < best.Wall.Sub(f.Wall).Abs() {
			best = a
		}
	}
	return best
}

func saveAlert(ctx context.Context, tx *sql.Tx, a Alert) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	var acked int64
	switch {
	case a.Done != nil:
		acked = stamp(a.Done.At)
	case a.Resolved != nil:
		acked = stamp(a.Resolved.At)
	case a.Accepted != nil:
		acked = stamp(a.Accepted.At)
	}
	_, err = tx.ExecContext(ctx, `UPDATE alerts SET wall = ?, acked = ?, alert = ? WHERE id = ?`, stamp(a.Wall), acked, string(text), a.ID)
	return err
}

func scanAlert(row interface{ Scan(...any) error }) (a Alert, err error) {
	var text string
	if err := row.Scan(&text); err != nil {
		return a, err
	}
	err = json.Unmarshal([]byte(text), &a)
	a.Kind, a.Line = cmp.Or(a.Kind, KindStep), cmp.Or(a.Line, lab.Control) // alerts from before there were others
	return a, err
}

// scanAlerts reads the alerts of rows, and closes them.
func scanAlerts(rows *sql.Rows) ([]Alert, error) {
	defer rows.Close()
	all := []Alert{}
	for rows.Next() {
		a, err := scanAlert(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, rows.Err()
}

// Filter selects alerts; an empty field selects all.
type Filter struct {
	Open   bool // those of which nobody has said anything
	Bad    bool // those that a gate stops at: something became slower, and it is neither resolved nor accepted for now
	Series string
	Tag    string
	Before int64 // ID
	Limit  int
}

// Alerts lists alerts, the newest first.
func (k *Keeper) Alerts(ctx context.Context, f Filter) ([]Alert, error) {
	rows, err := k.db.QueryContext(ctx, `SELECT alert FROM alerts WHERE (?1 = 0 OR acked = 0) AND (?2 = '' OR series = ?2)
		AND (?3 = '' OR EXISTS (SELECT 1 FROM json_each(alert, '$.tags') WHERE value = ?3)) AND (?4 = 0 OR id < ?4)
		AND (?6 = 0 OR trend = '`+lab.Slower+`' AND json_extract(alert, '$.resolved') IS NULL AND coalesce(json_extract(alert, '$.accepted.until'), '') <= ?7)
		ORDER BY id DESC LIMIT ?5`, f.Open, f.Series, f.Tag, f.Before, f.Limit, f.Bad, dateOf(k.Now()))
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	all, err := scanAlerts(rows)
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	return all, nil
}

// Alert returns one alert, or store.ErrNotFound.
func (k *Keeper) Alert(ctx context.Context, id int64) (Alert, error) {
	a, err := scanAlert(k.db.QueryRowContext(ctx, `SELECT alert FROM alerts WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return a, store.ErrNotFound
	}
	if err != nil {
		return a, fmt.Errorf("read alert: %w", err)
	}
	return a, nil
}
