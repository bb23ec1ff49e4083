// Package trace puts what is known of one trial onto one axis: pictures of the screen, requests, input,
// steps, what the page reported of itself, annotations, the link. In flow the trial's record and its logs, all on
// the box's clock; out flow tracks of intervals, each with how well its time is known, and two forms of
// them for other programs: Chrome's Trace Event Format (the document of that name, Nayeem and others, 2016, and what
// Perfetto's importer reads of it) and tables of spans. What others wrote is bounded here.
package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// The kinds of tracks, which are the categories of their events.
const (
	Frame      = "frame"
	Request    = "request"
	Input      = "input"
	Step       = "step"
	Mark       = "mark"
	Annotation = "annotation"
	Link       = "link"
)

// Bounds of a timeline.
const (
	mostEvents = 100000 // of one track
	mostDepth  = 12
)

// Source is what a trial's folder holds.
type Source struct {
	Trial       *lab.Trial
	Served      []lab.Served
	Annotations []lab.Annotation // of the trial, in the order of their arrival
	Link        []LinkBin        // what left the link in each tenth of a second, from the start
	Browser     []Shown          // of the browser's own trace
	Memory      []lab.ProcessMemory
	Machine     []lab.ProcessSample
	MachineLeft int // samples that could not be read
}

// LinkBin is a tenth of a second of the link.
type LinkBin struct {
	Down  int `json:"down_bytes"`
	Up    int `json:"up_bytes"`
	Queue int `json:"queue_peak_bytes"`
}

// LinkStep is how long a bin of the link is.
const LinkStep = 100 * time.Millisecond

// Timeline is one trial.
type Timeline struct {
	Trial  int
	Arm    string
	Page   string
	Wall   time.Time
	Zero   lab.Time // from which people count: the input that starts the load
	Start  lab.Time
	End    lab.Time
	Tracks []Track
	Flows  []Flow
	Notes  []string // what was left out, and how clocks were joined
}

// Track is a row, or several where its events overlap.
type Track struct {
	Kind   string
	Name   string
	Nested bool // events lie in each other, or apart; else they overlap as they like
	Events []Event
}

// Event is an interval, or an instant where End is Start. Its beginning lies in [Earliest, Latest].
type Event struct {
	Name             string
	Start, End       lab.Time
	Earliest, Latest lab.Time
	Depth            int // in a nested track
	Colour           string
	Facts            []Fact
	Parts            []Part   // stretches of a request, one after the other
	Stack            []string // of calls, the innermost first, where a browser's sampler saw it
	bytes            int64    // of a message
	message          string   // what joins the ends of one
	sends            bool
	RanMS            float64 // what the browser computed in a step or an annotated interval, where that was read
	// Counts is what was counted meanwhile, by CountMetrics, NaN for what was not; nil where nothing was.
	Counts []float64
}

// Fact is a named value of an event.
type Fact struct{ Name, Value string }

// Paused is the name of a part that is not the event's own time.
const Paused = "paused"

// Part is a stretch of an event.
type Part struct {
	Name       string
	Start, End lab.Time
}

// Instant says whether the event has no length.
func (e Event) Instant() bool { return e.End <= e.Start }

// Flow leads from an event to another: from a request to the first changed picture after its end,
// or from where a message was sent to where it came.
type Flow struct{ FromTrack, From, ToTrack, To int }

// Of lays out a trial.
func Of(s Source) *Timeline {
	t := s.Trial
	tl := &Timeline{Trial: t.Number, Arm: t.Arm, Page: t.Page, Wall: t.Wall, Zero: ZeroOf(t)}
	add := func(track Track) {
		if len(track.Events) == 0 {
			return
		}
		slices.SortStableFunc(track.Events, func(a, b Event) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Depth, b.Depth), cmp.Compare(b.End, a.End))
		})
		if more := len(track.Events) - mostEvents; more > 0 {
			tl.Notes = append(tl.Notes, fmt.Sprintf("%s: %d of the shortest are left out; the trial's files have them", track.Name, more))
			track.Events = eventsAt(track.Events, Longest(track.Events, mostEvents))
		}
		tl.Tracks = append(tl.Tracks, track)
	}
	add(frames(t, tl.Zero))
	add(steps(t))
	add(inputs(t))
	add(requests(s.Served))
	for _, track := range marks(t) {
		add(track)
	}
	for _, track := range annotations(s.Annotations, lastOf(t)) {
		add(track)
	}
	for _, track := range browserTracks(s.Browser) {
		add(track)
	}
	readings := s.Memory
	if len(readings) == 0 {
		readings = memoryOf(s.Machine)
	}
	held, memoryNote := memory(readings)
	for _, track := range held {
		add(track)
	}
	for _, track := range machineTracks(s.Machine) {
		add(track)
	}
	add(link(s.Link, tl.Zero))
	if t.Sampled != nil {
		tl.addWork(s.Machine)
		tl.Notes = append(tl.Notes, machineNote(t.Sampled, s.MachineLeft))
	}
	tl.extent()
	tl.flows()
	tl.messages()
	if note := clockNote(t, s.Annotations); note != "" {
		tl.Notes = append(tl.Notes, note)
	}
	if memoryNote != "" {
		tl.Notes = append(tl.Notes, memoryNote)
	}
	switch b := t.Trace; {
	case b == nil:
	case b.Void != "":
		tl.Notes = append(tl.Notes, "the browser's trace is not used: "+b.Void)
	case len(s.Browser) > 0:
		tl.Notes = append(tl.Notes, fmt.Sprintf("the browser's trace: stretches of at least %v, joined within %.3f ms: %s", leastShown, b.BoundMS, b.Clock))
	}
	return tl
}

// ZeroOf is the instant from which a trial's times count.
func ZeroOf(t *lab.Trial) lab.Time {
	if t.StartTime != 0 {
		return t.StartTime
	}
	for _, e := range t.Events {
		if e.Name == "navigate" {
			return e.Latest
		}
	}
	return t.FirstFrame
}

// Window is from when to when a trial's work counts: from the input that starts the load to its last visual change, or
// to the trial's end where that is not known.
func Window(t *lab.Trial) (from, to lab.Time) {
	from = ZeroOf(t)
	for _, end := range []metric.ID{metric.LastChange, metric.Journey} {
		if ms := end.In(t); ms > 0 {
			return from, at(ms, from)
		}
	}
	return from, lastOf(t)
}

// lastOf is when the trial ended.
func lastOf(t *lab.Trial) lab.Time {
	last := ZeroOf(t)
	if n := len(t.FrameTimes); n > 0 {
		last = max(last, at(t.FrameTimes[n-1], ZeroOf(t)))
	}
	for _, e := range t.Events {
		last = max(last, e.Latest)
	}
	return last
}

func at(ms float64, zero lab.Time) lab.Time {
	return zero + lab.Time(math.Round(min(max(ms, -1e9), 1e9)*1e6))
}

// extent finds the ends of the axis: a little of what preceded the start, up to the last event.
func (tl *Timeline) extent() {
	tl.Start, tl.End = tl.Zero, tl.Zero+1e6
	for _, track := range tl.Tracks {
		for _, e := range track.Events {
			tl.Start, tl.End = min(tl.Start, e.Start), max(tl.End, e.End)
		}
	}
	const most = lab.Time(24 * time.Hour) // a damaged log must not stretch the axis
	tl.Start, tl.End = max(tl.Start, tl.Zero-most), min(tl.End, tl.Zero+most)
}

// frames are the pictures that differ from the one before in the trial's curves: of the load, or of each step.
func frames(t *lab.Trial, zero lab.Time) Track {
	track := Track{Kind: Frame, Name: "Screen", Nested: true}
	seen := map[int]bool{}
	add := func(first int, times, load, visual []float64, step string) {
		value := func(list []float64, i int) float64 {
			if i < len(list) {
				return list[i]
			}
			return 0
		}
		for i := 1; i < len(times); i++ {
			if value(load, i) == value(load, i-1) && value(visual, i) == value(visual, i-1) || seen[first+i] {
				continue
			}
			seen[first+i] = true
			e := Event{
				Name:  "frame " + strconv.Itoa(first+i),
				Start: at(times[i], zero), Earliest: at(times[i-1], zero), Latest: at(times[i], zero),
			}
			if i < len(load) {
				e.Facts = append(e.Facts, Fact{"as at the end", percent(load[i])})
			}
			if i < len(visual) {
				e.Facts = append(e.Facts, Fact{"visual progress", percent(visual[i])})
			}
			if step != "" {
				e.Facts = append(e.Facts, Fact{"step", step})
			}
			track.Events = append(track.Events, e)
		}
	}
	if len(t.Steps) == 0 {
		add(t.StartFrame, t.FrameTimes, t.LoadHistogram, t.VisualProgress, "")
	}
	for _, s := range t.Steps {
		add(s.StartFrame, stepTimes(s, zero), s.LoadHistogram, s.VisualProgress, s.Name)
	}
	slices.SortFunc(track.Events, func(a, b Event) int { return cmp.Compare(a.Start, b.Start) })
	for i := range track.Events { // a picture stays until the next one
		end := lastOf(t)
		if i+1 < len(track.Events) {
			end = track.Events[i+1].Start
		}
		track.Events[i].End = max(end, track.Events[i].Start)
	}
	return track
}

// stepTimes are the times of a step's frames since the trial's start: its own count from its first input.
func stepTimes(s *lab.TrialStep, zero lab.Time) []float64 {
	shift := float64(s.First.Earliest+(s.First.Latest-s.First.Earliest)/2-zero) / 1e6
	out := make([]float64, len(s.FrameTimes))
	for i, v := range s.FrameTimes {
		out[i] = v + shift
	}
	return out
}

func percent(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) + " %" }

// steps are the trial's spans: of a load its stages, of a journey its steps.
func steps(t *lab.Trial) Track {
	track := Track{Kind: Step, Name: "Steps", Nested: true}
	var walk func(spans []*lab.Span, depth int, from, to lab.Time)
	walk = func(spans []*lab.Span, depth int, from, to lab.Time) {
		for _, s := range spans {
			if s == nil || depth > mostDepth || len(track.Events) > mostEvents {
				continue
			}
			start, end := max(s.Start, from), min(max(s.End, s.Start), to)
			if end < start { // outside its parent
				continue
			}
			track.Events = append(track.Events, Event{Name: s.Name, Start: start, End: end, Earliest: s.Start, Latest: s.Start, Depth: depth,
				Facts: []Fact{{"level", s.Level}}})
			walk(s.Children, depth+1, start, end)
			from = end // siblings that overlap are cut, so that they nest
		}
	}
	walk(t.Spans, 0, math.MinInt64, math.MaxInt64)
	return track
}

// inputs are what was done to the device, and the trial's own events.
func inputs(t *lab.Trial) Track {
	track := Track{Kind: Input, Name: "Input"}
	for _, e := range t.Events {
		one := Event{Name: e.Name, Start: e.Earliest, End: max(e.Latest, e.Earliest), Earliest: e.Earliest, Latest: e.Latest}
		if e.Detail != "" && !e.IsText() { // it may be a password
			one.Facts = []Fact{{"detail", e.Detail}}
		}
		track.Events = append(track.Events, one)
	}
	for _, s := range t.Steps {
		if s.Input.Latest != 0 {
			track.Events = append(track.Events, Event{Name: s.Verb, Start: s.Input.Earliest, End: max(s.Input.Latest, s.Input.Earliest),
				Earliest: s.Input.Earliest, Latest: s.Input.Earliest, Facts: []Fact{{"step", s.Name}}})
		}
	}
	return track
}

// requests are those of the device, each with how it waited and came; what the box answered itself is left out.
func requests(served []lab.Served) Track {
	track := Track{Kind: Request, Name: "Requests"}
	for _, s := range served {
		if s.Stage == lab.StageBox {
			continue
		}
		first, end := s.Time.Add(max(s.FirstByte, 0)), s.Time.Add(max(s.Duration, s.FirstByte, 0))
		e := Event{
			Name: s.Method + " " + s.URL, Start: s.Time, End: end, Earliest: s.Time, Latest: s.Time,
			Parts: []Part{{"waiting", s.Time, first}, {"receiving", first, end}},
			Facts: []Fact{
				{"status", strconv.Itoa(s.Status)}, {"bytes", strconv.FormatInt(s.Bytes, 10)}, {"protocol", s.Protocol},
				{"matched", string(s.Stage)}, {"score", strconv.FormatFloat(s.Score, 'g', 4, 64)},
			},
		}
		if s.Error != "" {
			e.Facts = append(e.Facts, Fact{"error", s.Error})
		}
		if s.Aborted {
			e.Facts = append(e.Facts, Fact{"aborted", "the device went away before the last byte"})
		}
		track.Events = append(track.Events, e)
	}
	return track
}

// markNames are the rows of what a page reports, in their order.
var markNames = [...][2]string{ // constant
	{"mark", "Marks"}, {"measure", "Measures"}, {"paint", "Paints"}, {"lcp", "Largest paint"}, {"element", "Elements"},
	{"longtask", "Long tasks"}, {"shift", "Layout shifts"}, {"event", "Slow events"}, {"load", "Load event"},
}

// marks are the page's own, by kind. Without bounds on the page's clock, the picture that shows a mark is its time.
func marks(t *lab.Trial) (out []Track) {
	zero := ZeroOf(t)
	for _, kind := range markNames {
		track := Track{Kind: Mark, Name: kind[1]}
		for _, m := range t.PageMarks {
			if m.Kind != kind[0] {
				continue
			}
			e := Event{Name: cmp.Or(m.Name, m.Kind), Earliest: m.Earliest, Latest: m.Latest}
			switch {
			case m.Latest != 0:
				e.Start = m.Earliest + (m.Latest-m.Earliest)/2
			case m.Frame >= 0:
				e.Start = at(m.TimeMS, zero)
				e.Earliest, e.Latest = e.Start, e.Start
			default:
				e.Start, e.Earliest, e.Latest = m.Arrived, zero, m.Arrived
			}
			e.End = e.Start.Add(time.Duration(min(max(m.DurationMS, 0), 1e9) * 1e6))
			e.Facts = []Fact{{"page's clock", strconv.FormatFloat(m.PageMS, 'f', 1, 64) + " ms"}}
			if m.Value != 0 {
				e.Facts = append(e.Facts, Fact{"value", strconv.FormatFloat(m.Value, 'g', 4, 64)})
			}
			if m.Frame >= 0 {
				e.Facts = append(e.Facts, Fact{"frame", strconv.Itoa(m.Frame)})
			}
			track.Events = append(track.Events, e)
		}
		out = append(out, track)
	}
	return out
}

// link is what left the link in each tenth of a second.
func link(bins []LinkBin, zero lab.Time) Track {
	track := Track{Kind: Link, Name: "Link", Nested: true}
	for i, b := range bins {
		if b == (LinkBin{}) {
			continue
		}
		start := zero.Add(time.Duration(i) * LinkStep)
		track.Events = append(track.Events, Event{
			Name: strconv.Itoa(b.Down) + " bytes down, " + strconv.Itoa(b.Up) + " up", Start: start, End: start.Add(LinkStep),
			Earliest: start, Latest: start.Add(LinkStep),
			Facts: []Fact{{"down", strconv.Itoa(b.Down)}, {"up", strconv.Itoa(b.Up)}, {"most queued", strconv.Itoa(b.Queue)}},
		})
	}
	return track
}

// flows join each request to the first changed picture at or after its end.
func (tl *Timeline) flows() {
	screen := slices.IndexFunc(tl.Tracks, func(t Track) bool { return t.Kind == Frame })
	asked := slices.IndexFunc(tl.Tracks, func(t Track) bool { return t.Kind == Request })
	if screen < 0 || asked < 0 {
		return
	}
	pictures := tl.Tracks[screen].Events
	for i, r := range tl.Tracks[asked].Events {
		n, _ := slices.BinarySearchFunc(pictures, r.End, func(e Event, end lab.Time) int { return cmp.Compare(e.Start, end) })
		if n < len(pictures) {
			tl.Flows = append(tl.Flows, Flow{asked, i, screen, n})
		}
	}
}

// clockNote says how well the pages' clocks are known.
func clockNote(t *lab.Trial, notes []lab.Annotation) string {
	n, placed, widest := 0, 0, lab.Time(0)
	for _, m := range t.PageMarks {
		n++
		if m.Latest != 0 {
			placed++
			widest = max(widest, m.Latest-m.Earliest)
		}
	}
	for _, a := range notes {
		if a.PageMS > 0 {
			n, placed, widest = n+1, placed+1, max(widest, a.Latest-a.Earliest)
		}
	}
	switch {
	case n == 0:
		return ""
	case placed == 0:
		return "the page's clock has no bounds here: its reports are shown at their pictures, or when they arrived"
	}
	text := fmt.Sprintf("the page's clock is joined to the box's within %s ms, by its posts and their answers, and where the device is this machine by the wall clock",
		strings.TrimSuffix(strconv.FormatFloat(float64(widest)/1e6, 'f', 1, 64), ".0"))
	if placed < n {
		text += fmt.Sprintf("; %d of %d reports have no such bounds", n-placed, n)
	}
	return text
}
