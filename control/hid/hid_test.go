package hid_test

import (
	"context"
	"errors"
	"image"
	"os"
	"testing"

	"github.com/jezek/xgb/xproto"

	"eidetic/control"
	"eidetic/control/controltest"
	"eidetic/control/hid"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

func TestMain(m *testing.M) {
	xtest.Main()
	os.Exit(m.Run())
}

func open(t *testing.T, sink hid.Sink, layout string) *hid.Controller {
	t.Helper()
	c, err := hid.New(sink, hid.Options{Layout: layout, Screen: image.Pt(640, 480), Repeat: testlab.Hang})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ascii is every character of a URL and a form that a keyboard can be asked for.
func ascii() (text string) {
	for r := ' '; r <= '~'; r++ {
		text += string(r)
	}
	return text
}

// Each layout types what an X server with that layout (xkeyboard-config's) understands.
// The layout of Windows differs from X's in what it makes of AltGr+2 and AltGr+7, so no
// X server can tell whether it is right.
func TestLayoutsAgreeWithXKB(t *testing.T) {
	for _, layout := range hid.Layouts() {
		if layout == "fr-windows" {
			continue
		}
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "640x480x24")
			host := hidtest.NewHost(t, server.Display, layout)
			window := controltest.NewWindow(t, server.Display)
			l, err := hid.NewLayout(layout)
			if err != nil {
				t.Fatal(err)
			}
			more := map[string]string{"de": "äöüÄÖÜß€µ²³§°", "fr": "éèçàù£§°µ€²¤"}[layout]
			var text string
			for _, r := range ascii() + more {
				strokes, err := l.Strokes(r)
				if err != nil {
					t.Error(err)
				} else if len(strokes) == 1 {
					text += string(r)
				}
			}
			c := open(t, host, layout)
			if _, err := c.Text(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			got, _ := window.Typed(len([]rune(text)))
			for i, want := range []rune(text) {
				if got[i] != xproto.Keysym(want) && !(want == '€' && got[i] == 0x20ac) {
					t.Errorf("%q arrived as keysym %#x", want, got[i])
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSuite(t *testing.T) {
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "640x480x24")
	host := hidtest.NewHost(t, server.Display, "de")
	controltest.Suite{
		Target: controltest.NewWindow(t, server.Display),
		Open:   func(t *testing.T) control.Controller { return open(t, host, "de") },
		Text:   "Grüße, https://shop.example/?q=a&b=~ @[]{}|\\ #1\nA", PlainPlus: true,
	}.Run(t)
}

// Caps Lock that somebody left on does not turn the text around.
func TestCapsLock(t *testing.T) {
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "640x480x24")
	host := hidtest.NewHost(t, server.Display, "us")
	window := controltest.NewWindow(t, server.Display)
	c := open(t, host, "us")
	if _, err := c.Key(t.Context(), "CapsLock"); err != nil {
		t.Fatal(err)
	}
	if on, known := host.CapsLock(t.Context()); !on || !known {
		t.Fatalf("CapsLock() = %v, %v after its key; want true, true", on, known)
	}
	if _, err := c.Text(t.Context(), "aB"); err != nil {
		t.Fatal(err)
	}
	syms, state := window.Typed(2)
	if syms[0] != 'a' || syms[1] != 'B' || state[0]&xproto.ModMaskLock != 0 {
		t.Errorf("typed %#x with states %#x; want a and B without Caps Lock", syms, state)
	}
}

// motionHost is a host whose mouse is relative.
type motionHost struct{ *hidtest.Host }

func (motionHost) Capabilities() control.Capabilities {
	return control.Capabilities{Keyboard: true, Motion: true, Wheel: true}
}

// TestRelativeMouse: on a host that does not accelerate it a relative mouse arrives at its point, wherever it was before.
func TestRelativeMouse(t *testing.T) {
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "640x480x24")
	window := controltest.NewWindow(t, server.Display)
	c := open(t, motionHost{hidtest.NewHost(t, server.Display, "")}, "us")
	for _, want := range []image.Point{{320, 240}, {639, 479}, {}, {5, 301}} {
		if _, err := c.Move(t.Context(), want.X, want.Y); err != nil {
			t.Fatal(err)
		}
		p, err := xproto.QueryPointer(window.Conn, window.ID).Reply()
		if err != nil {
			t.Fatal(err)
		}
		if got := image.Pt(int(p.RootX), int(p.RootY)); got != want {
			t.Errorf("the pointer is at %v; want %v", got, want)
		}
	}
}

// TestEcho: the device's light answers Caps Lock, whatever state it was left in, and is off afterwards.
func TestEcho(t *testing.T) {
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "640x480x24")
	host := hidtest.NewHost(t, server.Display, "us")
	for _, silent := range []bool{false, true} {
		var sink hid.Sink = host
		if silent {
			sink = &shy{Host: host}
		}
		c := open(t, sink, "us")
		if _, err := host.Send(t.Context(), hid.Keyboard{Keys: [6]hid.Usage{0x39}}); err != nil { // somebody left it on
			t.Fatal(err)
		}
		if _, err := host.Send(t.Context(), hid.Keyboard{}); err != nil {
			t.Fatal(err)
		}
		before := lab.Monotonic()
		e, err := c.Echo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Press.Earliest < before || e.Light.Earliest < e.Press.Earliest || e.Light.Latest <= e.Light.Earliest || e.Light.Detail != "on" {
			t.Errorf("Echo() = %+v; want a press after %d, and the light after the press", e, before)
		}
		if on, _ := host.CapsLock(t.Context()); on {
			t.Error("Caps Lock is on after Echo")
		}
	}
	deaf := open(t, &hidtest.Sink{Can: control.Capabilities{Keyboard: true}}, "us")
	if _, err := deaf.Echo(t.Context()); !errors.Is(err, control.ErrNoEcho) {
		t.Errorf("Echo() of a device that tells no lights = %v; want ErrNoEcho", err)
	}
}

// shy tells nothing of its lights before the first key.
type shy struct {
	*hidtest.Host
	asked bool
}

func (s *shy) Send(ctx context.Context, reports ...hid.Report) ([]hid.Interval, error) {
	s.asked = true
	return s.Host.Send(ctx, reports...)
}

func (s *shy) CapsLock(ctx context.Context) (on, known bool) {
	if !s.asked {
		return false, false
	}
	return s.Host.CapsLock(ctx)
}
