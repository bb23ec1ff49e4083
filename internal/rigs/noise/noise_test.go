package noise

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

const page = "https://www.shop.test/"

// Attribute names the step whose length differs, and the shares of all steps add up to 100 %.
func TestAttribute(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var loads []Load
	for range 60 {
		ask := 50 + r.Float64()
		style := ask + 200 + 40*r.NormFloat64()
		loads = append(loads, Load{Variant: "x", Valid: true, Marks: map[string]float64{
			markAskPage: ask, markStyleSent: style, markSeen: style + 100 + r.Float64(), "after it": style + 500,
		}})
	}
	loads[3].Marks["of one load"] = 1
	marks := Common(loads)
	if d := cmp.Diff([]string{markAskPage, markStyleSent, markSeen, "after it"}, marks); d != "" {
		t.Fatal("marks", d)
	}
	steps := Attribute(loads, marks)
	sum := 0.0
	for _, s := range steps {
		sum += s.Share
	}
	if len(steps) != 3 || math.Abs(sum-100) > 1e-6 || steps[1].Share < 95 || steps[1].Tail < 20 || math.Abs(steps[0].Tail) > 1 {
		t.Errorf("Attribute() = %+v, whose shares add up to %v %%; want the step that differs first, and 100 %%", steps, sum)
	}
}

func TestNew(t *testing.T) {
	start := lab.Time(time.Second)
	at := func(ms int) lab.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	trial := &lab.Trial{Number: 1, Valid: true, StartTime: start, Measurements: []lab.Measurement{target.Measure(400, nil)}}
	l := New("x", trial, []lab.Served{
		{Time: at(1), URL: "http://box.test/go", Stage: lab.StageBox},
		{Time: at(60), URL: page, FirstByte: 40 * time.Millisecond},
		{Time: at(200), URL: "https://cdn.shop.test/css/a.css", Duration: 90 * time.Millisecond},
		{Time: at(210), URL: "https://cdn.shop.test/css/b.css", Duration: 10 * time.Millisecond},
		{Time: at(300), URL: "https://cdn.shop.test/a.png", Duration: 10 * time.Millisecond},
	}, page)
	want := map[string]float64{markAskPage: 60, markPageByte: 100, markAskStyle: 200, markStyleSent: 290, markSeen: 400}
	if d := cmp.Diff(want, l.Marks); d != "" {
		t.Error(d)
	}
	if got := upToStyles(l.Order); len(l.Order) != 4 || len(got) != 3 {
		t.Errorf("New(): order %q, up to the style sheets %q", l.Order, got)
	}
}

func TestAddTrace(t *testing.T) {
	start := lab.Time(10 * time.Second)
	event := func(name string, ms, long float64, pid int, data string) Event {
		return Event{Name: name, Ph: "X", TS: 1e7 + ms*1e3, Dur: long * 1e3, PID: pid, Args: json.RawMessage(`{"data":{` + data + `}}`)}
	}
	url := func(u string) string { return fmt.Sprintf(`"requestId":"%s","url":%q`, u, u) }
	l := Load{Marks: map[string]float64{markSeen: 450}, Work: map[string]float64{}}
	l.AddTrace([]Event{
		event("Layout", 305, 20, 7, ``),
		event("navigationStart", 5, 0, 7, `"documentLoaderURL":"`+page+`"`),
		event("navigationStart", 1, 0, 6, `"documentLoaderURL":"http://box.test/sync"`),
		event("ResourceSendRequest", 6, 0, 7, url(page)),
		event("ResourceReceiveResponse", 90, 0, 7, url(page)),
		event("ResourceSendRequest", 100, 0, 7, url("https://cdn/a.css")),
		event("ResourceSendRequest", 101, 0, 7, url("https://cdn/b.css")),
		event("ResourceFinish", 300, 0, 7, url("https://cdn/a.css")),
		event("ResourceFinish", 290, 0, 7, url("https://cdn/b.css")),
		event("EvaluateScript", 302, 2, 7, `"url":"`+page+`"`),
		event("Layout", 100, 20, 7, ``), // before the styles
		event("Layout", 330, 5, 8, ``),  // of another process
		event("firstPaint", 400, 0, 7, ``),
		event("Display::DrawAndSwap", 310, 3, 9, ``),
		event("Display::DrawAndSwap", 410, 3, 9, ``),
		{Name: "other", PID: 7, Args: json.RawMessage(`{"data":3}`)},
	}, start, page)
	want := map[string]float64{markNavigation: 5, markSend: 6, markResponse: 90, markStyleAsked: 100, markStyleDone: 300, markScript: 302,
		markScriptEnd: 304, markFirstPaint: 400, markFirstDrawn: 413, markSeen: 450}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })
	if d := cmp.Diff(want, l.Marks, near); d != "" {
		t.Error("marks", d)
	}
	if got := l.Work[workLayout]; math.Abs(got-20) > 1e-6 {
		t.Errorf("%v ms of layout, want 20", got)
	}
	other := Load{Marks: map[string]float64{}, Work: map[string]float64{}}
	if other.AddTrace(nil, start, page); len(other.Marks) != 0 {
		t.Errorf("marks %v without a trace, want none", other.Marks)
	}
}

func TestReport(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var loads []Load
	for i := range 40 {
		name, spread := "as it is", 20.0
		if i%2 == 1 {
			name, spread = "calm", 4
		}
		v := 500 + spread*r.NormFloat64()
		loads = append(
			loads,
			Load{
				Variant: name,
				Valid:   i != 5,
				Metrics: map[string]float64{target.String(): v, metric.SpeedIndex.String(): v},
				Marks:   map[string]float64{markSeen: v},
				Work:    map[string]float64{workLayout: v / 10},
				Order:   []string{"a", "b.css", "c"},
			},
		)
	}
	report := NewReport(loads)
	if len(report.Variants) != 2 || report.Variants[0].Name != "as it is" || report.Variants[1].Valid != 19 ||
		report.Variants[1].All != 20 {
		t.Fatalf("%+v", report.Variants)
	}
	a, b := report.Variants[0], report.Variants[1]
	if a.Spread < 2*b.Spread || a.Low > a.Spread || a.High < a.Spread || a.Orders != 1 || a.CommonMost != 20 || a.Work[0].Share < 99 {
		t.Errorf("%+v\n%+v", a, b)
	}
	for _, markdown := range []bool{false, true} {
		var text bytes.Buffer
		if err := report.Print(&text, markdown); err != nil || !strings.Contains(text.String(), "calm") {
			t.Errorf("Print(%v): %v, %q", markdown, err, text.String())
		}
	}
	if list := report.Results(); len(list) != 2 || list[1].Peer != "as it is" || list[1].Ratio < 2 {
		t.Errorf("%+v", list)
	}
	few := NewReport(slices.Clone(loads[:3]))
	if few.Variants[0].Spread != 0 {
		t.Errorf("the spread of two loads is %v, want none", few.Variants[0].Spread)
	}
}
