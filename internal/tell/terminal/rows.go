package terminal

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Rows prints a table of what others wrote.
func Rows(out io.Writer, rows [][]string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = Plain(cell)
		}
		fmt.Fprintln(table, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	return table.Flush()
}

// Clock is a time for people, of this machine's zone.
func Clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
