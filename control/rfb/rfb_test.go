package rfb_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/control"
	"eidetic/control/controltest"
	"eidetic/control/rfb"
	"eidetic/internal/base/rfb/rfbtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
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
	c, err := rfb.Open(within(t), rfb.Options{Address: address, Repeat: testlab.Hang})
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
			controltest.Suite{
				Target: controltest.NewWindow(t, server.Display),
				Open:   func(t *testing.T) control.Controller { return open(t, server.Address) },
				Text:   "Hello, World! https://shop.example/?q=a&b=~ #1\nAé",
				NoPan:  !tt.sideways,
			}.Run(t)
		})
	}
}

// TestQEMU: a virtual machine's server answers after every kind of input. What
// a guest makes of it is not seen here.
func TestQEMU(t *testing.T) {
	testlab.Long(t, "another VNC server")
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

// A key whose release may have come late is told by name, and released.
func TestLongPressIsTold(t *testing.T) {
	sv := rfbtest.New(t, rfbtest.Config{Fences: true})
	c, err := rfb.Open(within(t), rfb.Options{Address: sv.Addr(), Repeat: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := c.Key(within(t), "x"); !control.IsHeld(err) || e.Latest <= e.Earliest {
		t.Errorf("Key() = %+v, %v; want an interval and a HeldError", e, err)
	}
	if _, err := c.Move(within(t), 1, 1); err != nil {
		t.Errorf("Move() afterwards = %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got, want := sv.Input(), []string{"down 78", "up 78", "pointer 0 1,1"}; !slices.Equal(got, want) {
		t.Errorf("the server had %q; want %q", got, want)
	}
}

func TestRefusals(t *testing.T) {
	sv := rfbtest.New(t, rfbtest.Config{Width: 640, Height: 480})
	c := open(t, sv.Addr())
	controltest.Refusals(t, c)
	if got := sv.Input(); len(got) != 0 {
		t.Errorf("what was refused was sent: %q", got)
	}
	for _, bad := range []string{"nonsense", "127.0.0.1:1", "unix:/nowhere"} {
		if _, err := rfb.Open(within(t), rfb.Options{Address: bad}); err == nil {
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
	// The release was on its way before the press was confirmed: nothing repeats a key while this process stands still.
	for deadline := within(t); len(sv.Input()) < 2 && deadline.Err() == nil; {
		if err := lab.Wait(deadline, time.Millisecond); err != nil {
			break
		}
	}
	if got := sv.Input(); !slices.Equal(got, []string{"down 78", "up 78"}) {
		t.Errorf("the server got %q; want the key pressed and released", got)
	}
	c = open(t, sv.Addr())
	sv.Close()
	if _, err := c.Key(within(t), "x"); err == nil {
		t.Error("typed into a server that went away")
	}
}
