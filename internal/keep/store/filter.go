package store

import (
	"encoding/json"
	"time"

	"eidetic/internal/lab"
)

// Filter says which runs a list has. What is empty matches any run.
type Filter struct {
	// Series matches runs by name, link, device and browser, and by page: of a run of many pages that is done, by any
	// of them.
	Series
	// Key is that of a series; only runs that are done belong to one.
	Key            string
	State, Verdict string
	Kind           string // that of an Entry; KindPlan for the execution of a plan
	// Since and Until bound the start of a run: from Since, and before Until.
	Since, Until time.Time
	// InQueue has the states of runs in the queue by their IDs: an interrupted run that will go on is in that state.
	InQueue map[string]string
}

// KindPlan is the kind of runs that executed a plan, whose entries say none.
const KindPlan = "plan"

// Matches says whether a run that has no folder matches.
func (f Filter) Matches(j Job) bool {
	s := seriesOf(&lab.Run{Name: j.Plan.Name, Page: j.Plan.FirstPage(), Plan: j.Plan, Link: lab.Link{Name: lab.NativeLink}})
	for _, c := range [][2]string{{f.Name, s.Name}, {f.Page, s.Page}, {f.Link, s.Link}, {f.Device, s.Device}, {f.Browser, s.Browser},
		{f.State, j.State}, {f.Verdict, ""}, {f.Key, ""}, {f.Kind, KindPlan}} {
		if c[0] != "" && c[0] != c[1] {
			return false
		}
	}
	return !j.Created.Before(f.Since) && (f.Until.IsZero() || j.Created.Before(f.Until))
}

// where is the condition of a filter in SQL, with its arguments, on the table runs.
func (f Filter) where() (condition string, args []any) {
	condition = "1"
	and := func(text string, values ...any) {
		condition += " AND " + text
		args = append(args, values...)
	}
	for _, c := range []struct{ column, value string }{
		{"name", f.Name}, {"link", f.Link}, {"device", f.Device}, {"browser", f.Browser}, {"verdict", f.Verdict},
	} {
		if c.value != "" {
			and(c.column+" = ?", clip(c.value))
		}
	}
	if f.Page != "" {
		and("(page = ? OR id IN (SELECT id FROM pasts WHERE page = ?))", clip(f.Page), clip(f.Page))
	}
	if f.Kind != "" {
		and("coalesce(entry ->> 'kind', ?) = ?", KindPlan, f.Kind)
	}
	if f.Key != "" {
		and("id IN (SELECT id FROM pasts WHERE series = ?)", f.Key)
	}
	if f.State != "" {
		var all, same []string
		for id, state := range f.InQueue {
			if all = append(all, id); state == f.State {
				same = append(same, id)
			}
		}
		and("((state = ? AND NOT (state = ? AND id IN (SELECT value FROM json_each(?)))) OR (state = ? AND id IN (SELECT value FROM json_each(?))))",
			f.State, StateInterrupted, texts(all), StateInterrupted, texts(same))
	}
	if !f.Since.IsZero() {
		and("wall >= ?", f.Since.UnixNano())
	}
	if !f.Until.IsZero() {
		and("wall < ?", f.Until.UnixNano())
	}
	return condition, args
}

// texts is a JSON array for SQLite.
func texts(values []string) string {
	text, _ := json.Marshal(append([]string{}, values...)) // strings can always be marshalled
	return string(text)
}
