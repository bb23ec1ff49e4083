package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// mostLanes bounds the threads on which events that overlap are laid out; the others become asynchronous.
const mostLanes = 64

// chromeEvent is an event of the Trace Event Format. Times are in µs.
type chromeEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	TS    json.Number    `json:"ts,omitempty"`
	Dur   json.Number    `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	ID    string         `json:"id,omitempty"`
	Scope string         `json:"s,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// Chrome writes timelines in Chrome's Trace Event Format, which Perfetto and the browser's developer tools open: a
// process for each trial, whose start is at one instant of the file for all, a thread for each row. An event's category
// is its track's kind.
func Chrome(w io.Writer, list []*Timeline) error {
	var lead lab.Time
	for _, tl := range list {
		lead = max(lead, tl.Zero-tl.Start)
	}
	out := &chromeWriter{w: bufio.NewWriter(w)}
	out.text(`{"displayTimeUnit":"ms","traceEvents":[`)
	for i, tl := range list {
		c := &chromeTrial{out: out, tl: tl, pid: tl.Trial, shift: lead - tl.Zero, ids: i << 24}
		c.head()
		c.devtools()
		c.tracks()
		c.flows()
	}
	type about struct {
		Trial int      `json:"trial"`
		Arm   string   `json:"arm"`
		Page  string   `json:"page"`
		Zero  lab.Time `json:"zero_ns"`
		Notes []string `json:"notes,omitempty"`
	}
	all := []about{}
	for _, tl := range list {
		all = append(all, about{tl.Trial, tl.Arm, tl.Page, tl.Zero, tl.Notes})
	}
	meta, err := json.Marshal(map[string]any{"source": "Eidetic", "trials": all})
	if err != nil {
		return err
	}
	out.text("\n],\"metadata\":")
	out.text(string(meta))
	out.text("}\n")
	return cmp.Or(out.err, out.w.Flush())
}

type chromeWriter struct {
	w     *bufio.Writer
	begun bool
	err   error
}

func (o *chromeWriter) text(s string) {
	if o.err == nil {
		_, o.err = o.w.WriteString(s)
	}
}

func (o *chromeWriter) event(e chromeEvent) {
	b, err := json.Marshal(e)
	if o.err == nil {
		o.err = err
	}
	if o.begun {
		o.text(",")
	}
	o.begun = true
	o.text("\n")
	o.text(string(b))
}

// chromeTrial writes one trial.
type chromeTrial struct {
	out   *chromeWriter
	tl    *Timeline
	pid   int
	shift lab.Time // from the box's clock to the file's
	tids  int
	ids   int
	// places says where the events of tracks went, for flows.
	places map[[2]int]int
}

// ts is an instant in µs, to the nanosecond.
func (c *chromeTrial) ts(at lab.Time) json.Number { return micros(max(at+c.shift, 0)) }

func micros(t lab.Time) json.Number {
	return json.Number(strconv.FormatInt(int64(t)/1000, 10) + "." + fmt.Sprintf("%03d", int64(t)%1000))
}

const mainThread = 1 // of the page's renderer, in which tools look for a page's load

func (c *chromeTrial) head() {
	c.tids, c.places = mainThread, map[[2]int]int{}
	name := fmt.Sprintf("trial %d", c.tl.Trial)
	if c.tl.Arm != "" {
		name += ", " + c.tl.Arm
	}
	c.meta("process_name", 0, map[string]any{"name": "Renderer"})
	c.meta("process_labels", 0, map[string]any{"labels": name})
	c.meta("process_sort_index", 0, map[string]any{"sort_index": c.pid})
	c.meta("thread_name", mainThread, map[string]any{"name": "CrRendererMain"})
}

func (c *chromeTrial) meta(name string, tid int, args map[string]any) {
	c.out.event(chromeEvent{Name: name, Cat: "__metadata", Phase: "M", PID: c.pid, TID: tid, TS: "0", Args: args})
}

// devtools writes what the developer tools need to see a page's load: its main frame, the navigation, the network.
func (c *chromeTrial) devtools() {
	frame := fmt.Sprintf("%032X", c.tl.Trial)
	navigation := fmt.Sprintf("%032X", 1<<20+c.tl.Trial)
	one := func(name, cat string, at lab.Time, args map[string]any) {
		c.out.event(chromeEvent{Name: name, Cat: cat, Phase: "I", Scope: "t", TS: c.ts(at), PID: c.pid, TID: mainThread, Args: args})
	}
	one("TracingStartedInBrowser", "disabled-by-default-devtools.timeline", c.tl.Start, map[string]any{"data": map[string]any{
		"frameTreeNodeId": 1, "persistentIds": true,
		"frames": []any{map[string]any{"frame": frame, "name": "", "processId": c.pid, "url": c.tl.Page, "isInPrimaryMainFrame": true, "isOutermostMainFrame": true}},
	}})
	one("navigationStart", "blink.user_timing", c.tl.Zero, map[string]any{"frame": frame, "data": map[string]any{
		"documentLoaderURL": c.tl.Page, "isLoadingMainFrame": true, "isOutermostMainFrame": true, "navigationId": navigation,
	}})
	for _, track := range c.tl.Tracks {
		if track.Name == "Long tasks" {
			c.longTasks(track)
		}
		switch track.Kind {
		case Request:
			for i, e := range track.Events {
				c.network(e, strconv.Itoa(i+1), frame, one)
			}
		case Mark:
			for _, e := range track.Events {
				name := map[string]string{"first-paint": "firstPaint", "first-contentful-paint": "firstContentfulPaint"}[e.Name]
				if track.Name == "Paints" && name != "" {
					one(name, "loading,rail,devtools.timeline", e.Start, map[string]any{"frame": frame, "data": map[string]any{"navigationId": navigation}})
				}
			}
		}
	}
}

// longTasks writes the tasks that the page reported as those of its main thread.
func (c *chromeTrial) longTasks(track Track) {
	var last lab.Time
	for _, e := range track.Events {
		if e.Start < last || e.Instant() { // a page's word: its tasks may overlap
			continue
		}
		last = e.End
		c.out.event(chromeEvent{Name: "RunTask", Cat: "disabled-by-default-devtools.timeline", Phase: "X", PID: c.pid, TID: mainThread,
			TS: c.ts(e.Start), Dur: micros(e.End - e.Start)})
	}
}

// network writes one request as the developer tools have it.
func (c *chromeTrial) network(e Event, id, frame string, one func(string, string, lab.Time, map[string]any)) {
	method, url, _ := strings.Cut(e.Name, " ")
	facts := map[string]string{}
	for _, f := range e.Facts {
		facts[f.Name] = f.Value
	}
	status, _ := strconv.Atoi(facts["status"])
	bytes, _ := strconv.ParseInt(facts["bytes"], 10, 64)
	first := e.Start
	if len(e.Parts) > 0 {
		first = e.Parts[0].End
	}
	seconds := func(at lab.Time) float64 { return float64(max(at+c.shift, 0)) / 1e9 }
	_, failed := facts["error"]
	one("ResourceSendRequest", "devtools.timeline", e.Start, map[string]any{"data": map[string]any{
		"requestId": id, "frame": frame, "url": url, "requestMethod": method, "priority": "Medium", "renderBlocking": "non_blocking",
	}})
	one("ResourceReceiveResponse", "devtools.timeline", first, map[string]any{"data": map[string]any{
		"requestId": id, "frame": frame, "statusCode": status, "mimeType": "", "protocol": facts["protocol"], "fromCache": false,
		"fromServiceWorker": false, "encodedDataLength": bytes, "headers": []any{}, "responseTime": seconds(first) * 1e3, "connectionId": 0, "connectionReused": false,
		"timing": map[string]any{
			"requestTime": seconds(e.Start), "proxyStart": -1, "proxyEnd": -1, "dnsStart": -1, "dnsEnd": -1, "connectStart": -1, "connectEnd": -1,
			"sslStart": -1, "sslEnd": -1, "workerStart": -1, "workerReady": -1, "pushStart": 0, "pushEnd": 0,
			"sendStart": 0, "sendEnd": 0, "receiveHeadersStart": float64(first-e.Start) / 1e6, "receiveHeadersEnd": float64(first-e.Start) / 1e6,
		},
	}})
	one("ResourceFinish", "devtools.timeline", e.End, map[string]any{"data": map[string]any{
		"requestId": id, "didFail": failed, "encodedDataLength": bytes, "decodedBodyLength": bytes, "finishTime": seconds(e.End),
	}})
}

func (c *chromeTrial) tracks() {
	for n, track := range c.tl.Tracks {
		lanes := Lanes(track)
		first, used := c.tids+1, 0
		for i, e := range track.Events {
			if lanes[i] < 0 {
				c.async(track, e)
				continue
			}
			used = max(used, lanes[i]+1)
			c.places[[2]int{n, i}] = first + lanes[i]
			c.event(track, e, first+lanes[i])
		}
		for lane := range used {
			name := track.Name
			if lane > 0 {
				name += " " + strconv.Itoa(lane+1)
			}
			c.meta("thread_name", first+lane, map[string]any{"name": name})
			c.meta("thread_sort_index", first+lane, map[string]any{"sort_index": first + lane})
		}
		c.tids += used
	}
}

// event writes an event with its parts on a thread.
func (c *chromeTrial) event(track Track, e Event, tid int) {
	one := chromeEvent{Name: cmp.Or(e.Name, track.Kind), Cat: track.Kind, PID: c.pid, TID: tid, TS: c.ts(e.Start), Args: argsOf(e, c.tl.Zero)}
	if e.Instant() {
		one.Phase, one.Scope = "i", "t"
		c.out.event(one)
		return
	}
	one.Phase, one.Dur = "X", micros(e.End-e.Start)
	c.out.event(one)
	for _, p := range e.Parts {
		if p.End > p.Start {
			part := one
			part.Name, part.TS, part.Dur, part.Args = p.Name, c.ts(p.Start), micros(p.End-p.Start), nil
			c.out.event(part)
		}
	}
}

// async writes an event that no thread has room for.
func (c *chromeTrial) async(track Track, e Event) {
	c.ids++
	id := "0x" + strconv.FormatInt(int64(c.ids), 16)
	one := chromeEvent{Name: cmp.Or(e.Name, track.Kind), Cat: track.Kind, Phase: "b", ID: id, PID: c.pid, TID: mainThread,
		TS: c.ts(e.Start), Args: argsOf(e, c.tl.Zero)}
	c.out.event(one)
	one.Phase, one.TS, one.Args = "e", c.ts(e.End), nil
	c.out.event(one)
}

// argsOf are the facts of an event, and how well its time is known.
func argsOf(e Event, zero lab.Time) map[string]any {
	args := map[string]any{}
	for _, f := range e.Facts {
		args[f.Name] = f.Value
	}
	if e.Earliest != e.Latest {
		args["earliest_ms"], args["latest_ms"] = float64(e.Earliest-zero)/1e6, float64(e.Latest-zero)/1e6
	}
	if e.Colour != "" {
		args["colour"] = e.Colour
	}
	return args
}

// flows writes the arrows, from the end of a slice to the beginning of another.
func (c *chromeTrial) flows() {
	for _, f := range c.tl.Flows {
		from, to := c.tl.Tracks[f.FromTrack].Events[f.From], c.tl.Tracks[f.ToTrack].Events[f.To]
		fromTID, toTID := c.places[[2]int{f.FromTrack, f.From}], c.places[[2]int{f.ToTrack, f.To}]
		if fromTID == 0 || toTID == 0 || from.Instant() || to.Instant() { // arrows join slices
			continue
		}
		c.ids++
		one := chromeEvent{Name: "shown", Cat: "flow", Phase: "s", ID: "0x" + strconv.FormatInt(int64(c.ids), 16), PID: c.pid, TID: fromTID,
			TS: c.ts(max(from.End-1, from.Start))}
		c.out.event(one)
		one.Phase, one.Bind, one.TID, one.TS = "f", "e", toTID, c.ts(to.Start)
		c.out.event(one)
	}
}

// Lanes says for each event of a track on which of its lanes it lies, so that events of one lane nest; −1 for what the
// lanes have no room for. Events are in the order of their starts.
func Lanes(track Track) []int {
	out := make([]int, len(track.Events))
	if track.Nested {
		return out
	}
	var ends []lab.Time
	for i, e := range track.Events {
		out[i] = slices.IndexFunc(ends, func(end lab.Time) bool { return end <= e.Start })
		switch {
		case out[i] >= 0:
			ends[out[i]] = e.End
		case len(ends) < mostLanes:
			out[i], ends = len(ends), append(ends, e.End)
		}
	}
	return out
}
