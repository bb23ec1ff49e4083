package report

import (
	"sort"

	"eidetic/internal/lab"
)

// curve is a trial's progress as steps. Values equal to the one before are left out, since
// a step function holds its value. Frames, Times and the values have equal lengths.
type curve struct {
	Number int       `json:"n"`
	Arm    string    `json:"arm"`
	Valid  bool      `json:"valid"`
	Frames []int     `json:"f"` // index in the reel
	Times  []float64 `json:"t"` // ms since the start
	Load   []float64 `json:"load"`
	Visual []float64 `json:"visual"`
}

// curveOf returns a trial's curve, and false if the trial has none.
func curveOf(t *lab.Trial) (curve, bool) {
	n := min(len(t.FrameTimes), max(len(t.LoadHistogram), len(t.VisualProgress)))
	c := curve{Number: t.Number, Arm: t.Arm, Valid: t.Valid}
	if n == 0 {
		return c, false
	}
	at := func(s []float64, i int) float64 {
		if i >= len(s) {
			return 0 // the whole series is left out below
		}
		return round3(s[i])
	}
	for i := range n {
		load, visual := at(t.LoadHistogram, i), at(t.VisualProgress, i)
		if k := len(c.Load) - 1; k >= 0 && i < n-1 && load == c.Load[k] && visual == c.Visual[k] {
			continue
		}
		c.Frames = append(c.Frames, t.StartFrame+i)
		c.Times = append(c.Times, round3(t.FrameTimes[i]))
		c.Load = append(c.Load, load)
		c.Visual = append(c.Visual, visual)
	}
	if len(t.LoadHistogram) < n {
		c.Load = nil
	}
	if len(t.VisualProgress) < n {
		c.Visual = nil
	}
	return c, true
}

// steps is a step function: Values[i] holds from Times[i] on.
type steps struct {
	Times  []float64 `json:"t"`
	Values []float64 `json:"v"`
}

// medianCurve is the median of the curves at every instant. Before its start a curve has
// its first value, after its end its last one.
func medianCurve(curves []steps) steps {
	type change struct {
		at    float64
		curve int
		value float64
	}
	var changes []change
	var values, sorted []float64
	for _, c := range curves {
		if len(c.Values) == 0 {
			continue
		}
		for i := 1; i < len(c.Values); i++ {
			changes = append(changes, change{c.Times[i], len(values), c.Values[i]})
		}
		values = append(values, c.Values[0])
	}
	if len(values) == 0 {
		return steps{Times: []float64{}, Values: []float64{}}
	}
	sorted = append(sorted, values...)
	sort.Float64s(sorted)
	sort.SliceStable(changes, func(i, j int) bool { return changes[i].at < changes[j].at })
	median := func() float64 {
		n := len(sorted)
		return round3((sorted[(n-1)/2] + sorted[n/2]) / 2)
	}
	out := steps{Times: []float64{0}, Values: []float64{median()}}
	for i, c := range changes {
		sorted = remove(sorted, values[c.curve])
		sorted = insert(sorted, c.value)
		values[c.curve] = c.value
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		m, last := median(), i == len(changes)-1
		if k := len(out.Values) - 1; m != out.Values[k] || last {
			out.Times = append(out.Times, c.at)
			out.Values = append(out.Values, m)
		}
	}
	return out
}

func remove(sorted []float64, v float64) []float64 {
	i := sort.SearchFloat64s(sorted, v)
	return append(sorted[:i], sorted[i+1:]...)
}

func insert(sorted []float64, v float64) []float64 {
	i := sort.SearchFloat64s(sorted, v)
	sorted = append(sorted, 0)
	copy(sorted[i+1:], sorted[i:])
	sorted[i] = v
	return sorted
}

// reach returns the first instant from which the step function stays at or above level,
// and false if there is none.
func (s steps) reach(level float64) (float64, bool) {
	at, ok := 0.0, false
	for i, v := range s.Values {
		switch {
		case v < level:
			ok = false
		case !ok:
			at, ok = s.Times[i], true
		}
	}
	return at, ok
}
