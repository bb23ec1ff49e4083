package appsuite

import (
	"fmt"
	"slices"
)

// TableHead is the head of a table in Markdown whose rows Row makes.
const TableHead = "| application | what it has | browser | requests recorded | MB | sockets | left open | requests in a replay | misses | " +
	"valid | last pictures |\n|---|---|---|---|---|---|---|---|---|---|---|\n"

// Row is the result as a row of the table.
func (r Result) Row() string {
	requests := "none"
	if len(r.Requests) > 0 {
		least, most := slices.Min(r.Requests), slices.Max(r.Requests)
		if requests = fmt.Sprint(least); least != most {
			requests += fmt.Sprintf("–%d", most)
		}
	}
	recorded := fmt.Sprint(r.Recorded)
	if r.Later > 0 {
		recorded += fmt.Sprintf(", and %d after rest", r.Later)
	}
	pictures := "equal"
	if r.Pictures != 1 {
		pictures = fmt.Sprint(r.Pictures, " different")
	}
	return fmt.Sprintf("| %s (%s) | %s | %s | %s | %.1f | %d | %d | %s | %d | %d of %d | %s |\n", r.App.Name, r.App.From, r.App.Has,
		r.Browser, recorded, float64(r.Bytes)/1e6, r.Sockets, r.Open, requests, r.Misses, r.Valid, r.Trials, pictures)
}
