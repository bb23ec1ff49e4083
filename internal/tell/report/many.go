package report

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// CellName is the file of the report of a run's nth page and user, from 0.
func CellName(n int) string { return fmt.Sprintf("cell-%02d.html", n+1) }

// CellTimelineName is the file of its timelines.
func CellTimelineName(n int) string { return fmt.Sprintf("cell-%02d-timeline.html", n+1) }

// IsPage says whether a file in a run's folder is a page that Write makes.
func IsPage(name string) bool {
	return name == FileName || name == TimelineName || regexp.MustCompile(`^cell-[0-9]{2,3}(-timeline)?\.html$`).MatchString(name)
}

// manyPage is the report of a run of many pages or users: what was found of all of them, and of each.
type manyPage struct {
	Policy string
	Style  template.CSS
	Script template.JS

	Run               *lab.Run
	Title, What       string
	On                []string
	When, WhenMachine string
	Trouble           string
	Found             *found
	Sides             []side
	Facts             []fact
	Warnings          []string
	All               []manyRow      // all cells together, by guard
	Rows              []manyRow      // a cell each
	Guards            []manyRow      // each guard of each cell
	Columns           []metric.Entry // of a run that compares nothing
	Axis              string         // of the intervals: "±12 %"
	Groups            []group
	Raw               string
	Data              [][]any // the changes as a table, with its head, for the page's script; nil for a run that compares nothing
}

// manyRow is a line of a table: of a cell, or of all of them.
type manyRow struct {
	Name, Link, URL string
	Valid           string // trials
	Trouble         bool   // some are not valid
	Change          *change
	Bar             *percentBar
	Each            []cellValue // medians, of a run that compares nothing
}

type cellValue struct{ Value, Interval string }

// percentBar is an interval in percent, drawn on an axis from −100 to 100.
type percentBar struct {
	From, To, At float64
	Kind         string
	Words        string
}

// writeMany writes the report of a run of many, and one for each of its cells.
func writeMany(files *os.Root, dir string, run *lab.Run, at place) error {
	views := run.Views()
	for i, cell := range run.Plan.Cells() {
		if err := writeOne(files, dir, views[i], place{CellName(i), CellTimelineName(i), at.Report, cell.Name, at.hide}); err != nil {
			return fmt.Errorf("%s: %w", cell.Name, err)
		}
	}
	b, err := renderMany(run, views)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, at.Report), b, 0o644)
}

func renderMany(run *lab.Run, views []*lab.Run) ([]byte, error) {
	p := manyPageOf(run, views)
	text := map[string]string{}
	for _, name := range []string{"many.gohtml", "style.css", "many.css", "csv.js", "many.js"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, err
		}
		text[name] = strings.TrimSpace(string(b))
	}
	p.Style, p.Script = template.CSS(text["style.css"]+"\n"+text["many.css"]), template.JS(text["csv.js"]+"\n"+text["many.js"])
	p.Policy = policy([]string{string(p.Script)}, string(p.Style))
	page, err := template.New("many").Parse(text["many.gohtml"])
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := page.Execute(&b, p); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func manyPageOf(run *lab.Run, views []*lab.Run) *manyPage {
	p := &manyPage{
		Run: run, Title: run.Name, What: whatOf(run.Plan), On: onOf(run), Trouble: troubleOf(run), Found: foundOf(run), Warnings: warningsOf(run),
		When: run.Wall.UTC().Format("2 January 2006, 15:04 UTC"), WhenMachine: run.Wall.UTC().Format(time.RFC3339),
		Groups: groupsOf(run), Raw: rawOf(run),
	}
	if p.Title == "" {
		p.Title = run.ID
	}
	for _, f := range factsOf(run) {
		if f.Label != "Final picture" { // each page has its own
			p.Facts = append(p.Facts, f)
		}
	}
	if c := run.Comparison; c != nil && c.Control != "" {
		for _, arm := range armsOf(run) {
			p.Sides = append(p.Sides, side{Arm: arm, Name: armName(arm), Differs: differsOf(run, arm)})
		}
	}
	p.addRows(run, views)
	return p
}

// whatOf says what a plan has many of.
func whatOf(p lab.Plan) string {
	pages, users := max(len(p.Pages), 1), max(len(p.Users), 1)
	text := fmt.Sprintf("%d %s", pages, lab.Plural(pages, "page", "pages"))
	if len(p.Users) > 0 {
		text += fmt.Sprintf(" for %d %s", users, lab.Plural(users, "user", "users"))
	}
	return text
}

// addRows fills the tables.
func (p *manyPage) addRows(run *lab.Run, views []*lab.Run) {
	widest := 0.0
	if run.Comparison != nil {
		p.Data = [][]any{{"page_and_user", "address", "metric", "unit", "pairs", "finding", "control", "treatment",
			"change", "low", "high", "change_percent", "low_percent", "high_percent", "p_corrected"}}
	}
	collect := func(row manyRow, c change) manyRow {
		row.Change = &c
		if e := c.Effect; e.Percent != nil && e.Shift.Confidence > 0 && e.Pairs >= 2 {
			row.Bar = &percentBar{From: e.Percent.Low, To: e.Percent.High, At: e.Percent.Value, Kind: c.Kind,
				Words: fmt.Sprintf("%s, 95 %% interval %s to %s %%", c.Percent, signed(e.Percent.Low, "%"), signed(e.Percent.High, "%"))}
			widest = max(widest, math.Abs(e.Percent.Low), math.Abs(e.Percent.High))
		}
		return row
	}
	for _, c := range guardsOf(run) {
		row := collect(manyRow{Name: "All together"}, c)
		if c.Effect == run.Comparison.Telling() {
			p.All = append(p.All, row)
		}
		p.Guards, p.Data = append(p.Guards, row), append(p.Data, dataOf(row))
	}
	cells := run.Plan.Cells()
	for i, view := range views {
		row := manyRow{Name: cells[i].Name, Link: CellName(i), URL: view.Page, Valid: fmt.Sprintf("%d of %d", valid(view), len(view.Trials)),
			Trouble: valid(view) < len(view.Trials)}
		all := guardsOf(view)
		shown := row
		if view.Comparison != nil {
			tells := view.Comparison.Telling()
			if n := slices.IndexFunc(all, func(c change) bool { return c.Effect == tells }); n >= 0 {
				shown = collect(row, all[n])
			}
		}
		p.Rows = append(p.Rows, shown)
		for _, c := range all {
			guard := collect(row, c)
			p.Guards, p.Data = append(p.Guards, guard), append(p.Data, dataOf(guard))
		}
	}
	if run.Comparison == nil {
		p.addMedians(views)
	}
	p.draw(widest)
}

// dataOf is a row as the page's script saves it. What is not known is nil.
func dataOf(r manyRow) []any {
	e := r.Change.Effect
	all := []any{r.Name, r.URL, e.Metric, e.Unit, e.Pairs, r.Change.Finding}
	numbers := func(known bool, values ...float64) {
		for _, v := range values {
			if !known || math.IsNaN(v) || math.IsInf(v, 0) {
				all = append(all, nil)
				continue
			}
			all = append(all, v)
		}
	}
	numbers(e.Pairs > 0, e.Control, e.Treatment, e.Shift.Value)
	numbers(e.Shift.Confidence > 0, e.Shift.Low, e.Shift.High)
	percent := lab.Range{}
	if e.Percent != nil {
		percent = *e.Percent
	}
	numbers(e.Percent != nil, percent.Value, percent.Low, percent.High)
	numbers(e.Pairs > 0, e.Adjusted)
	return all
}

// guardsOf lists the changes of a run's guards.
func guardsOf(run *lab.Run) (list []change) {
	for _, c := range changesOf(run) {
		if c.Effect.Guard {
			list = append(list, c)
		}
	}
	return list
}

// addMedians fills in the medians of a run that compares nothing.
func (p *manyPage) addMedians(views []*lab.Run) {
	for _, view := range views {
		for _, m := range telling(view) {
			known := slices.ContainsFunc(p.Columns, func(c metric.Entry) bool { return c.Name == m.Name })
			if !known && !isOfStep(m.Name) && len(p.Columns) < mostColumns {
				p.Columns = append(p.Columns, m)
			}
		}
	}
	for i, view := range views {
		for _, m := range p.Columns {
			v := cellValue{Value: "–"}
			if s := summaryOf(view, m.Name, lab.Control); s != nil {
				v.Value = number(s.Median, m.Unit)
				if s.Bounded() {
					v.Interval = number(s.Low, m.Unit) + " – " + number(s.High, m.Unit)
				}
			}
			p.Rows[i].Each = append(p.Rows[i].Each, v)
		}
	}
}

// draw puts the intervals on one axis, whose end is the next of 1, 2 and 5 percent, tens, and hundreds.
func (p *manyPage) draw(widest float64) {
	if widest == 0 || math.IsInf(widest, 0) {
		return
	}
	end := 1.0
	for _, step := range []float64{2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if widest > end {
			end = step
		}
	}
	p.Axis = fmt.Sprintf("±%g %%", end)
	drawn := map[*percentBar]bool{} // a row of two tables has one
	for _, rows := range [][]manyRow{p.All, p.Rows, p.Guards} {
		for _, r := range rows {
			if b := r.Bar; b != nil && !drawn[b] {
				drawn[b] = true
				for _, v := range []*float64{&b.From, &b.To, &b.At} {
					*v = math.Round(max(-100, min(100, *v*100/end))*10) / 10
				}
			}
		}
	}
}

// Width is that of the interval.
func (b *percentBar) Width() float64 { return max(1.5, b.To-b.From) }
