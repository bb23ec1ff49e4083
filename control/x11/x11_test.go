package x11

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jezek/xgb/xproto"

	"eidetic/control"
	"eidetic/control/controltest"
	"eidetic/internal/lab"
	"eidetic/internal/testlab"
	"eidetic/internal/testlab/xtest"
)

func TestMain(m *testing.M) {
	xtest.Main()
	os.Exit(m.Run())
}

// display starts an X server of the test's own and returns its display.
func display(t *testing.T) (string, *os.Process) {
	t.Helper()
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "640x480x24")
	return server.Display, server.Process
}

func open(t *testing.T, display string) *Controller {
	t.Helper()
	c, err := Open(t.Context(), display, lab.Monotonic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestText(t *testing.T) {
	d, _ := display(t)
	target, c := controltest.NewWindow(t, d), open(t, d)
	const text = "Hello, World! https://shop.example/?q=a&b=~ #1\nAé"
	before := lab.Monotonic()
	e, err := c.Text(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if e.Name != "text" || e.Detail != text || e.Earliest < before || e.Latest <= e.Earliest || e.Latest > lab.Monotonic() {
		t.Errorf("event %+v", e)
	}
	got, _ := target.Typed(len([]rune(text)))
	if diff := cmp.Diff(controltest.Syms(text), got); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

// TestOtherLayout: keys are found by what they type, not by where they are.
func TestOtherLayout(t *testing.T) {
	d, _ := display(t)
	target := controltest.NewWindow(t, d)
	before := open(t, d)
	y, ok := before.keys.find('y')
	z, ok2 := before.keys.find('z')
	if !ok || !ok2 {
		t.Fatal("no y or z on the default layout")
	}
	for code, syms := range map[xproto.Keycode][]xproto.Keysym{y.code: {'z', 'Z'}, z.code: {'y', 'Y'}} {
		if err := xproto.ChangeKeyboardMappingChecked(target.Conn, 1, code, 2, syms).Check(); err != nil {
			t.Fatal(err)
		}
	}
	c := open(t, d)
	if _, err := c.Text(t.Context(), "yzYZ"); err != nil {
		t.Fatal(err)
	}
	got, _ := target.Typed(4)
	if diff := cmp.Diff(controltest.Syms("yzYZ"), got); diff != "" {
		t.Error("-want +got\n", diff)
	}
	if s, _ := c.keys.find('y'); s.code != z.code {
		t.Errorf("y is on keycode %d, want %d", s.code, z.code)
	}
}

// TestUnknownCharacters: what the layout lacks is typed too, and the keyboard
// mapping is as before afterwards.
func TestUnknownCharacters(t *testing.T) {
	d, _ := display(t)
	target := controltest.NewWindow(t, d)
	c, err := Open(t.Context(), d, lab.Monotonic)
	if err != nil {
		t.Fatal(err)
	}
	const text = "я→я☃"
	if _, err := c.Text(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	got, _ := target.Typed(4)
	if diff := cmp.Diff(controltest.Syms(text), got); diff != "" {
		t.Error("-want +got\n", diff)
	}
	spare := len(c.keys.spare())
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if now := len(open(t, d).keys.spare()); now != spare {
		t.Errorf("%d unused keycodes before, %d after", spare, now)
	}
}

func TestChord(t *testing.T) {
	d, _ := display(t)
	target, c := controltest.NewWindow(t, d), open(t, d)
	for _, tt := range []struct {
		chord string
		sym   xproto.Keysym
		state uint16
	}{
		{"Ctrl+L", 'l', xproto.ModMaskControl},
		{"F5", 0xffc2, 0},
		{"Alt+ArrowLeft", 0xff51, xproto.ModMask1},
		{"Enter", 0xff0d, 0},
		{"Ctrl++", '+', xproto.ModMaskControl | xproto.ModMaskShift},
		{"Meta+d", 'd', xproto.ModMask4},
	} {
		e, err := c.Key(t.Context(), tt.chord)
		if err != nil {
			t.Fatal(err)
		}
		syms, state := target.Typed(1)
		if syms[0] != tt.sym || state[0] != tt.state {
			t.Errorf("%s: keysym %#x state %#x, want %#x %#x", tt.chord, syms[0], state[0], tt.sym, tt.state)
		}
		if e.Latest <= e.Earliest {
			t.Errorf("%s: event %+v", tt.chord, e)
		}
	}
	if mask := target.Held(); mask != 0 {
		t.Errorf("something is still held: mask %#x", mask)
	}
}

func TestPointer(t *testing.T) {
	d, _ := display(t)
	target, c := controltest.NewWindow(t, d), open(t, d)
	if _, err := c.Move(t.Context(), 100, 50); err != nil {
		t.Fatal(err)
	}
	if m, ok := target.Next().(xproto.MotionNotifyEvent); !ok || m.RootX != 100 || m.RootY != 50 {
		t.Errorf("motion %+v", m)
	}
	if _, err := c.Click(t.Context(), 639, 479, control.Right); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Scroll(t.Context(), 10, 10, -1, 2); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for len(got) < 8 {
		switch e := target.Next().(type) {
		case xproto.ButtonPressEvent:
			got = append(got, byte(e.Detail))
			if e.Detail == 3 && (e.RootX != 639 || e.RootY != 479) {
				t.Errorf("clicked at %d,%d", e.RootX, e.RootY)
			}
		case xproto.ButtonReleaseEvent:
			got = append(got, 100+byte(e.Detail))
		}
	}
	if diff := cmp.Diff([]byte{3, 103, 5, 105, 5, 105, 6, 106}, got); diff != "" {
		t.Error("buttons pressed (and 100 + released)\n", diff)
	}
}

func TestRefusals(t *testing.T) {
	d, _ := display(t)
	c := open(t, d)
	ctx := t.Context()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, f := range map[string]func() (lab.Event, error){
		"outside":   func() (lab.Event, error) { return c.Move(ctx, 640, 0) },
		"negative":  func() (lab.Event, error) { return c.Click(ctx, 0, -1, control.Left) },
		"button":    func() (lab.Event, error) { return c.Click(ctx, 0, 0, 9) },
		"notches":   func() (lab.Event, error) { return c.Scroll(ctx, 0, 0, 0, 5000) },
		"no text":   func() (lab.Event, error) { return c.Text(ctx, "") },
		"control":   func() (lab.Event, error) { return c.Text(ctx, "a\x07") },
		"key":       func() (lab.Event, error) { return c.Key(ctx, "Hyper+x") },
		"cancelled": func() (lab.Event, error) { return c.Key(ended, "x") },
	} {
		if e, err := f(); err == nil || e != (lab.Event{}) {
			t.Errorf("%s: event %+v, error %v", name, e, err)
		}
	}
	if _, err := c.Key(ctx, "x"); err != nil {
		t.Errorf("after refusals: %v", err)
	}
	for _, bad := range []string{":no", "nonsense", ":59999"} {
		if _, err := Open(ctx, bad, lab.Monotonic); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("display %q: error %v", bad, err)
		}
	}
}

// TestStoppedServer: a server that hangs is an error in time, not a hang.
func TestStoppedServer(t *testing.T) {
	d, process := display(t)
	c := open(t, d)
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := c.Key(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline's", err)
	}
	if _, err := c.Key(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "open it again") {
		t.Errorf("a broken controller went on: %v", err)
	}
}

// TestDeadServer: a server that went away is an error too.
func TestDeadServer(t *testing.T) {
	d, process := display(t)
	c, err := Open(t.Context(), d, lab.Monotonic)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the first may still be on its way
		if _, err = c.Key(t.Context(), "x"); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("typed into a dead server")
	}
	_ = c.Close()
}
