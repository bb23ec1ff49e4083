// Package series says where the level of any series of numbers changed. A CSV file of somebody's flows in, with a
// header and a row for each build, day or run; the places of change flow out, each with its size, the interval of that
// and how surely it is one. The points are those of package analysis/change, the sizes Hodges–Lehmann estimates of
// analysis/stats between the levels on both sides.
package series

import (
	"errors"
	"fmt"
	"math"

	"eidetic/analysis/change"
	"eidetic/analysis/stats"
)

// Options of Find. The zero value has defaults.
type Options struct {
	Level float64 // of a point's significance; zero: change.SeriesLevel
	Least int     // the fewest values of a level; zero: 3
	Seed  uint64
}

// Result is what a series shows.
type Result struct {
	File   string `json:"file"`
	Column string `json:"column"`
	Values int    `json:"values"`
	// Missing counts the rows whose cell was empty, or said that there is no number.
	Missing int     `json:"missing"`
	Level   float64 `json:"level"` // flat series have a point with this probability
	Points  []Point `json:"points"`
}

// Point is a change of the level.
type Point struct {
	// Value is the first value of the new level, counted from 1; Line is its line in the file.
	Value int    `json:"value"`
	Line  int    `json:"line"`
	Time  string `json:"time,omitempty"` // as the file has it
	// Before and After are the medians of the levels on both sides.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Change is how much larger the new level is.
	Change  stats.Interval `json:"change"`
	Percent *float64       `json:"percent,omitempty"` // of Before
	P       float64        `json:"p"`
	// Confidence is 1 − P: the share of series in which chance does not do as much.
	Confidence float64 `json:"confidence"`
}

// mostBeside bounds the values on each side of a point from which its size is estimated: the nearest.
const mostBeside = 1000

// Find finds the changes of a table's values.
func Find(t *Table, o Options) (*Result, error) {
	if o.Level == 0 {
		o.Level = change.SeriesLevel
	}
	if len(t.Rows) < 2 {
		return nil, fmt.Errorf("%s: column %q has %d values: there is no change in fewer than 6", t.File, t.Column, len(t.Rows))
	}
	values := make([]float64, len(t.Rows))
	for i, r := range t.Rows {
		values[i] = r.Value
	}
	points, err := change.Points(values, change.Options{Level: o.Level, Least: o.Least, Seed: o.Seed})
	if err != nil {
		return nil, err
	}
	out := &Result{File: t.File, Column: t.Column, Values: len(values), Missing: t.Missing, Level: o.Level, Points: []Point{}}
	for i, p := range points {
		from, to := 0, len(values)
		if i > 0 {
			from = points[i-1].Index
		}
		if i+1 < len(points) {
			to = points[i+1].Index
		}
		from, to = max(from, p.Index-mostBeside), min(to, p.Index+mostBeside)
		shift, err := stats.ShiftOfTwo(values[from:p.Index], values[p.Index:to], 0.95)
		if err != nil {
			return nil, err
		}
		row := t.Rows[p.Index]
		point := Point{Value: p.Index + 1, Line: row.Line, Time: row.Time, Before: p.Before, After: p.After, Change: shift, P: p.P,
			Confidence: 1 - p.P}
		if percent := 100 * shift.Value / math.Abs(p.Before); !math.IsInf(percent, 0) && !math.IsNaN(percent) {
			point.Percent = &percent
		}
		out.Points = append(out.Points, point)
	}
	return out, nil
}

// The directions in which a change is one for the worse.
const (
	Up     = "up"
	Down   = "down"
	Either = "either"
)

// Worse says whether a change for the worse begins among the newest values; recent 0: among all.
func (r *Result) Worse(direction string, recent int) bool {
	for _, p := range r.Points {
		if recent > 0 && p.Value <= r.Values-recent {
			continue
		}
		if direction == Either || (p.Change.Value > 0) == (direction == Up) {
			return true
		}
	}
	return false
}

// errTooMany says that a file has more rows than can be looked at.
var errTooMany = errors.New("too many rows") // constant
