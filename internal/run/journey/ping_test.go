package journey

import (
	"image"
	"math"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// pinged is a film of four inputs to a button, 40 frames apart, that answers after as many frames; the
// answer goes on for two more. A caret outside the region blinks.
func pinged(answers ...int) (*film, *lab.Trial) {
	button, caret := image.Rect(10, 10, 20, 20), image.Rect(38, 0, 40, 4)
	f := &film{}
	f.paint(4, 10, button)
	s := &lab.TrialStep{Name: "toggle", Level: "objective", Verb: lab.VerbClick, Region: "5,5,20,20", End: lab.StepPings}
	for i, after := range answers {
		begin := 5 + 40*i
		s.Pings = append(s.Pings, input(begin-1))
		f.paint(begin+after-2, byte(i), caret)
		if after > 0 {
			f.paint(begin+after, byte(100+i), button)
			f.paint(begin+after+1, byte(200+i), button)
		}
		f.paint(begin+38, byte(9*i), caret)
	}
	s.First, s.Input, s.Seen = s.Pings[0], s.Pings[len(s.Pings)-1], at(len(f.pix)-1)
	return f, &lab.Trial{Steps: []*lab.TrialStep{s}}
}

func TestMeasurePings(t *testing.T) {
	f, trial := pinged(3, 2, 5, 4)
	if err := Measure(f, f.Format().Bounds(), trial, nil, nil); err != nil {
		t.Fatal(err)
	}
	for name, frames := range map[string]float64{"response_ms": 3.5, "response_max_ms": 5, "response_settled_ms": 5.5, "response_source_share_ms": 1} {
		if got, want := lab.Values(trial.Measurements)["toggle/"+name], 1e3*frames/60; math.Abs(got-want) > 0.01 {
			t.Errorf("%s = %.2f ms; want %.2f", name, got, want)
		}
	}
	s := trial.Steps[0]
	if len(s.Answers) != 4 || len(s.Invalid) > 0 || s.Answers[2].ToFirst.Low > 1e3*4.0/60 || s.Answers[2].ToFirst.Low <= 0 {
		t.Errorf("answers %+v, invalid %q; want four, each bounded by the frame before", s.Answers, s.Invalid)
	}
	if !metric.IsGuard("toggle/response_ms") {
		t.Error("the response of a step guards nothing")
	}
	f, trial = pinged(3, 0, 3)
	if err := Measure(f, f.Format().Bounds(), trial, nil, nil); err != nil {
		t.Fatal(err)
	}
	if reasons := strings.Join(trial.Steps[0].Invalid, ""); !strings.Contains(reasons, "1 of 3 inputs have no answer") {
		t.Errorf("a step with an input that is not answered is invalid because %q", reasons)
	}
}

// TestMeasureIdle: half of a second of a caret that blinks ten times a second.
func TestMeasureIdle(t *testing.T) {
	caret := image.Rect(20, 8, 22, 16)
	f := &film{}
	f.paint(10, 0, caret)
	for i := range 10 {
		f.paint(16+6*i, byte(50+100*(i%2)), caret)
	}
	begin := lab.Event{Name: "idle", Earliest: at(10), Latest: at(10)}
	trial := &lab.Trial{Steps: []*lab.TrialStep{
		{Name: "rest", Level: "objective", Verb: lab.VerbIdle, First: begin, Input: begin, Seen: at(70), End: lab.StepIdle},
	}}
	if err := Measure(f, f.Format().Bounds(), trial, nil, nil); err != nil {
		t.Fatal(err)
	}
	if fps := lab.Values(trial.Measurements)["rest/idle_fps"]; math.Abs(fps-10) > 0.5 {
		t.Errorf("idle_fps = %.2f; want 10", fps)
	}
	if last := lab.Values(trial.Measurements)["rest/idle_last_change_ms"]; math.Abs(last-float64(at(65).Sub(at(10)))/1e6) > 1e3/60+0.01 {
		t.Errorf("idle_last_change_ms = %.1f; want that of the last blink", last)
	}
	if got := trial.Steps[0].Restless; len(got) != 1 || got[0] != "16,8,8,8" {
		t.Errorf("what never rested is %q; want the caret's cell", got)
	}
}

// TestMeasureWindow: a dialogue opens within three frames, beside a small change elsewhere.
func TestMeasureWindow(t *testing.T) {
	f := &film{}
	f.paint(10, 10, image.Rect(0, 0, 1, 1))
	f.paint(12, 60, image.Rect(0, 0, 2, 1))
	f.paint(14, 90, image.Rect(16, 16, 32, 28))
	f.paint(60, 200, image.Rect(18, 18, 30, 20))
	trial := &lab.Trial{Steps: []*lab.TrialStep{
		{Name: "menu", Level: "objective", Verb: "click", First: input(10), Input: input(10), Expect: "changed and still 500ms", Opens: true, End: "x"},
	}}
	if err := Measure(f, f.Format().Bounds(), trial, nil, nil); err != nil {
		t.Fatal(err)
	}
	s := trial.Steps[0]
	if len(s.Window) != 4 || s.Window[0] != 16 || s.Window[2] != 16 {
		t.Errorf("the window is %v, invalid %q; want 16,16 of 16×12", s.Window, s.Invalid)
	}
	if first := lab.Values(trial.Measurements)["menu/window_first_change_ms"]; math.Abs(first-3e3/60) > 0.01 {
		t.Errorf("window_first_change_ms = %.1f; want three frames", first)
	}
}
