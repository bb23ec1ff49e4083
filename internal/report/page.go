package report

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"os"
	"sort"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/store"
)

// page is what the template shows.
type page struct {
	Policy       string
	Style        template.CSS
	Plot, Script template.JS

	Run         *lab.Run
	Title       string
	Host, Path  string
	On          []string // link and browser
	When        string
	WhenMachine string
	Trouble     string // why the run has no, or not all, results
	Verdict     *verdict
	Facts       []fact
	Warnings    []string
	Cards       []card
	Seen        *trial // the trial whose filmstrip stands at the top
	Curves      bool
	Reaches     []reachRow
	Strips      []strip
	Rows        []lab.Summary
	RowLabels   map[string]metric
	Arms        []string
	Trials      []trial
	Columns     []metric
	Groups      []group
	Methods     []method
	Data        data
}

// data is what the page's script reads.
type data struct {
	Curves  []curve          `json:"curves"`
	Medians map[string]steps `json:"medians"` // by "load" and "visual", of the first arm's valid trials
	Logs    []replayLog      `json:"logs"`
	Texts   []string         `json:"texts"`
}

type verdict struct {
	Says, Value, Unit, Rest string
}

// fact is a check of the run as a whole.
type fact struct {
	Good  bool
	Label string
	Value string
	// Kind is "good", "warn" when it touches trials that do not count, or "bad".
	Kind string
}

type card struct {
	metric
	Summary             *lab.Summary
	Value, Low, High    string
	Spread, Range, Note string
}

type reachRow struct {
	Level string
	Time  string
}

type method struct {
	metric
	Text string
}

func pageOf(files *os.Root, run *lab.Run) *page {
	p := &page{
		Run: run, RowLabels: map[string]metric{}, Arms: armsOf(run),
		Columns: metricsOf(run), Strips: strips(run), Groups: groupsOf(run),
		When: run.Wall.UTC().Format("2 January 2006, 15:04 UTC"), WhenMachine: run.Wall.UTC().Format(time.RFC3339),
		Warnings: warningsOf(run),
	}
	p.Host, p.Path = hostAndPath(run.Page)
	p.Title = run.Name
	if p.Title == "" {
		p.Title = run.ID
	}
	for _, s := range run.Summary {
		p.RowLabels[s.Metric] = describe(s.Metric, s.Unit)
	}
	for _, m := range p.Columns {
		for _, s := range run.Summary {
			if s.Metric == m.Name {
				p.Rows = append(p.Rows, s)
			}
		}
	}
	p.On = onOf(run)
	p.Trouble = troubleOf(run)
	p.Verdict = verdictOf(run)
	p.Facts = factsOf(run)
	p.Cards = cardsOf(run)
	p.Methods = methodsOf(run, p.Columns)
	var x texts
	loads, visuals := []steps{}, []steps{}
	for _, t := range run.Trials {
		zero := zeroOf(t)
		p.Trials = append(p.Trials, trialOf(files, t, zero, p.Columns))
		p.Data.Logs = append(p.Data.Logs, serves(files, t, zero, &x))
		if c, ok := curveOf(t); ok {
			p.Data.Curves = append(p.Data.Curves, c)
			if c.Valid && c.Arm == p.Arms[0] {
				loads = append(loads, steps{c.Times[:len(c.Load)], c.Load})
				visuals = append(visuals, steps{c.Times[:len(c.Visual)], c.Visual})
			}
		}
	}
	load := medianCurve(loads)
	p.Data.Medians = map[string]steps{"load": load, "visual": medianCurve(visuals)}
	p.Data.Texts = x.List
	p.Curves = len(p.Data.Curves) > 0
	p.Reaches = reachesOf(load)
	if i, ok := typical(run); ok {
		p.Seen = &p.Trials[i]
	}
	return p
}

// zeroOf is the instant from which a trial's times count.
func zeroOf(t *lab.Trial) lab.Time {
	if t.StartTime != 0 {
		return t.StartTime
	}
	for _, e := range t.Events {
		if e.Name == "navigate" {
			return e.Latest
		}
	}
	return t.FirstFrame
}

// onOf names the link and the browser, where the run says them.
func onOf(run *lab.Run) []string {
	var on []string
	if name, ok := run.Link["name"].(string); ok && name != "" {
		on = append(on, "link "+name)
	}
	switch b := run.Environment["browser"].(type) {
	case string:
		on = append(on, b)
	case map[string]any:
		on = append(on, strings.TrimSpace(plain(b["name"])+" "+plain(b["version"])))
	}
	return on
}

func hostAndPath(page string) (string, string) {
	u, err := url.Parse(page)
	if err != nil || u.Host == "" {
		return page, ""
	}
	rest := u.EscapedPath()
	if u.RawQuery != "" {
		rest += "?" + u.RawQuery
	}
	if rest == "/" {
		rest = ""
	}
	return u.Host, rest
}

func troubleOf(run *lab.Run) string {
	text := map[string]string{
		store.StateRunning:     "This run is still going on. The report shows what is there so far.",
		store.StateFailed:      "This run failed.",
		store.StateInterrupted: "This run was interrupted before it was done. The report shows what was saved.",
	}[run.State]
	if run.Error != "" {
		text = strings.TrimSpace(text + " " + run.Error)
	}
	if valid(run) == 0 && run.State == store.StateDone {
		text = strings.TrimSpace(text + " No trial is valid, so there is no result. Each trial below says why.")
	}
	return text
}

func valid(run *lab.Run) int {
	n := 0
	for _, t := range run.Trials {
		if t.Valid {
			n++
		}
	}
	return n
}

// summaryOf finds the summary of a metric for an arm.
func summaryOf(run *lab.Run, name, arm string) *lab.Summary {
	for i := range run.Summary {
		if s := &run.Summary[i]; s.Metric == name && s.Arm == arm && s.N > 0 {
			return s
		}
	}
	return nil
}

func verdictOf(run *lab.Run) *verdict {
	arms := armsOf(run)
	if len(arms) == 0 {
		return nil
	}
	for _, m := range metricsOf(run) {
		s := summaryOf(run, m.Name, arms[0])
		if s == nil {
			continue
		}
		v := &verdict{Says: m.Says, Value: number(s.Median, m.Unit), Unit: m.Unit}
		switch {
		case s.N == 1:
			v.Rest = "in the only valid trial"
		case confident(s):
			v.Rest = fmt.Sprintf("median of %d valid trials; 95 %% interval %s to %s %s",
				s.N, number(s.Low, m.Unit), number(s.High, m.Unit), m.Unit)
		default:
			v.Rest = fmt.Sprintf("median of %d valid trials, too few for a 95 %% interval; they lie between %s and %s %s",
				s.N, number(s.Min, m.Unit), number(s.Max, m.Unit), m.Unit)
		}
		return v
	}
	return nil
}

// confident says whether Low and High are an interval of 95 %. Six values are
// the fewest whose minimum and maximum bound the median that well: the median
// is outside with a probability of 2 × 0.5⁶ = 3.1 %.
func confident(s *lab.Summary) bool { return s.N >= 6 }

func factsOf(run *lab.Run) []fact {
	n, ok := len(run.Trials), valid(run)
	if n == 0 {
		return nil
	}
	facts := []fact{{Good: ok == n, Label: "Valid trials", Value: fmt.Sprintf("%d of %d", ok, n)}}
	var requests, misses, frames, lost int
	finals := map[string]int{}
	for _, t := range run.Trials {
		requests += t.Requests
		misses += t.Misses
		frames += t.Frames
		lost += t.FramesLost
		if t.Valid && t.FinalFrame != "" {
			finals[t.Arm+t.FinalFrame]++
		}
	}
	facts = append(facts,
		fact{Good: misses == 0 && requests > 0, Label: "Replayed requests", Value: fmt.Sprintf("%s of %s matched", count(requests-misses), count(requests))},
		fact{Good: lost == 0 && frames > 0, Label: "Frames lost", Value: fmt.Sprintf("%s of %s", count(lost), count(frames+lost))},
	)
	if ok > 1 {
		f := fact{Good: len(finals) == len(armsOf(run)), Label: "Final picture", Value: "identical in all"}
		if !f.Good {
			f.Value = fmt.Sprintf("%d different ones", len(finals))
		}
		if len(finals) > 0 {
			facts = append(facts, f)
		}
	}
	for i := range facts {
		switch f := &facts[i]; {
		case f.Good:
			f.Kind = "good"
		case ok > 0:
			f.Kind = "warn"
		default:
			f.Kind = "bad"
		}
	}
	return facts
}

func warningsOf(run *lab.Run) []string {
	out := append([]string(nil), run.Warnings...)
	seen := map[string]bool{}
	for _, w := range out {
		seen[w] = true
	}
	for _, s := range run.Summary {
		for _, w := range s.Warnings {
			if !seen[w] {
				seen[w] = true
				out = append(out, w)
			}
		}
	}
	return out
}

func cardsOf(run *lab.Run) []card {
	arms := armsOf(run)
	if len(arms) == 0 {
		return nil
	}
	var cards []card
	for _, m := range metricsOf(run) {
		s := summaryOf(run, m.Name, arms[0])
		if s == nil || len(cards) == 6 {
			continue
		}
		c := card{metric: m, Summary: s, Value: number(s.Median, m.Unit), Low: number(s.Low, m.Unit), High: number(s.High, m.Unit)}
		c.Spread = number(s.Q3-s.Q1, m.Unit)
		c.Range = number(s.Min, m.Unit) + " – " + number(s.Max, m.Unit)
		cards = append(cards, c)
	}
	return cards
}

func reachesOf(load steps) []reachRow {
	if len(load.Values) < 2 {
		return nil
	}
	var rows []reachRow
	for _, level := range []float64{25, 50, 75, 90, 99, 100} {
		row := reachRow{Level: number(level, "ms") + " %", Time: "not reached"}
		if at, ok := load.reach(level); ok {
			row.Time = number(at, "ms") + " ms"
		}
		rows = append(rows, row)
	}
	return rows
}

// methodsOf explains each metric: in the words of the measurement that made
// it, and else in those of the definition.
func methodsOf(run *lab.Run, metrics []metric) []method {
	said := map[string]string{}
	for _, t := range run.Trials {
		for _, m := range t.Measurements {
			if m.Method != "" && said[m.Name] == "" {
				said[m.Name] = m.Method
			}
		}
	}
	var out []method
	for _, m := range metrics {
		text := said[m.Name]
		if m.Method != "" && text != "" {
			text = m.Method + " Here: " + text
		} else if text == "" {
			text = m.Method
		}
		if text != "" {
			out = append(out, method{m, text})
		}
	}
	return out
}

// typical is the index of the valid trial nearest to the median of the first
// metric: the one whose pictures stand for the run.
func typical(run *lab.Run) (int, bool) {
	arms := armsOf(run)
	if len(arms) == 0 {
		return 0, false
	}
	best, distance := -1, math.Inf(1)
	for _, m := range metricsOf(run) {
		s := summaryOf(run, m.Name, arms[0])
		if s == nil {
			continue
		}
		for i, t := range run.Trials {
			v, ok := t.Metrics[m.Name]
			if d := math.Abs(v - s.Median); ok && t.Valid && t.Arm == arms[0] && d < distance {
				best, distance = i, d
			}
		}
		break
	}
	return best, best >= 0
}

// group is a table of names and values.
type group struct {
	Name string
	Rows []pair
}

type pair struct{ Name, Value string }

func groupsOf(run *lab.Run) []group {
	a := run.Archive
	archive := group{"Archive", []pair{
		{"File", a.File}, {"SHA-256", a.SHA256}, {"Exchanges", count(a.Exchanges)}, {"File size", size(a.Bytes)},
		{"Body bytes", size(a.BodyBytes)}, {"Hosts", strings.Join(a.Hosts, ", ")}, {"Protocols", strings.Join(a.Protocols, ", ")},
	}}
	var out []group
	for _, g := range []group{{"Link", flat(run.Link)}, {"Environment", flat(run.Environment)}, {"Plan", flat(run.Plan)}} {
		if len(g.Rows) > 0 {
			out = append(out, g)
		}
	}
	if a.File != "" || a.Exchanges > 0 {
		out = append(out, archive)
	}
	return out
}

// flat lists a tree of values by their paths: "browser.version", in order.
func flat(m map[string]any) []pair {
	var out []pair
	var visit func(prefix string, v any, depth int)
	visit = func(prefix string, v any, depth int) {
		tree, ok := v.(map[string]any)
		if ok && len(tree) > 0 && depth < 8 {
			names := make([]string, 0, len(tree))
			for name := range tree {
				names = append(names, name)
			}
			sort.Strings(names)
			for _, name := range names {
				path := name
				if prefix != "" {
					path = prefix + "." + name
				}
				visit(path, tree[name], depth+1)
			}
			return
		}
		if prefix != "" {
			out = append(out, pair{prefix, plain(v)})
		}
	}
	visit("", m, 0)
	return out
}

func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = plain(one)
		}
		return strings.Join(parts, ", ")
	case []string:
		return strings.Join(v, ", ")
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return fmt.Sprintf("%.0f", v)
		}
	}
	return fmt.Sprint(v)
}
