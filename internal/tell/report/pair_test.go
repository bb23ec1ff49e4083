package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// A treatment that is slower and whose trial came first: the report begins with the
// comparison, and each number belongs to the arm that it is shown for.
func TestComparisonInBrowser(t *testing.T) {
	run := reporttest.Compared(7, 10, 800)
	dir, _ := write(t, run, reporttest.Options{})
	b := browsers.New(t)
	for _, width := range []int64{360, 1280} {
		if err := b.View(width, 900, "light"); err != nil {
			t.Fatal(err)
		}
		if err := b.Open("file://" + filepath.Join(dir, FileName)); err != nil {
			t.Fatal(err)
		}
		got, err := reporttest.Eval[map[string]any](b, `(() => {
			const text = s => document.querySelector(s).textContent.trim().replace(/\s+/g, " ");
			const lefts = [...document.querySelectorAll(".seen .film")].map(f => [...f.children].map(li => Math.round(li.getBoundingClientRect().left)).join(" "));
			return {
				verdict: text(".found strong"), sides: [...document.querySelectorAll(".films .side")].map(e => e.textContent.trim().replace(/ trial .*/, "").replace(/\s+/g, " ")).join(", "), wide: document.documentElement.scrollWidth > innerWidth,
				alone: document.querySelectorAll(".verdict:not(.found)").length, kicker: text(".kicker").includes("lte"),
				strips: lefts.length, aligned: lefts[0] === lefts[1] && lefts[0].split(" ").length > 4, held: document.querySelectorAll(".film .held").length > 0,
				still: document.querySelectorAll(".films .still").length,
				arms: [...document.querySelectorAll(".strips .side b")].map(e => e.textContent).join(" "), curves: document.querySelector("#chart").dataset.drawn,
				rows: document.querySelectorAll("#comparison tbody tr").length, medians: document.querySelectorAll(".reach tbody tr").length,
				first: text("#trial-1 .arm-name"), words: [...document.querySelectorAll(".card .word")].slice(0, 4).map(e => e.textContent).join(" "),
			};
		})()`)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"verdict": "Treatment (link 3g) is slower.", "sides": "Control link lte, Treatment link 3g", "wide": false, "alone": 0.0, "kicker": false,
			"strips": 2.0, "aligned": true, "held": true, "still": 2.0, "arms": "Control Treatment", "curves": "20", "rows": 5.0, "medians": 3.0,
			"first": "Treatment", "words": "slower slower slower slower",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d pixels wide (-want +got):\n%s", width, diff)
		}
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
	p := pageOf(root(t, dir), run)
	for _, c := range p.Cards {
		control, treatment := summaryOf(run, c.Name, lab.Control), summaryOf(run, c.Name, lab.Treatment)
		want := []armValue{{"Control", number(control.Median, c.Unit)}, {"Treatment", number(treatment.Median, c.Unit)}}
		if diff := cmp.Diff(want, c.Both); diff != "" {
			t.Errorf("%s: %s", c.Name, diff)
		}
	}
	for i, arm := range []string{lab.Control, lab.Treatment} {
		if s := p.Sides[i]; s.Arm != arm || s.Seen.Arm != arm || p.Data.Medians[i].Arm != arm {
			t.Errorf("side %d is %s with a trial of the %s", i, s.Arm, s.Seen.Arm)
		}
	}
}

func root(t *testing.T, dir string) *os.Root {
	t.Helper()
	files, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	return files
}

func TestComparisonStates(t *testing.T) {
	spoilt := reporttest.Compared(7, 8, 800)
	for _, n := range []int{0, 5} {
		spoilt.Trials[n].Valid = false
	}
	reporttest.Compare(spoilt)
	none := reporttest.Compared(7, 2, 800)
	for _, trial := range none.Trials {
		trial.Valid = trial.Arm == lab.Control
	}
	reporttest.Compare(none)
	uncompared := reporttest.Compared(7, 6, 800)
	uncompared.Comparison = nil // as in runs of older versions
	for _, c := range []struct {
		name string
		run  *lab.Run
		want []string
	}{
		{"no difference", reporttest.Compared(7, 10, 0),
			[]string{"No difference between treatment and control was found", "would have been detected with 80 % probability", "no difference found"}},
		{"too few", reporttest.Compared(7, 3, 800),
			[]string{"Too few trials to tell", "3 pairs of valid trials, at least 6 are needed", "too few trials</em>", "needs six pairs"}},
		{"faster", reporttest.Compared(7, 10, -300), []string{"Treatment (link 3g) is faster"}},
		{"some invalid", spoilt, []string{"over 7 pairs of trials", "2 invalid ones are left out", "is slower"}},
		{"no valid treatment", none, []string{"0 pairs of valid trials", "not compared"}},
		{"not compared", uncompared, []string{"Control: The page looked finished after", "not compared"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, text := write(t, c.run, reporttest.Options{})
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("the page does not say %q", want)
				}
			}
			for _, bad := range []string{"ZgotmplZ", "NaN", "<no value>"} {
				if strings.Contains(text, bad) {
					t.Errorf("the page contains %q", bad)
				}
			}
		})
	}
}

// Final pictures are counted per arm.
func TestFinalPicturesOfEachArm(t *testing.T) {
	final := func(run *lab.Run) fact {
		for _, f := range factsOf(run) {
			if f.Label == "Final picture" {
				return f
			}
		}
		t.Fatal("the report has no fact about the final pictures")
		return fact{}
	}
	run := &lab.Run{Trials: []*lab.Trial{
		{Number: 1, Arm: lab.Control, Valid: true, FinalFrame: "a"}, {Number: 2, Arm: lab.Treatment},
		{Number: 3, Arm: lab.Control, Valid: true, FinalFrame: "b"}, {Number: 4, Arm: lab.Treatment},
	}}
	if f := final(run); f.Good || f.Value != "2 different ones" {
		t.Errorf("the fact for two pictures in one arm = %+v; want a bad one", f)
	}
	run.Trials[2].FinalFrame = "a"
	if f := final(run); !f.Good {
		t.Errorf("one picture of the only arm with valid trials: %+v", f)
	}
	run.Trials[1].Valid, run.Trials[1].FinalFrame = true, "b"
	if f := final(run); !f.Good || f.Value != "identical in all of an arm" {
		t.Errorf("one picture of each arm: %+v", f)
	}
}

// The page shows no numbers for a guard that was not compared, but the reason.
func TestGuardThatWasNotCompared(t *testing.T) {
	run := reporttest.Compared(7, 10, 300)
	for _, trial := range run.Trials {
		if trial.Arm == lab.Treatment {
			trial.Measurements = slices.DeleteFunc(trial.Measurements, func(m lab.Measurement) bool { return m.Name == "speed_index_ms" })
		}
	}
	reporttest.Compare(run)
	run.Summary = slices.DeleteFunc(run.Summary, func(s lab.Summary) bool { return s.Metric == "speed_index_ms" && s.Arm == lab.Treatment })
	_, text := write(t, run, reporttest.Options{})
	if !strings.Contains(text, "SpeedIndex: 0 of 10 pairs have it") {
		t.Error("the page does not say why SpeedIndex was not compared")
	}
	for _, c := range changesOf(run) {
		if c.Effect.Metric == "speed_index_ms" && (c.Shift != "–" || c.Treatment != "–" || c.Control == "–") {
			t.Errorf("%+v", c)
		}
	}
}

// A comparison in a hostile run.json may hold any text.
func TestComparisonHostileStrings(t *testing.T) {
	const evil = `"><script>document.title='owned'</script><img src=x onerror="document.title='owned'">`
	run := reporttest.Compared(1, 6, 800)
	c := run.Comparison
	c.Verdict, c.Headline, c.Detail, c.Control, c.Treatment = evil, evil, evil, evil, evil
	for i := range c.Effects {
		e := &c.Effects[i]
		e.Unit, e.Finding, e.DeltaSize, e.Warnings = evil, evil, evil, []string{evil}
	}
	c.Effects = append(c.Effects, lab.Effect{Metric: evil, Unit: evil, Pairs: 9})
	for _, trial := range run.Trials {
		trial.Page = "https://h/" + evil
	}
	_, text := write(t, run, reporttest.Options{})
	if strings.Contains(text, "<script>document") || strings.Contains(text, "<img src=x") {
		t.Error("a string became markup")
	}
}

// The report of a live run says nothing about replayed requests.
func TestLiveRunHasNoReplayedRequests(t *testing.T) {
	run := reporttest.Run(1, 2)
	labels := func() string { return fmt.Sprint(factsOf(run)) }
	if !strings.Contains(labels(), "Replayed requests") {
		t.Error("the report of a replay does not mention its requests")
	}
	run.Plan.Live = true
	if strings.Contains(labels(), "Replayed requests") {
		t.Error("a live run claims that requests were replayed")
	}
}

func TestSigned(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{{-8.333, "ms", "−8.3"}, {0.04, "ms", "0.0"}, {1240.4, "ms", "+1\u202f240"}, {-12.6, "ms", "−13"}, {0.054, "frames/s", "+0.054"},
		{0, "ms", "0.0"}} {
		if got := signed(c.v, c.unit); got != c.want {
			t.Errorf("signed(%v, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

// TestAlign: each cell shows what its arm showed at that instant of the common axis.
func TestAlign(t *testing.T) {
	strip := func(times ...float64) *trial {
		out := &trial{}
		for _, at := range times {
			out.Thumbs = append(out.Thumbs, thumb{TimeMS: at})
		}
		return out
	}
	sides := []side{{Seen: strip(0, 99, 201, 299, 401)}, {Seen: strip(0, 200, 399, 601, 798)}}
	align(sides)
	show := func(cells []cell) (out []string) {
		for _, c := range cells {
			out = append(out, fmt.Sprintf("%v %v", c.TimeMS, c.Held))
		}
		return out
	}
	if diff := cmp.Diff([]string{"0 false", "201 false", "401 false", "401 true", "401 true"}, show(sides[0].Cells)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"0 false", "200 false", "399 false", "601 false", "798 false"}, show(sides[1].Cells)); diff != "" {
		t.Error(diff)
	}
	for _, odd := range [][]side{{{}, {Seen: strip(0, 5)}}, {{Seen: strip(0)}, {Seen: strip(0, 100)}},
		{{Seen: strip(0, 1e9)}, {Seen: strip(0, 100)}}, {{Seen: strip(5, 0)}, {Seen: strip(0, -1)}}} {
		align(odd)
		if _, err := json.Marshal(odd[0].Cells); err != nil || len(odd[0].Cells) > maxThumbs+1 {
			t.Errorf("got %d cells (%v)", len(odd[0].Cells), err)
		}
	}
}
