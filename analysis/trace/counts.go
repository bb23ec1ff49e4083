package trace

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// mostCounted is how many events of a row have what was counted among their facts; tables of spans have it of more.
const mostCounted = 2000

// count is a metric of what is counted.
type count struct {
	id   metric.ID
	name string  // of the samples; of energy what their names begin with
	unit float64 // how much of a sample makes one of the metric
}

func (c count) is(name string) bool {
	part, ok := strings.CutPrefix(name, lab.EnergyOfPackages)
	return name == c.name || c.id == metric.Energy && ok && !strings.Contains(part, " ") // not a part of a package
}

// counts are the metrics of what is counted.
var counts = [...]count{ // constant
	{metric.TaskClock, lab.CounterTaskClock, 1e6}, {metric.Cycles, lab.CounterCycles, 1e6},
	{metric.Instructions, lab.CounterInstructions, 1e6}, {metric.CacheMisses, lab.CounterCacheMisses, 1e6},
	{metric.BranchMisses, lab.CounterBranchMisses, 1e6}, {metric.ContextSwitches, lab.CounterSwitches, 1},
	{metric.Migrations, lab.CounterMigrations, 1}, {metric.PageFaults, lab.CounterFaults, 1},
	{metric.Energy, lab.EnergyOfPackages, 1e6},
}

// CountMetrics are the metrics of what is counted, in the order of an event's Counts.
func CountMetrics() (list []metric.ID) {
	for _, c := range counts {
		list = append(list, c.id)
	}
	return list
}

// countsWithin sums up what was counted in a time.
func countsWithin(list []*process, from, to lab.Time) map[metric.ID]float64 {
	var out map[metric.ID]float64
	for _, p := range list {
		i := slices.IndexFunc(counts[:], func(c count) bool { return p.pid == 0 && c.is(p.name) })
		if i < 0 {
			continue
		}
		c := counts[i]
		if out == nil {
			out = map[metric.ID]float64{}
		}
		sum := 0.0
		for _, s := range p.samples {
			sum += within(s, s.Counted, from, to)
		}
		out[c.id] += sum / c.unit
	}
	return out
}

// countSums are the sums of each metric of what is counted, in their order; nil where none was.
func countSums(list []*process) (out []*sums) {
	any := false
	for _, c := range counts {
		var of []*process
		for _, p := range list {
			if p.pid == 0 && c.is(p.name) {
				of = append(of, p)
			}
		}
		if len(of) == 0 {
			out = append(out, nil)
			continue
		}
		any = true
		s := sumsOf(of, func(_ *process, s lab.ProcessSample) float64 { return float64(s.Counted) / c.unit })
		out = append(out, &s)
	}
	if !any {
		return nil
	}
	return out
}

// count notes what was counted in an event; with facts also for people.
func (e *Event) count(sums []*sums, facts bool) {
	if sums == nil {
		return
	}
	e.Counts = make([]float64, len(sums))
	for i, s := range sums {
		if s == nil {
			e.Counts[i] = math.NaN()
			continue
		}
		e.Counts[i] = s.within(*e)
		if facts {
			of := counts[i].id.Entry()
			n := strconv.FormatFloat(e.Counts[i], 'f', digitsOf(e.Counts[i]), 64)
			e.Facts = append(e.Facts, Fact{strings.ToLower(of.Label), n + " " + of.Unit})
		}
	}
}

// digitsOf is how many digits behind the point tell about three in all.
func digitsOf(v float64) int {
	switch v = math.Abs(v) * (1 + 1e-9); { // 9.9999… is written as 10.0
	case v >= 100 || v == 0:
		return 0
	case v >= 10:
		return 1
	}
	return 2
}

// countTracks are rows of what was counted, but for the task clock, which the rows of processes tell.
func countTracks(list []*process) (out []Track) {
	for _, c := range counts {
		for _, p := range list {
			if p.pid != 0 || !c.is(p.name) || c.id == metric.TaskClock || c.id == metric.Energy {
				continue
			}
			out = append(out, rates(c.id.Label(), p.samples, 1, "", "/s"))
		}
	}
	for _, p := range list {
		if part, ok := strings.CutPrefix(p.name, lab.EnergyOf); ok && p.pid == 0 {
			out = append(out, rates("Power: "+part, p.samples, 1e-6, "J", "W"))
		}
	}
	return slices.DeleteFunc(out, func(t Track) bool { return len(t.Events) == 0 })
}

// rates lays out samples as stretches of the same rate, in tenths of the largest. What is counted is shown in units of
// scale.
func rates(name string, samples []lab.ProcessSample, scale float64, unit, rateUnit string) Track {
	track := Track{Kind: Machine, Name: lab.OneLine(name, 100), Nested: true}
	most := 0.0
	rate := func(s lab.ProcessSample) float64 { return scale * float64(s.Counted) / float64(s.For) * 1e9 }
	for _, s := range samples {
		if s.For > 0 {
			most = max(most, rate(s))
		}
	}
	last, lastTenth, sum := -1, -1, int64(0)
	for _, s := range samples {
		if s.Counted <= 0 || s.For <= 0 {
			continue
		}
		start, tenth := s.At-lab.Time(s.For), int(math.Ceil(10*rate(s)/most))
		if last >= 0 && tenth == lastTenth && start-track.Events[last].End < 1e5 {
			track.Events[last].End = s.At
			sum += s.Counted
		} else {
			if last >= 0 {
				start = max(start, track.Events[last].End)
			}
			track.Events = append(track.Events, Event{
				Name:  "up to " + short(most*float64(tenth)/10) + rateUnit,
				Start: start, End: max(s.At, start), Earliest: start, Latest: start, Colour: heat(tenth),
			})
			last, lastTenth, sum = len(track.Events)-1, tenth, s.Counted
		}
		track.Events[last].Facts = []Fact{{"sum", strings.TrimSpace(short(scale*float64(sum)) + unit)}}
	}
	return track
}

// short is a number with three digits and a prefix of the metric system.
func short(v float64) string {
	prefix := ""
	for _, p := range []string{"k", "M", "G", "T"} {
		if v < 1000 {
			break
		}
		v, prefix = v/1000, p
	}
	return strconv.FormatFloat(v, 'f', digitsOf(v), 64) + " " + prefix
}
