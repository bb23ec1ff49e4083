package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// mostRows bounds a table of a run that others wrote.
const mostRows = 20

// printFound prints what a run found, for a person.
func printFound(out io.Writer, run *lab.Run) {
	valid := 0
	for _, t := range run.Trials {
		if t.Valid {
			valid++
		}
	}
	fmt.Fprintf(out, "%d of %d trials are valid; it took %v\n", valid, run.Measured(),
		time.Duration(run.Elapsed*float64(time.Second)).Round(time.Second))
	if text := experiment.Explain(run.Tolerance, run.Trials); text != "" {
		fmt.Fprintln(out, client.Plain(text))
	}
	if c := run.Comparison; c != nil {
		fmt.Fprintf(out, "%s: %s\n", client.Plain(c.Headline), client.Plain(c.Detail))
		printEffects(out, c, "control", "treatment")
		printCells(out, run)
		return
	}
	if len(run.Cells) > 0 {
		printCells(out, run)
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	defer table.Flush()
	for i, s := range run.Summary[:min(len(run.Summary), mostRows)] {
		if i == 0 {
			fmt.Fprint(table, "metric\tmedian\tlow\thigh\ttrials\t\n")
		}
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f\t%d\t\n", client.Plain(s.Metric), s.Median, s.Low, s.High, s.N)
	}
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
	for _, e := range c.Effects {
		if !e.Guard || rows == mostRows {
			continue
		}
		if rows++; rows == 1 {
			fmt.Fprintf(table, "metric\t%s\t%s\tchange\t95 %% interval\tfinding\t\n", control, treatment)
		}
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%+.1f\t%+.1f … %+.1f\t%s\t\n", client.Plain(e.Metric), e.Control, e.Treatment, e.Shift.Value,
			e.Shift.Low, e.Shift.High, client.Plain(e.Finding))
	}
}
