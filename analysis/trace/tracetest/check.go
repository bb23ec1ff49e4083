// Package tracetest checks documents in the Trace Event Format of Chromium, for tests of what writes them.
package tracetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// maxChecked bounds what CheckChrome reads.
const maxChecked = 512 << 20

// CheckChrome reads a document of the Trace Event Format and returns the first thing in it that a reader of that format
// could not use: phases without their fields, slices of a thread that overlap without nesting, beginnings without ends,
// arrows without a slice, threads without a name.
func CheckChrome(r io.Reader) (events int, err error) {
	var doc struct {
		Events []checked `json:"traceEvents"`
	}
	if err := json.NewDecoder(io.LimitReader(r, maxChecked)).Decode(&doc); err != nil {
		return 0, fmt.Errorf("the trace is no JSON object with traceEvents: %w", err)
	}
	c := checker{
		slices: map[thread][]span{}, named: map[thread]bool{}, used: map[thread]int{}, open: map[string]int{}, arrows: map[string][2]int{},
	}
	for i, e := range doc.Events {
		if err := c.event(i, e); err != nil {
			return 0, fmt.Errorf("event %d (%.60q): %w", i, e.Name, err)
		}
	}
	return len(doc.Events), c.end(doc.Events)
}

type checked struct {
	Name  string   `json:"name"`
	Cat   string   `json:"cat"`
	Phase string   `json:"ph"`
	TS    *float64 `json:"ts"`
	Dur   *float64 `json:"dur"`
	PID   *int     `json:"pid"`
	TID   *int     `json:"tid"`
	ID    string   `json:"id"`
	Scope string   `json:"s"`
}

type thread struct{ pid, tid int }

type span struct{ from, to float64 }

type checker struct {
	slices map[thread][]span
	named  map[thread]bool
	used   map[thread]int
	open   map[string]int
	arrows map[string][2]int // the numbers of the events that begin and end them, from 1
}

func (c *checker) event(i int, e checked) error {
	switch {
	case e.Name == "":
		return fmt.Errorf("it has no name")
	case e.PID == nil || e.TID == nil:
		return fmt.Errorf("pid or tid is missing")
	case e.TS == nil || *e.TS < 0 || math.IsInf(*e.TS, 0):
		return fmt.Errorf("ts is missing or negative")
	}
	on := thread{*e.PID, *e.TID}
	if e.Phase == "M" {
		c.named[on] = c.named[on] || e.Name == "thread_name"
		return nil
	}
	if e.Cat == "" {
		return fmt.Errorf("it has no category")
	}
	c.used[on] = i
	key := fmt.Sprint(*e.PID, e.Cat, e.ID)
	switch e.Phase {
	case "X":
		if e.Dur == nil || *e.Dur < 0 {
			return fmt.Errorf("dur is missing or negative")
		}
		c.slices[on] = append(c.slices[on], span{*e.TS, *e.TS + *e.Dur})
	case "i", "I":
		if !slices.Contains([]string{"g", "p", "t"}, e.Scope) {
			return fmt.Errorf("its scope is %q, not g, p or t", e.Scope)
		}
	case "b":
		c.open[key]++
	case "e":
		if c.open[key]--; c.open[key] < 0 {
			return fmt.Errorf("id %s ends before it begins", e.ID)
		}
	case "s", "f":
		end := map[string]int{"s": 0, "f": 1}[e.Phase]
		arrow := c.arrows[key]
		if arrow[end] != 0 {
			return fmt.Errorf("id %s is that of event %d, too", e.ID, arrow[end]-1)
		}
		arrow[end] = i + 1
		c.arrows[key] = arrow
	default:
		return fmt.Errorf("phase %q is not one that is checked", e.Phase)
	}
	if slices.Contains([]string{"b", "e", "s", "f"}, e.Phase) && e.ID == "" {
		return fmt.Errorf("it has no id")
	}
	return nil
}

// grainUS is how finely times are written: to the nanosecond, and as floating-point numbers of µs.
const grainUS = 0.0015

func (c *checker) end(all []checked) error {
	for on, list := range c.slices {
		slices.SortFunc(list, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
		var open []span
		for _, s := range list {
			for len(open) > 0 && open[len(open)-1].to <= s.from+grainUS {
				open = open[:len(open)-1]
			}
			if n := len(open); n > 0 && s.to > open[n-1].to+grainUS {
				return fmt.Errorf("process %d, thread %d: the slice from %.3f to %.3f µs overlaps that from %.3f to %.3f and does not lie in it",
					on.pid, on.tid, s.from, s.to, open[n-1].from, open[n-1].to)
			}
			open = append(open, s)
		}
	}
	for on, i := range c.used {
		if !c.named[on] {
			return fmt.Errorf("event %d: process %d, thread %d has no name", i, on.pid, on.tid)
		}
	}
	for key, n := range c.open {
		if n != 0 {
			return fmt.Errorf("%s begins and does not end", key)
		}
	}
	for key, a := range c.arrows {
		if a[0] == 0 || a[1] == 0 {
			return fmt.Errorf("arrow %s has one end", key)
		}
		from, to := all[a[0]-1], all[a[1]-1]
		if *from.TS > *to.TS+grainUS {
			return fmt.Errorf("arrow %s leads back in time", key)
		}
		for _, e := range []checked{from, to} {
			on := c.slices[thread{*e.PID, *e.TID}]
			if !slices.ContainsFunc(on, func(s span) bool { return s.from <= *e.TS+grainUS && *e.TS <= s.to+grainUS }) {
				return fmt.Errorf("arrow %s: no slice is at its end at %.3f µs", key, *e.TS)
			}
		}
	}
	return nil
}
