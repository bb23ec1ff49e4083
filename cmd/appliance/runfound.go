package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// mostRows bounds a table of a run that others wrote.
const mostRows = 40

// printFound ends a run for a person: how far its trials may be trusted, and the answer in a few lines. All the rest is in the report.
func printFound(out io.Writer, run *lab.Run) {
	if c := run.Comparison; c != nil && run.Measured() > 0 {
		defer fmt.Fprintf(out, "%s: %s\n", client.Plain(c.Headline), client.Plain(c.Detail))
	}
	printAnswer(out, run)
}

// printAnswer is printFound without the verdict's sentence.
func printAnswer(out io.Writer, run *lab.Run) {
	if run.Measured() == 0 {
		return // it ended before its first trial
	}
	valid := 0
	for _, t := range run.Trials {
		if t.Valid {
			valid++
		}
	}
	fmt.Fprintf(out, "%d of %d trials are valid; it took %v\n", valid, run.Measured(),
		time.Duration(run.Elapsed*float64(time.Second)).Round(time.Second))
	if c := run.Comparison; c != nil {
		printEffects(out, c, "control", "treatment")
	}
	for i, row := range run.Servers {
		if i == mostRows {
			break
		}
		fmt.Fprintln(out, "Server:", client.Plain(row.String()))
	}
	switch {
	case len(run.Cells) > 0:
		printCells(out, run)
	case run.Comparison == nil:
		printMedians(out, run.Summary)
	}
}

// printMedians prints the medians that tell most: of a load the guards, of a journey each step's time to its end, and all of it last.
func printMedians(out io.Writer, all []lab.Summary) {
	rows, journey := []lab.Summary{}, false
	for _, s := range all {
		if ref := metric.Parse(s.Metric); ref.ID == metric.TimeToEnd && ref.Region == "" {
			rows, journey = append(rows, s), true
		}
	}
	for _, s := range all {
		switch ref := metric.Parse(s.Metric); {
		case journey && ref.ID == metric.Journey, !journey && ref.Step == "" && ref.Region == "" && ref.ID.Entry().Guard:
			rows = append(rows, s)
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	for i, s := range rows[:min(len(rows), mostRows)] {
		if i == 0 {
			fmt.Fprint(table, "\tmedian\t95 % interval\ttrials\t\n")
		}
		interval := valueOf(s.Low, s.Unit) + " … " + valueOf(s.High, s.Unit)
		if len(s.Warnings) > 0 { // too few trials for one
			interval = "from " + valueOf(s.Min, s.Unit) + " to " + valueOf(s.Max, s.Unit)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t\n", labelOf(s.Metric), valueOf(s.Median, s.Unit), interval, s.N)
	}
	_ = table.Flush() // an error of out shows in what follows
	if more := len(rows) - mostRows; more > 0 {
		fmt.Fprintf(out, "and %d more %s in the report\n", more, lab.Plural(more, "row", "rows"))
	}
}

// labelOf is the name of a metric for people, with that of its step.
func labelOf(name string) string {
	ref := metric.Parse(name)
	label := name
	switch {
	case ref.ID == metric.TimeToEnd && ref.Region == "":
		return client.Plain(ref.Step)
	case ref.ID != 0 && ref.Region == "":
		label = ref.ID.Label()
		if ref.Step != "" {
			label = ref.Step + ": " + label
		}
	}
	return client.Plain(label)
}

// valueOf is a value with its unit.
func valueOf(v float64, unit string) string {
	if unit == "ms" {
		return lab.Millis(v)
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", v, unit))
}

// printCells prints a line for each page and user of a run of many: the guard that tells most, or the first median.
func printCells(out io.Writer, run *lab.Run) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	defer table.Flush()
	for i, c := range run.Cells {
		name := client.Plain(c.Name)
		switch {
		case c.Comparison != nil:
			if i == 0 {
				fmt.Fprint(table, "page and user\tmetric\tcontrol\ttreatment\tchange\t95 % interval\tp\tfinding\t\n")
			}
			e := c.Comparison.Telling()
			if e == nil {
				fmt.Fprintf(table, "%s\t–\t–\t–\t–\t–\t–\tnot compared\t\n", name)
				continue
			}
			fmt.Fprintf(table, "%s\t%s\t%.1f\t%.1f\t%+.1f\t%+.1f … %+.1f\t%.2g\t%s\t\n", name, client.Plain(e.Metric), e.Control, e.Treatment,
				e.Shift.Value, e.Shift.Low, e.Shift.High, e.Adjusted, client.Plain(e.Finding))
		case len(c.Summary) > 0:
			s := c.Summary[0]
			fmt.Fprintf(table, "%s\t%s\t%.1f\t%.1f … %.1f\t%d trials\t\n", name, client.Plain(s.Metric), s.Median, s.Low, s.High, s.N)
		default:
			fmt.Fprintf(table, "%s\tno valid trial\t\n", name)
		}
	}
}

// printEffects prints what the guards show, under the names of what was compared.
func printEffects(out io.Writer, c *lab.Comparison, control, treatment string) {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	defer table.Flush()
	rows := 0
	adjusted := slices.ContainsFunc(c.Effects, func(e lab.Effect) bool { return e.Adjustment != nil })
	for _, e := range c.Effects {
		if !e.Guard || rows == mostRows {
			continue
		}
		if rows++; rows == 1 {
			fmt.Fprintf(table, "\t%s\t%s\tchange\t95 %% interval\t", control, treatment)
			if adjusted {
				fmt.Fprint(table, "unadjusted\t95 % interval\texplained\t")
			}
			fmt.Fprint(table, "finding\t\n")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%+.1f\t%+.1f … %+.1f\t", labelOf(e.Metric), valueOf(e.Control, e.Unit),
			valueOf(e.Treatment, e.Unit), e.Shift.Value, e.Shift.Low, e.Shift.High)
		switch a := e.Adjustment; {
		case a != nil:
			fmt.Fprintf(table, "%+.1f\t%+.1f … %+.1f\t%.0f %%\t", a.Raw.Value, a.Raw.Low, a.Raw.High, 100*a.Explained)
		case adjusted:
			fmt.Fprint(table, "\t\t\t")
		}
		fmt.Fprintf(table, "%s\t\n", client.Plain(e.Finding))
	}
}
