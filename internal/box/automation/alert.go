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

// Alert says that a metric's level changed from run to run, or that a scheduled comparison finds its treatment slower;
// and what else changed at the same time.
type Alert struct {
	Row
	Rows     []Row            `json:"rows,omitempty" doc:"What else changed between the same two runs or revisions, in the same direction: other metrics, lines and pages. What is said of the alert is said of them all"`
	Of       int64            `json:"of,omitempty" doc:"The alert that this row is joined with, where a series is asked for that is not the alert's"`
	Raised   time.Time        `json:"raised"`
	Tags     []string         `json:"tags" doc:"Those of the workflow that the run came from, and those of the acknowledgement"`
	Owner    string           `json:"owner,omitempty" doc:"Who looks after it" example:"ada"`
	Bug      string           `json:"bug,omitempty" doc:"Address of what is written about it elsewhere" example:"https://bugs.shop.example/4711"`
	Done     *Acknowledgement `json:"acknowledged,omitempty" doc:"Absent while it is open"`
	Resolved *Acknowledgement `json:"resolved,omitempty" doc:"Set when somebody said that it is over"`
	Accepted *Acceptance      `json:"accepted,omitempty" doc:"Set when somebody accepted it for a time"`
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
	from, to      time.Time
	before, after time.Time // of the runs beside the first of the new level
	beside        []string  // that run, and these
}

// at says which run of a series a change began with.
func (f found) at(past []store.Past, i int) found {
	first, last := max(i-1, 0), min(i+1, len(past)-1)
	f.before, f.after = past[first].Wall, past[last].Wall
	for _, p := range past[first : last+1] {
		f.beside = append(f.beside, p.ID)
	}
	return f
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
		tags = merged(flow.Tags, run.Plan.Tags)
	}
	runs := history.Runs(past)
	var out []found
	about := Alert{Row: Row{SeriesKey: key, Series: series, Kind: KindStep, Seen: past[len(past)-1].ID}, Tags: merged(tags)}
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
				f := found{Alert: one, from: past[max(i-nearRuns, 0)].Wall, to: past[min(i+nearRuns, len(past)-1)].Wall}
				out = append(out, f.at(past, i))
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
		out = append(out, found{Alert: one}.at(past, slices.IndexFunc(past, func(p store.Past) bool { return p.ID == since.ID })))
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
// over what is now known of its step. What changed together is one alert.
func (k *Keeper) raise(ctx context.Context, tx *sql.Tx, all []found) error {
	tellingFirst(all)
	before := map[string][]*known{}
	var news []int64
	for _, f := range all {
		old, err := k.raisedAs(ctx, tx, f, before)
		if err != nil {
			return err
		}
		if old {
			continue
		}
		lead, err := leadOf(ctx, tx, f)
		if err != nil {
			return err
		}
		if lead != nil {
			lead.Tags = merged(lead.Tags, f.Tags)
			if err := saveAlert(ctx, tx, *lead); err != nil {
				return err
			}
			f.Alert = f.joinedTo(lead)
		}
		if f.ID, err = k.insert(ctx, tx, f.Alert); err != nil {
			return err
		}
		if lead == nil {
			news = append(news, f.ID)
		}
	}
	for _, id := range news {
		a, err := whole(ctx, tx, id)
		if err == nil {
			err = k.publish(ctx, tx, Event{EventRaised, a.Raised, a})
		}
		if err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM alerts WHERE coalesce(json_extract(alert, '$.of'), id) <= (SELECT max(id) FROM alerts) - ?`, mostAlerts)
	return err
}

// raisedAs says whether an alert was raised for what is found. One that nobody has said anything of takes over what is
// now known.
func (k *Keeper) raisedAs(ctx context.Context, tx *sql.Tx, f found, before map[string][]*known) (bool, error) {
	if f.Kind == KindVerdict {
		return k.knownVerdict(ctx, tx, f.Alert)
	}
	place := f.SeriesKey + " " + f.Metric + " " + f.Line + " " + f.Trend
	if _, ok := before[place]; !ok {
		raised, err := raisedBefore(ctx, tx, f.Alert)
		if err != nil {
			return false, err
		}
		before[place] = raised
	}
	old := nearest(before[place], f)
	if old == nil {
		return false, nil
	}
	if old.used = true; old.settled() {
		return true, nil
	}
	return true, saveAlert(ctx, tx, old.now(f.Alert))
}

// now is an alert with what is now known of what it was raised for.
func (a Alert) now(b Alert) Alert {
	b.ID, b.Seen, b.Bisection = a.ID, a.Seen, a.Bisection
	a.Row = b.Row
	return a
}

// lineOf is the line of an alert, in SQL.
const lineOf = `coalesce(json_extract(alert, '$.line'), '` + lab.Control + `')`

// settled says whether somebody has said something of an alert: from then on its numbers stay.
func (a Alert) settled() bool { return a.Done != nil || a.Resolved != nil || a.Accepted != nil }

// insert keeps a new alert.
func (k *Keeper) insert(ctx context.Context, tx *sql.Tx, a Alert) (id int64, err error) {
	a.Raised = k.Now().UTC()
	done, err := tx.ExecContext(ctx, `INSERT INTO alerts (series, metric, trend, wall, raised, acked, alert) VALUES (?, ?, ?, ?, ?, 0, '')`,
		a.SeriesKey, a.Metric, a.Trend, stamp(a.Wall), stamp(a.Raised))
	if err != nil {
		return 0, err
	}
	if a.ID, err = done.LastInsertId(); err != nil {
		return 0, err
	}
	return a.ID, saveAlert(ctx, tx, a)
}

// knownVerdict says whether a verdict is news to nobody: an alert says already that the difference of one of its
// metrics is for the worse. One that is open takes over the numbers of the newest verdict; one that became a step has
// better ones.
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
			a.Also = merged(old.Also, a.Also)
			return true, saveAlert(ctx, tx, old.now(a))
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
	a.Rows = nil // each is kept by itself
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
		AND (json_extract(alert, '$.of') IS NULL OR ?2 <> '' AND json_extract(alert, '$.of') NOT IN (SELECT id FROM alerts WHERE series = ?2))
		AND (?6 = 0 OR trend = '`+lab.Slower+`' AND json_extract(alert, '$.resolved') IS NULL AND coalesce(json_extract(alert, '$.accepted.until'), '') <= ?7)
		ORDER BY id DESC LIMIT ?5`, f.Open, f.Series, f.Tag, f.Before, f.Limit, f.Bad, dateOf(k.Now()))
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	all, err := scanAlerts(rows)
	if err == nil {
		err = joined(ctx, k.db, all)
	}
	if err != nil {
		return nil, fmt.Errorf("list alerts: %w", err)
	}
	return all, nil
}

// Alert returns one alert, or store.ErrNotFound.
func (k *Keeper) Alert(ctx context.Context, id int64) (a Alert, err error) {
	return a, k.in(ctx, "read alert", func(tx *sql.Tx) error {
		if a, err = whole(ctx, tx, id); errors.Is(err, sql.ErrNoRows) {
			return store.ErrNotFound
		}
		return err
	})
}
