package hidtest

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"

	"eidetic/control"
	"eidetic/control/hid"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// Host is a computer with an X server, to which keyboard and mouse are plugged. It is a
// hid.Sink; its methods may be called from several goroutines, as reports arrive from
// several devices.
type Host struct {
	conn   *xgb.Conn
	screen *xproto.ScreenInfo

	mu    sync.Mutex
	down  []byte // Linux codes of the keys that are down
	mouse byte   // buttons that are down
}

var _ hid.Sink = (*Host)(nil)

// NewHost plugs into the X server, whose keyboard gets the layout of that name, as
// package hid calls it; "" leaves it as it is.
func NewHost(t testing.TB, display, layout string) *Host {
	t.Helper()
	if layout != "" {
		setLayout(t, display, layout)
	}
	conn, err := xgb.NewConnDisplay(display)
	if err == nil {
		err = xtest.Init(conn)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return &Host{conn: conn, screen: xproto.Setup(conn).DefaultScreen(conn)}
}

func setLayout(t testing.TB, display, layout string) {
	t.Helper()
	layout, composes := strings.CutSuffix(layout, "+compose")
	name, variant, model := strings.TrimSuffix(layout, "-windows"), "", "pc105"
	switch layout {
	case "dvorak":
		name, variant = "us", "dvorak"
	case "ja":
		name, model = "jp", "jp106"
	}
	cmd := exec.Command(testlab.NeedProgram(t, "setxkbmap"), "-display", display, "-rules", "evdev", "-model", model, "-layout", name,
		"-variant", variant)
	if composes {
		cmd.Args = append(cmd.Args, "-option", "compose:menu")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", cmd.Args, err, out)
	}
}

func (h *Host) send(kind, detail byte, x, y int16) {
	xtest.FakeInput(h.conn, kind, detail, 0, h.screen.Root, x, y, 0)
}

// Send hands reports to the server. XTEST has no touch, which is refused.
func (h *Host) Send(_ context.Context, reports ...hid.Report) (all []hid.Interval, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := lab.Monotonic()
	for _, r := range reports {
		switch r := r.(type) {
		case hid.Keyboard:
			err = h.keyboard(r)
		case hid.Pointer:
			h.pointer(r)
		case hid.Motion:
			h.motion(r)
		default:
			err = fmt.Errorf("hidtest: X hosts have no %T", r)
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := xproto.GetInputFocus(h.conn).Reply(); err != nil { // it has handled what was sent
		return nil, err
	}
	for range reports {
		all = append(all, hid.Interval{Earliest: from, Latest: lab.Monotonic()})
	}
	return all, nil
}

// keyboard does what Linux does with a report: modifiers first, releases of keys before presses.
func (h *Host) keyboard(k hid.Keyboard) error {
	var now []byte
	for bit, code := range modifierCodes() {
		if k.Modifiers>>bit&1 != 0 {
			now = append(now, code)
		}
	}
	for _, u := range k.Keys {
		if u == 0 {
			continue
		}
		code, ok := Keycode(u)
		if !ok {
			return fmt.Errorf("usage %#x is no key that Linux knows", u)
		}
		now = append(now, code)
	}
	for _, code := range h.down {
		if !slices.Contains(now, code) {
			h.send(xproto.KeyRelease, code+8, 0, 0)
		}
	}
	for _, code := range now {
		if !slices.Contains(h.down, code) {
			h.send(xproto.KeyPress, code+8, 0, 0)
		}
	}
	h.down = now
	return nil
}

// buttons presses and releases what differs from before, and turns the wheels.
func (h *Host) buttons(now byte, wheel, pan int8) {
	for bit, button := range []byte{1, 3, 2} { // HID's left, right, middle
		switch was, is := h.mouse>>bit&1, now>>bit&1; {
		case is > was:
			h.send(xproto.ButtonPress, button, 0, 0)
		case is < was:
			h.send(xproto.ButtonRelease, button, 0, 0)
		}
	}
	h.mouse = now
	for _, axis := range []struct {
		by       int8
		up, down byte
	}{{wheel, 4, 5}, {pan, 7, 6}} {
		button := axis.up
		if axis.by < 0 {
			button, axis.by = axis.down, -axis.by
		}
		for range axis.by {
			h.send(xproto.ButtonPress, button, 0, 0)
			h.send(xproto.ButtonRelease, button, 0, 0)
		}
	}
}

// pointer maps the coordinates to the whole screen.
func (h *Host) pointer(p hid.Pointer) {
	place := func(v, size uint16) int16 { return int16(int(v) * int(size) / (hid.Full + 1)) }
	h.send(xproto.MotionNotify, 0, place(p.X, h.screen.WidthInPixels), place(p.Y, h.screen.HeightInPixels))
	h.buttons(p.Buttons, p.Wheel, p.Pan)
}

// motion moves the pointer without acceleration.
func (h *Host) motion(m hid.Motion) {
	h.send(xproto.MotionNotify, 1, int16(m.DX), int16(m.DY))
	h.buttons(m.Buttons, m.Wheel, m.Pan)
}

// CapsLock says whether the server has it on.
func (h *Host) CapsLock(context.Context) (on, known bool) {
	p, err := xproto.QueryPointer(h.conn, h.screen.Root).Reply()
	return err == nil && p.Mask&xproto.ModMaskLock != 0, err == nil
}

// Capabilities are keyboard and absolute mouse.
func (h *Host) Capabilities() control.Capabilities {
	return control.Capabilities{Keyboard: true, Pointer: true, Wheel: true}
}

// Close does nothing: the test closes the connection at its end.
func (h *Host) Close() error { return nil }
