package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"eidetic/internal/lab"
	"eidetic/internal/tell/series"
	"eidetic/internal/tell/terminal"
)

// SeriesCmd finds the changes in a series of numbers.
type SeriesCmd struct {
	File   string  `arg:"" type:"path" help:"A CSV file with a header and a row for each value, or - for standard input."`
	Column string  `placeholder:"NAME" help:"The column of the numbers, by its name or as #3; without it the only one that has numbers."`
	Time   string  `placeholder:"NAME" help:"The column by which the rows are put in order; without it they are in order."`
	Last   int     `placeholder:"N" help:"Only the newest N values count."`
	Level  float64 `default:"0.025" placeholder:"P" help:"The share of flat series in which a change may be found by chance (${default})."`
	Least  int     `default:"3" placeholder:"N" help:"The fewest values of a level (${default}); what is shorter is an outlier."`
	Worse  string  `enum:"up,down,either" default:"up" help:"Which changes give status 1: up, down or either (${default})."`
	Recent int     `placeholder:"N" help:"Only a change among the newest N values gives status 1."`
	Seed   uint64  `default:"1" placeholder:"N" help:"Seed of the permutations."`
	JSON   bool    `name:"json" xor:"form" help:"Print JSON."`
	CSV    bool    `name:"csv" xor:"form" help:"Print the changes as CSV."`
}

// Help shows the command at work.
func (SeriesCmd) Help() string {
	return `Where did the level of these numbers change? Any series will do: a benchmark's result of each commit, a page's load time of each
day. Each change is listed with its size, its 95 % interval and its confidence.

The status is 0 when there is no change for the worse, 1 when there is one, 2 when the command line or the file is wrong.

Examples:
  appliance series nightly.csv --column speed_index_ms --time date
  appliance series throughput.csv --worse down --recent 20 --csv`
}

// Validate checks what kong cannot.
func (c *SeriesCmd) Validate() error {
	if !(c.Level >= 0.002 && c.Level <= 0.5) {
		return fmt.Errorf("--level %v: from 0.002 to 0.5", c.Level)
	}
	if c.Least < 1 || c.Least > series.MaxRows || c.Last < 0 || c.Recent < 0 {
		return fmt.Errorf("--least %d, --last %d, --recent %d: numbers of values, --least of 1 to %d", c.Least, c.Last, c.Recent, series.MaxRows)
	}
	return nil
}

// Run finds and prints.
func (c *SeriesCmd) Run(ctx context.Context, std *streams) error {
	in := std.in
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return usage(err)
		}
		defer f.Close()
		in = f
	}
	type answer struct {
		found *series.Result
		err   error
	}
	done := make(chan answer, 1)
	go func() { // thousands of values take a minute, in which Ctrl-C works
		table, err := series.Read(cmp.Or(strings.TrimPrefix(c.File, "-"), "standard input"), in, c.Column, c.Time, c.Last)
		if err != nil {
			done <- answer{nil, err}
			return
		}
		found, err := series.Find(table, series.Options{Level: c.Level, Least: c.Least, Seed: c.Seed})
		done <- answer{found, err}
	}()
	var a answer
	select {
	case <-ctx.Done():
		return cannot(ctx.Err())
	case a = <-done:
	}
	if a.err != nil {
		return usage(a.err)
	}
	if err := c.print(std.out, a.found); err != nil {
		return cannot(err)
	}
	if a.found.Worse(c.Worse, c.Recent) {
		return failed(nil)
	}
	return nil
}

// print prints in the form that was asked for.
func (c *SeriesCmd) print(out io.Writer, r *series.Result) error {
	switch {
	case c.JSON:
		return printJSON(out, r)
	case c.CSV:
		return printPoints(out, r)
	}
	fmt.Fprintf(out, "%s: %d values", terminal.OneLine(r.Column), r.Values)
	if r.Missing > 0 {
		fmt.Fprintf(out, " (%d more rows have none)", r.Missing)
	}
	if len(r.Points) == 0 {
		fmt.Fprintln(out, ", no change of their level")
		return nil
	}
	fmt.Fprintf(out, ", %d %s of their level:\n", len(r.Points), lab.Plural(len(r.Points), "change", "changes"))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "from value\tline\ttime\tbefore\tafter\tchange\t95 % interval\tin %\tconfidence\t")
	for _, p := range r.Points {
		percent := "–"
		if p.Percent != nil {
			percent = fmt.Sprintf("%+.1f", *p.Percent)
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%.6g\t%.6g\t%+.4g\t%+.4g … %+.4g\t%s\t%.1f %%\t\n", p.Value, p.Line, terminal.OneLine(p.Time), p.Before, p.After,
			p.Change.Value, p.Change.Low, p.Change.High, percent, 100*p.Confidence)
	}
	return w.Flush()
}

// printPoints prints a row for each change.
func printPoints(out io.Writer, r *series.Result) error {
	w := csv.NewWriter(out)
	rows := [][]string{{"value", "line", "time", "before", "after", "change", "low", "high", "percent", "p"}}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 10, 64) }
	for _, p := range r.Points {
		percent := ""
		if p.Percent != nil {
			percent = number(*p.Percent)
		}
		rows = append(rows, []string{strconv.Itoa(p.Value), strconv.Itoa(p.Line), p.Time, number(p.Before), number(p.After),
			number(p.Change.Value), number(p.Change.Low), number(p.Change.High), percent, number(p.P)})
	}
	return w.WriteAll(rows)
}
