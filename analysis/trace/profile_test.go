package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/analysis/trace/tracetest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// smallChrome is a page's thread that runs a script, in which styles are computed, and one that decodes a picture.
// Times are in µs from one second on.
const smallChrome = `{"traceEvents":[
{"ph":"M","name":"process_name","pid":7,"tid":0,"ts":0,"args":{"name":"Renderer"}},
{"ph":"M","name":"thread_name","pid":7,"tid":1,"ts":0,"args":{"name":"CrRendererMain"}},
{"ph":"M","name":"thread_name","pid":7,"tid":2,"ts":0,"args":{"name":"CompositorTileWorker2/42"}},
{"ph":"c","name":"clock_sync","pid":7,"tid":1,"ts":1000000,"args":{"sync_id":"eidetic-1"}},
{"ph":"X","name":"RunTask","pid":7,"tid":1,"ts":1000000,"dur":10000,"args":{}},
{"ph":"X","name":"EvaluateScript","pid":7,"tid":1,"ts":1001000,"dur":8000,"tdur":6000,"args":{"data":{"url":"https://a.test/app.js","lineNumber":1}}},
{"ph":"X","name":"UpdateLayoutTree","pid":7,"tid":1,"ts":1002000,"dur":3000,"tdur":1500,"args":{}},
{"ph":"X","name":"Unheard of","pid":7,"tid":1,"ts":1003000,"dur":1000,"args":{}},
{"ph":"B","name":"ParseHTML","pid":7,"tid":1,"ts":1020000,"args":{"beginData":{"url":"https://a.test/#top"}}},
{"ph":"E","name":"ParseHTML","pid":7,"tid":1,"ts":1022000},
{"ph":"X","name":"PaintImage","pid":7,"tid":1,"ts":1023000,"dur":500,"args":{"data":{"url":"https://a.test/hero.jpg"}}},
{"ph":"X","name":"Draw LazyPixelRef","pid":7,"tid":1,"ts":1023100,"dur":10,"args":{"LazyPixelRef":5}},
{"ph":"I","s":"t","name":"Decode LazyPixelRef","pid":7,"tid":2,"ts":1030000,"args":{"LazyPixelRef":5}},
{"ph":"X","name":"Decode Image","pid":7,"tid":2,"ts":1030100,"dur":4000,"args":{}},
{"ph":"X","name":"v8.compileModule","pid":7,"tid":1,"ts":1040000,"dur":10,"args":{"fileName":"https://a.test/m.js"}},
{"ph":"X","name":"v8.compileModule","pid":7,"tid":1,"ts":1040100,"dur":10,"args":{"fileName":"https://a.test/imported.js"}},
{"ph":"X","name":"v8.evaluateModule","pid":7,"tid":1,"ts":1050000,"dur":6000,"args":{}},
{"ph":"X","name":7,"pid":7,"tid":2,"ts":1030100,"dur":4000,"args":{}},
{"ph":"N","name":"other","pid":7,"tid":2,"ts":1030100}],"metadata":{"clock-domain":"LINUX_CLOCK_MONOTONIC"},"more":[1,{"a":2}]}`

func TestReadChrome(t *testing.T) {
	p, err := ReadChrome(strings.NewReader(smallChrome))
	if err != nil {
		t.Fatal(err)
	}
	if at := p.Synced["eidetic-1"]; at != second || !p.Monotonic {
		t.Errorf("synced at %v, monotonic %t; want 1 s, true", at, p.Monotonic)
	}
	const app, hero = "https://a.test/app.js", "https://a.test/hero.jpg"
	want := []Work{
		{"Renderer", "CrRendererMain", true, ScriptGroup, "https://a.test/m.js", 6, 6}, // with what it imports
		{"Renderer", "CrRendererMain", true, ScriptGroup, app, 4.5, 5},
		{"Renderer", "CompositorTileWorker", false, PaintGroup, hero, 4, 4},
		{"Renderer", "CrRendererMain", true, OtherGroup, "", 4, 2},
		{"Renderer", "CrRendererMain", true, ParseGroup, "https://a.test/", 2, 2},
		{"Renderer", "CrRendererMain", true, StyleGroup, app, 1.5, 3}, // half of its time on a processor; what is not listed is part of what it lies in
		{"Renderer", "CrRendererMain", true, PaintGroup, hero, 0.5, 0.5},
		{"Renderer", "CrRendererMain", true, CompileGroup, "https://a.test/imported.js", 0.01, 0.01},
		{"Renderer", "CrRendererMain", true, CompileGroup, "https://a.test/m.js", 0.01, 0.01},
	}
	if diff := cmp.Diff(want, p.Work(0, 2*second)); diff != "" {
		t.Errorf("Work (-want +got):\n%s", diff)
	}
	// The half of the script, and what of it is styles.
	want = []Work{
		{"Renderer", "CrRendererMain", true, ScriptGroup, app, 1.25, 1}, {"Renderer", "CrRendererMain", true, StyleGroup, app, 1, 2},
		{"Renderer", "CrRendererMain", true, OtherGroup, "", 0.75, 0},
	}
	if diff := cmp.Diff(want, p.Work(second+3e6, second+6e6)); diff != "" {
		t.Errorf("Work of 3 ms (-want +got):\n%s", diff)
	}
	shown := p.Shown(0, 2*second)
	if len(shown) != 7 || shown[0].Name != "RunTask" || shown[0].End-shown[0].Start != 10e6 {
		t.Errorf("Shown() = %+v, want the 7 stretches of at least 1 ms, the longest first", shown)
	}
	for _, s := range shown {
		if want := []string{"(script) https://a.test/app.js:1"}; s.Name == "UpdateLayoutTree" && !slices.Equal(s.Calls, want) {
			t.Errorf("the call stack of %s is %q, want %q", s.Name, s.Calls, want)
		}
	}
	tl := Of(Source{Trial: load().Trial, Browser: shown})
	var depths []int
	for _, track := range tl.Tracks {
		if track.Kind == Browser && strings.Contains(track.Name, "CrRendererMain") {
			for _, e := range track.Events {
				depths = append(depths, e.Depth)
			}
		}
	}
	if !slices.Equal(depths, []int{0, 1, 2, 3, 0, 0}) {
		t.Errorf("depths on the timeline %v, want 0 1 2 3 0 0", depths)
	}
	var b bytes.Buffer
	if err := Chrome(&b, []*Timeline{tl}); err != nil {
		t.Fatal(err)
	}
	if n, err := tracetest.CheckChrome(&b); err != nil || n < 10 {
		t.Errorf("the exported trace: %d events, %v", n, err)
	}
}

// endless is white space without end, after a beginning.
type endless struct{ head io.Reader }

func (e endless) Read(b []byte) (int, error) {
	if n, err := e.head.Read(b); err == nil {
		return n, nil
	}
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestReadVoid(t *testing.T) {
	for says, text := range map[string]string{
		"has no events": `{"traceEvents":[]}`, "unexpected EOF": smallChrome[:900], "where {": `[]`, "where [": `{"traceEvents":{}}`, "invalid character": `{"traceEvents":[x`,
	} {
		if _, err := ReadChrome(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ReadChrome(%.30s) = %v, want an error that says %q", text, err, says)
		}
	}
	if _, err := ReadChrome(endless{strings.NewReader(`{"traceEvents":[{"name":"`)}); !errors.Is(err, ErrVoid) {
		t.Errorf("a trace without end: %v", err)
	}
	var many strings.Builder
	many.WriteString(`{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":0,"ts":1,"dur":1}`)
	for i := range mostThreads {
		fmt.Fprintf(&many, `,{"ph":"X","name":"a","pid":1,"tid":%d,"ts":1,"dur":1}`, i+1)
	}
	if _, err := ReadChrome(strings.NewReader(many.String() + "]}")); !errors.Is(err, ErrVoid) {
		t.Errorf("a trace of too many threads: %v", err)
	}
	for says, text := range map[string]string{
		"threads before meta": `{"threads":[{}]}`, "has no samples": `{"meta":{"startTime":1,"interval":1},"threads":[]}`, "startTime": `{"meta":{"interval":1}}`,
		"deep in each other": `{"processes":[{"processes":[{"processes":[{}]}]}]}`,
	} {
		if _, err := ReadGecko(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ReadGecko(%.40s) = %v, want an error that says %q", text, err, says)
		}
	}
}

// smallGecko is a content process with three samples of a script, one of them in layout, and one of idleness. Its clock
// began at 100 s.
const smallGecko = `{"meta":{"version":31,"interval":1,"startTime":1700000000000,"startTimeAsClockMonotonicNanosecondsSinceBoot":90000000000,
 "categories":[{"name":"Idle"},{"name":"JavaScript"},{"name":"Layout"}],"sampleUnits":{"threadCPUDelta":"ns"}},"threads":[],"processes":[
{"meta":{"version":31,"interval":1,"startTime":1700000010000,"startTimeAsClockMonotonicNanosecondsSinceBoot":100000000000,
 "categories":[{"name":"Idle"},{"name":"JavaScript"},{"name":"Layout"}],"sampleUnits":{"threadCPUDelta":"ns"}},
 "threads":[{"name":"GeckoMain","processType":"tab","processName":"Isolated Web Content","pid":"12","tid":12,"registerTime":5,
  "samples":{"schema":{"stack":0,"time":1,"threadCPUDelta":2},"data":[[1,10,900000],[2,11,800000],[1,12],[0,13,0],[null,14,5],[9,15,1000]]},
  "stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0],[0,1],[1,2]]},
  "frameTable":{"schema":{"location":0,"category":4},"data":[[0,null,null,null,0],[1,null,null,null,1],[2,null,null,null,2]]},
  "stringTable":["(root)","show (https://a.test/app.js:3:7)","Reflow"]}]}]}`

func TestReadGecko(t *testing.T) {
	p, err := ReadGecko(strings.NewReader(smallGecko))
	if err != nil {
		t.Fatal(err)
	}
	const app = "https://a.test/app.js"
	want := []Work{
		{"Isolated Web Content", "GeckoMain", true, ScriptGroup, app, 1.9, 2}, // one sample without processor time: all of it
		{"Isolated Web Content", "GeckoMain", true, StyleGroup, app, 0.8, 1},
		{"Isolated Web Content", "GeckoMain", true, OtherGroup, "", 0.001, 1},
	}
	if diff := cmp.Diff(want, p.Work(0, 200*second)); diff != "" {
		t.Errorf("Work (-want +got):\n%s", diff)
	}
	if first := p.Slices[0]; first.End != 100*second+10e6 {
		t.Errorf("the first sample at %v, want 10 ms after the process began", first.End)
	}
	for _, s := range p.Shown(0, 200*second) {
		if want := []string{"show (https://a.test/app.js:3:7)"}; s.Group == ScriptGroup && !slices.Equal(s.Calls, want) {
			t.Errorf("the call stack of %s is %q, want %q", s.Name, s.Calls, want)
		}
	}
	wall := time.UnixMilli(1700000000000).Add(-90 * time.Second)
	if offset, bound, how, err := Join(p, nil, wall.Add(3*time.Millisecond)); err != nil || offset != 0 || bound != 3*time.Millisecond+time.Microsecond {
		t.Errorf("Join() = %v, %v, %q, %v; want 0 within 3 ms", offset, bound, how, err)
	}
	if _, _, _, err := Join(p, nil, wall.Add(time.Hour)); !errors.Is(err, ErrVoid) {
		t.Errorf("Join() of clocks an hour apart: %v", err)
	}
	old, err := ReadGecko(strings.NewReader(strings.NewReplacer(`"startTimeAsClockMonotonicNanosecondsSinceBoot":90000000000,`, "",
		`"startTimeAsClockMonotonicNanosecondsSinceBoot":100000000000,`, "").Replace(smallGecko)))
	if err != nil {
		t.Fatal(err)
	}
	offset, bound, _, err := Join(old, nil, wall)
	if at := old.Slices[0].End.Add(offset); err != nil || bound != 2*time.Millisecond || at != 100*second+10e6 {
		t.Errorf("without CLOCK_MONOTONIC the first sample is at %v within %v, %v; want 10 ms after the process began", at, bound, err)
	}
}

// TestMostCalled: a stretch of samples has the call stack of more than half of them, by what it says, and none if there
// is no such stack.
func TestMostCalled(t *testing.T) {
	for name, tt := range map[string]struct {
		stacks string // a letter for each sample's; "-" has no function of a script
		want   string
	}{
		"all":                               {"aaa", "a"},
		"most, and not one after the other": {"abaca", "a"},
		"a half":                            {"abab", ""},
		"the last of three":                 {"abc", ""},
		"most have none":                    {"a--", ""},
		"after others":                      {"bcaaa", "a"},
	} {
		p := &Profile{Sampled: true, Threads: []Thread{{}, {}}}
		add := func(thread, i int, stack string) {
			var calls []string // each sample has its own
			if stack != "-" {
				calls = []string{stack, "main"}
			}
			start := second + lab.Time(i)*1e6
			p.Slices = append(p.Slices, Slice{Thread: thread, Group: ScriptGroup, Start: start, End: start + 1e6, calls: calls})
		}
		for i, stack := range tt.stacks {
			add(0, i, string(stack))
		}
		for i := range 10 { // after the window, and on another thread before it
			add(0, 100+i, "z")
		}
		for i := range 10 {
			add(1, i-100, "z")
		}
		shown := p.Shown(second, second+50e6)
		var got []string
		if len(shown) > 0 {
			got = shown[0].Calls
		}
		var want []string
		if tt.want != "" {
			want = []string{tt.want, "main"}
		}
		if len(shown) != 1 || !slices.Equal(got, want) {
			t.Errorf("%s: Shown() = %+v, want one stretch with the calls %q", name, shown, want)
		}
	}
}

// TestCalled: a function has its name, or what it is, and the end of its file's URL, whole letters only.
func TestCalled(t *testing.T) {
	long := "https://shop.example/" + strings.Repeat("ä", 40) + "/app.js"
	for _, tt := range []struct {
		function, event, url string
		line                 int
		want                 string
	}{
		{"show", "FunctionCall", "https://a.test/app.js", 3, "show https://a.test/app.js:3"},
		{"", "FunctionCall", "https://a.test/app.js", 0, "(anonymous) https://a.test/app.js"},
		{"", "EvaluateScript", "", 3, "(script)"},
		{"show", "FunctionCall", long, 12, "show …" + strings.Repeat("ä", 23) + "/app.js:12"},
	} {
		if got := called(tt.function, tt.event, tt.url, tt.line); got != tt.want {
			t.Errorf("called(%q, %q, %q, %d) = %q, want %q", tt.function, tt.event, tt.url, tt.line, got, tt.want)
		}
	}
}

func TestJoin(t *testing.T) {
	p := &Profile{Synced: map[string]lab.Time{"a": 10, "b": 20}}
	ping := func(name string, low, high lab.Time) lab.TracePing {
		return lab.TracePing{Name: name, Earliest: low, Latest: high}
	}
	for _, c := range []struct {
		name      string
		monotonic bool
		pings     []lab.TracePing
		offset    time.Duration
		bound     time.Duration
		void      bool
	}{
		{"the same clock", true, []lab.TracePing{ping("a", 8, 15)}, 0, time.Microsecond, false},
		{"another clock", true, []lab.TracePing{ping("a", 1010, 1030), ping("b", 1015, 1030)}, 1005, 5 + time.Microsecond, false},
		{"not said to be the same", false, []lab.TracePing{ping("a", 8, 16)}, 2, 4 + time.Microsecond, false},
		{"it jumped", true, []lab.TracePing{ping("a", 8, 15), ping("b", 108, 115)}, 0, 0, true},
		{"no marks", true, []lab.TracePing{ping("c", 8, 15)}, 0, 0, true},
	} {
		p.Monotonic = c.monotonic
		offset, bound, _, err := Join(p, c.pings, time.Time{})
		if offset != c.offset || bound != c.bound || (err != nil) != c.void {
			t.Errorf("%s: Join() = %v, %v, %v; want %v, %v", c.name, offset, bound, err, c.offset, c.bound)
		}
	}
}

// FuzzReadChrome: whatever is in the file, it is a profile or an error, and its sums are those of the time that there
// is.
func FuzzReadChrome(f *testing.F) {
	f.Add([]byte(smallChrome))
	f.Add([]byte(`{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":-1,"dur":1e300},{"ph":"E","name":"a","pid":1,"tid":1,"ts":9}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		p, err := ReadChrome(bytes.NewReader(b))
		if err == nil {
			checkWork(t, p)
		}
	})
}

func FuzzReadGecko(f *testing.F) {
	f.Add([]byte(smallGecko))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		p, err := ReadGecko(bytes.NewReader(b))
		if err == nil {
			checkWork(t, p)
		}
	})
}

func checkWork(t *testing.T, p *Profile) {
	const from, to = 0, 200 * second
	sums := map[string]float64{}
	for _, w := range p.Work(from, to) {
		if !(w.MS > 0) {
			t.Errorf("%+v", w)
		}
		sums[w.Process+w.Thread] += w.MS
	}
	for name, ms := range sums {
		if most := float64(len(p.Threads)) * float64(to-from) / 1e6; ms > most*1.001 {
			t.Errorf("%s worked %v ms of %v", name, ms, most)
		}
	}
	var b bytes.Buffer
	if err := Chrome(&b, []*Timeline{Of(Source{Trial: load().Trial, Browser: p.Shown(from, to)})}); err != nil {
		t.Fatal(err)
	}
	if _, err := tracetest.CheckChrome(&b); err != nil {
		t.Error(err)
	}
}
