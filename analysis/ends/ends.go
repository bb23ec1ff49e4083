// Package ends judges, picture by picture, whether the end of a step has come (lab.Ending).
// Pictures with their times and what is known of the network flow in; the instant since which
// all conditions hold flows out.
//
// The same judge works during a trial, on the newest picture whenever the screen has changed,
// so that the next step can begin, and afterwards on every frame, so that the end is measured
// on exact frames and an old recording can be judged by another end.
package ends

import (
	"errors"
	"fmt"
	"image"
	"strings"
	"time"

	"eidetic/analysis/find"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

// Network is what the network does at an instant.
type Network struct {
	InFlight int
	Last     lab.Time // of the latest activity
}

// Config is what a judge needs.
type Config struct {
	Ending    lab.Ending
	Content   image.Rectangle
	Masks     []image.Rectangle // of the frame; what does not count
	Templates map[string]*find.Template
	Rate      float64 // frames a second, for ends in frames
	// Since is the step's input: nothing holds before it.
	Since lab.Time
	// First is the step's first picture, of the content area.
	First *visual.Picture
}

// Judge judges one step.
type Judge struct {
	Config
	conditions []*condition
	before     *visual.Picture
}

// condition is the state of one condition.
type condition struct {
	lab.Condition
	parts []image.Rectangle // that count
	area  image.Rectangle
	holds bool
	since lab.Time // holds; or, of still, the latest change
	moved bool     // still: the region has changed since the input
	fault string   // why a picture cannot be searched for
}

// New makes a judge that has seen the step's first picture.
func New(c Config) (*Judge, error) {
	if c.First == nil {
		return nil, errors.New("judging the end of a step: there is no first picture")
	}
	j := &Judge{Config: c, before: c.First}
	for _, one := range c.Ending.Conditions {
		area := c.Content
		if one.Within != nil {
			area = one.Within.In(c.Content)
		}
		if one.Kind == lab.EndPicture && one.Target.Within != nil {
			area = one.Target.Within.In(c.Content)
		}
		k := &condition{Condition: one, area: area, parts: visual.Without(area, c.Masks), since: c.Since}
		if one.Kind == lab.EndStill && one.Frames > 0 {
			k.For = time.Duration(float64(one.Frames) / c.Rate * float64(time.Second))
		}
		if one.Kind == lab.EndPicture && c.Templates[one.Target.Picture] == nil {
			return nil, fmt.Errorf("picture %s was not read", one.Target.Picture)
		}
		if len(k.parts) == 0 {
			return nil, fmt.Errorf("%s: nothing of its region is left by the masks", one.Kind)
		}
		j.conditions = append(j.conditions, k)
	}
	j.look(c.Since, c.First)
	return j, nil
}

// Look takes in the picture of the content area at an instant after the input.
func (j *Judge) Look(at lab.Time, p *visual.Picture) {
	j.look(max(at, j.Since), p)
	j.before = p
}

func (j *Judge) look(at lab.Time, p *visual.Picture) {
	for _, c := range j.conditions {
		now := false
		switch c.Kind {
		case lab.EndStill:
			if Differ(j.before, p, c.parts) {
				c.since, c.moved = at, true
			}
			continue
		case lab.EndChanged:
			now = Differ(j.First, p, c.parts)
		case lab.EndColour:
			now = p.HasColour(c.parts, c.Colour)
		case lab.EndIsRed:
			now = p.HasColour(c.parts, lab.SyncRed())
		case lab.EndPicture:
			_, err := j.Templates[c.Target.Picture].In(p, c.area, c.Target.Tolerance)
			now = err == nil
			c.fault = ""
			if err != nil && !errors.Is(err, find.ErrNotFound) {
				c.fault = err.Error()
			}
		default:
			continue
		}
		if now && !c.holds {
			c.since = at
		}
		c.holds = now
	}
}

// Differ says whether any pixel of the parts differs.
func Differ(a, b *visual.Picture, parts []image.Rectangle) bool {
	if a == b {
		return false
	}
	for _, r := range parts {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			x, z := a.Row(y, r.Min.X, r.Max.X), b.Row(y, r.Min.X, r.Max.X)
			for i := range x {
				if x[i] != z[i] {
					return true
				}
			}
		}
	}
	return false
}

// Met says whether all conditions hold at an instant, and since when.
func (j *Judge) Met(now lab.Time, network Network, done []lab.Event) (since lab.Time, met bool) {
	since = j.Since
	for _, c := range j.conditions {
		from, ok := c.met(now, network, done, j.Since)
		if !ok {
			return 0, false
		}
		since = max(since, from)
	}
	return since, true
}

func (c *condition) met(now lab.Time, network Network, done []lab.Event, begin lab.Time) (lab.Time, bool) {
	switch c.Kind {
	case lab.EndStill:
		return c.since, now.Sub(c.since) >= c.For
	case lab.EndNetwork:
		from := max(network.Last, begin)
		return from, network.InFlight == 0 && now.Sub(from) >= c.For
	case lab.EndIsDone:
		for _, e := range done {
			if e.Earliest >= begin && e.Latest <= now && (c.Name == "" || c.Name == e.Detail) {
				return e.Latest, true
			}
		}
		return 0, false
	}
	return c.since, c.holds
}

// Missing says, for a person, which conditions do not hold.
func (j *Judge) Missing(now lab.Time, network Network, done []lab.Event) string {
	var all []string
	for _, c := range j.conditions {
		if _, ok := c.met(now, network, done, j.Since); !ok {
			all = append(all, c.missing(network))
		}
	}
	return strings.Join(all, "; ")
}

func (c *condition) missing(network Network) string {
	where := ""
	if c.Within != nil {
		where = fmt.Sprintf(" in %v", c.area)
	}
	switch c.Kind {
	case lab.EndStill:
		return fmt.Sprintf("the screen%s was not still for %v", where, c.For.Round(time.Millisecond))
	case lab.EndChanged:
		return "the screen" + where + " shows what it showed when the step began"
	case lab.EndColour:
		return fmt.Sprintf("the screen%s has not the colour #%02x%02x%02x", where, c.Colour.R, c.Colour.G, c.Colour.B)
	case lab.EndIsRed:
		return "the red page is not shown"
	case lab.EndPicture:
		if c.fault != "" {
			return fmt.Sprintf("picture %s: %s", c.Target.Picture, c.fault)
		}
		return fmt.Sprintf("picture %s is not on the screen (tolerance %d)", c.Target.Picture, c.Target.Tolerance)
	case lab.EndIsDone:
		return strings.TrimSpace("the page did not call lab.done() " + c.Name)
	}
	if network.InFlight > 0 {
		return fmt.Sprintf("%d requests are under way", network.InFlight)
	}
	return fmt.Sprintf("the network was not still for %v", c.For)
}
