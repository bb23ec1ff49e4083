package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// forgotten is after how many ms of a thread without a sample its oldest ones are taken for forgotten.
const forgotten = 2000

// mostNested bounds how deep a profile's processes lie in each other; Firefox has one level.
const mostNested = 3

// ReadGecko reads a raw profile of Firefox's profiler (version 3 to 31 and what has the same tables). Times become
// those of CLOCK_MONOTONIC where the profile says its start by it.
func ReadGecko(r io.Reader) (*Profile, error) {
	in := &rationed{r: r, all: MaxTrace, item: maxTraceItem}
	g := &geckoReader{d: json.NewDecoder(in), in: in}
	g.p = &Profile{Browser: "Firefox", Synced: map[string]lab.Time{}, Monotonic: true, Sampled: true}
	if err := g.process(0); err != nil {
		return nil, fmt.Errorf("reading the browser's profile: %w", err)
	}
	if len(g.p.Slices) == 0 {
		return nil, fmt.Errorf("reading the browser's profile: %w: it has no samples", ErrVoid)
	}
	g.p.sort()
	g.p.nest()
	return g.p, nil
}

type geckoReader struct {
	d  *json.Decoder
	in *rationed
	p  *Profile
}

// geckoMeta is what is read of a process's description.
type geckoMeta struct {
	Interval   float64  `json:"interval"`  // ms
	StartTime  float64  `json:"startTime"` // ms of the wall clock
	Monotonic  *float64 `json:"startTimeAsClockMonotonicNanosecondsSinceBoot"`
	Categories []struct {
		Name string `json:"name"`
	} `json:"categories"`
	Units struct {
		CPU string `json:"threadCPUDelta"`
	} `json:"sampleUnits"`
}

type geckoTable struct {
	Schema map[string]int      `json:"schema"`
	Data   [][]json.RawMessage `json:"data"`
}

type geckoNumbers struct {
	Schema map[string]int `json:"schema"`
	Data   [][]*float64   `json:"data"`
}

type geckoThread struct {
	Name        string          `json:"name"`
	ProcessType string          `json:"processType"`
	ProcessName string          `json:"processName"`
	Registered  float64         `json:"registerTime"` // ms
	PID         json.RawMessage `json:"pid"`
	TID         json.RawMessage `json:"tid"`
	Samples     geckoNumbers    `json:"samples"`
	Stacks      geckoNumbers    `json:"stackTable"`
	Frames      geckoTable      `json:"frameTable"`
	Strings     []string        `json:"stringTable"`
}

// process reads a process: its description comes before its threads.
func (g *geckoReader) process(depth int) error {
	if depth == mostNested {
		return fmt.Errorf("%w: its processes lie more than %d deep in each other", ErrVoid, mostNested)
	}
	var meta *geckoMeta
	return eachField(g.d, g.in, func(name string) error {
		switch name {
		case "meta":
			meta = &geckoMeta{}
			if err := g.d.Decode(meta); err != nil {
				return fmt.Errorf("meta: %w", err)
			}
			return g.clock(meta, depth)
		case "threads":
			if meta == nil {
				return fmt.Errorf("%w: it has threads before meta", ErrVoid)
			}
			return eachItem(g.d, g.in, func() error {
				var t geckoThread
				if err := g.d.Decode(&t); err != nil {
					return fmt.Errorf("thread %d: %w", len(g.p.Threads)+1, err)
				}
				return g.thread(meta, &t)
			})
		case "processes":
			return eachItem(g.d, g.in, func() error { return g.process(depth + 1) })
		}
		return g.d.Decode(&ignored{})
	})
}

// clock notes when a process's times are zero.
func (g *geckoReader) clock(m *geckoMeta, depth int) error {
	if !(m.StartTime > 0 && m.StartTime < 1e14) || !(m.Interval > 0 && m.Interval < 1e6) {
		return fmt.Errorf("%w: meta.startTime is %v and meta.interval %v", ErrVoid, m.StartTime, m.Interval)
	}
	if m.Monotonic != nil && !(*m.Monotonic >= 0 && *m.Monotonic < math.MaxInt64/4) {
		return fmt.Errorf("%w: meta.startTimeAsClockMonotonicNanosecondsSinceBoot is %v", ErrVoid, *m.Monotonic)
	}
	if m.Monotonic == nil {
		g.p.Monotonic = false
	}
	if depth == 0 {
		at := 0.0
		if m.Monotonic != nil {
			at = *m.Monotonic
		}
		// Wall is when the times that are handed out were zero.
		g.p.Wall = time.UnixMicro(int64(m.StartTime * 1e3)).Add(-time.Duration(at))
	}
	return nil
}

// thread turns samples into stretches of time: each stands for the time since the one before it.
func (g *geckoReader) thread(m *geckoMeta, t *geckoThread) error {
	if len(g.p.Threads) == mostThreads {
		return fmt.Errorf("%w: it has more than %d threads", ErrVoid, mostThreads)
	}
	at, cpu, stack := column(t.Samples.Schema, "time"), column(t.Samples.Schema, "threadCPUDelta"), column(t.Samples.Schema, "stack")
	var unit float64
	switch m.Units.CPU {
	case "ns":
		unit = 1
	case "µs":
		unit = 1e3
	case "":
		cpu = -1
	default:
		return fmt.Errorf("%w: processor time in %.20q", ErrVoid, m.Units.CPU)
	}
	var zero lab.Time
	if m.Monotonic != nil {
		zero = lab.Time(*m.Monotonic)
	} else { // of the wall clock, less that of the first process
		zero = lab.Time(time.UnixMicro(int64(m.StartTime * 1e3)).Sub(g.p.Wall))
	}
	n := len(g.p.Threads)
	one := Thread{
		Process: poolName(cmp.Or(t.ProcessName, t.ProcessType, "process")), Name: poolName(cmp.Or(t.Name, "thread")),
		PID: whole(t.PID), TID: whole(t.TID),
	}
	one.Main = one.Name == "GeckoMain" && strings.HasSuffix(one.Process, "Web Content") // not the browser's own pages and extensions
	g.p.Threads = append(g.p.Threads, one)
	s := stacks{t: t, categories: m.Categories, known: map[int]Slice{}}
	var last lab.Time
	for _, row := range t.Samples.Data {
		ms, ok := cell(row, at)
		if !ok || !(ms > -1e10 && ms < 1e10) {
			continue
		}
		now := zero + lab.Time(ms*1e6)
		from := max(last, now-lab.Time(10*m.Interval*1e6))
		if last == 0 {
			from = now - lab.Time(m.Interval*1e6)
			if ms-t.Registered > forgotten {
				g.p.Complete = max(g.p.Complete, now)
			}
		}
		last = max(last, now)
		number, ok := cell(row, stack)
		if !ok || now <= from {
			continue
		}
		slice := s.of(int(number))
		slice.Thread, slice.Start, slice.End, slice.Busy = n, from, now, now.Sub(from)
		if spent, ok := cell(row, cpu); ok {
			slice.Busy = min(slice.Busy, time.Duration(max(min(spent*unit, 1e15), 0)))
		} else if slice.Name == "Idle" {
			slice.Busy = 0
		}
		if slice.Busy == 0 {
			continue
		}
		if len(g.p.Slices) == mostSlices {
			return fmt.Errorf("%w: it has more than %d samples: trace a shorter load", ErrVoid, mostSlices)
		}
		g.p.Slices = append(g.p.Slices, slice)
	}
	return nil
}

// whole is a number that may be written as a text.
func whole(raw json.RawMessage) (n int) {
	text := strings.Trim(string(raw), `"`)
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil {
		return 0
	}
	return n
}

func column(schema map[string]int, name string) int {
	if n, ok := schema[name]; ok {
		return n
	}
	return -1
}

// cell is a number of a row; false where there is none.
func cell(row []*float64, n int) (float64, bool) {
	if n < 0 || n >= len(row) || row[n] == nil {
		return 0, false
	}
	return *row[n], true
}

// stacks says what a sample's stack is for.
type stacks struct {
	t          *geckoThread
	categories []struct {
		Name string `json:"name"`
	}
	known map[int]Slice
}

// deepest bounds the frames of a stack that are looked at, from the innermost.
const deepest = 1000

// location is where a script's function is, at the end of a frame's name.
func location() *regexp.Regexp {
	return regexp.MustCompile(`((?:https?|file|blob|resource|chrome)://?[^\s()]+?):\d+(?::\d+)?\)?(?:\[\d+\])?$`)
}

var where = location() // constant

// of is the group of a stack's innermost frame that has one, the innermost script, and the scripts' functions, the
// innermost first.
func (s *stacks) of(stack int) Slice {
	if one, ok := s.known[stack]; ok {
		return one
	}
	out := Slice{Group: OtherGroup, Name: "Other", own: true}
	prefix, frame := column(s.t.Stacks.Schema, "prefix"), column(s.t.Stacks.Schema, "frame")
	categorised := false
	at := stack
	for range deepest {
		if at < 0 || at >= len(s.t.Stacks.Data) {
			break
		}
		row := s.t.Stacks.Data[at]
		if n, ok := cell(row, frame); ok {
			name, category, ok := s.frame(int(n))
			if ok && !categorised {
				categorised = true
				out.Name, out.Group = category, groupOfCategory(category)
			}
			if m := where.FindStringSubmatch(name); m != nil {
				if len(out.calls) == 0 {
					out.URL = shortURL(m[1])
				}
				out.calls = append(out.calls, lab.OneLine(name, mostCall))
			}
		}
		if len(out.calls) == mostCalls && categorised {
			break
		}
		up, ok := cell(row, prefix)
		if !ok || int(up) >= at { // a stack's prefix comes before it
			break
		}
		at = int(up)
	}
	s.known[stack] = out
	return out
}

// frame is a frame's name and category; false where it has no category.
func (s *stacks) frame(n int) (name, category string, ok bool) {
	if n < 0 || n >= len(s.t.Frames.Data) {
		return "", "", false
	}
	row := s.t.Frames.Data[n]
	number := func(column int) int {
		var v int
		if column < 0 || column >= len(row) || json.Unmarshal(row[column], &v) != nil || string(row[column]) == "null" {
			return -1
		}
		return v
	}
	if i := number(column(s.t.Frames.Schema, "location")); i >= 0 && i < len(s.t.Strings) {
		name = s.t.Strings[i]
		name = name[max(0, len(name)-mostTraceURL):]
	}
	if i := number(column(s.t.Frames.Schema, "category")); i >= 0 && i < len(s.categories) {
		return name, lab.OneLine(s.categories[i].Name, 80), true
	}
	return name, "", false
}

// groupOfCategory is the group of a category of Firefox's profiler.
func groupOfCategory(name string) Group {
	switch name {
	case "Layout":
		return StyleGroup
	case "Graphics":
		return PaintGroup
	case "JavaScript", "DOM":
		return ScriptGroup
	case "GC / CC":
		return GarbageGroup
	}
	return OtherGroup
}
