package appsuite

import (
	"fmt"
	"slices"
)

// TableHead is the head of a table in Markdown whose rows Row makes.
const TableHead = "| application | what it has | exchanges | MB | sockets | streams and polls left open | requests in a replay | valid | misses | last pictures |\n" +
	"|---|---|---|---|---|---|---|---|---|---|\n"

// Row is the result as a row of the table.
func (r Result) Row() string {
	requests := "none"
	if len(r.Requests) > 0 {
		least, most := slices.Min(r.Requests), slices.Max(r.Requests)
		if requests = fmt.Sprint(least); least != most {
			requests += fmt.Sprintf("–%d", most)
		}
	}
	pictures := "equal"
	if r.Pictures != 1 {
		pictures = fmt.Sprint(r.Pictures, " different")
	}
	return fmt.Sprintf("| %s (%s) | %s | %d | %.1f | %d | %d | %s | %d of %d | %d | %s |\n", r.App.Name, r.App.From, r.App.Has,
		r.Recorded, float64(r.Bytes)/1e6, r.Sockets, r.Open, requests, r.Valid, r.Trials, r.Misses, pictures)
}
