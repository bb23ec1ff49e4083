package x11

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jezek/xgb/xproto"

	"eidetic/control"
	"eidetic/control/controltest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
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
	c.repeat = testlab.Hang
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestSuite(t *testing.T) {
	d, _ := display(t)
	controltest.Suite{
		Target: controltest.NewWindow(t, d),
		Open: func(t *testing.T) control.Controller {
			c, err := Open(t.Context(), d, lab.Monotonic)
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Text: "Hello, World! https://shop.example/?q=a&b=~ #1\nAé",
	}.Run(t)
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

func TestWrongDisplay(t *testing.T) {
	for _, bad := range []string{":no", "nonsense", ":59999"} {
		if _, err := Open(t.Context(), bad, lab.Monotonic); err == nil || !strings.Contains(err.Error(), bad) {
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
	// The release was on its way before the press was confirmed: a server or a controller that stands still repeats no
	// key.
	if err := process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	again := open(t, d)
	x, ok := again.keys.find('x')
	if !ok {
		t.Fatal("the keyboard has no x")
	}
	down, err := xproto.QueryKeymap(again.conn).Reply()
	if err != nil {
		t.Fatal(err)
	}
	if down.Keys[x.code/8]&(1<<(x.code%8)) != 0 {
		t.Error("the key that was pressed before the server stood still is down afterwards")
	}
}

// A key that may have been down until the server repeats it is told by name, and is up afterwards.
func TestLongPressIsTold(t *testing.T) {
	d, _ := display(t)
	c := open(t, d)
	c.repeat = time.Nanosecond
	for name, act := range map[string]func(context.Context, string) (lab.Event, error){"key": c.Key, "text": c.Text} {
		if e, err := act(t.Context(), "x"); !control.IsHeld(err) || e.Name != name {
			t.Errorf("%s: %+v, %v; want the event and a HeldError", name, e, err)
		}
	}
	down, err := xproto.QueryKeymap(c.conn).Reply()
	if err != nil {
		t.Fatal(err)
	}
	if down.Keys != nil && slices.ContainsFunc(down.Keys, func(b byte) bool { return b != 0 }) {
		t.Errorf("keys are down: %v", down.Keys)
	}
	if _, err := c.Click(t.Context(), 1, 1, control.Left); err != nil {
		t.Errorf("a button, which does not repeat: %v", err)
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

// TestEcho: the server answers Caps Lock, and has it off afterwards.
func TestEcho(t *testing.T) {
	d, _ := display(t)
	c, err := Open(t.Context(), d, lab.Monotonic)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		if _, err := c.Key(t.Context(), "CapsLock"); err != nil { // somebody left it on
			t.Fatal(err)
		}
		e, err := c.Echo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Light.Earliest < e.Press.Earliest || e.Light.Latest <= e.Press.Earliest {
			t.Errorf("Echo() = %+v; want the light after the press", e)
		}
		if on, err := c.capsLocked(); on || err != nil {
			t.Errorf("Caps Lock is on = %v after Echo, %v", on, err)
		}
	}
}
