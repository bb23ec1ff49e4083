package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Machine is the kind of the tracks of processes and of the machine's pressure.
const Machine = "machine"

// Bounds of these tracks.
const (
	mostProcessTracks = 16
	// leastRan and leastWaited make a row of a process, in all of a trial.
	leastRan    = lab.Time(5e6)
	leastWaited = lab.Time(5e6)
)

// process is what is known of one process of a trial, or of one thread, its samples in their order.
type process struct {
	pid, tid    int
	name, of    string
	samples     []lab.ProcessSample
	ran, waited int64
}

// processesOf puts samples together by process; those of the machine's pressure by their kind.
func processesOf(samples []lab.ProcessSample) (list []*process) {
	byPID, byName := map[[2]int]*process{}, map[string]*process{}
	for _, s := range samples[:min(len(samples), lab.MostSamples)] {
		key := [2]int{s.PID, s.TID}
		p := byPID[key]
		if s.PID == 0 { // each tells its name
			if p = byName[s.Name]; p == nil && len(byName) > 1000 {
				continue
			}
		}
		if p == nil {
			p = &process{pid: s.PID, tid: s.TID}
			list = append(list, p)
			if s.PID != 0 {
				byPID[key] = p
			} else {
				byName[s.Name] = p
			}
		}
		p.name, p.of = cmp.Or(s.Name, p.name), cmp.Or(s.Of, p.of)
		p.samples = append(p.samples, s)
		p.ran, p.waited = p.ran+s.Ran, p.waited+s.Waited
	}
	for _, p := range list {
		slices.SortStableFunc(p.samples, func(a, b lab.ProcessSample) int { return cmp.Compare(a.At, b.At) })
	}
	return list
}

// within is how much of what a sample counts lies in a time, if it was spread evenly over the sample's own.
func within(s lab.ProcessSample, counted int64, from, to lab.Time) float64 {
	start := s.At - lab.Time(s.For)
	if s.For <= 0 {
		return 0
	}
	return float64(counted) * float64(max(min(s.At, to)-max(start, from), 0)) / float64(s.For)
}

// Taken is what the browser took of the machine in a time.
type Taken struct {
	RanMS, WaitedMS float64
	// Peak is the most that it had in memory, in bytes; 0 where that was not read.
	Peak int64
	// Counts are how often what was counted happened; those that were not counted are not in it.
	Counts map[metric.ID]float64
}

// TakenBy sums up what the processes of the browser did in a time.
func TakenBy(samples []lab.ProcessSample, from, to lab.Time) (w Taken) {
	type held struct{ rss, own int64 }
	type reading struct {
		at  lab.Time
		pid int
		held
	}
	var readings []reading
	list := processesOf(samples)
	w.Counts = countsWithin(list, from, to)
	for _, p := range list {
		if p.of != lab.OfBrowser || p.tid != 0 {
			continue
		}
		for _, s := range p.samples {
			w.RanMS += within(s, s.Ran, from, to) / 1e6
			w.WaitedMS += within(s, s.Waited, from, to) / 1e6
			if s.RSS > 0 || s.Ended {
				readings = append(readings, reading{s.At, p.pid, held{s.RSS, s.Own}})
			}
		}
	}
	slices.SortStableFunc(readings, func(a, b reading) int { return cmp.Compare(a.at, b.at) })
	now := map[int]held{}
	peak := func() {
		sum, shared := int64(0), int64(0)
		for _, h := range now {
			sum, shared = sum+h.own, max(shared, h.rss-h.own)
		}
		w.Peak = max(w.Peak, sum+shared)
	}
	begun := false
	for i, r := range readings {
		if r.at >= to {
			break
		}
		if !begun && r.at >= from {
			begun = true
			peak() // what it had when the time began
		}
		now[r.pid] = r.held
		if begun && (i+1 == len(readings) || readings[i+1].at > r.at) {
			peak()
		}
	}
	if !begun {
		peak()
	}
	return w
}

// Measurements are the metrics of that.
func (w Taken) Measurements() []lab.Measurement {
	out := []lab.Measurement{metric.ProcessorTime.Measure(round(w.RanMS), nil), metric.ProcessorWait.Measure(round(w.WaitedMS), nil)}
	if w.Peak > 0 {
		out = append(out, metric.MemoryPeak.Measure(round(float64(w.Peak)/1e6), nil))
	}
	for _, c := range counts {
		if n, ok := w.Counts[c.id]; ok {
			out = append(out, c.id.Measure(round(n), nil))
		}
	}
	return out
}

func round(v float64) float64 { return float64(int64(v*1e3+0.5)) / 1e3 }

// machineTracks are rows of the processes that did most, with the waits of their main threads, and of the machine's
// pressure.
func machineTracks(samples []lab.ProcessSample) (out []Track) {
	list := processesOf(samples)
	slices.SortStableFunc(list, func(a, b *process) int { return cmp.Compare(b.ran, a.ran) })
	shown := 0
	for _, p := range list {
		if p.pid == 0 || p.tid != 0 {
			continue
		}
		name := fmt.Sprintf("%s (%d)", cmp.Or(p.name, "process"), p.pid)
		if lab.Time(p.ran) >= leastRan && shown < mostProcessTracks {
			shown++
			out = append(out, levels("Processor: "+name, p.samples, func(s lab.ProcessSample) int64 { return s.Ran }))
		}
		if lab.Time(p.waited) >= leastWaited && p.of == lab.OfBrowser && shown <= mostProcessTracks {
			out = append(out, levels("Waits for a processor: "+name, p.samples, func(s lab.ProcessSample) int64 { return s.Waited }))
		}
	}
	out = append(out, threadTracks(list)...)
	for _, p := range list {
		if p.pid == 0 && p.ran > 0 {
			out = append(out, levels("Processor: "+p.name, p.samples, func(s lab.ProcessSample) int64 { return s.Ran }))
		}
		if p.pid == 0 && p.waited > 0 {
			out = append(out, levels("Machine's "+p.name, p.samples, func(s lab.ProcessSample) int64 { return s.Waited }))
		}
	}
	return append(out, countTracks(list)...)
}

// memoryOf are readings of memory that came with those of processes.
func memoryOf(samples []lab.ProcessSample) (out []lab.ProcessMemory) {
	latest := lab.Time(0)
	for _, s := range samples {
		latest = max(latest, s.At)
	}
	for _, p := range processesOf(samples) {
		if p.pid == 0 || p.tid != 0 {
			continue
		}
		var last lab.ProcessMemory
		for _, s := range p.samples {
			if s.RSS > 0 && len(out) < lab.MostMemory {
				last = lab.ProcessMemory{At: s.At, PID: p.pid, Name: p.name, RSS: s.RSS, PSS: s.PSS}
				out = append(out, last)
			}
		}
		end := latest // it is told where it changes
		if of := p.samples[len(p.samples)-1]; of.Ended {
			end = of.At
		}
		if last.RSS > 0 && end > last.At {
			last.At = end
			out = append(out, last)
		}
	}
	return out
}

// threadTracks are rows of the threads that computed most, where they were read.
func threadTracks(list []*process) (out []Track) {
	names := map[int]string{}
	for _, p := range list {
		if p.tid == 0 {
			names[p.pid] = p.name
		}
	}
	for _, p := range list {
		if p.tid == 0 || lab.Time(p.ran) < leastRan || len(out) == mostProcessTracks {
			continue
		}
		out = append(out, levels(fmt.Sprintf("Thread: %s (%d) of %s (%d)", cmp.Or(p.name, "thread"), p.tid, cmp.Or(names[p.pid], "process"), p.pid), p.samples,
			func(s lab.ProcessSample) int64 { return s.Ran }))
	}
	return out
}

// levels lays out samples as stretches of the same load, in tenths of a processor.
func levels(name string, samples []lab.ProcessSample, counted func(lab.ProcessSample) int64) Track {
	track := Track{Kind: Machine, Name: lab.OneLine(name, 100), Nested: true}
	last, lastTenth, sum := -1, -1, int64(0)
	for _, s := range samples {
		n := counted(s)
		if n <= 0 || s.For <= 0 {
			continue
		}
		start, tenth := s.At-lab.Time(s.For), int(min((10*n+s.For/2)/s.For, 99))
		if last >= 0 && tenth == lastTenth && start-track.Events[last].End < 1e5 {
			track.Events[last].End = s.At
			sum += n
		} else {
			if last >= 0 {
				start = max(start, track.Events[last].End)
			}
			track.Events = append(track.Events, Event{
				Name: strconv.Itoa(10*tenth) + " %", Start: start, End: max(s.At, start), Earliest: start, Latest: start, Colour: heat(tenth),
			})
			last, lastTenth, sum = len(track.Events)-1, tenth, n
		}
		track.Events[last].Facts = []Fact{{"time", strconv.FormatFloat(float64(sum)/1e6, 'f', 3, 64) + " ms"}}
	}
	return track
}

// heat is the colour of so many tenths of a processor: pale to dark.
func heat(tenth int) string {
	t := min(tenth, 10)
	mix := func(low, high int) int { return low + (high-low)*t/10 }
	return fmt.Sprintf("#%02x%02x%02x", mix(0xe8, 0x0b), mix(0xf0, 0x5c), mix(0xf2, 0x6b))
}

// machineNote says how the processes were read.
func machineNote(s *lab.Sampled, left int) string {
	text := fmt.Sprintf("processes were read %d times, which took %.1f %% of a processor", s.Readings, 100*s.CostMS/max(s.WallMS, 1))
	if s.Slowed > 0 {
		text += fmt.Sprintf("; %g times a second would have taken more than %.0f %%, so it was made slower (%d times halved)", s.Hz, 100*lab.MostSampling, s.Slowed)
	}
	if s.BoundMS > 0 {
		text += fmt.Sprintf("; another clock stamped them, which is joined within %.1f ms", s.BoundMS)
	}
	if s.Lacks != "" {
		text += "; some could not be read: " + lab.OneLine(s.Lacks, 300)
	}
	if n := s.Left + left; n > 0 {
		text += fmt.Sprintf("; %d samples are left out", n)
	}
	return text
}

// addWork tells of each step and annotated interval what the browser computed in it, and what was counted.
func (tl *Timeline) addWork(samples []lab.ProcessSample) {
	list := processesOf(samples)
	ran := sumsOf(list, func(p *process, s lab.ProcessSample) float64 {
		if p.of != lab.OfBrowser || p.tid != 0 {
			return 0
		}
		return float64(s.Ran) / 1e6
	})
	counted := countSums(list)
	for _, track := range tl.Tracks {
		if track.Kind != Step && track.Kind != Annotation && track.Name != "Measures" {
			continue
		}
		for i := range track.Events {
			e := &track.Events[i]
			if e.Instant() || len(ran.at) == 0 || e.End <= ran.at[0] { // what came before was not read
				continue
			}
			e.RanMS = ran.within(*e)
			e.Facts = append(e.Facts, Fact{"browser's processor time", strconv.FormatFloat(e.RanMS, 'f', 1, 64) + " ms"})
			e.count(counted, len(track.Events) <= mostCounted)
		}
	}
}

// sums is something that grew, such as the processor time of the browser: points of time, with how much it was then.
type sums struct {
	at  []lab.Time
	sum []float64
}

// sumsOf adds up what samples count, each spread evenly over its time.
func sumsOf(list []*process, counted func(*process, lab.ProcessSample) float64) (out sums) {
	type edge struct {
		at   lab.Time
		rate float64 // by how much it changes there, a ns
	}
	var edges []edge
	for _, p := range list {
		for _, s := range p.samples {
			if n := counted(p, s); n > 0 && s.For > 0 {
				rate := n / float64(s.For)
				edges = append(edges, edge{s.At - lab.Time(s.For), rate}, edge{s.At, -rate})
			}
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	rate, sum := 0.0, 0.0
	for i, e := range edges {
		if i > 0 {
			sum += rate * float64(e.at-edges[i-1].at)
		}
		rate += e.rate
		if n := len(out.at); n > 0 && out.at[n-1] == e.at {
			out.sum[n-1] = sum
		} else {
			out.at, out.sum = append(out.at, e.at), append(out.sum, sum)
		}
	}
	return out
}

// within is how much was added in the stretches of an event that are not paused.
func (s sums) within(e Event) (sum float64) {
	for _, p := range active(e) {
		sum += s.until(p.End) - s.until(p.Start)
	}
	return sum
}

// until is how much it was at an instant.
func (s sums) until(at lab.Time) float64 {
	n, found := slices.BinarySearch(s.at, at)
	switch {
	case found:
		return s.sum[n]
	case n == 0:
		return 0
	case n == len(s.at):
		return s.sum[n-1]
	}
	share := float64(at-s.at[n-1]) / float64(s.at[n]-s.at[n-1])
	return s.sum[n-1] + share*(s.sum[n]-s.sum[n-1])
}
