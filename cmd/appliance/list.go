package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"eidetic/cmd/appliance/client"
)

// listing is a list of a box's for a person.
type listing[T any] struct {
	get   func(*client.Client) ([]T, error)
	empty string // what is said when there is nothing
	head  []string
	row   func(T) []string
}

// listOf prints a list of the box's as a table, or as JSON.
func listOf[T any](std *streams, flags *boxFlags, asJSON bool, l listing[T]) error {
	box, err := flags.boxOf(std)
	if err != nil {
		return usage(err)
	}
	defer box.Close()
	all, err := l.get(box)
	switch {
	case err != nil:
		return boxError(err)
	case asJSON:
		return printJSON(std.out, all)
	case len(all) == 0:
		fmt.Fprintln(std.out, l.empty)
		return nil
	}
	rows := [][]string{l.head}
	for _, one := range all {
		rows = append(rows, l.row(one))
	}
	return printRows(std.out, rows)
}

// printRows prints a table of what others wrote.
func printRows(out io.Writer, rows [][]string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = client.Plain(cell)
		}
		fmt.Fprintln(table, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	return table.Flush()
}

// clock is a time for people, of this machine's zone.
func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
