package trace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"eidetic/internal/lab"
)

// thread is one of a browser's.
type thread struct{ pid, tid int }

// groupOf is the group of an event by its name, as in Lighthouse (core/lib/tracehouse/task-groups.js), with what
// browsertime (browsertime #2110, chrome-trace) found missing in it. What is not listed is part of what it lies in.
func groupOf(name string) (Group, bool) {
	switch name {
	case "ParseHTML", "ParseAuthorStyleSheet":
		return ParseGroup, true
	case "ScheduleStyleRecalculation", "UpdateLayoutTree", "RecalculateStyles", "InvalidateLayout", "Layout":
		return StyleGroup, true
	case "Animation", "HitTest", "PaintSetup", "Paint", "PaintImage", "RasterTask", "ScrollLayer", "UpdateLayer", "UpdateLayerTree", "CompositeLayers",
		"PrePaint", "Commit", "Layerize", "ImageDecodeTask", "Decode Image", "Resize Image", "Draw LazyPixelRef", "Decode LazyPixelRef", "ImageUploadTask", "GPUTask":
		return PaintGroup, true
	case "v8.compile", "v8.compileModule", "v8.parseOnBackground", "v8.parseOnBackgroundParsing", "v8.produceCache", "v8.deserializeOnBackground":
		return CompileGroup, true
	case "EventDispatch", "EvaluateScript", "v8.evaluateModule", "FunctionCall", "TimerFire", "FireIdleCallback", "FireAnimationFrame", "RunMicrotasks",
		"V8.Execute", "v8.run", "v8.callFunction":
		return ScriptGroup, true
	case "MinorGC", "MajorGC", "BlinkGC.AtomicPhase", "ThreadState::performIdleLazySweep", "ThreadState::completeSweep", "BlinkGCMarking":
		return GarbageGroup, true
	case "RunTask", "MessageLoop::RunTask", "TaskQueueManager::ProcessTaskFromWorkQueue", "ThreadControllerImpl::RunTask", "ThreadControllerImpl::DoWork":
		return OtherGroup, true
	}
	return GarbageGroup, strings.HasPrefix(name, "V8.GC")
}

// pageThread is the thread of Chromium's renderers that runs pages; the browser's own pages have processes of another
// name.
const (
	pageThread  = "CrRendererMain"
	pageProcess = "Renderer"
)

// chromeRecord is an event of the Trace Event Format as browsers write it.
type chromeRecord struct {
	Name  string          `json:"name"`
	Phase string          `json:"ph"`
	TS    float64         `json:"ts"`
	Dur   float64         `json:"dur"`
	CPU   *float64        `json:"tdur"` // of the thread
	PID   int             `json:"pid"`
	TID   int             `json:"tid"`
	Args  json.RawMessage `json:"args"`
}

// chromeArgs are the arguments that say what an event is for.
type chromeArgs struct {
	Data, BeginData struct {
		URL           string `json:"url"`
		StyleSheetURL string `json:"styleSheetUrl"`
		RequestID     string `json:"requestId"`
		FunctionName  string `json:"functionName"`
		LineNumber    int    `json:"lineNumber"`
	}
	FileName     string          `json:"fileName"`
	Name         string          `json:"name"`
	SyncID       string          `json:"sync_id"`
	LazyPixelRef json.RawMessage `json:"LazyPixelRef"`
}

// ReadChrome reads a trace of the Trace Event Format that a Chromium wrote of itself. It is read as it comes, and never
// held as a whole.
func ReadChrome(r io.Reader) (*Profile, error) {
	in := &rationed{r: r, all: MaxTrace, item: maxTraceItem}
	c := &chromeReader{p: &Profile{Browser: "Chromium", Synced: map[string]lab.Time{}}, threads: map[thread]int{}, processes: map[int]string{},
		begun: map[int][]Slice{}, fetches: map[string]int{}}
	d := json.NewDecoder(in)
	err := eachField(d, in, func(name string) error {
		switch name {
		case "traceEvents":
			return eachItem(d, in, func() error {
				var e chromeRecord
				err := d.Decode(&e)
				var wrong *json.UnmarshalTypeError
				if errors.As(err, &wrong) { // an event that is not as the format says
					return nil
				}
				return cmp.Or(err, c.event(e))
			})
		case "metadata":
			var meta struct {
				Clock string `json:"clock-domain"`
			}
			err := d.Decode(&meta)
			c.p.Monotonic = meta.Clock == "LINUX_CLOCK_MONOTONIC"
			return err
		}
		return d.Decode(&ignored{})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the browser's trace: %w", err)
	}
	if c.events == 0 {
		return nil, fmt.Errorf("reading the browser's trace: %w: it has no events", ErrVoid)
	}
	c.finish()
	return c.p, nil
}

// ignored is a value that nobody needs.
type ignored struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// eachField calls f for each field of an object; f reads the value.
func eachField(d *json.Decoder, in *rationed, f func(name string) error) error {
	if err := expect(d, '{'); err != nil {
		return err
	}
	for d.More() {
		in.item = maxTraceItem
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := f(name.(string)); err != nil {
			return err
		}
	}
	return expect(d, '}')
}

// eachItem calls f for each item of an array; f reads it.
func eachItem(d *json.Decoder, in *rationed, f func() error) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	for d.More() {
		in.item = maxTraceItem
		if err := f(); err != nil {
			return err
		}
	}
	return expect(d, ']')
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && got != want {
		err = fmt.Errorf("%w: byte %d: %v, where %v must be", ErrVoid, d.InputOffset(), got, want)
	}
	return err
}

type chromeReader struct {
	p         *Profile
	events    int
	threads   map[thread]int
	processes map[int]string
	begun     map[int][]Slice // those whose end has not come, by thread
	durations int             // slices and those that have begun
	pixels    []pixelNote
	fetches   map[string]int // by the browser's number of the request
}

// pixelNote is an event that joins a picture's drawing to its decoding.
type pixelNote struct {
	at     lab.Time
	thread int
	name   string
	ref    string
	url    string
}

// chromeTime is µs as a time; 0 for what is none.
func chromeTime(us float64) lab.Time {
	if !(us >= 0 && us < 9e15) {
		return 0
	}
	return lab.Time(math.Round(us * 1e3))
}

func (c *chromeReader) thread(e chromeRecord) (int, error) {
	id := thread{e.PID, e.TID}
	n, ok := c.threads[id]
	if !ok {
		if n = len(c.p.Threads); n == mostThreads {
			return 0, fmt.Errorf("%w: it has more than %d threads", ErrVoid, mostThreads)
		}
		c.threads[id] = n
		c.p.Threads = append(c.p.Threads, Thread{PID: e.PID, TID: e.TID})
	}
	return n, nil
}

func (c *chromeReader) event(e chromeRecord) error {
	c.events++
	switch e.Phase {
	case "X", "B", "E", "M", "c", "I", "i", "R", "n":
	default:
		return nil
	}
	n, err := c.thread(e)
	if err != nil {
		return err
	}
	if e.Phase == "E" {
		if open := c.begun[n]; len(open) > 0 {
			s := open[len(open)-1]
			c.begun[n] = open[:len(open)-1]
			s.End = max(chromeTime(e.TS), s.Start)
			c.p.Slices = append(c.p.Slices, s)
		}
		return nil
	}
	var args chromeArgs
	if isTelling(e.Name) && len(e.Args) > 0 {
		_ = json.Unmarshal(e.Args, &args) // what has another form says nothing
	}
	switch {
	case e.Phase == "M" && e.Name == "thread_name":
		c.p.Threads[n].Name = poolName(args.Name)
	case e.Phase == "M" && e.Name == "process_name" && len(c.processes) < mostThreads:
		c.processes[e.PID] = poolName(args.Name)
	case e.Name == "clock_sync" && args.SyncID != "" && len(c.p.Synced) < 100:
		c.p.Synced[args.SyncID] = chromeTime(e.TS)
	}
	url := shortURL(cmp.Or(args.Data.URL, args.Data.StyleSheetURL, args.BeginData.URL, args.FileName))
	switch e.Name {
	case "ResourceSendRequest":
		if _, known := c.fetches[args.Data.RequestID]; !known && url != "" && len(c.p.Fetches) < mostFetches {
			c.fetches[lab.OneLine(args.Data.RequestID, 80)] = len(c.p.Fetches)
			c.p.Fetches = append(c.p.Fetches, Fetch{URL: url, Sent: chromeTime(e.TS)})
		}
	case "ResourceFinish":
		if i, known := c.fetches[args.Data.RequestID]; known {
			c.p.Fetches[i].Done = chromeTime(e.TS)
		}
	case "PaintImage", "Draw LazyPixelRef", "Decode LazyPixelRef":
		if len(c.pixels) < mostSlices {
			ref := string(args.LazyPixelRef[:min(len(args.LazyPixelRef), 40)])
			c.pixels = append(c.pixels, pixelNote{chromeTime(e.TS), n, e.Name, ref, url})
		}
	}
	if e.Phase != "X" && e.Phase != "B" {
		return nil
	}
	if c.durations++; c.durations > mostSlices {
		return fmt.Errorf("%w: it has more than %d events with a duration: trace a shorter load", ErrVoid, mostSlices)
	}
	s := Slice{Thread: n, Name: lab.OneLine(e.Name, 80), URL: url, Start: chromeTime(e.TS), Busy: -1}
	if s.Group, s.own = groupOf(e.Name); !s.own {
		s.Group = OtherGroup
	}
	if e.Name == "FunctionCall" || e.Name == "EvaluateScript" {
		s.calls = []string{called(args.Data.FunctionName, e.Name, url, args.Data.LineNumber)}
	}
	if e.Phase == "B" {
		c.begun[n] = append(c.begun[n], s)
		return nil
	}
	s.End = s.Start + chromeTime(e.Dur)
	if e.CPU != nil {
		s.Busy = time.Duration(chromeTime(*e.CPU))
	}
	c.p.Slices = append(c.p.Slices, s)
	return nil
}

// called names a function as people look for it: what it is, its file and line.
func called(function, event, url string, line int) string {
	name := lab.OneLine(function, mostCall/2)
	switch {
	case name != "":
	case event == "EvaluateScript":
		name = "(script)"
	default:
		name = "(anonymous)"
	}
	if url == "" {
		return name
	}
	if line > 0 {
		url += ":" + strconv.Itoa(line)
	}
	return name + " " + ending(url, mostCall/2)
}

// ending is at most so many bytes of a text from its end, where a URL has its file.
func ending(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := len(text) - most + len("…")
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return "…" + text[cut:]
}

// isTelling says whether an event's arguments are read.
func isTelling(name string) bool {
	switch name {
	case "thread_name", "process_name", "clock_sync",
		"EvaluateScript", "FunctionCall", "v8.compile", "v8.compileModule", "v8.evaluateModule", "v8.parseOnBackground", "v8.produceCache", "ParseHTML",
		"ResourceSendRequest", "ResourceFinish", "ParseAuthorStyleSheet", "XHRReadyStateChange", "XHRLoad", "PaintImage", "Draw LazyPixelRef", "Decode LazyPixelRef", "Decode Image":
		return true
	}
	return false
}

func (c *chromeReader) finish() {
	for i := range c.p.Threads {
		t := &c.p.Threads[i]
		t.Process = cmp.Or(c.processes[t.PID], "process")
		t.Name = cmp.Or(t.Name, "thread")
		t.Main = t.Name == pageThread && t.Process == pageProcess
	}
	c.pictures()
	c.p.sort()
	c.modules()
	c.p.nest()
}

// modules names the module whose evaluation each is, with those that it imports: the first that was compiled since the
// last evaluation. Chromium does not say it.
func (c *chromeReader) modules() {
	first, thread := "", -1
	for i := range c.p.Slices {
		s := &c.p.Slices[i]
		if s.Thread != thread {
			first, thread = "", s.Thread
		}
		switch s.Name {
		case "v8.compileModule":
			first = cmp.Or(first, s.URL)
		case "v8.evaluateModule":
			s.URL, first = cmp.Or(s.URL, first), ""
		}
	}
}

// pictures names the picture that each decoding is of: a page's thread notes the reference that it draws a picture by,
// the thread that decodes it notes the reference before.
func (c *chromeReader) pictures() {
	slices.SortStableFunc(c.pixels, func(a, b pixelNote) int { return cmp.Compare(a.at, b.at) })
	type reference struct {
		pid int
		ref string
	}
	painted, of := map[int]string{}, map[reference]string{}
	decoding := map[int][]pixelNote{} // by thread
	for _, note := range c.pixels {
		pid := c.p.Threads[note.thread].PID
		switch note.name {
		case "PaintImage":
			painted[note.thread] = note.url
		case "Draw LazyPixelRef":
			if url := painted[note.thread]; url != "" {
				of[reference{pid, note.ref}] = url
			}
		default:
			decoding[note.thread] = append(decoding[note.thread], note)
		}
	}
	for i := range c.p.Slices {
		s := &c.p.Slices[i]
		if s.Name != "Decode Image" && s.Name != "Decode LazyPixelRef" || s.URL != "" {
			continue
		}
		notes := decoding[s.Thread]
		n, found := slices.BinarySearchFunc(notes, s.End, func(p pixelNote, at lab.Time) int { return cmp.Compare(p.at, at) })
		if found {
			n++
		}
		if n > 0 {
			s.URL = of[reference{c.p.Threads[s.Thread].PID, notes[n-1].ref}]
		}
	}
}
