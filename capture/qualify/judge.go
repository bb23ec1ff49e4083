package qualify

import (
	"bytes"
	"fmt"
	"image"
	"slices"
	"sync"
	"time"

	"eidetic/capture"
	"eidetic/capture/mjpeg"
	"eidetic/capture/synthetic"
	"eidetic/capture/video"
	"eidetic/internal/lab"
)

// Judge is a capture.Sink that looks for the numbers that were shown. Whoever shows
// them calls Shown; the recorder calls WriteFrame.
type Judge struct {
	format lab.Format // of the frames; for MJPEG of what is decoded from them

	mu     sync.Mutex
	shown  []showing           // numbers from 0, in order
	seen   map[uint32]sighting // all that can be read in the frames
	torn   int
	twice  int // numbers that came back after a later one
	last   uint32
	begun  bool
	events []lab.SourceEvent
	sample *Sample // nil before a whole frame was seen

	compare comparer
}

// Sample is a frame as it arrived, to be looked at.
type Sample struct {
	Number uint32 // that it shows
	Format lab.Format
	Pix    []byte
}

// Image is the frame as people see it.
func (s *Sample) Image() (image.Image, error) {
	if s.Format.Pixels == lab.MJPEG {
		return mjpeg.Picture(s.Pix, s.Format)
	}
	img := image.NewRGBA(s.Format.Bounds())
	return img, video.ToRGBA(img, s.Format, s.Pix, img.Rect)
}

// Shown is the picture that was on the screen then.
func (s *Sample) Shown() (image.Image, error) {
	f := lab.Format{Pixels: lab.BGRX, Width: s.Format.Width, Height: s.Format.Height, Rate: s.Format.Rate}
	return (&Sample{Format: f, Pix: Picture(f.Width, f.Height, s.Number)}).Image()
}

// showing is when a number appeared on the screen.
type showing struct{ earliest, latest lab.Time }

// sighting is the first frame with a number, and how many there were.
type sighting struct {
	time        lab.Time
	uncertainty time.Duration
	frames      int
}

var _ capture.Sink = (*Judge)(nil)

// NewJudge judges frames of a format.
func NewJudge(f lab.Format) (*Judge, error) {
	if f.Width < MinWidth || f.Height < MinHeight {
		return nil, fmt.Errorf("frames of %d × %d are too small for the picture: %d × %d are needed", f.Width, f.Height, MinWidth,
			MinHeight)
	}
	c := comparer{format: f, shown: Picture(f.Width, f.Height, 0)}
	if f.Pixels == lab.MJPEG {
		f.Pixels = lab.Grey
	}
	return &Judge{format: f, seen: map[uint32]sighting{}, compare: c}, nil
}

// Loses notes what the source says of what it loses.
func (j *Judge) Loses(words string) { j.compare.loses = words }

// Shown says that the next number appeared on the screen within an interval.
func (j *Judge) Shown(earliest, latest lab.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.shown = append(j.shown, showing{earliest, latest})
}

// Seen says whether a number has arrived.
func (j *Judge) Seen(n uint32) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.seen[n]
	return ok
}

// compareEvery is how many new numbers pass between two comparisons of all pixels.
const compareEvery = 8

// WriteFrame reads the frame's number.
func (j *Judge) WriteFrame(f lab.Frame) error {
	pix := f.Pix
	if j.compare.format.Pixels == lab.MJPEG {
		var err error
		if pix, err = decode(f.Pix, j.format); err != nil {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.compare.came++
			j.torn++
			return nil // a damaged frame is a finding, not an end
		}
	}
	n, ok := synthetic.ReadCounter(j.format, pix)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.compare.came++
	if ok {
		j.compare.read++
	}
	// Frames from before the first number are not judged.
	if !j.begun && (!ok || n != 0) {
		return nil
	}
	if !ok {
		j.torn++
		return nil
	}
	s, again := j.seen[n]
	if !again {
		s.time, s.uncertainty = f.Time, f.Uncertainty
	}
	s.frames++
	j.seen[n] = s
	if j.begun && n < j.last {
		j.twice++
	}
	fresh := !j.begun || n != j.last
	if j.sample == nil && !fresh && n > 0 { // the second frame with a number has all of it
		j.sample = &Sample{n, j.compare.format, bytes.Clone(f.Pix)}
	}
	j.begun, j.last = true, n
	// The first was perhaps seen before the whole picture was drawn.
	if fresh && n > 0 && n%compareEvery == 0 {
		j.compare.add(pix)
	}
	return nil
}

// WriteGap does nothing: the recorder's Stats count gaps.
func (j *Judge) WriteGap(lab.Gap) error { return nil }

// WriteEvent keeps what happened to the grabber.
func (j *Judge) WriteEvent(e lab.SourceEvent) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
	return nil
}

// Report says how well a grabber delivers what is on the screen.
type Report struct {
	Good     bool     `json:"good"`
	Problems []string `json:"problems,omitempty"` // why not

	Noise lab.ScreenNoise `json:"noise"` // of the picture while it stood still

	Shown   int `json:"shown"`   // numbers on the screen
	Missing int `json:"missing"` // of them never seen
	Torn    int `json:"torn"`    // frames that hold parts of two pictures, or a damaged one
	Back    int `json:"back"`    // frames that showed an older number than the one before
	// Frames that showed one number: how many there were of the fewest and of
	// the most, and how many the rates let expect.
	FewestFrames   int     `json:"frames_per_number_min"`
	MostFrames     int     `json:"frames_per_number_max"`
	ExpectedFrames float64 `json:"frames_per_number_expected"`

	// From the picture's appearance on the screen to the time of the first
	// frame that shows it. Each latency is known to within the sum of both
	// uncertainties; Bound is the median of that.
	LatencyMin    float64 `json:"latency_min_ms"`
	LatencyMedian float64 `json:"latency_p50_ms"`
	LatencyMax    float64 `json:"latency_max_ms"`
	LatencyBound  float64 `json:"latency_uncertainty_ms"`

	Fidelity Fidelity          `json:"fidelity"`
	Capture  capture.Stats     `json:"capture"`
	Events   []lab.SourceEvent `json:"events,omitempty"`

	Sample *Sample `json:"-"` // nil if no whole frame was seen twice
}

// Verdict says in a few words whether the grabber is good.
func (r Report) Verdict() string {
	if r.Good {
		return "good: nothing lost, nothing altered"
	}
	return "not good enough: " + r.Problems[0]
}

// Line is one thing that a report says.
type Line struct{ Name, Text string }

// Lines is the report in words.
func (r Report) Lines() (lines []Line) {
	say := func(name, format string, args ...any) {
		lines = append(lines, Line{name, fmt.Sprintf(format, args...)})
	}
	say("pictures", "%d shown, %d never arrived, %d frames torn or damaged, %d older than the one before", r.Shown, r.Missing, r.Torn, r.Back)
	say("frames", "%d in %.1f s, %d lost, %d damaged; %d to %d a picture, %.1f expected",
		r.Capture.Frames, r.Capture.Elapsed, r.Capture.Lost, r.Capture.Corrupt, r.FewestFrames, r.MostFrames, r.ExpectedFrames)
	if n := r.Capture.MissedProven + r.Capture.MissedDrawn; n > 0 {
		say("looks", "%d missed, %d of them with something drawn; changes are known to within %.1f ms", n, r.Capture.MissedDrawn,
			r.Capture.WorstBound)
	}
	say("rate", "%.3f/s measured; interval p50 %.2f, p99 %.2f, longest %.2f ms; jitter %.2f ms; %d irregular timestamps",
		r.Capture.Rate, r.Capture.IntervalP50, r.Capture.IntervalP99, r.Capture.IntervalMax, r.Capture.Jitter, r.Capture.Irregular)
	say("latency", "%.1f ms median, %.1f to %.1f, each known to within ± %.1f", r.LatencyMedian, r.LatencyMin, r.LatencyMax, r.LatencyBound/2)
	say("pixels", "%s (%.3f %% differ, by up to %d levels; %d frames compared)", r.Fidelity.Words, r.Fidelity.Different, r.Fidelity.Worst,
		r.Fidelity.Compared)
	say("noise", "%s; seen for certain is a change %s", r.Noise.Floor(), r.Noise.Sees())
	for _, e := range r.Events {
		say("event", "%v", e)
	}
	if r.Good {
		say("verdict", "%s", r.Verdict())
	}
	for _, p := range r.Problems {
		say("problem", "%s", p)
	}
	return lines
}

// Report sums up. Rates are in pictures per second: shown ones and the grabber's.
func (j *Judge) Report(st capture.Stats, showRate float64) Report {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := Report{
		Shown: len(j.shown), Torn: j.torn, Back: j.twice, Fidelity: j.compare.fidelity(), Capture: st, Events: j.events,
		Sample: j.sample,
	}
	r.ExpectedFrames = st.Rate / showRate
	var latency, bounds []float64
	for n, at := range j.shown {
		s, ok := j.seen[uint32(n)]
		if !ok {
			r.Missing++
			continue
		}
		if n == 0 {
			continue // it was there before the film began
		}
		if n < len(j.shown)-1 { // the last may have been cut off
			if r.FewestFrames == 0 || s.frames < r.FewestFrames {
				r.FewestFrames = s.frames
			}
			r.MostFrames = max(r.MostFrames, s.frames)
		}
		// A picture had appeared on the screen before the frame that shows it was taken.
		most := s.time.Sub(at.earliest)
		least := max(0, s.time.Sub(at.latest)-s.uncertainty)
		latency = append(latency, ((most+least)/2).Seconds()*1e3)
		bounds = append(bounds, (most-least).Seconds()*1e3)
	}
	if len(latency) > 0 {
		slices.Sort(latency)
		slices.Sort(bounds)
		r.LatencyMin, r.LatencyMedian, r.LatencyMax = latency[0], latency[len(latency)/2], latency[len(latency)-1]
		r.LatencyBound = bounds[len(bounds)/2]
	}
	r.judge()
	return r
}

// judge lists what is wrong.
func (r *Report) judge() {
	problem := func(bad bool, format string, args ...any) {
		if bad {
			r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
		}
	}
	if r.Missing >= r.Shown-1 {
		r.Problems = []string{"no number was seen: does the grabber see this screen, in its full size?"}
		return
	}
	problem(r.Missing > 0, "%d of %d pictures never arrived", r.Missing, r.Shown)
	problem(r.Torn > 0, "%d frames hold parts of two pictures or are damaged", r.Torn)
	problem(r.Back > 0, "%d frames show an older picture than the frame before", r.Back)
	problem(r.Capture.Lost > 0, "%d frames were lost: %v", r.Capture.Lost, r.Capture.Reasons)
	problem(r.Capture.Corrupt > 0, "%d buffers were damaged, %d of them short", r.Capture.Corrupt, r.Capture.Short)
	problem(r.Capture.Irregular > 0, "%d frames have a time that does not fit their number", r.Capture.Irregular)
	problem(!r.Fidelity.Lossless, "%s", r.Fidelity.Words)
	r.Good = len(r.Problems) == 0
}
