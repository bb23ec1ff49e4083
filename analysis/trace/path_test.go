package trace

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

const pathZero = 1000 * second

// inMS is an instant of a hand-made load, in ms from its input.
func inMS(v float64) lab.Time { return pathZero + lab.Time(v*1e6) }

func working(group Group, url string, from, to float64) Stretch {
	return Stretch{inMS(from), inMS(to), group, url}
}

func answered(url string, asked, first, end float64) lab.Served {
	return lab.Served{Method: "GET", URL: url, Stage: lab.StageExact, Time: inMS(asked),
		FirstByte: msOf(first - asked), Duration: msOf(end - asked)}
}

// loaded is a page whose script comes late: the document, a style sheet and a script that its parser finds, a timer
// meanwhile.
func loaded() PathSource {
	return PathSource{
		Zero: pathZero, End: inMS(225), Page: page,
		Work: []Stretch{
			working(ParseGroup, page, 65, 80), working(ParseGroup, page+"a.css", 108, 112), working(ScriptGroup, "", 120, 121.5),
			working(ScriptGroup, page+"app.js", 153, 193), working(StyleGroup, "", 193, 203), working(PaintGroup, "", 203, 208),
			working(ScriptGroup, page+"later.js", 210, 240),
		},
		Fetches: []Fetch{
			{page, inMS(5), inMS(71)}, {page + "a.css", inMS(68), inMS(108)}, {page + "app.js", inMS(69), inMS(152)},
			{page + "pixel.gif", inMS(110), inMS(150)},
		},
		Served: []lab.Served{
			answered(page, 10, 60, 70), answered(page+"app.js", 73, 140, 150), answered(page+"a.css", 72, 100, 105),
			answered(page+"pixel.gif", 114, 148, 149),
		},
	}
}

func told(steps []lab.PathStep) (text string) {
	for _, s := range steps {
		sure := ""
		if s.Inferred {
			sure = "?"
		}
		text += strings.Join(strings.Fields(fmt.Sprintf("%g-%g %s%s %s %s", s.FromMS, s.ToMS, s.Kind, sure, s.Group, s.What)), " ") + "\n"
	}
	return text
}

// TestCriticalPath: the path of a hand-made load is the one that it was made with.
func TestCriticalPath(t *testing.T) {
	const known = `0-5 start?
5-10 send /
10-60 wait /
60-65 receive /
65-69 work parse HTML and CSS /
69-73 send /app.js
73-140 wait /app.js
140-150 receive /app.js
150-152 deliver /app.js
152-153 idle /app.js
153-193 work run scripts /app.js
193-203 work style and layout
203-208 work paint and composite
208-225 screen?
`
	if got := told(CriticalPath(loaded())); got != known {
		t.Errorf("CriticalPath() =\n%swant\n%s", got, known)
	}

	// A browser that says not when it asked: what the thread did when the request came is taken for its cause.
	silent := loaded()
	silent.Fetches = nil
	want := strings.NewReplacer("0-5 start?\n5-10 send /\n", "0-10 start?\n", "65-69 work", "65-73 work", "69-73 send /app.js\n", "",
		"150-152 deliver /app.js\n152-153 idle /app.js\n", "150-153 deliver /app.js\n").Replace(known)
	if got := told(CriticalPath(silent)); got != want {
		t.Errorf("without the browser's requests: CriticalPath() =\n%swant\n%s", got, want)
	}

	// An answer that nobody works on is inferred to have been waited for; without one it is not known what was.
	image := loaded()
	image.Work = append(image.Work[:1:1], working(PaintGroup, "", 153, 160))
	image.End = inMS(170)
	if got := told(CriticalPath(image)); !strings.Contains(got, "wait? /app.js") || !strings.Contains(got, "160-170 screen?") {
		t.Errorf("an answer that nobody works on: %s", got)
	}
	image.Served, image.Fetches = image.Served[:1], nil
	if got := told(CriticalPath(image)); !strings.Contains(got, "80-153 idle?") {
		t.Errorf("without an answer: %s", got)
	}
	if got := CriticalPath(PathSource{Zero: pathZero, End: inMS(9)}); len(got) != 1 || got[0].Kind != lab.PathStart {
		t.Errorf("of nothing: %+v", got)
	}
}

// checkPath fails unless steps lead from the input to the picture without gaps.
func checkPath(t *testing.T, s PathSource, steps []lab.PathStep) {
	t.Helper()
	at := 0.0
	for _, step := range steps {
		if math.Abs(step.FromMS-at) > 1e-6 || !(step.ToMS > step.FromMS) || len(step.What) > mostTraceURL {
			t.Fatalf("the step %+v begins not at %g ms, or is none", step, at)
		}
		at = step.ToMS
	}
	if want := float64(s.End-s.Zero) / 1e6; s.End > s.Zero && math.Abs(at-want) > 1e-6 || len(steps) > mostPathSteps+2 {
		t.Errorf("%d steps lead to %g ms, want %g", len(steps), at, want)
	}
}

// groups lists all groups.
func groups() []Group {
	return []Group{ParseGroup, StyleGroup, PaintGroup, CompileGroup, ScriptGroup, GarbageGroup, OtherGroup}
}

// TestCriticalPathOfAnything: the steps of any load add up to it, however many there are.
func TestCriticalPathOfAnything(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := PathSource{Zero: pathZero, End: inMS(1000), Page: page}
		for range r.IntN(600) {
			from := r.Float64() * 1000
			s.Work = append(s.Work, working(groups()[r.IntN(7)], fmt.Sprint(page, r.IntN(40)), from, from+20*r.Float64()*r.Float64()))
			s.Served = append(s.Served, answered(fmt.Sprint(page, r.IntN(40)), from, from+r.Float64()*30, from+r.Float64()*60))
			s.Fetches = append(s.Fetches, Fetch{fmt.Sprint(page, r.IntN(40)), inMS(from - r.Float64()*9), inMS(from + r.Float64()*70)})
		}
		checkPath(t, s, CriticalPath(s))
	}
	s := PathSource{Zero: pathZero, End: inMS(60000), Page: page}
	for i := range mostStretches {
		s.Work = append(s.Work, working(OtherGroup, fmt.Sprint(i), float64(10*i), float64(10*i+5)))
	}
	checkPath(t, s, CriticalPath(s))
}

// FuzzCriticalPath: what a file says of a trial is its own.
func FuzzCriticalPath(f *testing.F) {
	seed, err := json.Marshal(loaded())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"Zero":5,"End":9000000,"Work":[{"s":-9,"e":9000}],"Fetches":[{"u":"x","sent_ns":8}],"Served":[{"url":"x","time_ns":5}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		var s PathSource
		if json.Unmarshal(b, &s) != nil || s.Zero < 0 || s.End > inMS(1e9) || s.End < s.Zero {
			return
		}
		checkPath(t, s, CriticalPath(s))
	})
}

// TestStretches: the self times of a thread lie beside each other.
func TestStretches(t *testing.T) {
	p, err := ReadChrome(strings.NewReader(smallChrome))
	if err != nil {
		t.Fatal(err)
	}
	const app = "https://a.test/app.js"
	got := ""
	for _, s := range p.Stretches(second+500e3, 2*second) {
		one := fmt.Sprintf("%g-%g %s %s", float64(s.Start-second)/1e6, float64(s.End-second)/1e6, s.Group, s.URL)
		got += strings.TrimSpace(one) + "\n"
	}
	want := "0.5-1 other\n1-2 run scripts " + app + "\n2-5 style and layout " + app + "\n5-9 run scripts " + app + "\n9-10 other\n" +
		"20-22 parse HTML and CSS https://a.test/\n23-23.5 paint and composite https://a.test/hero.jpg\n" +
		"40-40.11 compile scripts https://a.test/m.js\n50-56 run scripts https://a.test/m.js\n"
	if got != want {
		t.Errorf("Stretches() =\n%swant\n%s", got, want)
	}
	many := &Profile{Threads: []Thread{{Main: true}}}
	for i := range 3 * mostStretches {
		many.Slices = append(many.Slices, Slice{Group: groups()[i%7], Start: lab.Time(i) * 300e3, End: lab.Time(i)*300e3 + 200e3})
	}
	if n := len(many.Stretches(0, 9*second)); n > mostStretches || n == 0 {
		t.Errorf("%d stretches of a busy thread, want at most %d", n, mostStretches)
	}
}

// filmed gives a simulated trial a film, and a thread that does what its work sums up to.
func filmed(o Observed, number int) Observed {
	o.Number = number
	at := o.Zero
	put := func(g Group, url string, ms float64) {
		o.Stretches = append(o.Stretches, Stretch{at, at.Add(msOf(ms)), g, url})
		at = at.Add(msOf(ms))
	}
	for _, s := range o.Served {
		if s.URL != page+"app.js" {
			continue
		}
		at = s.Time.Add(s.Duration + msOf(2))
		for _, w := range o.Work {
			if w.Main && w.URL == page+"app.js" {
				put(w.Group, w.URL, w.MS)
			}
		}
		put(PaintGroup, "", 3)
	}
	shown := float64(at-o.Zero)/1e6 + 20
	for ms := 0.0; ms < shown+200; ms += 1000.0 / 60 {
		o.FrameMS = append(o.FrameMS, ms)
		progress := 0.0
		switch {
		case ms >= shown+100:
			progress = 100
		case ms >= shown:
			progress = 60
		}
		o.Progress = append(o.Progress, progress)
	}
	return o
}

// TestPaths: paths to the first picture in which the arms part name what is longer on them; equal arms part nowhere.
func TestPaths(t *testing.T) {
	experiments := testlab.Repeat(2, 10)
	of := func(seed uint64, c change) *lab.CriticalPaths {
		trials := experimentOf(seed, 10, c)
		for i := range trials {
			trials[i] = filmed(trials[i], i+1)
		}
		return Causes(trials, seed).Paths
	}
	for _, c := range []struct {
		change
		first string
	}{
		{change{script: 60}, "path work run scripts /app.js"},
		{change{slower: 80, slowURL: "app.js"}, "path wait  /app.js"},
	} {
		right := 0
		for seed := range uint64(experiments) {
			got := of(seed, c.change)
			if got.Share != 0 || got.Parting.Low <= 0 || len(got.Control.Steps) == 0 || len(got.Treatment.Steps) == 0 || got.Treatment.Trial%2 != 0 {
				t.Fatalf("%s: the arms part at %g %% by %+v; paths of trials %d and %d", c.first, got.Share, got.Parting, got.Control.Trial, got.Treatment.Trial)
			}
			if r := got.Rows[0]; r.Named && strings.Join([]string{r.Kind, r.Thread, r.Group, r.What}, " ") == c.first && r.Low > 0 {
				right++
			}
		}
		if right*10 < experiments*9 {
			t.Errorf("%s: named first in %d of %d experiments", c.first, right, experiments)
		}
	}
	apart, equal := 0, testlab.Repeat(14, 40)
	for seed := range uint64(equal) {
		if of(100+seed, change{}).Share >= 0 {
			apart++
		}
	}
	if apart > equal*3/20 { // a twentieth is expected at most
		t.Errorf("equal arms part in %d of %d experiments", apart, equal)
	}
	trials := experimentOf(1, 10, change{script: 30})
	if got := Causes(trials, 1).Paths; got != nil {
		t.Errorf("trials without stretches have paths: %+v", got)
	}
}

// TestPathsOfARealRun: ten pairs of traced loads of the sample page in Chromium, on a busy machine; the treatment's
// document computes 500 ms when it is parsed. testdata/basket.json.gz is what Observed holds of them, with stretches of
// less than half a millisecond joined.
func TestPathsOfARealRun(t *testing.T) {
	f, err := os.Open("testdata/basket.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var trials []Observed
	if err := json.NewDecoder(z).Decode(&trials); err != nil || len(trials) != 20 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	got := paths(trials, 1)
	if got == nil || got.Share != 100 || got.Parting.Low <= 0 || len(got.Rows) == 0 {
		t.Fatalf("paths() = %+v, want the arms to part at the end", got)
	}
	r := got.Rows[0]
	if !r.Named || r.Thread != lab.PathWork || r.Group != string(ScriptGroup) || r.What != "/" || r.Low < 480 || r.High > 520 || got.Rows[1].Named {
		t.Errorf("the first rows are %+v", got.Rows[:2])
	}
	for i := range trials {
		o := &trials[i]
		ms, _ := o.reached(100)
		s := PathSource{Zero: o.Zero, End: at(ms, o.Zero), Page: o.Page, Work: o.Stretches, Fetches: o.Fetches, Served: o.Served}
		steps := CriticalPath(s)
		checkPath(t, s, steps)
		short := shortened(steps)
		checkPath(t, s, short)
		if len(short) > mostKeptSteps || len(short) >= len(steps) {
			t.Errorf("trial %d: %d of %d steps are kept", i+1, len(short), len(steps))
		}
	}
}
