package rfb_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jezek/xgb/xproto"

	"eidetic/control"
	"eidetic/control/controltest"
	"eidetic/control/rfb"
	"eidetic/internal/lab"
	"eidetic/internal/rfb/rfbtest"
	"eidetic/internal/testlab"
	"eidetic/internal/testlab/xtest"
)

func TestMain(m *testing.M) {
	xtest.Main()
	testlab.NoLeaks(m)
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), controltest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, address string) *rfb.Controller {
	t.Helper()
	c, err := rfb.Open(within(t), rfb.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestServers: what is sent arrives, in the system behind real servers of two families.
func TestServers(t *testing.T) {
	for _, tt := range []struct {
		name     string
		start    func(*testing.T) rfbtest.Real
		sideways bool // it knows the wheel's buttons 6 and 7
	}{
		{"Xvnc", func(t *testing.T) rfbtest.Real {
			return rfbtest.Xvnc(t, testlab.NeedProgram(t, "Xvnc", "Xtigervnc"), "-geometry", "640x480")
		}, true},
		{"x11vnc", func(t *testing.T) rfbtest.Real {
			return rfbtest.X11vnc(t, testlab.NeedProgram(t, "x11vnc"), testlab.NeedProgram(t, "Xvfb"), "640x480")
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := tt.start(t)
			target := controltest.NewWindow(t, server.Display)
			c := open(t, server.Address)
			text(t, c, target)
			chords(t, c, target)
			pointer(t, c, target, tt.sideways)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func text(t *testing.T, c control.Controller, target *controltest.Window) {
	const text = "Hello, World! https://shop.example/?q=a&b=~ #1\nAé"
	before := lab.Monotonic()
	e, err := c.Text(within(t), text)
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

func chords(t *testing.T, c control.Controller, target *controltest.Window) {
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
	} {
		e, err := c.Key(within(t), tt.chord)
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
	if _, err := c.Move(within(t), 1, 1); err != nil { // answered after the last release
		t.Fatal(err)
	}
	if mask := target.Held(); mask != 0 {
		t.Errorf("something is still held: mask %#x", mask)
	}
}

func pointer(t *testing.T, c control.Controller, target *controltest.Window, sideways bool) {
	want := []byte{3, 103, 5, 105, 5, 105}
	dx := 0
	if sideways {
		dx, want = -1, append(want, 6, 106)
	}
	if _, err := c.Click(within(t), 639, 479, control.Right); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Scroll(within(t), 10, 10, dx, 2); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for len(got) < len(want) {
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("buttons pressed (and 100 + released)\n", diff)
	}
}

// TestQEMU: a virtual machine's server answers after every kind of input. What
// a guest makes of it is not seen here.
func TestQEMU(t *testing.T) {
	c := open(t, rfbtest.QEMU(t, testlab.NeedProgram(t, "qemu-system-x86_64")).Address)
	for name, f := range map[string]func() (lab.Event, error){
		"key":    func() (lab.Event, error) { return c.Key(within(t), "Ctrl+L") },
		"text":   func() (lab.Event, error) { return c.Text(within(t), "Hello, World!") },
		"click":  func() (lab.Event, error) { return c.Click(within(t), 639, 479, control.Left) },
		"scroll": func() (lab.Event, error) { return c.Scroll(within(t), 1, 1, 0, 3) },
	} {
		if e, err := f(); err != nil || e.Name != name || e.Latest <= e.Earliest {
			t.Errorf("%s: event %+v, %v; want an interval and no error", name, e, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestMessages: what goes over the wire, and that an event is over only when
// the server has handled it.
func TestMessages(t *testing.T) {
	for _, cfg := range []rfbtest.Config{{}, {Prelude: true}, {Fences: true, Prelude: true}} {
		sv := rfbtest.New(t, cfg)
		c := open(t, sv.Addr())
		if _, err := c.Key(within(t), "Ctrl++"); err != nil {
			t.Fatal(err)
		}
		want := []string{"down ffe3", "down ffe1", "down 2b"}
		if got := sv.Input(); len(got) < 3 || !slices.Equal(got[:3], want) {
			t.Errorf("%+v: when the event was over the server had %q", cfg, got)
		}
		if _, err := c.Click(within(t), 3, 4, control.Middle); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Text(within(t), "Aя"); err != nil {
			t.Fatal(err)
		}
		want = append(want, "up 2b", "up ffe1", "up ffe3", "pointer 0 3,4", "pointer 2 3,4", "pointer 0 3,4",
			"down ffe1", "down 41", "up 41", "up ffe1", "down 100044f", "up 100044f")
		if diff := cmp.Diff(want, sv.Input()); diff != "" {
			t.Errorf("%+v: -want +got\n%s", cfg, diff)
		}
	}
}

func TestRefusals(t *testing.T) {
	sv := rfbtest.New(t, rfbtest.Config{Width: 64, Height: 48})
	c := open(t, sv.Addr())
	ctx := within(t)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, f := range map[string]func() (lab.Event, error){
		"outside":   func() (lab.Event, error) { return c.Move(ctx, 64, 0) },
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
	if got := sv.Input(); len(got) != 0 {
		t.Errorf("what was refused was sent: %q", got)
	}
	if _, err := c.Key(ctx, "x"); err != nil {
		t.Errorf("after refusals: %v", err)
	}
	for _, bad := range []string{"nonsense", "127.0.0.1:1", "unix:/nowhere"} {
		if _, err := rfb.Open(ctx, rfb.Options{Address: bad}); err == nil {
			t.Errorf("address %q was opened", bad)
		}
	}
}

// TestSilentServer: a server that hangs is an error in time, not a hang; one
// that went away is an error too.
func TestSilentServer(t *testing.T) {
	sv := rfbtest.New(t, rfbtest.Config{Fences: true})
	c := open(t, sv.Addr())
	sv.Silence(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Key(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline's", err)
	}
	if _, err := c.Key(within(t), "x"); err == nil || !strings.Contains(err.Error(), "open it again") {
		t.Errorf("a broken controller went on: %v", err)
	}
	sv.Silence(false)
	c = open(t, sv.Addr())
	sv.Close()
	if _, err := c.Key(within(t), "x"); err == nil {
		t.Error("typed into a server that went away")
	}
}
