package automation

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the image of a box has no zone files

	"github.com/robfig/cron/v3"
)

// Times says when something is due. There are two kinds: every so often, counted from an
// anchor, and the five fields of cron in a time zone.
//
// Where a zone's clocks change, cron's times follow the rule of Debian's cron(8): a time that
// an hour field names happens once a day, so that one which the clocks skip comes after the gap
// and one which they show twice comes once. With a wildcard in the hour field, times go on
// evenly.
type Times struct {
	every  time.Duration
	anchor time.Time
	cron   *cron.SpecSchedule
	zone   *time.Location
}

// Bounds of what may be asked for.
const (
	leastEvery = time.Minute
	mostEvery  = 31 * 24 * time.Hour
	mostCron   = 200
)

// starBit is set in a field of cron.SpecSchedule that was written with a wildcard.
const starBit = 1 << 63

// ParseTimes reads one of every ("2h", "90m", "7d") and expression ("30 2 * * 1-5"), and the
// name of the expression's zone, UTC without one.
func ParseTimes(every, expression, zone string, anchor time.Time) (*Times, error) {
	switch {
	case every != "" && expression != "":
		return nil, errors.New("give every or cron, not both")
	case every != "" && zone != "":
		return nil, errors.New("zone goes with cron: every counts from when the schedule was made")
	case every != "":
		return everySo(every, anchor)
	case expression == "":
		return nil, errors.New(`say when: every, such as 2h, or cron, such as "30 2 * * *"`)
	}
	if zone == "" {
		zone = "UTC"
	}
	in, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" || len(zone) > 60 {
		return nil, fmt.Errorf("zone: there is no %.60q: write a name such as Europe/Berlin or UTC", zone)
	}
	// The parser reads TZ=… and @every, which our own fields are for; its TZ=… has no bounds.
	if len(expression) > mostCron || strings.ContainsAny(expression, "=@") {
		return nil, fmt.Errorf("cron: %.60q is not five fields: minute, hour, day of the month, month, day of the week", expression)
	}
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("cron: %w; the fields are minute, hour, day of the month, month, day of the week", err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("cron: %.60q is not five fields", expression)
	}
	t := &Times{cron: spec, zone: in}
	if t.Next(anchor).IsZero() {
		return nil, fmt.Errorf("cron: %.60q never comes", expression)
	}
	return t, nil
}

func everySo(text string, anchor time.Time) (*Times, error) {
	period, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); err != nil && ok {
		if period, err = time.ParseDuration(days + "h"); period < mostEvery { // so that it cannot overflow
			period *= 24
		}
	}
	if err != nil || period < leastEvery || period > mostEvery || period%time.Second != 0 {
		return nil, fmt.Errorf("every: %.40q: write whole seconds, of 1m to 31d, such as 2h, 90m or 1d", text)
	}
	return &Times{every: period, anchor: anchor.Truncate(time.Second)}, nil
}

// Next returns the first time after t; zero if there is none within five years.
func (s *Times) Next(t time.Time) time.Time {
	if s.cron == nil {
		n := t.Sub(s.anchor) / s.every
		next := s.anchor.Add(n * s.every)
		for !next.After(t) {
			next = next.Add(s.every)
		}
		return next.UTC()
	}
	if s.cron.Hour&starBit != 0 {
		if next := s.cron.Next(t.In(s.zone)); !next.IsZero() {
			return next.UTC()
		}
		return time.Time{}
	}
	// The fields are looked for on the wall's clock, which has no gaps, and then made a time.
	here := t.In(s.zone)
	wall := time.Date(here.Year(), here.Month(), here.Day(), here.Hour(), here.Minute(), here.Second(), 0, time.UTC)
	for range mostTwice {
		if wall = s.cron.Next(wall); wall.IsZero() {
			return wall
		}
		if next := s.at(wall); next.After(t) {
			return next.UTC()
		}
	}
	return time.Time{}
}

// at is when the zone's clocks show what a time in UTC shows. What they skip is as far behind
// the gap as it would be if there were none; of what they show twice it is always the same one.
func (s *Times) at(wall time.Time) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, s.zone)
	_, offset := t.Zone()
	if shown := t.UTC().Add(time.Duration(offset) * time.Second); shown.Before(wall) { // a gap, and t lies before it
		t = t.Add(wall.Sub(shown))
	}
	return t
}

// mostTwice bounds the times that the clocks show twice: a zone's clocks are put back by a few
// hours at most, each of which has sixty minutes.
const mostTwice = 24 * 60

// mostMissed bounds the times that are counted one by one.
const mostMissed = 5000

// Latest returns the last time up to now, beginning with first, which is due, and how many were
// before it. After mostMissed it counts no more.
func (s *Times) Latest(first, now time.Time) (due time.Time, missed int) {
	due = first
	if s.cron == nil {
		n := now.Sub(first) / s.every
		return first.Add(n * s.every), int(n)
	}
	for missed < mostMissed {
		next := s.Next(due)
		if next.IsZero() || next.After(now) {
			return due, missed
		}
		due, missed = next, missed+1
	}
	return due, missed
}
