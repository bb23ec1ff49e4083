// Package runview makes of a run what its page shows: the result in words, and for each metric the values of all
// trials, what each arm is like, and how the pairs differ.
//
// A lab.Run flows in, a View flows out, which is a small part of run.json: a run of 100 trials has some 30 kB. Nothing
// is computed here that a report has otherwise: the words are the report's, the pairs and effects the verdict's, and
// the medians with their intervals those of analysis/stats.
package runview

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/verdict"
)

// View is what the page of a run shows.
type View struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Kind    string    `json:"kind,omitempty" enum:"film,qualification" doc:"What it is if it executed no plan"`
	Page    string    `json:"page" doc:"URL under test"`
	Wall    time.Time `json:"wall" doc:"Start of the run"`
	State   string    `json:"state" doc:"queued, running, done, failed or interrupted"`
	Error   string    `json:"error,omitempty" doc:"Why the run failed"`
	Waits   string    `json:"waits,omitempty" doc:"What the run waits for, or parts of it, in words"`
	Device  string    `json:"device,omitempty" doc:"Name of the device"`
	Link    string    `json:"link,omitempty" doc:"Link of the control"`
	Browser string    `json:"browser,omitempty"`
	Planned int       `json:"planned" doc:"Trials that the plan asks for"`
	Report  string    `json:"report,omitempty" doc:"File of the report of what is shown, in the run's folder; absent as long as there is none"`
	Thinned string    `json:"thinned,omitempty" doc:"Why the run has no films any more"`

	report.Words
	Warnings []string `json:"warnings" doc:"What the report warns of"`

	Arms []Arm `json:"arms" doc:"The control first"`
	// Cells are the pages and users of a run of many; Together is then what was found over all of them, in percent.
	Cells    []Cell   `json:"cells,omitempty" doc:"Pages and users of a run of many, in the plan's order"`
	Together []Effect `json:"together,omitempty" doc:"Of a run of many: the effects on all of them together, in percent; that which tells most first"`
	Cell     string   `json:"cell,omitempty" doc:"The one that is shown; without it only what all have together"`
	Steps    []string `json:"steps,omitempty" doc:"Measured steps of a journey"`
	Step     string   `json:"step,omitempty" doc:"The one whose metrics are shown"`

	Trials  []Trial  `json:"trials" doc:"In the order in which they were made"`
	Pairs   []Pair   `json:"pairs" doc:"Valid trials that are compared with each other, in the order of the run"`
	Metrics []Metric `json:"metrics" doc:"Those that decide the verdict, or those of the step, and those that were asked for"`
	Others  []Name   `json:"others,omitempty" doc:"Further metrics, to ask for"`
}

// Arm is an arm of the run.
type Arm struct {
	Arm     string `json:"arm"`
	Name    string `json:"name" example:"Control"`
	Differs string `json:"differs,omitempty" doc:"What distinguishes it from the other" example:"link 3g"`
}

// Cell is a page of a run of many for one user.
type Cell struct {
	Name     string      `json:"name"`
	URL      string      `json:"url"`
	Valid    int         `json:"valid"`
	Trials   int         `json:"trials"`
	Verdict  string      `json:"verdict,omitempty"`
	Headline string      `json:"headline,omitempty"`
	Effect   *lab.Effect `json:"effect,omitempty" doc:"That which tells most"`
	Label    string      `json:"label,omitempty" doc:"Of the effect's metric"`
}

// Trial is a trial of the run.
type Trial struct {
	Number  int      `json:"n"`
	Arm     string   `json:"arm"`
	Valid   bool     `json:"valid"`
	Invalid []string `json:"invalid,omitempty" doc:"Why it is left out"`
	Extra   string   `json:"extra,omitempty" enum:"warm-up,trace" doc:"What it was made for, if not to be counted"`
	Reel    bool     `json:"reel" doc:"Whether its frames can be seen"`
}

// Pair is a pair of trials.
type Pair struct {
	Control   int `json:"control" doc:"Number of the trial"`
	Treatment int `json:"treatment"`
}

// Name is a metric that can be asked for.
type Name struct {
	Metric string `json:"metric"`
	Label  string `json:"label"`
}

// Metric is one metric over all trials.
type Metric struct {
	Name
	Unit   string     `json:"unit"`
	Guard  bool       `json:"guard" doc:"Whether it decides the verdict"`
	Values []*float64 `json:"values" doc:"Of each trial, in the order of trials; null where it has none"`
	Arms   []Spread   `json:"arms" doc:"Of each arm that has valid trials"`
	Effect *Effect    `json:"effect,omitempty" doc:"How the arms differ; absent before the run has ended"`
}

// Spread is what the valid trials of an arm are like.
type Spread struct {
	Arm       string  `json:"arm"`
	N         int     `json:"n"`
	Median    float64 `json:"median"`
	Low       float64 `json:"low" doc:"Of the median's 95 % interval, or the smallest value where there are fewer than six"`
	High      float64 `json:"high"`
	Confident bool    `json:"confident" doc:"Whether low and high are a 95 % interval"`
}

// Effect is a comparison's effect on a metric, and the finding in words.
type Effect struct {
	lab.Effect
	Label string `json:"label" doc:"Of the metric" example:"SpeedIndex"`
	Words string `json:"words" example:"no difference found"`
}

// UnknownError is returned for a cell, step or metric that the run does not have.
type UnknownError struct{ What, Name string }

func (e *UnknownError) Error() string { return fmt.Sprintf("the run has no %s %.100q", e.What, e.Name) }

// Choice is what of a run is to be shown.
type Choice struct{ Cell, Step, Metric string }

// Of makes the view of a run.
func Of(run *lab.Run, c Choice) (*View, error) {
	v := &View{
		ID: run.ID, Name: run.Name, Kind: run.Kind, Page: run.Page, Wall: run.Wall, State: run.State, Error: run.Error, Device: run.Plan.Device,
		Link:    run.Link.Name,
		Browser: run.Environment.Browser, Cell: c.Cell, Step: c.Step, Warnings: report.Warnings(run), Report: report.FileName,
		Trials: []Trial{}, Pairs: []Pair{}, Metrics: []Metric{}, Arms: []Arm{},
	}
	views := run.Views()
	if run.Plan.IsMany() {
		for i, cell := range run.Plan.Cells() {
			v.Cells = append(v.Cells, cellOf(cell.Name, views[i]))
		}
	}
	shown := run
	if c.Cell != "" {
		i := slices.IndexFunc(v.Cells, func(one Cell) bool { return one.Name == c.Cell })
		if i < 0 {
			return nil, &UnknownError{"page or user", c.Cell}
		}
		shown, v.Report = views[i], report.CellName(i)
		v.Page, v.Warnings = shown.Page, report.Warnings(shown)
	}
	v.Words = report.WordsOf(shown)
	v.addTrials(shown)
	if run.Plan.IsMany() && c.Cell == "" {
		v.addTogether(run)
		return v, nil
	}
	for _, p := range verdict.Pairs(shown.Trials) {
		v.Pairs = append(v.Pairs, Pair{p[0].Number, p[1].Number})
	}
	return v, v.addMetrics(shown, c)
}

// addTogether adds the guards' effects on all cells; that which tells most is first.
func (v *View) addTogether(run *lab.Run) {
	if run.Comparison == nil {
		return
	}
	telling := run.Comparison.Telling()
	for i := range run.Comparison.Effects {
		e := &run.Comparison.Effects[i]
		switch one := effectOf(run, e); {
		case e == telling:
			v.Together = slices.Insert(v.Together, 0, one)
		case e.Guard:
			v.Together = append(v.Together, one)
		}
	}
}

func effectOf(run *lab.Run, e *lab.Effect) Effect {
	return Effect{*e, metric.Label(e.Metric), report.Finding(run, e)}
}

func cellOf(name string, view *lab.Run) Cell {
	cell := Cell{Name: name, URL: view.Page}
	for _, t := range view.Trials {
		if !t.IsExtra() {
			cell.Trials++
		}
		if isCounted(t) {
			cell.Valid++
		}
	}
	if c := view.Comparison; c != nil {
		cell.Verdict, cell.Headline, cell.Effect = c.Verdict, c.Headline, c.Telling()
		if cell.Effect != nil {
			cell.Label = metric.Label(cell.Effect.Metric)
		}
	}
	return cell
}

// isCounted says whether a trial enters the statistics.
func isCounted(t *lab.Trial) bool { return t.Valid && !t.IsExtra() }

func (v *View) addTrials(run *lab.Run) {
	for _, t := range run.Trials {
		one := Trial{Number: t.Number, Arm: t.Arm, Valid: isCounted(t), Invalid: t.Invalid, Reel: t.Files["reel"] != ""}
		switch {
		case t.Warmup:
			one.Extra = "warm-up"
		case t.Traced:
			one.Extra = "trace"
		}
		v.Trials = append(v.Trials, one)
	}
	for _, arm := range report.Arms(run) {
		v.Arms = append(v.Arms, Arm{arm.Arm, arm.Name, arm.Differs})
	}
}

// mostMetrics bounds those with values: more than a person looks at would make the page heavy.
const mostMetrics = 12

// mostOthers bounds those that can be chosen.
const mostOthers = 400

func (v *View) addMetrics(run *lab.Run, c Choice) error {
	all := catalogue(run)
	for _, t := range run.Trials {
		for _, s := range t.Steps {
			if s.Measured() && !slices.Contains(v.Steps, s.Name) {
				v.Steps = append(v.Steps, s.Name)
			}
		}
	}
	if c.Step != "" && !slices.Contains(v.Steps, c.Step) {
		return &UnknownError{"measured step", c.Step}
	}
	asked := slices.IndexFunc(all, func(m known) bool { return m.name == c.Metric })
	if c.Metric != "" && asked < 0 {
		return &UnknownError{"metric", c.Metric}
	}
	guarded := slices.ContainsFunc(all, func(m known) bool { return m.guard })
	for i, m := range all {
		shown := c.Step != "" && m.step == c.Step || c.Step == "" && (m.guard || !guarded && m.step == "" || m.name == metric.Journey.String())
		switch {
		case i == asked || shown && len(v.Metrics) < mostMetrics:
			v.Metrics = append(v.Metrics, v.metric(run, m))
		case (m.step == c.Step || shown) && len(v.Others) < mostOthers:
			v.Others = append(v.Others, Name{m.name, metric.Label(m.name)})
		}
	}
	return nil
}

// known is a metric that trials of a run have.
type known struct {
	name, unit, step string
	guard            bool
}

// catalogue lists the metrics of a run's trials: those that decide its verdict first, as the comparison has them.
func catalogue(run *lab.Run) (all []known) {
	seen := map[string]bool{}
	collect := func(name, unit string, guard bool) {
		if !seen[name] {
			seen[name] = true
			all = append(all, known{name, unit, name[:max(0, strings.LastIndexByte(name, '/'))], guard})
		}
	}
	if c := run.Comparison; c != nil {
		for _, e := range c.Effects {
			if e.Guard {
				collect(e.Metric, e.Unit, true)
			}
		}
	}
	for _, guards := range []bool{true, false} {
		for _, t := range run.Trials {
			for _, m := range t.Measurements {
				if guard := run.Comparison == nil && isGuard(run, m.Name); guard || !guards {
					collect(m.Name, m.Unit, guard)
				}
			}
		}
	}
	if run.Comparison == nil {
		slices.SortStableFunc(all, func(a, b known) int { return metric.GuardPlace(a.name) - metric.GuardPlace(b.name) })
	}
	return all
}

// isGuard says whether a metric of a run that has no comparison would decide its verdict.
func isGuard(run *lab.Run, name string) bool {
	if p := run.Plan.Primary; p != "" {
		return name == p
	}
	var asked []string
	if run.Plan.Measure != nil {
		asked = run.Plan.Measure.Guards
	}
	return metric.Parse(name).IsGuardOf(asked)
}

func (v *View) metric(run *lab.Run, m known) Metric {
	out := Metric{
		Name: Name{m.name, metric.Label(m.name)}, Unit: m.unit, Guard: m.guard,
		Values: make([]*float64, len(run.Trials)), Arms: []Spread{},
	}
	counted := map[string][]float64{}
	for i, t := range run.Trials {
		for _, one := range t.Measurements {
			if one.Name != m.name || math.IsNaN(one.Value) || math.IsInf(one.Value, 0) {
				continue
			}
			value := math.Round(one.Value*1e4) / 1e4
			out.Values[i] = &value
			if isCounted(t) {
				counted[t.Arm] = append(counted[t.Arm], one.Value)
			}
		}
	}
	for _, arm := range v.Arms {
		if values := counted[arm.Arm]; len(values) > 0 {
			s := stats.Summarise(values)
			out.Arms = append(out.Arms, Spread{arm.Arm, s.N, s.Median, s.Low, s.High, s.N >= verdict.Least})
		}
	}
	if c := run.Comparison; c != nil {
		if i := slices.IndexFunc(c.Effects, func(e lab.Effect) bool { return e.Metric == m.name }); i >= 0 {
			e := effectOf(run, &c.Effects[i])
			out.Effect = &e
		}
	}
	return out
}
