package seat

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/capture/source"
	"eidetic/control/connect"
	"eidetic/control/controltest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
	"eidetic/internal/run/execute"
)

func TestMain(m *testing.M) {
	xtest.Main()
	os.Exit(m.Run())
}

// TestSeat: people see the screen of a real device (an X server), one of them drives it, and a run
// takes it from them.
func TestSeat(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "320x240x24")
	window := controltest.NewWindow(t, server.Display)
	s := &Seat{Live: filepath.Join(t.TempDir(), "live", "x"), Open: func() (Parts, error) {
		return Parts{Screen: source.Options{Name: "x11:" + server.Display}, Controls: connect.Options{Name: "x11:" + server.Display}}, nil
	}}
	take := func() func() {
		t.Helper()
		back, err := s.Take(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		return back
	}
	t.Cleanup(func() { _, _ = s.Take(context.Background(), nil) })

	first, err := s.Look(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(bytes.NewReader(first.PNG)); err != nil || img.Bounds().Dx() != 320 || first.Run {
		t.Fatalf("the picture, %v: run %v, %v", err, first.Run, img)
	}
	anna, ben := Driver{Name: "anna", Window: "1"}, Driver{Name: "ben"}
	if _, err := s.Input(ctx, anna, "key a"); err == nil || !strings.Contains(err.Error(), "take the controls first") {
		t.Errorf("input without a turn: %v", err)
	}
	if turn, err := s.Drive(anna); err != nil || turn != turnTime {
		t.Errorf("drive() = %+v, %v", turn, err)
	}
	for _, other := range []Driver{ben, {Name: "anna", Window: "2"}} {
		if _, err := s.Drive(other); err == nil || !strings.Contains(err.Error(), "anna drives the device") {
			t.Errorf("drive() of another: %v", err)
		}
	}
	events, err := s.Input(ctx, anna, `type "ok"; click 50%,50%`)
	if err != nil || len(events) != 2 || events[0].Latest <= events[0].Earliest {
		t.Fatalf("input() = %+v, %v", events, err)
	}
	if syms, _ := window.Typed(2); syms[0] != 'o' || syms[1] != 'k' {
		t.Errorf("the device got %#x", syms)
	}
	for _, bad := range []string{"jump", "click picture x.png", "wait still 1s", "", strings.Repeat("key a;", mostSteps+1)} {
		var wrong *StepsError
		if _, err := s.Input(ctx, anna, bad); !errors.As(err, &wrong) {
			t.Errorf("input %.20q: %v; want it refused", bad, err)
		}
	}

	release := take()
	if _, err := s.Drive(anna); !errors.Is(err, ErrTaken) {
		t.Errorf("drive() during a run: %v", err)
	}
	if _, err := s.Input(ctx, anna, "key a"); !errors.Is(err, ErrTaken) {
		t.Errorf("input during a run: %v", err)
	}
	if _, err := s.Look(ctx); err == nil || !strings.Contains(err.Error(), "shows nothing yet") {
		t.Errorf("look() at a run that shows nothing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.Live, execute.LiveWanted)); err != nil {
		t.Errorf("the run was not asked for a picture: %v", err)
	}
	if err := os.WriteFile(filepath.Join(s.Live, execute.LivePicture), first.PNG, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Look(ctx); err != nil || !got.Run || !bytes.Equal(got.PNG, first.PNG) {
		t.Errorf("look() at a run: run %v, %d bytes, %v", got.Run, len(got.PNG), err)
	}
	release()
	if _, err := s.Drive(ben); err != nil {
		t.Errorf("drive() after the run: %v", err)
	}
	s.Release(ben)
	if _, err := s.Drive(anna); err != nil {
		t.Errorf("drive() after it was given back: %v", err)
	}
	if got, err := s.Look(ctx); err != nil || got.Run {
		t.Errorf("look() after the run: %v, %v", got.Run, err)
	}
}
