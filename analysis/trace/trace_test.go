package trace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"eidetic/analysis/trace/tracetest"
	"eidetic/internal/lab"
)

const second = lab.Time(time.Second)

// load is a trial that loads a page: three pictures, three requests of which one is the box's own.
func load() Source {
	zero := 100 * second
	ms := func(n int) lab.Time { return zero + lab.Time(n)*1e6 }
	return Source{
		Trial: &lab.Trial{
			Number: 3, Arm: lab.Control, Page: "https://shop.example/", StartFrame: 40, StartTime: zero, FirstFrame: zero - second,
			Events:    []lab.Event{{Name: "navigate", Detail: "Return", Earliest: zero - 2e6, Latest: zero + 2e6}, {Name: "end", Earliest: ms(900), Latest: ms(900)}},
			PageMarks: []lab.PageMark{{Kind: "mark", Name: "hero", PageMS: 55, Earliest: ms(60), Latest: ms(64), Frame: -1}, {Kind: "longtask", Name: "self", PageMS: 70, DurationMS: 80, Earliest: ms(75), Latest: ms(79), Frame: -1}},
			Spans: []*lab.Span{{Name: "load", Level: "objective", Start: zero, End: ms(800), Children: []*lab.Span{
				{Name: "wait", Level: "task", Start: zero, End: ms(100)}, {Name: "paint", Level: "task", Start: ms(90), End: ms(2000)},
			}}},
			FrameTimes: []float64{0, 16, 33, 50, 66}, LoadHistogram: []float64{1, 1, 40, 40, 100}, VisualProgress: []float64{0, 0, 50, 50, 100},
		},
		Served: []lab.Served{
			{Time: ms(5), Method: "GET", URL: "https://shop.example/", Stage: lab.StageExact, Score: 1, Status: 200, Bytes: 9, FirstByte: 10e6, Duration: 20e6},
			{Time: ms(15), Method: "GET", URL: "https://shop.example/a.js", Stage: lab.StageFuzzy, Score: 0.8, Status: 200, FirstByte: 5e6, Duration: 40e6},
			{Time: ms(16), Method: "POST", URL: "https://shop.example/.eidetic/page", Stage: lab.StageBox},
		},
		Annotations: []lab.Annotation{
			{Op: "set", Text: "first", Group: "g", Source: "fifo", Colour: "#800000", Earliest: ms(10), Latest: ms(10)},
			{Op: "set", Text: "second", Group: "g", Source: "fifo", Earliest: ms(20), Latest: ms(20)},
			{Op: "set", Group: "g", Source: "fifo", Earliest: ms(30), Latest: ms(30)},
			{Op: "begin", Text: "outer", Source: "page", PageMS: 1, Earliest: ms(10), Latest: ms(12)},
			{Op: "begin", Text: "inner", Source: "page", PageMS: 2, Earliest: ms(20), Latest: ms(22)},
			{Op: "end", Text: "outer", Source: "page", PageMS: 3, Earliest: ms(30), Latest: ms(32)},
			{Op: "begin", Text: "elsewhere", Group: "g", Source: "page", PageMS: 4, Earliest: ms(40), Latest: ms(40)},
			{Op: "end", Text: "elsewhere", Source: "page", PageMS: 4, Earliest: ms(45), Latest: ms(45)},
			{Op: "mark", Text: "here", Source: "page", PageMS: 4, Earliest: ms(40), Latest: ms(42)},
		},
		Link: []LinkBin{{Down: 9000, Up: 400, Queue: 100}, {}, {Down: 1}},
	}
}

// lines writes a timeline as text: kind, name, start and end in ms, with the bounds of the start.
func lines(tl *Timeline) (out []string) {
	ms := func(at lab.Time) float64 { return float64(at-tl.Zero) / 1e6 }
	for _, track := range tl.Tracks {
		for _, e := range track.Events {
			out = append(out, fmt.Sprintf("%s: %s %g–%g (%g…%g) depth %d", track.Kind, e.Name, ms(e.Start), ms(e.End), ms(e.Earliest), ms(e.Latest), e.Depth))
		}
	}
	return out
}

func TestOf(t *testing.T) {
	tl := Of(load())
	want := []string{
		"frame: frame 42 33–66 (16…33) depth 0",
		"frame: frame 44 66–900 (50…66) depth 0",
		"step: load 0–800 (0…0) depth 0",
		"step: wait 0–100 (0…0) depth 1",
		"step: paint 100–800 (90…90) depth 1", // cut, so that steps nest
		"input: navigate -2–2 (-2…2) depth 0",
		"input: end 900–900 (900…900) depth 0",
		"request: GET https://shop.example/ 5–25 (5…5) depth 0",
		"request: GET https://shop.example/a.js 15–55 (15…15) depth 0",
		"mark: hero 62–62 (60…64) depth 0",
		"mark: self 77–157 (75…79) depth 0",
		"annotation: first 10–20 (10…10) depth 0",
		"annotation: second 20–30 (20…20) depth 0",
		"annotation: elsewhere 40–45 (40…40) depth 0", // the end names no group
		"annotation: outer 11–31 (10…12) depth 0",
		"annotation: inner 21–900 (20…22) depth 1", // nothing ended it
		"annotation: here 41–41 (40…42) depth 0",
		"link: 9000 bytes down, 400 up 0–100 (0…100) depth 0",
		"link: 1 bytes down, 0 up 200–300 (200…300) depth 0",
	}
	if diff := cmp.Diff(want, lines(tl)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	asked := slices.IndexFunc(tl.Tracks, func(t Track) bool { return t.Kind == Request })
	if diff := cmp.Diff([]Flow{{asked, 0, 0, 0}, {asked, 1, 0, 1}}, tl.Flows); diff != "" {
		t.Errorf("flows (-want +got):\n%s", diff)
	}
	if len(tl.Notes) != 1 || !strings.Contains(tl.Notes[0], "within 4 ms") {
		t.Errorf("notes %q, want one that says within what the page's clock is known", tl.Notes)
	}
}

// TestChrome: what is written is read again, by a checker that refuses what a reader of the format could not use.
func TestChrome(t *testing.T) {
	second := load()
	second.Trial.Number, second.Trial.Arm = 4, lab.Treatment
	var b bytes.Buffer
	if err := Chrome(&b, []*Timeline{Of(load()), Of(second)}); err != nil {
		t.Fatal(err)
	}
	n, err := tracetest.CheckChrome(bytes.NewReader(b.Bytes()))
	if err != nil || n < 80 {
		t.Errorf("CheckChrome() = %d, %v\n%s", n, err, b.String())
	}
	for _, has := range []string{`"cat":"frame"`, `"cat":"request"`, `"cat":"input"`, `"cat":"step"`, `"cat":"mark"`, `"cat":"annotation"`, `"ph":"s"`, `"ph":"f"`} {
		if !strings.Contains(b.String(), has) {
			t.Errorf("the trace has no %s", has)
		}
	}
}

// TestChromeAlwaysChecks: whatever a trial's logs hold, the trace can be read.
func TestChromeAlwaysChecks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := load()
		at := rapid.Custom(func(t *rapid.T) lab.Time { return lab.Time(rapid.Int64Range(90e9, 110e9).Draw(t, "at")) })
		length := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Range(-1e9, 3e9).Draw(t, "length")) })
		text := rapid.String()
		for range rapid.IntRange(0, 100).Draw(t, "requests") {
			s.Served = append(s.Served, lab.Served{Time: at.Draw(t, "time"), Method: "GET", URL: text.Draw(t, "url"), FirstByte: length.Draw(t, "first"), Duration: length.Draw(t, "duration")})
		}
		for range rapid.IntRange(0, 50).Draw(t, "annotations") {
			now, lasts := at.Draw(t, "now"), int64(0)
			op := rapid.SampledFrom(lab.AnnotateOps()).Draw(t, "op")
			if op == lab.AnnotateSpan {
				lasts = 7e6
			}
			s.Annotations = append(s.Annotations, lab.Annotation{Op: op, Lasts: lasts, Text: text.Draw(t, "text"),
				Group: rapid.SampledFrom([]string{"", "a"}).Draw(t, "group"), Earliest: now, Latest: now + 5})
		}
		for range rapid.IntRange(0, 10).Draw(t, "spans") {
			from := at.Draw(t, "from")
			one := &lab.Span{Name: text.Draw(t, "span"), Start: from, End: from.Add(length.Draw(t, "span's"))}
			s.Trial.Spans[0].Children = append(s.Trial.Spans[0].Children, one)
			s.Trial.Spans = append(s.Trial.Spans, one)
		}
		slices.SortFunc(s.Trial.Spans, func(a, b *lab.Span) int { return int(a.Start - b.Start) })
		var b bytes.Buffer
		if err := Chrome(&b, []*Timeline{Of(s)}); err != nil {
			t.Fatal(err)
		}
		if _, err := tracetest.CheckChrome(&b); err != nil {
			t.Fatal(err)
		}
	})
}

// TestManyGroups: rows of annotations are bounded, and none is lost.
func TestManyGroups(t *testing.T) {
	s := load()
	for i := range lab.MostAnnotations {
		s.Annotations = append(s.Annotations, lab.Annotation{Op: "mark", Text: "x", Group: fmt.Sprint(i), Earliest: 100 * second, Latest: 100 * second})
	}
	n, tracks := 0, 0
	for _, track := range Of(s).Tracks {
		if track.Kind == Annotation {
			tracks++
			n += len(track.Events)
		}
	}
	if tracks != mostGroups || n != lab.MostAnnotations+6 {
		t.Errorf("%d rows with %d annotations, want %d with %d", tracks, n, mostGroups, lab.MostAnnotations+6)
	}
}

// TestClock: a ping bounds both sides, more pings tighten, and a clock that jumps has no bounds.
func TestClock(t *testing.T) {
	c := Unbounded()
	if c.Bounded() {
		t.Error("a clock of which nothing is known is bounded")
	}
	// The page's zero was at 50 s. It sends at 100 ms, and the box gets that 14 ms later; the answer takes 20 ms.
	c.Sent(100, 50*second+114e6)
	if c.Bounded() {
		t.Error("a clock is bounded by one side")
	}
	c.Heard(134, 50*second+114e6)
	low, high := c.At(100)
	if !c.Bounded() || low != 50*second+100e6-22e6 || high != 50*second+100e6+16e6 { // a whole millisecond may be a rounded one
		t.Errorf("At(100) = %d … %d ms after 50 s", (low-50*second)/1e6, (high-50*second)/1e6)
	}
	c.Sent(200, 50*second+202e6)
	c.Heard(204, 50*second+202e6)
	if low, high = c.At(100); low != 50*second+96e6 || high != 50*second+104e6 {
		t.Errorf("after a quicker ping, At(100) = %d … %d ms after 50 s, want 96 … 104", (low-50*second)/1e6, (high-50*second)/1e6)
	}
	if low, high = c.At(100.5); low != 50*second+97400e3 || high != 50*second+103600e3 {
		t.Errorf("At(100.5) = %d … %d µs after 50 s, want 97400 … 103600", (low-50*second)/1e3, (high-50*second)/1e3)
	}
	c.Sent(300, 51*second+300e6)
	c.Heard(310, 51*second+305e6)
	if c.Bounded() {
		t.Error("a clock that jumped is bounded")
	}
}

// TestSpans: sums are averaged over the trials in which a name occurs, and self time leaves out what is inside.
func TestSpans(t *testing.T) {
	other := load()
	other.Trial.Spans[0].End += 200e6
	other.Annotations = nil
	var got []SpanRow
	for _, r := range Spans([]*Timeline{Of(load()), Of(other)}) {
		if r.Name == "load" || r.Name == "first" || r.Name == "outer" {
			got = append(got, r)
		}
	}
	want := []SpanRow{
		{Kind: "annotation", Track: "g", Name: "first", Trials: 1, Count: 1, Total: 10, Self: 10, Shortest: 10, Mean: 10, Longest: 10},
		{Kind: "annotation", Track: "page", Name: "outer", Trials: 1, Count: 1, Total: 20, Self: 10, Shortest: 20, Mean: 20, Longest: 20},
		{Kind: "step", Track: "Steps", Name: "load", Trials: 2, Count: 1, Total: 900, Self: 0, Shortest: 800, Mean: 900, Longest: 1000},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPauses: what a task waits for is not its own time; it is that of the interval around it, unless that waits too.
func TestPauses(t *testing.T) {
	s := load()
	s.Annotations = nil
	zero := s.Trial.StartTime
	for _, a := range []struct {
		ms       int
		op, text string
	}{
		{0, "begin", "A"}, {10, "pause", "A"}, {11, "pause", "A"}, {20, "begin", "B"}, {30, "pause", "B"}, {40, "resume", "A"},
		{50, "resume", ""}, {60, "pause", ""}, {65, "resume", "nobody"}, {70, "resume", "B"}, {80, "end", "B"}, {100, "end", "A"},
	} {
		at := zero + lab.Time(a.ms)*1e6
		s.Annotations = append(s.Annotations, lab.Annotation{Op: a.op, Text: a.text, Group: "task", Earliest: at, Latest: at})
	}
	tl := Of(s)
	got := map[string]float64{}
	for _, row := range Spans([]*Timeline{tl}) {
		if row.Kind == Annotation {
			got[row.Name+" total"], got[row.Name+" self"] = row.Total, row.Self
		}
	}
	// A is active in 0–10 and 40–100, B in 20–30, 50–60 and 70–80, of which A has 20 ms around it.
	if diff := cmp.Diff(map[string]float64{"A total": 100, "A self": 50, "B total": 60, "B self": 30}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, track := range tl.Tracks {
		if track.Kind == Annotation && !slices.Contains(track.Events[0].Facts, Fact{Paused, "30.000 ms"}) {
			t.Errorf("facts of A %v, want that it was paused for 30 ms", track.Events[0].Facts)
		}
	}
}

// TestPauseAfterTheEnd: what a program pauses after its trial has ended is no part of what the trial ended.
func TestPauseAfterTheEnd(t *testing.T) {
	s := load()
	at, late := s.Trial.StartTime, s.Trial.StartTime+1000e9
	s.Annotations = []lab.Annotation{
		{Op: lab.AnnotateBegin, Text: "A", Group: "task", Earliest: at, Latest: at},
		{Op: lab.AnnotatePause, Text: "A", Group: "task", Earliest: late, Latest: late},
	}
	for _, track := range Of(s).Tracks {
		for _, e := range track.Events {
			for _, part := range e.Parts {
				if track.Kind == Annotation && (part.Start < e.Start || part.End > e.End) {
					t.Errorf("a part of A is %d to %d; A is %d to %d", part.Start, part.End, e.Start, e.End)
				}
			}
		}
	}
}
