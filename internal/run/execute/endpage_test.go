package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"eidetic/analysis/visual"
	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/capture/video"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/run/experiment"
)

// shop is a fake device with screen, network and keyboard: it shows green until Return is
// pressed, then a page that loads in two steps, then red.
type shop struct {
	pressed atomic.Bool
	after   int // frames since the key
	frames  uint64
	ticker  *time.Ticker
}

func (s *shop) Format() lab.Format {
	return lab.Format{Pixels: lab.BGRX, Width: 64, Height: 48, Rate: 60}
}

// picture draws the screen n frames after the key.
func (s *shop) picture(n int) []byte {
	pix := make([]byte, 0, s.Format().FrameSize())
	for i := range s.Format().Width * s.Format().Height {
		c := color.RGBA{255, 255, 255, 255}
		switch top := i < 1000; {
		case n < 6:
			c = lab.SyncGreen()
		case n >= pageAt+30:
			c = lab.SyncRed()
		case n >= pageAt && !top:
			c = color.RGBA{200, 30, 90, 255}
		case n >= 12 && top:
			c = color.RGBA{40, 60, 80, 255}
		}
		pix = append(pix, c.B, c.G, c.R, 0)
	}
	return pix
}

// pageAt is the frame after the key at which the page is complete.
const pageAt = 20

func (s *shop) Next(ctx context.Context) (lab.Frame, error) {
	if s.ticker == nil {
		s.ticker = time.NewTicker(time.Second / 60)
	}
	select {
	case <-ctx.Done():
		return lab.Frame{}, ctx.Err()
	case <-s.ticker.C:
	}
	f := lab.Frame{Pix: s.picture(s.after)}
	f.Seq, f.Time, f.Changed = s.frames, lab.Monotonic(), []image.Rectangle{s.Format().Bounds()}
	s.frames++
	if s.pressed.Load() {
		s.after++
	}
	return f, nil
}

func (s *shop) Close() error {
	if s.ticker != nil {
		s.ticker.Stop()
	}
	return nil
}

func (s *shop) Arm(context.Context) (experiment.Session, error)        { return s, nil }
func (s *shop) Traffic() experiment.Traffic                            { return experiment.Traffic{InFlight: 1} }
func (s *shop) Disarm() ([]lab.Served, error)                          { return nil, nil }
func (s *shop) Birth(context.Context, string) (experiment.Life, error) { return s, nil }
func (s *shop) Done() <-chan struct{}                                  { return nil }
func (s *shop) Err() error                                             { return nil }
func (s *shop) Stop() error                                            { return nil }
func (s *shop) Watch() func() *lab.Machine                             { return func() *lab.Machine { return nil } }
func (s *shop) Wall() time.Time                                        { return time.Now() }
func (s *shop) Awake() func()                                          { return func() {} }
func (s *shop) Key(context.Context, string) (e lab.Event, err error) {
	e.Earliest = clock()
	s.pressed.Store(true)
	e.Latest = clock()
	return e, nil
}

// TestTrialThatEndsRed: the red page ends the load but is not its final frame. Every number
// of the trial is based on the page before it, and the load counts as complete.
func TestTrialThatEndsRed(t *testing.T) {
	s := &shop{}
	dir := t.TempDir()
	r := &experiment.Runner{
		Network: s, Device: s, Control: s, Analyst: measurer{}, Host: s, Clock: clock,
		Screen: Screen{Name: "pretended", Open: func(context.Context) (capture.Source, error) { return s, nil }},
	}
	trial, err := r.Trial(t.Context(), experiment.DefaultPlan("https://www.shop.test/", "http://box.test/sync", 1), 1, dir)
	if err != nil {
		t.Fatal(err)
	}
	if trial.Ended != lab.EndRed || !loaded(trial) {
		t.Fatalf(
			"the trial ended by %q, loaded: %v, invalid because %q; want %q, true",
			trial.Ended,
			loaded(trial),
			trial.Invalid,
			lab.EndRed,
		)
	}
	sum := sha256.Sum256(s.picture(pageAt))
	if want := hex.EncodeToString(sum[:]); trial.FinalFrame != want {
		t.Errorf("the final frame has the SHA-256 %.12s, that of the page is %.12s", trial.FinalFrame, want)
	}
	n := len(trial.LoadHistogram)
	if n == 0 || trial.LoadHistogram[n-1] != 100 || trial.VisualProgress[n-1] != 100 {
		t.Fatalf("the load histogram is %v, the progress %v; want both to end at 100", trial.LoadHistogram, trial.VisualProgress)
	}
	// The page is shown for half a second before the red page.
	last, ok := trial.Value(metric.LastChange.String())
	if end := trial.FrameTimes[n-1]; !ok || end <= last {
		t.Errorf("the last change is at %v ms (%v), the last frame that was measured at %v ms: want it to be the page's", last, ok, end)
	}
	if steps := slices.Compact(slices.Clone(trial.LoadHistogram)); len(steps) != 3 {
		t.Errorf("the load histogram has the levels %v; want those of nothing, of the page's top, and of the whole page", steps)
	}
}

// TestStripEndsWithThePage: the red page is not among the pictures for people.
func TestStripEndsWithThePage(t *testing.T) {
	s, dir := &shop{}, t.TempDir()
	w, err := reel.Create(filepath.Join(dir, experiment.ReelFile), reel.Header{Format: s.Format()})
	if err != nil {
		t.Fatal(err)
	}
	for n := range pageAt + 60 {
		f := lab.Frame{Pix: s.picture(n)}
		f.Seq, f.Time, f.Changed = uint64(n), lab.Time(n)*lab.Time(time.Second/60), []image.Rectangle{s.Format().Bounds()}
		if err := w.WriteFrame(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	trial := &lab.Trial{}
	at := lab.Time(5) * lab.Time(time.Second/60)
	r, o, err := open(dir, lab.Event{Earliest: at, Latest: at})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	result, err := visual.Analyze(r, o)
	if err != nil {
		t.Fatal(err)
	}
	describe(trial, result)
	if err := writeStrip(t.Context(), dir, trial, result.End-1, result.Content, stripStep(metric.LastChange.In(trial))); err != nil {
		t.Fatal(err)
	}
	var pictures []video.Thumb
	content, err := os.ReadFile(filepath.Join(dir, stripFile))
	if err == nil {
		err = json.Unmarshal(content, &pictures)
	}
	if n := len(pictures); err != nil || n < 5 || pictures[n-1].Frame < pageAt || pictures[n-1].Frame >= pageAt+30 {
		t.Errorf("the strip has the pictures %+v, %v; want five or more, the last of the frames %d … %d", pictures, err, pageAt, pageAt+29)
	}
}

// TestLoaded: a recording is good if the page came to an end of its own.
func TestLoaded(t *testing.T) {
	for end, want := range map[lab.End]bool{lab.EndStable: true, lab.EndDone: true, lab.EndRed: true, lab.EndLimit: false, "": false} {
		if got := loaded(&lab.Trial{Ended: end}); got != want {
			t.Errorf("loaded() of a trial that ended by %q = %v, want %v", end, got, want)
		}
	}
}
