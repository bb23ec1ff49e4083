package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"eidetic/analysis/trace"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// page holds what the template shows.
type page struct {
	Policy       string
	Style        template.CSS
	Plot, Script template.JS

	Run         *lab.Run
	At          place
	Title       string
	Host, Path  string
	On          []string // link and browser
	When        string
	WhenMachine string
	Trouble     string    // why results are missing
	Failure     *artifact // the screen when the first trial failed, where no trial is valid
	Verdict     *verdict
	Found       *found // instead of Verdict, if two arms are compared
	Sides       []side // an arm each, with its film
	Answer      *answer
	Validity    *validity
	Cause       string   // in a sentence
	Changes     []change // those that the verdict rests on, if it is a journey's
	MoreChanges []change // of a journey: the others
	Why         *why
	Facts       []fact
	Warnings    []string
	Cards       []card
	Curves      bool
	Levels      []string   // of the load histogram
	Reaches     []reachRow // when each arm's median reaches the levels
	Strips      []strip
	Steps       []step // of a journey
	Rows        []lab.Summary
	RowLabels   map[string]metric.Entry
	Arms        []string
	Trials      []trial
	Filled      []filledRow
	FilledMore  int
	Columns     []metric.Entry
	Groups      []group
	Raw         string // link, environment and plan as JSON
	Methods     []method
	Data        data
}

// data is the input of the page's script.
type data struct {
	Curves  []curve     `json:"curves"`
	Medians []median    `json:"medians"` // of the valid trials, one for each arm, control first
	Logs    []replayLog `json:"logs"`
	Texts   []string    `json:"texts"`
	// Metrics are those of the dots, and Trials their values, for the file that has them all.
	Metrics []string     `json:"metrics"`
	Trials  []trialOfRow `json:"trials"`
	Steps   []stepData   `json:"steps"`
}

// trialOfRow is what a trial measured: a value, or null, for each of the metrics.
type trialOfRow struct {
	Number int        `json:"n"`
	Arm    string     `json:"arm"`
	Valid  bool       `json:"valid"`
	Values []*float64 `json:"values"`
}

// median is an arm's median curves.
type median struct {
	Arm    string `json:"arm"`
	Load   steps  `json:"load"`
	Visual steps  `json:"visual"`
}

type verdict struct {
	Says, Value, Unit, Rest string
}

// fact is a check of the run as a whole.
type fact struct {
	Good  bool
	Label string
	Value string
	// Kind is "good", "bad", or "warn" if only invalid trials are affected.
	Kind string
}

type card struct {
	metric.Entry
	Summary             *lab.Summary
	Value, Low, High    string
	Spread, Range, Note string
	Change              *change // if two arms are compared
	Both                []armValue
	Gauge               *gauge
}

// armValue is an arm's median.
type armValue struct{ Name, Value string }

type reachRow struct {
	Name  string // of the arm
	Times []string
}

type method struct {
	metric.Entry
	Text string
}

// mostColumns of numbers stand in the row of a trial; its own table has all.
const mostColumns = 6

func pageOf(files *os.Root, run *lab.Run) *page {
	metrics := metricsOf(run)
	p := &page{
		Run: run, RowLabels: map[string]metric.Entry{}, Arms: armsOf(run),
		Columns: metrics[:min(len(metrics), mostColumns)], Strips: strips(run), Groups: groupsOf(run), Raw: rawOf(run),
		When: run.Wall.UTC().Format("2 January 2006, 15:04 UTC"), WhenMachine: run.Wall.UTC().Format(time.RFC3339),
		Warnings: warningsOf(run),
	}
	p.Steps = stepsOf(files, run)
	p.Host, p.Path = hostAndPath(run.Page)
	if other := otherPage(run); other != "" {
		p.Path += " and " + other
	}
	p.Title = run.Name
	if p.Title == "" {
		p.Title = run.ID
	}
	for _, s := range run.Summary {
		p.RowLabels[s.Metric] = describe(s.Metric, s.Unit)
	}
	for _, m := range metrics {
		for _, s := range run.Summary {
			if s.Metric == m.Name {
				p.Rows = append(p.Rows, s)
			}
		}
	}
	p.On = onOf(run)
	p.Trouble, p.Failure = troubleOf(run), failureOf(files, run)
	if p.Found = foundOf(run); p.Found == nil {
		p.Verdict = verdictOf(run)
	}
	p.Changes = changesOf(run)
	p.Answer, p.Why, p.Cause = answerOf(run, p.Changes), whyOf(run), causeOf(run)
	p.Facts = factsOf(run)
	p.Cards = cardsOf(run, p.Changes)
	if shown := shownTrial(run); shown != nil {
		n := slices.IndexFunc(p.Changes, func(c change) bool { return !c.Effect.Guard })
		if n > 0 {
			p.Changes, p.MoreChanges = p.Changes[:n], p.Changes[n:]
		}
	}
	p.Methods = methodsOf(run, metrics)
	p.Filled, p.FilledMore = filledOf(run)
	var x texts
	p.Data.Medians, p.Data.Curves = []median{}, []curve{}
	p.Data.Metrics, p.Data.Trials, p.Data.Steps = []string{}, []trialOfRow{}, stepDataOf(p.Steps)
	for _, s := range p.Strips {
		p.Data.Metrics = append(p.Data.Metrics, s.Name)
	}
	loads, visuals := map[string][]steps{}, map[string][]steps{}
	for _, t := range run.Trials {
		zero := trace.ZeroOf(t)
		p.Data.Trials = append(p.Data.Trials, valuesOf(t, p.Data.Metrics))
		p.Trials = append(p.Trials, trialOf(files, t, zero, p.Columns))
		if both(run) {
			p.Trials[len(p.Trials)-1].ArmName = armName(t.Arm)
		}
		p.Data.Logs = append(p.Data.Logs, serves(files, t, zero, &x))
		if c, ok := curveOf(t); ok {
			p.Data.Curves = append(p.Data.Curves, c)
			if c.Valid {
				loads[c.Arm] = append(loads[c.Arm], steps{c.Times[:len(c.Load)], c.Load})
				visuals[c.Arm] = append(visuals[c.Arm], steps{c.Times[:len(c.Visual)], c.Visual})
			}
		}
	}
	for _, arm := range p.Arms {
		m := median{arm, medianCurve(loads[arm]), medianCurve(visuals[arm])}
		p.Data.Medians = append(p.Data.Medians, m)
		if row, ok := reachesOf(m.Load); ok {
			row.Name = armName(arm)
			p.Reaches = append(p.Reaches, row)
		}
	}
	for _, level := range levels() {
		p.Levels = append(p.Levels, number(level, "ms")+" %")
	}
	p.Data.Texts = x.List
	p.Curves = len(p.Data.Curves) > 0
	p.Sides, p.Validity = sidesOf(run, p.Trials), validityOf(run, p.Trials, p.Facts)
	return p
}

// valuesOf are a trial's values of the metrics.
func valuesOf(t *lab.Trial, metrics []string) trialOfRow {
	row := trialOfRow{Number: t.Number, Arm: t.Arm, Valid: t.Valid, Values: []*float64{}}
	for _, name := range metrics {
		var value *float64
		if v, ok := t.Value(name); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			value = &v
		}
		row.Values = append(row.Values, value)
	}
	return row
}

// onOf names the link and the browser, if the run has them.
func onOf(run *lab.Run) []string {
	var on []string
	// run.Link is the control's: arms with different links name theirs.
	if name := run.Link.Name; name != "" && !strings.HasPrefix(differsOf(run, lab.Control), "link ") {
		on = append(on, "link "+name)
	}
	if browser, _, _ := strings.Cut(run.Environment.Browser, " built on "); browser != "" {
		on = append(on, browser)
	}
	return on
}

// otherPage is the treatment's page, if it differs from the run's.
func otherPage(run *lab.Run) string {
	for _, t := range run.Trials {
		if t.Arm == lab.Treatment && t.Page != run.Page {
			host, path := hostAndPath(t.Page)
			return host + path
		}
	}
	return ""
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

// warningsOf lists the warnings of the run and of its metrics, without duplicates. A
// warning that does not hold for all metrics names its metrics.
func warningsOf(run *lab.Run) []string {
	out := append([]string(nil), run.Warnings...)
	said := map[string][]string{} // labels of the metrics, by warning
	all := map[string]bool{}
	var order []string
	for _, s := range run.Summary {
		if isOfStep(s.Metric) {
			continue // its table says how many trials have it
		}
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
	for _, c := range changesOf(run) {
		for _, w := range c.Effect.Warnings {
			if c.Effect.Guard && max(c.Effect.Pairs, run.Comparison.Pairs) >= 6 { // for fewer pairs, the verdict says so
				out = append(out, c.Label+": "+w)
			}
		}
	}
	for _, w := range order {
		if list := said[w]; len(list) < len(all) {
			if more := len(list) - mostNamed; more > 1 {
				list = append(list[:mostNamed:mostNamed], fmt.Sprintf("%d more metrics", more))
			}
			w = strings.Join(list, ", ") + ": " + w
		}
		out = append(out, w)
	}
	return out
}

// mostNamed bounds the metrics that a warning names.
const mostNamed = 3

// mostSteps bounds the steps of a journey at the top of its report.
const mostSteps = 11

// telling lists the metrics at the top of the report: those of the page, or the journey's and each
// step's time to its end.
func telling(run *lab.Run) (list []metric.Entry) {
	shown := shownTrial(run)
	if shown == nil {
		list = metricsOf(run)
		return list[:min(len(list), len(headline()))]
	}
	list = append(list, describe(metric.Journey.String(), ""))
	for _, s := range shown.Steps {
		if s.Measured() && len(list) <= mostSteps {
			what := metric.TimeToEnd
			if len(s.Pings) > 0 {
				what = metric.ResponseTime
			}
			m := describe(what.OfStep(s.Name), "")
			m.Label = s.Name
			list = append(list, m)
		}
	}
	return list
}

func cardsOf(run *lab.Run, changes []change) []card {
	arms := armsOf(run)
	if len(arms) == 0 {
		return nil
	}
	var cards []card
	for _, m := range telling(run) {
		s := summaryOf(run, m.Name, arms[0])
		if s == nil {
			continue
		}
		c := card{Entry: m, Summary: s, Value: number(s.Median, m.Unit), Low: number(s.Low, m.Unit), High: number(s.High, m.Unit)}
		c.Spread, c.Gauge = number(s.Q3-s.Q1, m.Unit), gaugeOfSummary(m, s)
		c.Range = number(s.Min, m.Unit) + " – " + number(s.Max, m.Unit)
		if len(arms) > 1 {
			for i := range changes {
				if changes[i].Effect.Metric == m.Name {
					c.Change = &changes[i]
				}
			}
			if c.Gauge = nil; c.Change != nil {
				c.Gauge = gaugeOfEffect(m, c.Change)
			}
			for _, arm := range arms {
				v := armValue{armName(arm), "–"}
				if c.Change != nil && lab.ArmOrder(arm) < 2 { // from the trials that the change was computed from
					v.Value = []string{c.Change.Control, c.Change.Treatment}[lab.ArmOrder(arm)]
				} else if s := summaryOf(run, m.Name, arm); s != nil {
					v.Value = number(s.Median, m.Unit)
				}
				c.Both = append(c.Both, v)
			}
		}
		cards = append(cards, c)
	}
	return cards
}

// levels are the percentages of the load whose times the report lists.
func levels() []float64 { return []float64{25, 50, 75, 90, 99, 100} }

func reachesOf(load steps) (row reachRow, ok bool) {
	if len(load.Values) < 2 {
		return row, false
	}
	for _, level := range levels() {
		text := "not reached"
		if at, ok := load.reach(level); ok {
			text = number(at, "ms")
		}
		row.Times = append(row.Times, text)
	}
	return row, true
}

// methodsOf explains each metric by the method of its measurement, or else by the
// definition.
func methodsOf(run *lab.Run, metrics []metric.Entry) []method {
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
		if text := cmp.Or(said[m.Name], m.Text()); text != "" {
			out = append(out, method{m, sentence(text)})
		}
	}
	return out
}

// typical returns the index of the arm's valid trial nearest to the median of the first
// metric. Its pictures represent the arm.
func typical(run *lab.Run, arm string) (int, bool) {
	best, distance := -1, math.Inf(1)
	for _, m := range metricsOf(run) {
		s := summaryOf(run, m.Name, arm)
		if s == nil {
			continue
		}
		for i, t := range run.Trials {
			v, ok := t.Value(m.Name)
			if d := math.Abs(v - s.Median); ok && t.Valid && t.Arm == arm && d < distance {
				best, distance = i, d
			}
		}
		break
	}
	return best, best >= 0
}
