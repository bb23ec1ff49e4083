package trace

import (
	"slices"

	"eidetic/internal/lab"
)

// Longest are the places of at most so many of the events, in their order: the longest, so that no event loses what it lies in. Of
// those that are equally long some stay, spread over the time.
func Longest(events []Event, most int) []int {
	if len(events) <= most {
		most = len(events)
	}
	if most <= 0 {
		return nil
	}
	length := func(e Event) lab.Time { return max(e.End-e.Start, 0) }
	all := make([]lab.Time, len(events))
	for i, e := range events {
		all[i] = length(e)
	}
	slices.Sort(all)
	cut := all[len(all)-most] // of this length some go
	longer := len(all) - upper(all, cut)
	equal, room := upper(all, cut)-lower(all, cut), most-longer
	out := make([]int, 0, most)
	met := 0
	for i, e := range events {
		switch n := length(e); {
		case n > cut:
			out = append(out, i)
		case n == cut:
			if (met*room+equal-1)/equal != ((met+1)*room+equal-1)/equal { // room of them, evenly, the first among them
				out = append(out, i)
			}
			met++
		}
	}
	return out
}

// lower and upper are how many of a sorted list are less than v, and how many are at most v.
func lower(list []lab.Time, v lab.Time) int {
	n, _ := slices.BinarySearch(list, v)
	return n
}

func upper(list []lab.Time, v lab.Time) int { return lower(list, v+1) }

// eventsAt are the events at some places.
func eventsAt(events []Event, places []int) []Event {
	out := make([]Event, len(places))
	for i, place := range places {
		out[i] = events[place]
	}
	return out
}
