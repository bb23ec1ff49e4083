package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"eidetic/analysis/measure"
)

// pair is two recordings side by side.
type pair struct {
	A *analysed `json:"a"`
	B *analysed `json:"b"`
}

// compare measures two recordings alike and prints them side by side. One recording of
// each says nothing about chance: for a verdict there is a run with two arms.
func (c *AnalyzeCmd) compare(ctx context.Context, std *streams) error {
	if c.Heat != "" || c.CSV != "" || c.Charts != "" {
		return usage(errors.New("--heat, --csv and --charts are of one recording: name one"))
	}
	if c.Events != "" {
		return usage(errors.New("--events is the log of one recording: without it the events.jsonl beside each counts"))
	}
	other := *c
	other.File = c.Against
	a, err := c.analyse(ctx)
	if err != nil {
		return err
	}
	b, err := other.analyse(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(std.out, pair{a, b})
	}
	for _, one := range []*analysed{a, b} {
		for _, w := range one.Warnings {
			fmt.Fprintf(std.err, "appliance: note: %s: %s\n", one.File, w)
		}
		fmt.Fprintf(std.out, "%s: frames %d … %d, content %s; times count from %s\n", one.File, one.Start, one.End-1, one.Content, one.Origin)
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tfirst\tsecond\tdifference\t")
	for _, row := range beside(a.numbers, b.numbers) {
		fmt.Fprintln(w, row)
	}
	return w.Flush()
}

// beside puts the numbers of one name and region into one row. The second of several of one
// name is held against the second.
func beside(a, b []measure.Number) (rows []string) {
	type key struct {
		region, name string
		nth          int
	}
	index := func(ns []measure.Number) (order []key, all map[key]measure.Number) {
		count := map[key]int{}
		all = map[key]measure.Number{}
		for _, n := range ns {
			k := key{n.Region, n.Name, 0}
			count[k]++
			k.nth = count[k]
			order, all[k] = append(order, k), n
		}
		return order, all
	}
	order, first := index(a)
	more, second := index(b)
	for _, k := range more {
		if _, there := first[k]; !there {
			order = append(order, k)
		}
	}
	for _, k := range order {
		name := k.name
		if k.region != "" {
			name = k.region + ": " + name
		}
		x, hasX := first[k]
		y, hasY := second[k]
		switch {
		case !hasY:
			rows = append(rows, fmt.Sprintf("%s\t%.2f %s\t–\t\t", name, x.Value, x.Unit))
		case !hasX:
			rows = append(rows, fmt.Sprintf("%s\t–\t%.2f %s\t\t", name, y.Value, y.Unit))
		default:
			rows = append(rows, fmt.Sprintf("%s\t%.2f %s\t%.2f %s\t%+.2f\t", name, x.Value, x.Unit, y.Value, y.Unit, y.Value-x.Value))
		}
	}
	return rows
}
