package suite

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

const two = `suite: two
trials: 6
browsers: [a, b]
entries:
  - name: load
    type: load
    visual: load/speed_index_ms
    plan: {steps: [{name: load, open: "https://www.shop.test/suite/article"}]}
    truth:
      - {metric: load/last_visual_change_ms, less: load/speed_index_ms, is: 100, did: wait, within: 17}
  - name: play
    type: animation
    weight: 3
    visual: play/animation_fps
    plan: {steps: [{name: open, open: "https://www.shop.test/suite/play"}, {name: play, key: space}]}
    truth: [{metric: play/animation_fps, over: play, is: 0, within: 5}]
`

// made makes a result of n pairs in which b takes so many times as long as a, with noise of so large a deviation.
func made(t *testing.T, n int, times, noise float64, seed uint64) *Result {
	t.Helper()
	s, err := Parse("two", []byte(two))
	if err != nil {
		t.Fatal(err)
	}
	r := New(s, "appliance test", []string{"a", "b"}, n, 1, time.Unix(0, 0).UTC())
	dice := rand.New(rand.NewPCG(seed, 1))
	for i, e := range s.Entries {
		o := Outcome{Entry: e.Name, Browsers: r.Browsers, Run: "20261121-091400-" + e.Name, State: "done"}
		for k := range 2 * n {
			browser, factor := "a", math.Exp(noise*dice.NormFloat64())
			if k%2 == 1 {
				browser, factor = "b", times*factor
			}
			values := map[string]float64{"load/speed_index_ms": 1000 * factor, "load/last_visual_change_ms": 1000*factor + 150}
			if i == 1 {
				values = map[string]float64{"play/animation_fps": 50 / factor}
			}
			o.Trials = append(o.Trials, Trial{Number: k + 1, Browser: browser, Block: k/10 + 1, Valid: true, Values: values,
				Did: map[string]float64{"wait": 140}})
		}
		r.Put(o)
	}
	return r
}

// TestTable: the ratio of two browsers is that of times and of periods, whichever way a metric is better, and the
// geometric mean weighs.
func TestTable(t *testing.T) {
	table, err := made(t, 6, 1.25, 0, 1).Table()
	if err != nil {
		t.Fatal(err)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-9*want }
	for _, row := range table.Rows {
		if r := row.Ratios[1]; r == nil || !near(r.Value, 1.25) || r.Pairs != 6 || r.Finding() != lab.Slower {
			t.Errorf("%s: ratio %+v; want 1.25 of 6 pairs, slower", row.Entry, r)
		}
	}
	want := math.Pow(1000, 0.25) * math.Pow(20, 0.75) // a second, and a period of 20 ms with three times its weight
	if s := table.Scores[0]; s == nil || !near(s.Value, want) {
		t.Errorf("geometric mean %+v; want %v", s, want)
	}
	if r := table.Ratios[1]; r == nil || !near(r.Value, 1.25) {
		t.Errorf("ratio of all %+v; want 1.25", r)
	}
}

// TestIntervalCovers: of many results of equal browsers, about one in twenty has an interval beside 1, and calls them
// different.
func TestIntervalCovers(t *testing.T) {
	const n = 120
	missed, called := 0, 0
	for seed := range uint64(n) {
		table, err := made(t, 6, 1, 0.1, seed).Table()
		if err != nil {
			t.Fatal(err)
		}
		r := table.Ratios[1]
		if r.Low > 1 || r.High < 1 {
			missed++
		}
		if r.Finding() != lab.NoChange {
			called++
		}
	}
	if missed > n/10 || missed < n/100 || called != missed {
		t.Errorf("of %d intervals %d miss the ratio of 1, and %d browsers are called different; want 1 in 20, the same", n, missed, called)
	}
}

// TestKnowns: the answer is what the page did, where it says so, and what it was asked for else.
func TestKnowns(t *testing.T) {
	all, err := made(t, 3, 1, 0, 1).Knowns()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 4 {
		t.Fatalf("%d rows; want two answers of two browsers", len(all))
	}
	if k := all[0]; !k.Holds || k.Asked != 100 || *k.Did != 140 || math.Abs(*k.Measured-150) > 1e-9 || math.Abs(k.Off-10) > 1e-9 {
		t.Errorf("known %+v; want 150 measured, of 140 that the page did", k)
	}
	r := made(t, 3, 1, 0, 1)
	for i := range r.Entries[1].Trials {
		r.Entries[1].Trials[i].Blur = 40
	}
	if all, err = r.Knowns(); err != nil || all[2].Measured != nil || !strings.Contains(all[2].Why, "blur") {
		t.Errorf("known %+v, %v; want frames that were hardly seen not to be counted", all[2], err)
	}
	for i := range r.Entries[0].Trials {
		r.Entries[0].Trials[i].Did["wait"] = 100
	}
	if all, err = r.Knowns(); err != nil || all[0].Holds {
		t.Errorf("known %+v, %v; want 150 to be no answer for 100", all[0], err)
	}
	for i := range r.Entries[0].Trials {
		r.Entries[0].Trials[i].Valid = false
	}
	if all, err = r.Knowns(); err != nil || all[0].Measured != nil || all[0].Why == "" {
		t.Errorf("known %+v, %v; want no number without a valid trial, and why", all[0], err)
	}
}

// TestKnownsOver: what a page did, and what was measured, lose what both are in another entry.
func TestKnownsOver(t *testing.T) {
	s, err := Parse("lag", []byte(`suite: lag
browsers: [a]
entries:
  - name: pan-0
    type: panning
    plan: {steps: [{name: pan, open: "https://www.shop.test/suite/tiles"}]}
    truth: [{metric: pan/input_to_movement_ms, is: 0, did: lag, within: 50}]
  - name: pan-lag
    type: panning
    plan: {steps: [{name: pan, open: "https://www.shop.test/suite/tiles?lag=80"}]}
    truth: [{metric: pan/input_to_movement_ms, over: pan-0, is: 80, did: lag, within: 2}]
`))
	if err != nil {
		t.Fatal(err)
	}
	r := New(s, "appliance test", []string{"a"}, 1, 1, time.Unix(0, 0).UTC())
	for i, e := range s.Entries { // the browser needs 20 ms by its own clock, and 35 to the screen; the page was 5 ms late with its 80
		v := 85 * float64(i)
		r.Put(Outcome{Entry: e.Name, Browsers: r.Browsers, Run: "20261121-091400-" + e.Name, State: "done", Trials: []Trial{{Number: 1,
			Browser: "a", Block: 1, Valid: true, Values: map[string]float64{"pan/input_to_movement_ms": 35 + v + float64(i)},
			Did: map[string]float64{"lag": 20 + v}}}})
	}
	all, err := r.Knowns()
	if err != nil || len(all) != 2 {
		t.Fatalf("known answers %+v, %v; want two", all, err)
	}
	if k := all[1]; !k.Holds || *k.Did != 85 || *k.Measured != 86 || k.Off != 1 {
		t.Errorf("known %+v; want 86 measured, of 85 that the page did", k)
	}
	r.Entries[0].Trials[0].Did = nil
	if all, err = r.Knowns(); err != nil || all[1].Measured != nil {
		t.Errorf("known %+v, %v; want none where the other entry's page said nothing", all[1], err)
	}
}

// TestDrawn: an entry that draws by another way says so to each of its browsers, and leaves those of the others alone.
func TestDrawn(t *testing.T) {
	s, err := Parse("small", []byte(strings.Replace(small, "    type: load\n", "    type: load\n    draw: webgl\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	firefox := &lab.Browser{Name: lab.FirefoxESR}
	q, err := s.PlanOf(0, []*lab.Browser{nil, firefox}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if q.Browser == nil || q.Browser.String() != "chromium draw webgl" || q.Treatment.Browser.String() != "firefox-esr draw webgl" || firefox.Draw != "" {
		t.Errorf("browsers %v and %v, of %+v; want both with draw webgl, and the given one as it was", q.Browser, q.Treatment.Browser, firefox)
	}
}

// TestReleases: results of three releases are a series by their versions, in whatever order they come, and the one that
// is slower than the one before it is found.
func TestReleases(t *testing.T) {
	release := func(version string, times float64, day int) *Result {
		r := made(t, 12, times, 0.01, uint64(day))
		r.Begun = time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC)
		for i := range r.Entries {
			r.Entries[i].Environment = &lab.Environment{Browser: "A 7.0 and Chromium " + version}
			for k := range r.Entries[i].Trials {
				if trial := &r.Entries[i].Trials[k]; trial.Browser == "b" {
					trial.Browser = "chromium"
				}
			}
			r.Entries[i].Browsers = []string{"a", "chromium"}
		}
		r.Browsers = []string{"a", "chromium"}
		return r
	}
	all, err := Releases([]*Result{release("156.0.9", 1.2, 3), release("99.0", 1, 1), release("156.0.10", 1.2, 2)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range all {
		if r.Family == "chromium" {
			got = append(got, r.Version+" "+r.Ratio.Finding())
		}
	}
	if want := "Chromium 99.0 unknown, Chromium 156.0.9 slower, Chromium 156.0.10 none"; strings.Join(got, ", ") != want {
		t.Errorf("releases %q; want %s", got, want)
	}
	other := made(t, 3, 1, 0, 1)
	other.SHA256 = strings.Repeat("0", 64)
	if _, err := Releases([]*Result{made(t, 3, 1, 0, 1), other}); err == nil || !strings.Contains(err.Error(), "two suites") {
		t.Errorf("results of two suites: %v; want an error", err)
	}
}

// TestVersionsBesideEachOther: the machine's own browser and one of its family that is named by a path have each its own
// version, in whatever order.
func TestVersionsBesideEachOther(t *testing.T) {
	const path = "/opt/chromium-157/chromium"
	for _, browser := range []string{"Chromium 157.0 (" + path + ") and Chromium 156.0", "Chromium 156.0 and Chromium 157.0 (" + path + ")"} {
		r := &Result{Entries: []Outcome{{Browsers: []string{path, "chromium"}, Environment: &lab.Environment{Browser: browser}}}}
		if own, named := r.version("chromium"), r.version(path); own != "Chromium 156.0" || named != "Chromium 157.0 ("+path+")" {
			t.Errorf("of %q: chromium is %q, and %s is %q; want 156.0 and 157.0", browser, own, path, named)
		}
	}
}

// TestAgree: two results agree, differ, or are too few to say.
func TestAgree(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		times  float64
		noise  float64
		within float64
		want   string
	}{
		{"equal", 20, 1, 0.01, 2, lab.Equivalent},
		{"slower", 20, 1.2, 0.01, 2, lab.Slower},
		{"few", 2, 1, 0.2, 1, lab.Unknown},
		{"one trial each", 1, 1, 0.2, 1, lab.Unknown},
	} {
		earlier, later := made(t, c.n, 1, c.noise, 1), made(t, c.n, c.times, c.noise, 2)
		all, _, err := Agree(earlier, later, c.within)
		if err != nil || len(all) != 2 || all[1].Finding != c.want {
			t.Errorf("%s: %+v, %v; want b %s", c.name, all, err, c.want)
		}
	}
	other := made(t, 3, 1, 0, 1)
	other.SHA256 = strings.Repeat("0", 64)
	if _, _, err := Agree(made(t, 3, 1, 0, 1), other, 1); err == nil {
		t.Error("results of two suites are compared; want an error")
	}
}

// TestResultsAreRefused: what is wrong with a result is told with its field.
// What is no file has no hash: a pipe that came with a result would be read for ever.
func TestHashOfFilesAlone(t *testing.T) {
	if sum, err := HashOf(os.DevNull); err == nil {
		t.Errorf("HashOf(%s) = %s; want an error", os.DevNull, sum)
	}
}

func TestResultsAreRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Result)
		want   string
	}{
		{func(*Result) {}, ""},
		{func(r *Result) { r.Schema = "eidetic/suite-result/9" }, "schema: "},
		{func(r *Result) { r.Text += "\n#" }, "suite_sha256: "},
		{func(r *Result) { r.Text = "suite: [" }, "suite_text: "},
		{func(r *Result) { r.Browsers = nil }, "browsers: "},
		{func(r *Result) { r.Entries[1].Entry = "other" }, "entries[1].entry: "},
		{func(r *Result) { r.Entries[1].Run = "../../etc" }, "entries[1].run: "},
		{func(r *Result) { r.Entries[1].Browsers = []string{"b", "a"} }, "entries[1].browsers: "},
		{func(r *Result) { r.Entries[1] = r.Entries[0] }, "entries[1]: "},
		{func(r *Result) { r.Entries[0].Trials[2].Browser = "c" }, "entries[0].trials[2].browser: "},
		{func(r *Result) { r.Entries[0].Trials[2].Reel = "x" }, "entries[0].trials[2].reel_sha256: "},
	} {
		r := made(t, 3, 1, 0, 1)
		c.change(r)
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		switch _, err := ParseResult(text); {
		case c.want == "" && err != nil:
			t.Errorf("a good result is refused: %v", err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("error %v; want one of %q", err, c.want)
		}
	}
}

func FuzzParseResult(f *testing.F) {
	s, err := Parse("two", []byte(two))
	if err != nil {
		f.Fatal(err)
	}
	r := New(s, "appliance test", []string{"a", "b"}, 2, 1, time.Unix(0, 0).UTC())
	r.Put(Outcome{Entry: "load", Browsers: r.Browsers, Run: "20261121-091400-load", State: "done",
		Trials: []Trial{{Number: 1, Browser: "a", Valid: true, Values: map[string]float64{"load/speed_index_ms": 1}}}})
	text, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"schema":"eidetic/suite-result/1","suite_text":"suite: x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer testlab.Input(t)()
		r, err := ParseResult(text)
		if err != nil {
			return
		}
		if _, err := r.Table(); err != nil {
			t.Errorf("a result that was read has no table: %v", err)
		}
		if _, err := r.Knowns(); err != nil {
			t.Errorf("a result that was read has no known answers: %v", err)
		}
	})
}

// A file of something else is told in words, not by its first character alone.
func TestResultOfSomethingElse(t *testing.T) {
	if _, err := ParseResult([]byte("root:x:0:0")); err == nil || !strings.Contains(err.Error(), "no suite.json") {
		t.Errorf("ParseResult = %v, want that it is no suite.json", err)
	}
}
