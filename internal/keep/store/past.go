package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// Series is what runs must have in common for their numbers to be comparable.
type Series struct {
	Name   string `json:"name" doc:"What the person called the runs"`
	Page   string `json:"page" doc:"URL under test"`
	Link   string `json:"link" doc:"Access network of the control, as it was asked for"`
	Device string `json:"device,omitempty" doc:"The device, where the run says it; BOX/DEVICE in a fleet"`
	// Browser is "" for Chromium as it is.
	Browser string `json:"browser,omitempty" doc:"The virtual device's browser with its flags and viewport, where the plan names another than Chromium, or the app" example:"firefox-esr"`
}

// Key returns a short identifier; equal series have equal keys.
func (s Series) Key() string {
	h := sha256.New()
	parts := []string{s.Name, s.Page, s.Link, s.Device}
	if s.Browser != "" { // so that the key of a series without one is what it was before there were browsers
		parts = append(parts, s.Browser)
	}
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// SeriesEntry is what a list shows of a series.
type SeriesEntry struct {
	Key string `json:"key" doc:"Identifier of the series: name, page, link, device and browser in short"`
	Series
	Count int       `json:"count" doc:"Runs that are done"`
	First time.Time `json:"first" doc:"Start of the oldest"`
	Last  time.Time `json:"last" doc:"Start of the newest"`
}

// Past is what the index keeps of a finished run, so that a history reads no folders.
type Past struct {
	ID     string    `json:"id"`
	Wall   time.Time `json:"wall"`
	Trials int       `json:"trials"` // of the control
	Valid  int       `json:"valid"`
	Report bool      `json:"report"`
	// Facts could explain a difference between runs, by name. Values that vary from
	// run to run by themselves, such as the load average, are left out.
	Facts map[string]string `json:"facts"`
	// Summary is that of the control, without metrics that have no valid trial; Treatment is that of the other arm, if
	// there is one.
	Summary   []lab.Summary `json:"summary"`
	Treatment []lab.Summary `json:"treatment,omitempty"`
	// Changes are those from control to treatment which the run could test.
	Changes []Change `json:"changes,omitempty"`
	// Schedule is the one that started the run, and Revision what was deployed for it, or "".
	Schedule string `json:"schedule,omitempty"`
	Revision string `json:"revision,omitempty"`
}

// Change is by how much a metric is larger in the treatment of a run than in its control.
type Change struct {
	Metric  string    `json:"metric"`
	Unit    string    `json:"unit"`
	Pairs   int       `json:"pairs"`
	Control float64   `json:"control"` // its median
	Shift   lab.Range `json:"shift"`
	P       float64   `json:"p"` // corrected for the number of metrics
	Finding string    `json:"finding"`
	Guard   bool      `json:"guard,omitempty"`
}

// mostMetrics bounds the metrics that the index keeps of an arm of a run.
const mostMetrics = 64

// pastOf returns what the index keeps of a run, and the run's series.
func pastOf(run *lab.Run, report bool) (Series, Past) {
	p := Past{ID: run.ID, Wall: run.Wall, Report: report, Facts: factsOf(run), Summary: []lab.Summary{}}
	for _, t := range run.Trials {
		if t.Arm == lab.Control && !t.IsExtra() {
			p.Trials++
			if t.Valid {
				p.Valid++
			}
		}
	}
	for _, s := range run.Summary {
		into := &p.Summary
		if s.Arm != lab.Control {
			into = &p.Treatment
		}
		if s.N > 0 && len(*into) < mostMetrics {
			s.Metric, s.Unit, s.Warnings = clip(s.Metric), clip(s.Unit), nil
			*into = append(*into, s)
		}
	}
	p.Changes = changesOf(run.Comparison)
	if from := run.Plan.From; from != nil {
		p.Schedule, p.Revision = clip(from.Schedule), clip(from.Revision)
	}
	return seriesOf(run), p
}

// changesOf are the effects that were tested, the guards first. Others have no interval.
func changesOf(c *lab.Comparison) (all []Change) {
	if c == nil {
		return nil
	}
	for _, guard := range []bool{true, false} {
		for _, e := range c.Effects {
			if e.Guard == guard && e.Shift.Confidence > 0 && len(all) < mostMetrics {
				all = append(all, Change{clip(e.Metric), clip(e.Unit), e.Pairs, e.Control, e.Shift, e.Adjusted, clip(e.Finding), guard})
			}
		}
	}
	return all
}

// SeriesOf returns the series that a run belongs to.
func SeriesOf(run *lab.Run) Series { return seriesOf(run) }

// seriesOf returns the series that a run belongs to.
func seriesOf(run *lab.Run) Series {
	s := Series{Name: run.Name, Page: run.Page, Link: cmp.Or(run.Plan.Link, run.Link.Name), Device: run.Plan.Device}
	if box := run.Environment.Box; box != nil {
		s.Device = ofBox(box.Name, s.Device)
	}
	if browser := run.Plan.Browser.String(); browser != lab.Chromium {
		s.Browser = browser
	}
	if run.Plan.App != nil {
		s.Browser = run.Plan.App.String()
	}
	return s
}

// ofBox is the name of a box's device in a fleet, so that no series mixes two boxes.
func ofBox(box, device string) string {
	if device == "" || strings.HasPrefix(device, box+"/") {
		return cmp.Or(device, box)
	}
	return box + "/" + device
}

// Facts returns what could explain a difference between the controls of two runs, by
// name: page, link, device and browser, and the facts that a history watches.
func Facts(run *lab.Run) map[string]string {
	series, facts := seriesOf(run), factsOf(run)
	for name, value := range map[string]string{
		"page": series.Page, "link": series.Link, "device": series.Device, "plan.browser": series.Browser,
	} {
		if value != "" {
			facts[name] = shorten(value, maxFactBytes)
		}
	}
	return facts
}

// Bounds of the facts of a run. Our own runs have about thirty facts.
const (
	maxFacts     = 64
	maxFactBytes = 200
	maxFactDepth = 5
)

// watched holds the settings that stay equal from run to run until somebody changes
// them. Its JSON names, joined by dots, are the names of the facts.
type watched struct {
	lab.Environment
	Network *watchedNetwork `json:"network,omitempty"`
	Link    lab.Link        `json:"link"`
	Plan    watchedPlan     `json:"plan"`
	// Recording is a digest, or a fixed text for a run that makes its own recording:
	// that digest differs each time.
	Recording string `json:"recording,omitempty"`
}

type watchedNetwork struct {
	CongestionControl string            `json:"congestion_control,omitempty"`
	KernelSettings    map[string]string `json:"kernel_settings,omitempty"`
	LinkLimits        []string          `json:"link_limits,omitempty"`
}

type watchedPlan struct {
	Timing string  `json:"timing,omitempty"`
	Match  string  `json:"match,omitempty"`
	Miss   string  `json:"miss,omitempty"`
	Still  float64 `json:"still_s,omitempty"`
	Limit  float64 `json:"limit_s,omitempty"`
	Seed   uint64  `json:"seed,omitempty"`
	Live   bool    `json:"live"`
	// Workflow is the name and the version of the one that the run came from.
	Workflow string `json:"workflow,omitempty"`
}

// factsOf returns the settings of a run that stay equal until somebody changes them.
func factsOf(run *lab.Run) facts {
	e := run.Environment
	e.LoadAverage, e.Port, e.Isolation, e.Box = "", nil, nil, nil // vary from run to run by themselves
	w := watched{
		Environment: e, Link: run.Link,
		Plan: watchedPlan{run.Plan.Timing, run.Plan.Match, run.Plan.Miss, run.Plan.Still, run.Plan.Limit, run.Plan.Seed, run.Plan.Live, ""},
	}
	if from := run.Plan.From; from != nil {
		w.Plan.Workflow = fmt.Sprintf("%s@%d", from.Workflow, from.Version)
	}
	w.Link.Name = ""
	if n := e.Network; n != nil {
		w.Network = &watchedNetwork{n.CongestionControl, n.KernelSettings, n.LinkLimits}
	}
	switch {
	case run.Plan.Live:
	case run.Plan.Archive == "":
		w.Recording = "made by the run"
	default:
		w.Recording = run.Archive.SHA256[:min(12, len(run.Archive.SHA256))]
	}
	facts := facts{}
	text, err := json.Marshal(w)
	if err != nil {
		return facts // NaN or an infinity, which Save refuses
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a seed keeps its digits
	if decoder.Decode(&tree) == nil {
		facts.add("", tree, 0)
	}
	return facts
}

// facts maps paths such as "network.congestion_control" to values.
type facts map[string]string

func (f facts) add(path string, v any, depth int) {
	if tree, ok := v.(map[string]any); ok {
		if path != "" {
			path += "."
		}
		names := slices.Sorted(maps.Keys(tree)) // sorted, so that maxFacts drops the same ones in each run
		for _, name := range names {
			if depth < maxFactDepth {
				f.add(path+name, tree[name], depth+1)
			}
		}
		return
	}
	if value := text(v); value != "" && len(path) <= maxFactBytes && len(f) < maxFacts {
		f[path] = shorten(value, maxFactBytes)
	}
}

// text formats a value of a JSON document for people; null becomes "".
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// Series lists the series that match, most recent run first. An empty field of want, and
// an empty key, match anything.
func (s *Store) Series(ctx context.Context, key string, want Series, limit int) ([]SeriesEntry, error) {
	index, err := s.refresh(ctx)
	if err != nil {
		return nil, err
	}
	return index.Series(ctx, key, want, limit)
}

// Past returns the newest runs of a series, at most limit, oldest first.
func (s *Store) Past(ctx context.Context, key string, limit int) ([]Past, error) {
	s.mu.Lock()
	index := s.index
	s.mu.Unlock()
	return index.Past(ctx, key, limit)
}

// Series lists series; see Store.Series.
func (x *Index) Series(ctx context.Context, key string, want Series, limit int) ([]SeriesEntry, error) {
	rows, err := x.db.QueryContext(ctx, `SELECT series, name, page, link, device, browser, count(*), min(wall), max(wall) FROM pasts
		WHERE (?1 = '' OR series = ?1) AND (?2 = '' OR name = ?2) AND (?3 = '' OR page = ?3) AND (?4 = '' OR link = ?4) AND (?5 = '' OR device = ?5)
		AND (?6 = '' OR browser = ?6)
		GROUP BY series ORDER BY max(wall) DESC, series LIMIT ?7`, key, clip(want.Name), clip(want.Page), clip(want.Link), clip(want.Device),
		clip(want.Browser), limit)
	if err != nil {
		return nil, fmt.Errorf("list series: %w", err)
	}
	defer rows.Close()
	found := []SeriesEntry{}
	for rows.Next() {
		var e SeriesEntry
		var first, last int64
		if err := rows.Scan(&e.Key, &e.Name, &e.Page, &e.Link, &e.Device, &e.Browser, &e.Count, &first, &last); err != nil {
			return nil, fmt.Errorf("list series: %w", err)
		}
		e.First, e.Last = time.Unix(0, first).UTC(), time.Unix(0, last).UTC()
		found = append(found, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list series: %w", err)
	}
	return found, nil
}

// Past returns runs of a series; see Store.Past.
func (x *Index) Past(ctx context.Context, key string, limit int) ([]Past, error) {
	rows, err := x.db.QueryContext(ctx, `SELECT past FROM (SELECT past, wall, id FROM pasts WHERE series = ?1
		ORDER BY wall DESC, id DESC LIMIT ?2) ORDER BY wall, id`, key, limit)
	if err != nil {
		return nil, fmt.Errorf("read series: %w", err)
	}
	defer rows.Close()
	past := []Past{}
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, fmt.Errorf("read series: %w", err)
		}
		var p Past
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return nil, fmt.Errorf("read series: %w", err)
		}
		past = append(past, p)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read series: %w", err)
	}
	return past, nil
}
