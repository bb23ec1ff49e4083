package experiment

import (
	"testing"
	"time"

	"eidetic/internal/lab"
)

// A change with an uncertain time between the start and the last change blurs a trial, by
// the excess of its uncertainty over the usual one.
func TestCaptureBlur(t *testing.T) {
	const ms = lab.Time(time.Millisecond)
	for _, c := range []struct {
		name string
		from lab.Time
		took lab.Time
		want float64 // ms
	}{
		{"as usual", 2000 * ms, 25 * ms, 0},
		{"one look missed", 2000 * ms, 35 * ms, 9.667},
		{"two looks missed", 2000 * ms, 51 * ms, 25.667},
		{"before the start", 900 * ms, 80 * ms, 0},
		{"over the start", 960 * ms, 80 * ms, 54.667},
		{"after the last change", 5001 * ms, 80 * ms, 0},
	} {
		film := FilmStatus{
			Period: time.Second / 60, Normal: 17 * time.Millisecond, LastChange: 5000 * ms,
			Unseen: []lab.Unseen{{From: c.from, To: c.from + c.took, Missed: int(c.took / (17 * ms))}},
		}
		if got := blurOf(&lab.Trial{}, facts{film: film}, 1000*ms).Capture; got != c.want {
			t.Errorf("%s: blurOf().Capture = %v, want %v", c.name, got, c.want)
		}
	}
}

// Lost frames of a grabber blur a trial by the gap that they leave.
func TestLossBlur(t *testing.T) {
	const ms = lab.Time(time.Millisecond)
	times := []float64{-16.7, 0, 16.7, 33.3, 100, 116.7, 1000, 1016.7}
	film := FilmStatus{Period: time.Second / 60, Normal: 17 * time.Millisecond, LastChange: 1000*ms + lab.Time(116700*time.Microsecond)}
	// So do those that a stick has left out without a gap in its numbers, which only their times tell.
	for _, c := range []struct {
		lost, irregular int
		want            float64
	}{{0, 0, 0}, {3, 0, 41.7}, {0, 1, 41.7}} {
		trial := &lab.Trial{StartTime: 1000 * ms, FrameTimes: times, FramesLost: c.lost, Capture: &lab.CaptureState{Irregular: c.irregular}}
		if got := blurOf(trial, facts{film: film}, 1000*ms).Capture; got != c.want {
			t.Errorf("%d frames lost, %d irregular: blurOf().Capture = %v, want %v", c.lost, c.irregular, got, c.want)
		}
	}
}
