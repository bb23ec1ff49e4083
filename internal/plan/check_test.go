package plan

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// check is the error of a plan's check, without files.
func check(p lab.Plan) error {
	_, err := Check(Request{Plan: p}, Options{Scope: ScopeAdmin})
	return err
}

// good is a plan that asks for the least possible.
func good() lab.Plan {
	return lab.Plan{Trials: 1, Timing: "recorded", Still: 1, Limit: 60, Arm: lab.Arm{Page: "https://x.test/"}}
}

// TestCheckBoundsTheWhole: Check bounds the sum of a plan's trials, and allows the largest
// permitted sum.
func TestCheckBoundsTheWhole(t *testing.T) {
	for _, c := range []struct {
		trials int
		limit  time.Duration
		says   string
	}{
		{maxTrials / 2, time.Minute, ""},
		{maxTrials/2 + 1, time.Minute, "at most 5000 in all"},
		{maxTrials / 2, time.Minute + time.Second, "limit_s: 5000 trials of at most 1m1s each are more than 83h20m0s in all"},
		{1, math.MaxInt64, "limit_s: must be at most 3600"},
		{10, time.Hour, ""},
	} {
		p := good()
		p.Trials, p.Limit, p.Treatment = c.trials, c.limit.Seconds(), &lab.Arm{Link: "3g"}
		err := check(p)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("Check(two arms of %d trials, each at most %v) = %v, want an error with %q", c.trials, c.limit, err, c.says)
		}
	}
}

// TestCheckTolerance: a tolerance is above 0 or left out, also in the plan's JSON.
func TestCheckTolerance(t *testing.T) {
	for tolerance, accepted := range map[time.Duration]bool{0: true, time.Nanosecond: true, time.Minute: true, time.Minute + 1: false,
		-1: false} {
		p := good()
		p.Tolerance = float64(tolerance) / 1e6
		if err := check(p); (err == nil) != accepted {
			t.Errorf("Check(tolerance %v) = %v, want accepted: %t", tolerance, err, accepted)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if written := strings.Contains(string(text), "tolerance"); written != (tolerance != 0) {
			t.Errorf("a tolerance of %v is written: %t (%s)", tolerance, written, text)
		}
	}
}

// TestCheckWarmups: warm-ups are bounded, and count towards the bounds of a run.
func TestCheckWarmups(t *testing.T) {
	for says, change := range map[string]func(*lab.Plan){
		"":                                       func(p *lab.Plan) { p.Warmups, p.Trials = 100, maxTrials/2-100 },
		"at most 5000 in all":                    func(p *lab.Plan) { p.Warmups, p.Trials = 100, maxTrials/2-99 },
		"warmups: must be at least 1 (it is -1)": func(p *lab.Plan) { p.Warmups = -1 },
		"warmups: must be at most 100 (it is 101)": func(p *lab.Plan) { p.Warmups = 101 },
	} {
		p := good()
		p.Treatment, p.Limit = &lab.Arm{Link: "3g"}, 10
		change(&p)
		if err := check(p); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("Check(warmups %d, trials %d) = %v, want an error with %q", p.Warmups, p.Trials, err, says)
		}
	}
}

// TestCheckTraces: traces that cannot be made are refused, with the field and what to do.
func TestCheckTraces(t *testing.T) {
	for says, change := range map[string]func(*lab.Plan){
		"":                                      func(p *lab.Plan) { p.Traces = 10 },
		"leave traces out":                      func(p *lab.Plan) { p.Traces, p.TraceAll = 1, true },
		"traces: must be at least 1 (it is -1)": func(p *lab.Plan) { p.Traces = -1 },
		"traces: must be at most 500":           func(p *lab.Plan) { p.Traces = maxTrials },
		"replays nothing":                       func(p *lab.Plan) { p.TraceAll, p.Live = true, true },
		"500 for each of 1 arms, 1 pages and 20 users: with the other trials at most 5000 in all": func(p *lab.Plan) {
			for i := range 20 {
				p.Users = append(p.Users, lab.PlanUser{Name: strings.Repeat("a", i+1)})
			}
			p.Traces = 500
		},
		"measure.guards[1]: script_ms is told by the browser's own trace: say trace_all": func(p *lab.Plan) {
			p.Measure = &lab.Measure{Guards: []string{"unique_fps", "script_ms"}}
		},
		"measure.metrics[0]: work is told": func(p *lab.Plan) { p.Measure = &lab.Measure{Metrics: []string{"work"}} },
		"primary: paint_ms is told": func(p *lab.Plan) {
			p.Treatment, p.Traces, p.Primary = &lab.Arm{Link: "lte"}, 10, "paint_ms"
		},
		"budgets.main_thread_ms: main_thread_ms is told": func(p *lab.Plan) {
			p.Budgets = map[string]lab.Budget{"main_thread_ms": {Max: 100}}
		},
		"use state: cold or warm": func(p *lab.Plan) { p.TraceAll, p.State = true, lab.StateAppCold },
	} {
		p := good()
		change(&p)
		if p.State != "" {
			p.Steps = []lab.Step{{Name: "start", Launch: p.Page}}
		}
		if err := check(p); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("Check(traces %d, trace_all %t) = %v, want an error with %q", p.Traces, p.TraceAll, err, says)
		}
	}
}

func TestCheckMatchAndMiss(t *testing.T) {
	for _, c := range []struct {
		match, treatment, miss string
		live                   bool
		want                   string // in the error; "" for none
	}{
		{"", "", "", false, ""},
		{"strict", "loose", "fill", false, ""},
		{"nearest", "", "", false, `match: must be one of strict, normal, loose (it is "nearest")`},
		{"", "x", "", false, "treatment.match: "},
		{"", "", "live", false, `miss: must be one of 404, fill (it is "live")`},
		{"", "", "fill", true, "a live run replays nothing"},
	} {
		p := lab.Plan{Trials: 1, Still: 1, Limit: 10, Live: c.live, Miss: c.miss, Arm: lab.Arm{Page: "https://x.test/", Match: c.match}}
		p.Treatment = &lab.Arm{Match: c.treatment}
		err := check(p)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("Check(%+v) = %v; want %q", c, err, c.want)
		}
	}
}

// TestMeasureIsChecked: what cannot be measured is refused, with the field.
func TestMeasureIsChecked(t *testing.T) {
	for path, m := range map[string]lab.Measure{
		"measure.metrics[1]":      {Metrics: []string{"rate", "fps"}},
		"measure.metrics[0]":      {Metrics: []string{"paint"}},
		"measure.guards[0]":       {Guards: []string{"movement_y_px"}},
		"measure.regions[0].area": {Regions: []lab.MeasureRegion{{Name: "a", Area: "1,2,3"}}},
		"measure.regions[1].name": {Regions: []lab.MeasureRegion{{Name: "a", Area: "0,0,9,9"}, {Name: "a", Area: "0,0,9,9"}}},
		"measure.ignore[0]":       {Ignore: []string{"everything"}},
		"measure.tolerance":       {Tolerance: "300"},
		"measure.blank":           {Blank: "red"},
		"measure.steps[0]":        {Steps: []string{"pay"}},
		"measure.quiet_s":         {Quiet: 100},
	} {
		p := lab.Plan{Arm: lab.Arm{Page: "https://a.test/"}, Measure: &m}.WithDefaults()
		var where *lab.FieldError
		if err := check(p); !errors.As(err, &where) || where.Path != path {
			t.Errorf("%+v: %v, want an error of %s", m, err, path)
		}
	}
}

// What is wrong in a page is told with its place in the plan, and so large a plan is refused before it is gone through.
func TestCheckCells(t *testing.T) {
	cells := func() lab.Plan {
		return lab.Plan{Arm: lab.Arm{Link: "lte"}, Treatment: &lab.Arm{Link: "3g"}, Pages: []lab.PlanPage{{Page: "https://a.test/x"}, {Page: "https://a.test/y"}},
			Users: []lab.PlanUser{{Name: "a"}, {Name: "b"}}}.WithDefaults()
	}
	if err := check(cells()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*lab.Plan)
		says   string
	}{
		"page": {func(p *lab.Plan) { p.Pages[1].Page = "ftp://a.test/" }, "pages[1].page: "},
		"step": {func(p *lab.Plan) {
			p.Pages[1] = lab.PlanPage{Steps: []lab.Step{{Open: "https://a.test/"}, {Click: "x"}}}
		}, "pages[1].steps[1].click: "},
		"trials":    {func(p *lab.Plan) { p.Trials = 1000 }, "trials: 1000 for each of 2 arms, 2 pages and 2 users; at most 5000"},
		"overflow":  {func(p *lab.Plan) { p.Trials = 1 << 61 }, "trials: must be at most 5000"},
		"measure":   {func(p *lab.Plan) { p.Measure = &lab.Measure{Steps: []string{"none"}} }, "measure.steps[0]: "},
		"too many":  {func(p *lab.Plan) { p.Pages = make([]lab.PlanPage, 10_000) }, "pages: 10000 pages; at most 50 in a run: divide the plan"},
		"viewports": {func(p *lab.Plan) { p.Browser = &lab.Browser{Command: "/b", Name: "chromium"} }, "browser: give it a name or a command"},
	} {
		p := cells()
		c.change(&p)
		if err := check(p); err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: Check() = %v; want an error that begins with %q", name, err, c.says)
		}
	}
}

func TestCheckPageGuesses(t *testing.T) {
	for page, want := range map[string]string{
		"localhost:4400": "did you mean http://localhost:4400/?", "shop.example": "did you mean https://shop.example/?",
		"192.168.1.9/a": "did you mean http://192.168.1.9/a?", "box:443/x?y": "did you mean https://box:443/x?y?", "localhost": "http://localhost/?",
		"me:secret@box:80/": `"box:80/": it must be an absolute http or https URL; did you mean http://box:80/?`,
		"ftp://x.test/":     "absolute http or https URL", "foo": "absolute http or https URL", "a b.test": "absolute http or https URL",
		"javascript:alert(1)": "absolute http or https URL", "/index.html": "absolute http or https URL", "localhost:port": "https URL",
	} {
		err := CheckPage(page)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("CheckPage(%q) = %v; want an error that ends with %q", page, err, want)
		}
	}
}

// TestCheckPageHosts: a host that browsers spell otherwise is refused with their spelling, since nothing else finds it.
func TestCheckPageHosts(t *testing.T) {
	for page, want := range map[string]string{
		"https://Bücher.example:8443/ä?ö":   "write https://xn--bcher-kva.example:8443/ä?ö",
		"http://faß.de":                     "write http://xn--fa-hia.de",
		"http://例え。テスト/":                    "write http://xn--r8jz45g.xn--zckzah/",
		"http://１２７.0.0.1/":                 "write http://127.0.0.1/",
		"http://127.1/a":                    "write http://127.0.0.1/a",
		"http://2130706433?q":               "write http://127.0.0.1?q",
		"http://0x7f.0.0.010:80/":           "write http://127.0.0.8/",
		"http://10.0.0.256/":                "no address of IPv4",
		"http://1.2.3.4.5/":                 "no address of IPv4",
		"http://08.1/":                      "no address of IPv4",
		"https://shop.example.:8443/x?y#/z": "write https://shop.example:8443/x?y#/z",
		"HTTPS://Shop.example.":             "write https://shop.example/",
		"http://4294967296/":                "no address of IPv4",
	} {
		if err := CheckPage(page); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckPage(%q) = %v; want an error with %q", page, err, want)
		}
	}
	for _, page := range []string{
		"http://xn--bcher-kva.example/", "http://127.0.0.1:80/", "http://[::1]:8080/é", "http://a_b.example/", "http://box/", "http://1.example/",
		"http://shop.example./", "http://127.0.0.1./x", "https://127.0.0.1./", "HTTP://SHOP.example/",
	} {
		if err := CheckPage(page); err != nil {
			t.Errorf("CheckPage(%q) = %v; want nil", page, err)
		}
	}
}

// TestCheckTiming: two addresses that the run records itself share the times of what both ask for.
func TestCheckTiming(t *testing.T) {
	for _, c := range []struct {
		name, timing string
		change       func(*lab.Plan)
		want, says   string
		shared       bool
	}{
		{"one arm", "", nil, "recorded", "", false},
		{"the same page on another link", "", func(p *lab.Plan) { p.Treatment = &lab.Arm{Link: "3g"} }, "recorded", "", false},
		{"another page", "", func(p *lab.Plan) { p.Treatment = &lab.Arm{Page: "https://y.test/"} }, "shared", "", true},
		{"another page, as recorded", "recorded", func(p *lab.Plan) { p.Treatment = &lab.Arm{Page: "https://y.test/"} }, "recorded", "", false},
		{"two archives", "", func(p *lab.Plan) {
			p.Archive, p.Treatment = "a.wacz", &lab.Arm{Page: "https://y.test/", Archive: "b.wacz"}
		}, "recorded", "", false},
		{"two archives, shared", "shared", func(p *lab.Plan) {
			p.Archive, p.Treatment = "a.wacz", &lab.Arm{Page: "https://y.test/", Archive: "b.wacz"}
		}, "shared", "", true},
		{"a wrong word", "bogus", nil, "", "or shared, in a plan with a treatment", false},
		{"shared with nobody", "shared", nil, "", "timing: shared is for two arms", false},
	} {
		p := good()
		p.Timing = c.timing
		if c.change != nil {
			c.change(&p)
		}
		got, err := Check(Request{Plan: p}, Options{})
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: error %v, want %q", c.name, err, c.says)
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.says == "" && (got.Plan.Timing != c.want || got.SharedTimes != c.shared || got.Timing.String() != "recorded"):
			t.Errorf("%s: timing %q, shared %t, replayed as %s; want %q and %t", c.name, got.Plan.Timing, got.SharedTimes, got.Timing, c.want, c.shared)
		}
	}
}
