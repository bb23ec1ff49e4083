package execute

import (
	"encoding/json"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/measure"
	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/run/experiment"
	"eidetic/internal/tell/report"
)

// The film of these tests: 10 green frames, then a page that comes at once and scrolls by 7 pixels in every
// second frame, with a caret that blinks until the end, on a screen of 320 × 240.
const (
	deepWidth, deepHeight = 320, 240
	deepGreen, deepFrames = 10, 130
)

func writeScroll(t *testing.T, dir string) (start lab.Event) {
	t.Helper()
	page := filmtest.NewPage(deepWidth, 2000, 4)
	scene := func(pix []byte, n int) {
		if n < deepGreen {
			c := lab.SyncGreen()
			filmtest.Fill(pix, deepWidth, image.Rect(0, 0, deepWidth, deepHeight), c.R, c.G, c.B)
			return
		}
		page.Show(pix, deepWidth, deepHeight, 0, 7*min((n-deepGreen)/2, 30))
		if n/10%2 == 0 {
			filmtest.Fill(pix, deepWidth, image.Rect(300, 100, 302, 116), 0, 0, 0)
		}
	}
	f := filmtest.New(deepWidth, deepHeight, 60, scene, filmtest.Beat(deepFrames, 60, 60, 0))
	w, err := reel.Create(filepath.Join(dir, experiment.ReelFile), reel.Header{Format: f.Format(), Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Len() {
		pix, err := f.Pixels(i)
		if err == nil {
			err = w.WriteFrame(lab.Frame{FrameInfo: f.Info(i), Pix: pix})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	at := f.Info(deepGreen-1).Time + 2e6
	return lab.Event{Name: "navigate", Earliest: at, Latest: at + 1e6}
}

// asked is what the tests' plan asks for.
func asked() *lab.Measure {
	return &lab.Measure{
		Metrics: []string{"rate", "motion", "tearing", "stable", "shift", "colours", "perceptual_speed_index_ms", "visual_complete_75_ms"},
		Guards:  []string{"animation_fps", "jank_count@top"},
		Regions: []lab.MeasureRegion{{Name: "top", Area: "0%,0%,100%,25%"}},
		Ignore:  []string{"0,200,100,40"},
	}
}

// TestMeasureOfPlan: what a plan asks for stands in the trial, in timeline.json, in pictures and in the
// report, with the thresholds, the regions, what is ignored and what never settles.
func TestMeasureOfPlan(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "trials", "001")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	start := writeScroll(t, dir)
	ask, err := measure.NewRequest(asked())
	if err != nil {
		t.Fatal(err)
	}
	trial := &lab.Trial{Number: 1, Arm: lab.Control, Valid: true, Files: map[string]string{}, Events: []lab.Event{start}}
	evidence, err := (&analyst{ask: ask}).Analyse(t.Context(), dir, trial, start)
	if err != nil {
		t.Fatal(err)
	}
	if err := evidence(t.Context()); err != nil && trial.Files["areas"] == "" { // the film needs an encoder
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"movement_y_px": -210, "torn_frames": 0} {
		if got, ok := trial.Value(name); !ok || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"animation_fps", "animation_fps@top", "jank_count@top", "stable_4096_ms", "layout_instability",
		"key_colour_percent", "perceptual_speed_index_ms", "visual_complete_75_ms", "speed_index_ms"} {
		if _, ok := trial.Value(name); !ok {
			t.Errorf("the trial has no %s", name)
		}
	}
	a := trial.Analysis
	if a == nil || len(a.Regions) != 1 || a.Regions[0] != (lab.Area{Name: "top", W: 320, H: 60}) || len(a.Ignored) != 1 || a.Settings["luma_step"] != "5" {
		t.Fatalf("analysis: %+v", a)
	}
	if len(a.Proposed) != 1 || !image.Rect(300, 100, 302, 116).In(image.Rect(a.Proposed[0].X, a.Proposed[0].Y, a.Proposed[0].X+a.Proposed[0].W,
		a.Proposed[0].Y+a.Proposed[0].H)) {
		t.Errorf("proposed to be ignored: %+v, want the caret at 300, 100", a.Proposed)
	}
	checkTimeline(t, filepath.Join(dir, timelineFile))
	for _, role := range []string{"areas", "chart displacement", "chart changes"} {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(trial.Files[role]))); trial.Files[role] == "" || err != nil {
			t.Errorf("%s: file %q: %v", role, trial.Files[role], err)
		}
	}
	run := &lab.Run{ID: "20270101-000000-x", State: "done", Plan: lab.Plan{Trials: 1, Measure: asked()}, Trials: []*lab.Trial{trial}}
	run.Summary = summarise(run.Trials)
	if err := report.Write(root, run); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, report.FileName))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Frame rate (top)", "never settles", "region top", "charts/displacement.png", "areas.png", "Layout instability"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report does not have %q", want)
		}
	}
	if keep := os.Getenv("KEEP_REPORT"); keep != "" {
		if err := os.CopyFS(keep, os.DirFS(root)); err != nil {
			t.Fatal(err)
		}
	}
}

// plain hides what a reel knows besides its frames.
type plain struct{ visual.Frames }

// TestMovesChangeNothing: what is measured with the moves that a reel knows, and in memory that it lends, is
// what is measured without.
func TestMovesChangeNothing(t *testing.T) {
	dir := t.TempDir()
	writeScroll(t, dir)
	measured := func(hide bool, groups ...string) *measure.Result {
		r, err := reel.Open(filepath.Join(dir, experiment.ReelFile))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var frames visual.Frames = r
		if hide {
			frames = plain{r}
		}
		got, err := measure.Run(frames, measure.Options{Start: deepGreen, Groups: groups, Curves: true})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, groups := range [][]string{{metric.Rate, metric.Motion, metric.Blank, metric.Tearing, metric.Shift}, {metric.Blank}, {metric.Tearing},
		{metric.Rate}, {metric.Motion}} {
		if d := cmp.Diff(measured(true, groups...), measured(false, groups...)); d != "" {
			t.Errorf("%v: %s", groups, d)
		}
	}
}

func checkTimeline(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all timeline
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Spans) == 0 || len(all.Curves) != 1 {
		t.Fatalf("timeline: %d spans, %d curves", len(all.Spans), len(all.Curves))
	}
	c := all.Curves[0]
	i := slices.IndexFunc(c.Columns, func(c measure.Column) bool { return c.Name == "dy" })
	if i < 0 || len(c.Columns[i].Values) != len(c.TimesMS) || c.First != deepGreen-1 {
		t.Fatalf("timeline: %d times from frame %d, dy is column %d", len(c.TimesMS), c.First, i)
	}
}
