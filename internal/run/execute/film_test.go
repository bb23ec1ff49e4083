package execute

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/capture/rfb"
	"eidetic/internal/base/rfb/rfbtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// A VNC server that falls silent is reported as an interruption within the source's patience,
// so the watchdog does not restart the service for the rest of the film.
func TestFilmOfASilentScreen(t *testing.T) {
	// Longer than a machine may stall: the whole screen must arrive within it.
	const patience = 3 * time.Second
	server := rfbtest.New(t, rfbtest.Config{})
	news := make(chan FilmNews, 100)
	screen := watched{
		Screen: Screen{Name: "rfb:" + server.Addr(), Open: func(ctx context.Context) (capture.Source, error) {
			return rfb.Open(ctx, rfb.Options{Address: server.Addr(), Patience: patience})
		}},
		tell: func(n FilmNews) { news <- n },
	}
	film, err := screen.Film(t.Context(), filepath.Join(t.TempDir(), "x.reel"))
	if err != nil {
		t.Fatal(err)
	}
	await := func(want FilmNews) {
		t.Helper()
		select {
		case got := <-news:
			if got != want {
				t.Fatalf("the watchdog heard %q, want %q", got, want)
			}
		case <-time.After(testlab.Hang):
			t.Fatalf("the watchdog did not hear %q", want)
		}
	}
	await(FilmBegins)
	await(FilmTurns)
	server.Silence(true)
	defer server.Silence(false)
	for frames := -1; ; { // until the interruption is reported, and no more frames arrive
		await(FilmTurns)
		s := film.Status()
		if s.Interruptions > 0 && s.Frames == frames {
			break
		}
		frames = s.Frames
	}
	await(FilmTurns)
	if _, err := film.Stop(); err == nil {
		t.Error("Stop() of an interrupted film returned no error")
	}
	for len(news) > 1 { // a sign of life may precede the end
		<-news
	}
	await(FilmEnds)
}

// A film is shown while somebody wants to see it, and only then.
func TestLiveScreen(t *testing.T) {
	server := rfbtest.New(t, rfbtest.Config{})
	folder := t.TempDir()
	screen := liveScreen{Screen{Name: "rfb:" + server.Addr(), Open: func(ctx context.Context) (capture.Source, error) {
		return rfb.Open(ctx, rfb.Options{Address: server.Addr(), Patience: testlab.Hang})
	}}, folder}
	film, err := screen.Film(t.Context(), filepath.Join(t.TempDir(), "x.reel"))
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); film.Status().Frames == 0 || time.Since(began) < 2*livePeriod; {
		<-tick.C
	}
	picture := filepath.Join(folder, LivePicture)
	if _, err := os.Stat(picture); err == nil {
		t.Error("a picture was made that nobody had asked for")
	}
	for deadline := time.Now().Add(testlab.Hang); ; <-tick.C {
		if err := os.WriteFile(filepath.Join(folder, LiveWanted), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(picture); err == nil {
			if _, err := png.Decode(bytes.NewReader(b)); err != nil {
				t.Error(err)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was shown")
		}
	}
	if _, err := film.Stop(); err != nil {
		t.Error(err)
	}
}

// slowing is a grabber whose pictures come at half the rate from the 41st on.
type slowing struct{ n, at lab.Time }

func (*slowing) Format() lab.Format {
	return lab.Format{Pixels: lab.Grey, Width: 8, Height: 8, Rate: 60}
}
func (*slowing) Close() error { return nil }
func (s *slowing) Next(context.Context) (lab.Frame, error) {
	const period = lab.Time(time.Second) / 60
	f := lab.Frame{Pix: make([]byte, 64)}
	f.Seq, f.Time, f.Changed = uint64(s.n), s.at, []image.Rectangle{s.Format().Bounds()}
	if s.n++; s.n <= 40 {
		s.at += period
	} else {
		s.at += 2 * period
	}
	return f, nil
}

// A rate that changes ends the film, and so the trial, which is told why.
func TestFilmOfAChangingRate(t *testing.T) {
	screen := Screen{Name: "v4l2:/dev/video0", Open: func(context.Context) (capture.Source, error) { return &slowing{}, nil }}
	film, err := screen.Film(t.Context(), filepath.Join(t.TempDir(), "x.reel"))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-film.Done():
	case <-time.After(testlab.Hang):
		t.Fatal("the film goes on, though its source has another rate")
	}
	const want = "the rate of the pictures changed from 60 to 30 a second"
	if s := film.Status(); s.Trouble != want || s.Interruptions != 1 {
		t.Errorf("Status() = %+v, want 1 interruption, %q", s, want)
	}
	if _, err := film.Stop(); err == nil {
		t.Error("Stop() of an interrupted film returned no error")
	}
}
