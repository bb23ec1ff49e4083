package seat

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/jezek/xgb/xproto"

	"eidetic/capture/source"
	"eidetic/control/connect"
	"eidetic/control/controltest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
	"eidetic/internal/run/drive"
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
	} else if again, err := s.Look(ctx); err != nil || &again.PNG[0] != &got.PNG[0] {
		t.Errorf("a second look() at the same picture of a run, %v: want the one that was read", err)
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

// TestLookIsTaken: who waits for a screen that a run takes looks at the run.
func TestLookIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Seat{Live: filepath.Join(t.TempDir(), "live"), Open: func() (Parts, error) { return Parts{}, errors.New("it is open") }}
		s.screen = drive.Watch(t.Context(), &jpegs{})
		looked := make(chan error)
		go func() {
			_, err := s.Look(t.Context())
			looked <- err
		}()
		synctest.Wait() // until it waits for a picture
		back, err := s.Take(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer back()
		if err := <-looked; err == nil || !strings.Contains(err.Error(), "shows nothing yet") {
			t.Errorf("Look() while a run takes the screen = %v; want the run's, which shows nothing yet", err)
		}
	})
}

// TestView: who looks gets all of the screen and then what changes, with its time; a run takes it, shows its film, and
// gives it back; one more than may look is refused.
func TestView(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "320x240x24")
	window := controltest.NewWindow(t, server.Display)
	var runs atomic.Int32
	s := &Seat{Live: filepath.Join(t.TempDir(), "live", "x"), Runs: &runs, Open: func() (Parts, error) {
		return Parts{Screen: source.Options{Name: "x11:" + server.Display}}, nil
	}}
	v, err := s.View("ada")
	if err != nil {
		t.Fatal(err)
	}
	shown := image.NewRGBA(image.Rect(0, 0, 320, 240))
	next := func() lab.LiveUpdate {
		t.Helper()
		u, err := v.Next(ctx)
		if err != nil || u.Size != shown.Rect.Size() || len(u.Parts) == 0 {
			t.Fatalf("Next() = %+v, %v", u, err)
		}
		apply(t, shown, u)
		return u
	}
	fill := func(colour uint32, r xproto.Rectangle) (before lab.Time) {
		t.Helper()
		before = lab.Monotonic()
		xproto.ChangeWindowAttributes(window.Conn, window.ID, xproto.CwBackPixel, []uint32{colour})
		if err := xproto.ClearAreaChecked(window.Conn, false, window.ID, r.X, r.Y, r.Width, r.Height).Check(); err != nil {
			t.Fatal(err)
		}
		return before
	}
	until := func(x, y int, want color.RGBA) (last lab.LiveUpdate) {
		t.Helper()
		for last = next(); shown.RGBAAt(x, y) != want; last = next() {
		}
		return last
	}
	until(0, 0, color.RGBA{A: 255})
	before := fill(0x102030, xproto.Rectangle{X: 70, Y: 70, Width: 20, Height: 30})
	u := until(80, 80, color.RGBA{0x10, 0x20, 0x30, 255})
	if n := len(u.Changes); n == 0 || u.Changes[n-1] <= before {
		t.Errorf("the change after %v is at %v", before, u.Changes)
	}
	if want := image.Rect(64, 64, 128, 128); len(u.Parts) != 1 || u.Parts[0].Area != want || u.Parts[0].Type != "image/png" {
		t.Errorf("a small change of few colours has the parts %+v; want one PNG of %v", u.Parts, want)
	}
	// Several changes while nobody looks are one update.
	fill(0x00ff00, xproto.Rectangle{X: 300, Y: 200, Width: 10, Height: 10})
	fill(0x0000ff, xproto.Rectangle{X: 0, Y: 200, Width: 10, Height: 10})
	if s.isMeasured() {
		t.Error("a run is said to be in progress")
	}
	until(305, 205, color.RGBA{G: 255, A: 255})
	for shown.RGBAAt(5, 205) != (color.RGBA{B: 255, A: 255}) {
		next()
	}

	var others []*View
	for i := range MostViews - 1 {
		who := "ada"
		if i == MostViews-2 { // the last place is another's
			if _, err := s.View(who); !errors.Is(err, lab.ErrShare) {
				t.Errorf("a view of who has her share: %v; want ErrShare", err)
			}
			who = "bob"
		}
		o, err := s.View(who)
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, o)
	}
	if _, err := s.View("eve"); !errors.Is(err, ErrManyViews) {
		t.Errorf("one more view: %v", err)
	}
	for _, o := range others {
		o.Close()
	}

	back, err := s.Take(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if runs.Load() != 1 || !s.isMeasured() {
		t.Errorf("in a run %d are counted", runs.Load())
	}
	if _, err := v.Next(ctx); err == nil || !strings.Contains(err.Error(), "shows nothing yet") {
		t.Errorf("Next() of a run that shows nothing: %v", err)
	}
	film := image.NewRGBA(shown.Rect)
	draw.Draw(film, film.Rect, image.NewUniform(color.RGBA{R: 255, A: 255}), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := execute.EncodeLive(&b, film); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Live, execute.LivePicture), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if u := next(); !u.Run || len(u.Changes) != 0 || shown.RGBAAt(80, 80) != (color.RGBA{R: 255, A: 255}) {
		t.Errorf("the run's film: %+v", u)
	}
	back()
	if u := next(); u.Run || shown.RGBAAt(80, 80) != (color.RGBA{0x10, 0x20, 0x30, 255}) {
		t.Errorf("after the run: %v, %v", u.Run, shown.RGBAAt(80, 80))
	}
	v.Close()
	if back, err = s.Take(ctx, nil); err != nil {
		t.Fatal(err)
	}
	back()
}

// TestViewOfJPEGs: what a grabber has compressed is shown as it came, and what is damaged is left out.
func TestViewOfJPEGs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 32, 16)), nil); err != nil {
		t.Fatal(err)
	}
	good := b.Bytes()
	s := &Seat{}
	src := &jpegs{frames: [][]byte{good[:20], good}}
	screen := drive.Watch(ctx, src)
	defer screen.Close()
	for count := 0; ; {
		if _, err := screen.Changed(ctx, count); err != nil {
			t.Fatal(err)
		}
		u, to, err := s.update(screen, count)
		if err != nil {
			t.Fatal(err)
		}
		if count = to; len(u.Parts) == 0 {
			continue
		}
		if len(u.Parts) != 1 || u.Parts[0].Type != "image/jpeg" || !bytes.Equal(u.Parts[0].Bytes, good) || len(u.Changes) != 0 {
			t.Errorf("the update is %+v", u)
		}
		break
	}
	if p, _, err := screen.Picture(ctx); err != nil || p.Area != image.Rect(0, 0, 32, 16) {
		t.Errorf("Picture() = %v", err)
	}
}

// jpegs is a source of pictures that a grabber has compressed.
type jpegs struct {
	frames [][]byte
	n      int
}

func (j *jpegs) Format() lab.Format {
	return lab.Format{Pixels: lab.MJPEG, Width: 32, Height: 16, Rate: 60}
}

func (j *jpegs) Next(ctx context.Context) (f lab.Frame, err error) {
	if j.n == len(j.frames) {
		<-ctx.Done()
		return f, ctx.Err()
	}
	f.Pix, f.Time, f.Changed = j.frames[j.n], lab.Time(j.n+1), []image.Rectangle{j.Format().Bounds()}
	j.n++
	return f, nil
}

func (j *jpegs) Close() error { return nil }
