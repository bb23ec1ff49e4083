package execute

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/capture/rfb"
	"eidetic/internal/base/rfb/rfbtest"
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
