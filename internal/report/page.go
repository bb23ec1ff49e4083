package report

import (
	"html/template"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
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

// warningsOf lists the run's warnings and those of its metrics, each once; one
// that does not hold for all metrics names them.
func warningsOf(run *lab.Run) []string {
	out := append([]string(nil), run.Warnings...)
	said := map[string][]string{} // labels, by warning
	all := map[string]bool{}
	var order []string
	for _, s := range run.Summary {
		label := describe(s.Metric, s.Unit).Label
		all[label] = true
		for _, w := range s.Warnings {
			if slices.Contains(run.Warnings, w) || slices.Contains(said[w], label) {
				continue
			}
			if said[w] == nil {
				order = append(order, w)
			}
			said[w] = append(said[w], label)
		}
	}
	for _, w := range order {
		if len(said[w]) < len(all) {
			w = strings.Join(said[w], ", ") + ": " + w
		}
		out = append(out, w)
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
		if s == nil || len(cards) == len(headline()) {
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
