package truth

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"eidetic/internal/metric"
)

// table is printed for people, aligned or in Markdown.
type table struct {
	title  string // and what has to be known to read it
	header []string
	rows   [][]string
}

func (t table) print(w io.Writer, markdown bool) error {
	if len(t.rows) == 0 {
		return nil
	}
	if markdown {
		line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
		text := t.title + "\n\n" + line(t.header) + "|" + strings.Repeat("---|", len(t.header)) + "\n"
		for _, row := range t.rows {
			text += line(row)
		}
		_, err := io.WriteString(w, text+"\n")
		return err
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "%s\n", t.title)
	for _, row := range append([][]string{t.header}, t.rows...) {
		fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	fmt.Fprintln(out)
	return out.Flush()
}

// Print writes all tables.
func (e *Evaluation) Print(w io.Writer, markdown bool) error {
	for _, t := range []table{
		e.upkeepTable(), e.reasonTable(), e.spreadTable(), e.alarmTable(), e.powerTable(), e.coverageTable(), e.delayTable(),
	} {
		if err := t.print(w, markdown); err != nil {
			return err
		}
	}
	return nil
}

func (e *Evaluation) upkeepTable() table {
	u := e.Upkeep
	return table{
		title: "The trials: " + e.Plan.Browser + ", link " + e.Plan.Link + fmt.Sprintf(
			", a load ends after %v of stillness, no evidence is made",
			e.Plan.Still,
		),
		header: []string{
			"trials",
			"thrown away",
			"seconds a trial",
			"hours in all",
			"stolen time",
			"quietest experiment",
			"worst experiment",
		},
		rows: [][]string{{
			fmt.Sprint(u.Trials), fmt.Sprintf("%d (%.1f %%)", u.ThrownAway, 100*float64(u.ThrownAway)/float64(max(u.Trials, 1))),
			fmt.Sprintf("%.1f", u.Seconds), fmt.Sprintf("%.2f", u.Hours),
			fmt.Sprintf("%.2f %%", u.Stolen), fmt.Sprintf("%.2f %%", u.StolenLeast), fmt.Sprintf("%.2f %%", u.StolenMost),
		}},
	}
}

func (e *Evaluation) reasonTable() table {
	t := table{title: "Why trials were thrown away (one may have several reasons)", header: []string{"reason", "trials"}}
	for _, r := range e.Upkeep.Reasons {
		t.rows = append(t.rows, []string{strings.ReplaceAll(r.Text, "|", "/"), fmt.Sprint(r.N)})
	}
	return t
}

func (e *Evaluation) spreadTable() table {
	t := table{title: "How equal trials differ, in ms: the valid trials of the A/A experiments",
		header: []string{
			"metric",
			"trials",
			"median",
			"standard deviation",
			"within blocks",
			"the same, adjusted",
			"middle half spans",
			"over 3 frames from the median",
		}}
	for _, s := range e.Spread {
		adjusted := "–"
		if s.Adjusted > 0 {
			adjusted = ms(s.Adjusted)
		}
		t.rows = append(
			t.rows,
			[]string{
				s.Metric.Label(),
				fmt.Sprint(s.N),
				ms(s.Median),
				ms(s.Deviation),
				ms(s.WithinBlocks),
				adjusted,
				ms(s.MiddleHalf),
				fmt.Sprint(s.FarFromMedian),
			},
		)
	}
	return t
}

// realAA counts the false alarms of a rule in the real A/A experiments.
func (e *Evaluation) realAA(rule, metric int) (found, of int) {
	for _, r := range e.Real {
		if r.Delay != 0 {
			continue
		}
		of++
		if r.Found[rule][metric] {
			found++
		}
	}
	return found, of
}

func (e *Evaluation) alarmTable() table {
	t := table{header: []string{"rule", "aims at", "band"}}
	n := 0
	for _, m := range metrics() {
		for _, size := range sizes() {
			t.header = append(t.header, fmt.Sprintf("%s, %d pairs", m.Label(), size))
		}
		t.header = append(t.header, "real")
	}
	for i, rule := range rules() {
		var row []string
		for j, m := range metrics() {
			for _, size := range sizes() {
				text := "–"
				if c, ok := e.cell(rule.Name, m, size); ok {
					n = c.N
					text = fmt.Sprintf("%.1f %%", 100*float64(c.FalseAlarms)/float64(c.N))
					if low, high := band(c.N, rule.Level); c.FalseAlarms < low || c.FalseAlarms > high {
						text = "**" + text + "**"
					}
				}
				row = append(row, text)
			}
			found, of := e.realAA(i, j)
			row = append(row, fmt.Sprintf("%d of %d", found, of))
		}
		low, high := band(max(n, 1), rule.Level)
		head := []string{
			rule.Name,
			fmt.Sprintf("%g %%", 100*rule.Level),
			fmt.Sprintf("%.1f–%.1f %%", 100*float64(low)/float64(max(n, 1)), 100*float64(high)/float64(max(n, 1))),
		}
		t.rows = append(t.rows, append(head, row...))
	}
	if len(e.Verdicts) > 0 {
		row := []string{"eidetic, the whole verdict", "5 %", ""}
		_, high := band(e.Verdicts[0].N, 0.05) // Holm's correction may only lower the share
		row[2] = fmt.Sprintf("at most %.1f %%", 100*float64(high)/float64(e.Verdicts[0].N))
		for _, v := range e.Verdicts {
			text := fmt.Sprintf("%.1f %%", 100*float64(v.FalseAlarms)/float64(v.N))
			if v.FalseAlarms > high {
				text = "**" + text + "**"
			}
			row = append(row, text)
		}
		for len(row) < 3+len(sizes()) {
			row = append(row, "–")
		}
		found, of := 0, 0
		for _, r := range e.Real {
			if r.Delay == 0 {
				of++
				if r.Verdict != "none" {
					found++
				}
			}
		}
		row = append(row, fmt.Sprintf("%d of %d", found, of))
		for len(row) < len(t.header) {
			row = append(row, "")
		}
		t.rows = append(t.rows, row)
	}
	t.title = fmt.Sprintf(
		"False alarms with equal arms: %d resampled experiments a cell, and real ones of %d pairs. The band holds 95 %% of what a rule with that aim would "+
			"show; what is bold is outside. The whole verdict is over four guards, in its first three cells",
		n,
		e.Plan.AAPairs,
	)
	return t
}

func (e *Evaluation) powerTable() table {
	t := table{
		title: "Shifts that are found: the share of resampled experiments at 10, 20 and 30 ms, and the smallest shift found in 80 % of them",
	}
	t.header = []string{"metric", "rule"}
	for _, size := range sizes() {
		t.header = append(t.header, fmt.Sprintf("%d pairs: 10 · 20 · 30 ms", size), "80 %")
	}
	for _, m := range metrics() {
		for _, rule := range rules() {
			row := []string{m.Label(), rule.Name}
			for _, size := range sizes() {
				c, ok := e.cell(rule.Name, m, size)
				if !ok {
					row = append(row, "–", "–")
					continue
				}
				row = append(
					row,
					fmt.Sprintf("%.0f · %.0f · %.0f %%", 100*c.Power(10), 100*c.Power(20), 100*c.Power(30)),
					shiftText(c.Smallest(0.8)),
				)
			}
			t.rows = append(t.rows, row)
		}
	}
	return t
}

func shiftText(v float64) string {
	if math.IsInf(v, 1) {
		return fmt.Sprintf("over %d ms", mostShift)
	}
	return fmt.Sprintf("%.1f ms", v)
}

func (e *Evaluation) coverageTable() table {
	t := table{
		title: "How often the printed 95 % interval holds the truth (and its median half-width): resampled experiments, where the shift is known; real ones with equal arms; " +
			"and real delays, for metrics that they move by exactly their size",
	}
	t.header = []string{"metric", "rule"}
	for _, size := range sizes() {
		t.header = append(t.header, fmt.Sprintf("%d pairs", size))
	}
	t.header = append(t.header, "real, equal", "real, delayed")
	for j, m := range metrics() {
		for i, rule := range rules() {
			if !rule.Intervals {
				continue
			}
			row := []string{m.Label(), rule.Name}
			for _, size := range sizes() {
				text := "–"
				if c, ok := e.cell(rule.Name, m, size); ok && c.Intervals > 0 {
					text = fmt.Sprintf("%.1f %% (±%.1f ms)", 100*float64(c.Covered)/float64(c.Intervals), c.HalfWidth)
				}
				row = append(row, text)
			}
			var equal, delayed [2]int
			for _, r := range e.Real {
				bounds, counts := r.Intervals[i][j], &equal
				if r.Delay > 0 {
					counts = &delayed
				}
				counts[1]++
				if bounds[0] <= float64(r.Delay) && float64(r.Delay) <= bounds[1] {
					counts[0]++
				}
			}
			row = append(row, fmt.Sprintf("%d of %d", equal[0], equal[1]))
			if m.Entry().Instant { // moved by exactly the delay of a treatment (see places)
				row = append(row, fmt.Sprintf("%d of %d", delayed[0], delayed[1]))
			} else {
				row = append(row, "")
			}
			t.rows = append(t.rows, row)
		}
	}
	return t
}

func (e *Evaluation) delayTable() table {
	t := table{
		title: fmt.Sprintf(
			"Real delays, in experiments of %d pairs: the shift over all of them together, and how many of them each rule found",
			e.Plan.DelayPairs,
		),
	}
	t.header = []string{"delay", "metric", "shift of all pairs"}
	for _, rule := range rules() {
		t.header = append(t.header, rule.Name)
	}
	for _, p := range e.Pooled {
		row := []string{fmt.Sprintf("%d ms", p.Delay), p.Metric.Label(),
			fmt.Sprintf("%.1f ms (%.1f … %.1f), %d pairs", p.Shift.Value, p.Shift.Low, p.Shift.High, p.Pairs)}
		for i := range rules() {
			found, of := 0, 0
			for _, r := range e.Real {
				if r.Delay != p.Delay {
					continue
				}
				of++
				for j, m := range metrics() {
					if m == p.Metric && r.Found[i][j] {
						found++
					}
				}
			}
			row = append(row, fmt.Sprintf("%d of %d", found, of))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func ms(v float64) string { return fmt.Sprintf("%.1f", v) }

func (e *Evaluation) cell(rule string, m metric.ID, pairs int) (Cell, bool) {
	for _, c := range e.Cells {
		if c.Rule.Name == rule && c.Metric == m && c.Pairs == pairs {
			return c, true
		}
	}
	return Cell{}, false
}

// band holds at least 95 % of what n draws with a chance of p give: fewer than low, and more than
// high, come in at most 2.5 % each.
func band(n int, p float64) (low, high int) {
	chance := func(k int) float64 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return math.Exp(a - b - c + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	for sum := chance(0); sum <= 0.025 && low < n; sum += chance(low) {
		low++
	}
	high = n
	for sum := chance(n); sum <= 0.025 && high > 0; sum += chance(high) {
		high--
	}
	return low, high
}
