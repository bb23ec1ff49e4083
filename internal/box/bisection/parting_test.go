package bisection

import (
	"image"
	"strings"
	"testing"
	"time"

	"eidetic/analysis/filmtest"
	"eidetic/internal/lab"
)

// film is a recording of 60 Hz, of which shots says the states that are shown one after the other. A border of
// one pixel around the content area changes with every frame, as a clock beside the page would.
func film(run string, number int, shots ...int) Film {
	const side = 16
	frame := 0
	scene := func(pix []byte, n int) {
		frame++
		filmtest.Fill(pix, side, image.Rect(0, 0, side, side), uint8(frame), 0, 0)
		filmtest.Fill(pix, side, image.Rect(1, 1, side-1, side-1), 0, uint8(10*n), 200)
	}
	f := filmtest.New(side, side, 60, scene, filmtest.States(shots...))
	return Film{Run: run, Frames: f, Trial: &lab.Trial{
		Number: number, StartFrame: 0, StartTime: filmtest.Started, ContentX: 1, ContentY: 1, ContentW: side - 2, ContentH: side - 2,
	}}
}

// at is a film of states, each from its frame on.
func at(run string, number int, from ...int) Film {
	var shots []int
	for state, first := range from {
		for len(shots) < first {
			shots = append(shots, state-1)
		}
	}
	return film(run, number, append(shots, len(from)-1)...)
}

func TestPart(t *testing.T) {
	// State 1 comes with both at the same time, state 2 three frames later with the treatment, and state 3 so too.
	control := []Film{at("a", 1, 0, 6, 12, 18), at("a", 3, 0, 6, 12, 18), at("a", 5, 0, 6, 13, 19)}
	treatment := []Film{at("a", 2, 0, 6, 15, 21), at("a", 4, 0, 6, 15, 21), at("a", 6, 0, 7, 16, 22)}
	p, err := Part(control, treatment, 50)
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	frames := func(n float64) float64 { return n * 1000 / 60 }
	if near(p.Control, frames(12)) && near(p.Treatment, frames(15)) && p.Shown[0].Frame == 12 && p.Shown[1].Frame == 15 &&
		p.Shown[0].Trial == 1 && p.Shown[1].Trial == 2 && strings.Contains(p.Text, "after 200 ms before the change and after 250 ms with it") {
		return
	}
	t.Errorf("%+v; want the second picture, in frames 12 and 15 of trials 1 and 2", *p)
}

func near(a, b float64) bool { return a-b < 0.01 && b-a < 0.01 }

func TestPartFindsNothing(t *testing.T) {
	one, late := at("a", 1, 0, 6, 12), at("a", 2, 0, 6, 15)
	for name, c := range map[string]struct {
		control, treatment []Film
		size               float64
	}{
		"equal recordings":              {[]Film{one}, []Film{at("a", 2, 0, 6, 12)}, 50},
		"the other way round":           {[]Film{one}, []Film{late}, -50},
		"less than half of the step":    {[]Film{one}, []Film{late}, 150},
		"a picture that one arm lacks":  {[]Film{one}, []Film{film("a", 2, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 9, 9, 9)}, 50},
		"a picture that few trials had": {[]Film{one, at("a", 3, 0, 6), at("a", 5, 0, 6)}, []Film{late}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := Part(c.control, c.treatment, c.size); p != nil || err != nil {
				t.Errorf("parted at %+v, %v", p, err)
			}
		})
	}
}

func TestPartNamesWhatIsDamaged(t *testing.T) {
	good := at("a", 1, 0, 6)
	outside, unreadable := at("a", 2, 0, 6), at("a", 4, 0, 6)
	outside.Trial.ContentW = 99
	unreadable.Frames.(*filmtest.Film).Fail = 6
	for words, bad := range map[string]Film{"trial 2: its content area": outside, "trial 4, frame 6": unreadable} {
		if p, err := Part([]Film{good}, []Film{bad}, 50); err == nil || p != nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%+v, %v; want an error with %q", p, err, words)
		}
	}
}

// Pictures that hardly any two trials share are no way to tell: visual progress is.
func TestPartByProgress(t *testing.T) {
	noisy := func(number, late int) Film {
		f := at("a", number, 0, 6+late, 12+late)
		f.Frames.(*filmtest.Film).Over(func(pix []byte, frame int) {
			filmtest.Fill(pix, 16, image.Rect(3, 3, 5, 5), uint8(number), uint8(frame), 0)
		})
		for i := range f.Frames.Len() {
			progress := 0.0
			if i >= 6 { // the first change comes with both at the same time
				progress = 8
			}
			if i >= 12+late {
				progress = 100
			}
			f.Trial.FrameTimes = append(f.Trial.FrameTimes, float64(i)*1000/60)
			f.Trial.VisualProgress = append(f.Trial.VisualProgress, progress)
		}
		return f
	}
	p, err := Part([]Film{noisy(1, 0), noisy(3, 0)}, []Film{noisy(2, 3), noisy(4, 3)}, 50)
	if err != nil || p == nil || p.Picture != "" || p.Complete != 10 || p.Shown[0].Frame != 12 || p.Shown[1].Frame != 15 {
		t.Fatalf("%+v, %v; want them to part at 10 %%, in frames 12 and 15", p, err)
	}
	if p, err := Part([]Film{noisy(1, 0)}, []Film{noisy(2, 0)}, 50); p != nil || err != nil {
		t.Errorf("equal but for noise: %+v, %v", p, err)
	}
}

// A recording that was cut before its trial began has no picture.
func TestPartOfAnEmptyFilm(t *testing.T) {
	short := at("a", 2, 0)
	short.Trial.StartFrame, short.Trial.StartTime = 1<<30, lab.Time(time.Hour)
	if p, err := Part([]Film{at("a", 1, 0, 6)}, []Film{short}, 50); p != nil || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
}
