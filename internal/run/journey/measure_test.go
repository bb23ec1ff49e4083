package journey

import (
	"image"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// film is a recording of 60 frames a second, of a page of 40×30 with boxes painted on it.
type film struct {
	pix   [][]byte
	infos []lab.FrameInfo
}

func (f *film) Format() lab.Format {
	return lab.Format{Pixels: lab.BGRX, Width: 40, Height: 30, Rate: 60}
}
func (f *film) Len() int                     { return len(f.pix) }
func (f *film) Info(i int) lab.FrameInfo     { return f.infos[i] }
func (f *film) Pixels(i int) ([]byte, error) { return f.pix[i], nil }

// at is the time of frame i.
func at(i int) lab.Time { return lab.Time(time.Second) + lab.Time(i)*lab.Time(time.Second/60) }

// paint adds frames up to frame number last, the first of which has a box of a colour.
func (f *film) paint(last int, colour byte, box image.Rectangle) {
	for first := true; len(f.pix) <= last; first = false {
		i := len(f.pix)
		pix := make([]byte, f.Format().FrameSize())
		info := lab.FrameInfo{Seq: uint64(i), Time: at(i)}
		if i == 0 {
			info.Changed = []image.Rectangle{f.Format().Bounds()}
		} else {
			copy(pix, f.pix[i-1])
		}
		if first {
			info.Changed = append(info.Changed, box)
			for y := box.Min.Y; y < box.Max.Y; y++ {
				for x := box.Min.X; x < box.Max.X; x++ {
					for k := range 3 {
						pix[4*(40*y+x)+k] = colour
					}
				}
			}
		}
		f.pix, f.infos = append(f.pix, pix), append(f.infos, info)
	}
}

func input(i int) lab.Event {
	return lab.Event{Name: "click", Earliest: at(i) + 1, Latest: at(i) + 2}
}

// journeyOf is a film of two steps: a button is pressed (feedback), lets go, and leads to content;
// then a box appears, and a caret blinks for ever.
func journeyOf() (*film, *lab.Trial) {
	button, content, box, caret := image.Rect(0, 0, 10, 10), image.Rect(10, 10, 40, 30), image.Rect(0, 20, 8, 30), image.Rect(38, 0, 40, 4)
	f := &film{}
	f.paint(10, 10, button)
	f.paint(12, 90, button) // pressed
	f.paint(20, 10, button)
	f.paint(100, 200, content)
	f.paint(110, 50, box)
	for i := range 10 {
		f.paint(120+10*i, byte(100*(i%2)), caret)
	}
	return f, &lab.Trial{Steps: []*lab.TrialStep{
		{Name: "press", Level: "objective", Verb: "click", Place: "steps[0]", First: input(10), Input: input(10), Expect: "changed and still 500ms", End: "x"},
		{Name: "box", Level: "objective", Verb: "click", Place: "steps[1]", First: input(100), Input: input(100), Expect: "still 500ms", Mask: []string{"38,0,2,4"}, End: "x"},
	}}
}

func TestMeasure(t *testing.T) {
	f, trial := journeyOf()
	if err := Measure(f, f.Format().Bounds(), trial, nil, nil); err != nil {
		t.Fatal(err)
	}
	near := func(metric string, frames float64) {
		t.Helper()
		if got := lab.Values(trial.Measurements)[metric]; math.Abs(got-1e3*frames/60) > 0.01 {
			t.Errorf("%s = %.2f ms; want %.2f", metric, got, 1e3*frames/60)
		}
	}
	near("press/first_feedback_ms", 1)
	near("press/first_lasting_change_ms", 11)
	near("press/time_to_end_ms", 11)
	near("box/first_feedback_ms", 1)
	near("box/time_to_end_ms", 1)
	near("journey_ms", 12)
	press, box := trial.Steps[0], trial.Steps[1]
	if len(press.Invalid)+len(box.Invalid) > 0 || press.FinalFrame == box.FinalFrame {
		t.Errorf("invalid %q %q, pictures %.8s %.8s; want valid steps with different pictures", press.Invalid, box.Invalid, press.FinalFrame, box.FinalFrame)
	}

	// The same recording by other ends: without its mask the second step has none.
	steps := []lab.Step{{Name: "press", Click: "1,1", End: "changed"}, {Name: "box", Click: "1,1", End: "still 500ms"}}
	changed, err := Rescore(trial, steps, "")
	if err != nil || !slices.Equal(changed, []string{"press", "box"}) {
		t.Errorf("Rescore() = %q, %v; want both steps", changed, err)
	}
	if err := Measure(f, f.Format().Bounds(), trial, nil, nil); err != nil {
		t.Fatal(err)
	}
	near("press/time_to_end_ms", 1)
	if reasons := strings.Join(box.Invalid, ""); !strings.Contains(reasons, "not still for 500ms") || !strings.Contains(reasons, `mask: ["32,0,8,8"]`) {
		t.Errorf("the second step without its mask is invalid because %q; want the caret, and its mask", reasons)
	}
	if _, err := Rescore(trial, steps[:1], ""); err == nil || !strings.Contains(err.Error(), `step "box"`) {
		t.Errorf("Rescore() by a plan without the second step: %v", err)
	}
}
