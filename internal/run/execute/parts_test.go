package execute

import (
	"context"
	"errors"
	"image"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/capture"
	"eidetic/capture/source"
	"eidetic/control"
	"eidetic/control/connect"
	"eidetic/control/recipe"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
	"eidetic/netlab"
)

// recorded is a controller that notes what it is given.
type recorded struct{ fakeKeys }

func (r *recorded) Click(_ context.Context, x, y int, _ control.Button) (lab.Event, error) {
	r.did = append(r.did, "click "+image.Pt(x, y).String())
	return lab.Event{}, nil
}

func (r *recorded) Close() error { return nil }

// Points of the film are mapped to the device's screen, which may be larger.
func TestOnFilm(t *testing.T) {
	inner := &recorded{} // of 800 × 600
	k := &keys{limit: time.Minute, open: func(context.Context) (screenControl, error) { return inner, nil }}
	film := image.Point{}
	hands := onFilm{k, func() image.Point { return film }}
	click := func(x, y int) {
		t.Helper()
		if _, err := hands.Click(t.Context(), x, y, control.Left); err != nil {
			t.Fatal(err)
		}
	}
	click(10, 20) // nothing was filmed yet
	film = image.Pt(400, 300)
	click(0, 0)
	click(399, 299)
	if want := []string{"click (10,20)", "click (1,1)", "click (799,599)"}; !slices.Equal(inner.did, want) {
		t.Errorf("the device got %q; want %q", inner.did, want)
	}
	if _, err := hands.Press(t.Context(), 1, 1, control.Left); !errors.Is(err, errCannotHold) {
		t.Errorf("Press() = %v; want %v", err, errCannotHold)
	}
}

// Each trial gets a window of its own that remembers nothing, and the one before is closed.
func TestByRecipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		found, err := recipe.Find("windows-chrome")
		if err != nil {
			t.Fatal(err)
		}
		s, k, r := NewStartPage(http.NotFoundHandler()), &recorded{}, &byRecipe{recipe: found}
		k.onKey = func() {
			if k.did[len(k.did)-1] == "key Enter" {
				get(s, "/start")
			}
		}
		for range 2 {
			if _, err := (pluggedBirths{s, r, k, nil, nil}).Birth(t.Context(), netlab.SyncURL("https://x.test/")); err != nil {
				t.Fatal(err)
			}
		}
		once := []string{"key Ctrl+Shift+N", "key Ctrl+L", "text " + StartURL, "key Enter", "key F11", "move (798,598)", "move (799,599)"}
		if want := slices.Concat(once, []string{"key Ctrl+Shift+W"}, once); !slices.Equal(k.did, want) {
			t.Errorf("the device got %q; want %q", k.did, want)
		}
	})
}

// A part that is unplugged is waited for; its absence ends one trial, and a wrong option the run.
func TestPatiently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("it is unplugged")
		tries := 0
		open := func(context.Context) (int, error) {
			if tries++; tries < 5 {
				return 0, gone
			}
			return 7, nil
		}
		if got, err := patiently(t.Context(), time.Minute, open); got != 7 || err != nil {
			t.Errorf("patiently() = %d, %v; want 7, nil", got, err)
		}
		tries = -1000
		if _, err := patiently(t.Context(), time.Minute, open); !errors.Is(err, gone) || !experiment.IsBroken(err) {
			t.Errorf("patiently() of what never comes = %v; want a broken trial because %v", err, gone)
		}
		wrong := func(context.Context) (int, error) { return 0, &connect.OptionError{Err: gone} }
		if _, err := patiently(t.Context(), time.Minute, wrong); err == nil || experiment.IsBroken(err) {
			t.Errorf("patiently() with a wrong option = %v; want an error that ends the run", err)
		}
	})
}

// A browser that leaves a part of the screen to its own bars is filmed too, and what the screen
// was filmed by is kept with the trial.
func TestFilmOfAPart(t *testing.T) {
	f := lab.Format{Pixels: lab.BGRX, Width: 160, Height: 120, Rate: 60}
	pix := make([]byte, f.FrameSize())
	for y := 20; y < 120; y++ {
		for x := range 160 {
			pix[4*(160*y+x)+1] = 255 // green below the bar
		}
	}
	part := &partScreen{name: "v4l2:/dev/video7", latency: []float64{5, 9}}
	screen := Screen{Name: part.name, Part: part, Open: func(context.Context) (capture.Source, error) {
		return &source.Late{Source: &stills{format: f, pix: pix}, Least: 5 * time.Millisecond, Most: 9 * time.Millisecond}, nil
	}}
	film, err := screen.Film(t.Context(), filepath.Join(t.TempDir(), "x.reel"))
	if err != nil {
		t.Fatal(err)
	}
	for film.Status().Frames == 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("nothing was filmed")
		case <-time.After(time.Millisecond):
		}
	}
	if !film.Shows(lab.SyncGreen()) || film.Shows(lab.SyncRed()) {
		t.Error("the green page below a browser's bar is not seen as the green page")
	}
	status, err := film.Stop()
	if err != nil {
		t.Fatal(err)
	}
	s := status.Capture.Source
	if s == nil || s.Name != "v4l2:/dev/video7" || s.Width != 160 || s.Pixels != lab.BGRX || !slices.Equal(s.Latency, []float64{5, 9}) {
		t.Errorf("the trial keeps %+v of its source", s)
	}
	if got := part.describe(); !strings.Contains(got, "v4l2:/dev/video7, 160×120 BGRX at 60 Hz") || !strings.Contains(got, "5 … 9 ms of latency") {
		t.Errorf("describe() = %q", got)
	}
}

// stills delivers one picture again and again.
type stills struct {
	format lab.Format
	pix    []byte
	seq    uint64
}

func (s *stills) Format() lab.Format { return s.format }
func (s *stills) Close() error       { return nil }

func (s *stills) Next(ctx context.Context) (lab.Frame, error) {
	select {
	case <-ctx.Done():
		return lab.Frame{}, ctx.Err()
	case <-time.After(time.Second / 60):
	}
	s.seq++
	return lab.Frame{FrameInfo: lab.FrameInfo{Seq: s.seq, Time: clock(), Changed: []image.Rectangle{s.format.Bounds()}}, Pix: s.pix}, nil
}
