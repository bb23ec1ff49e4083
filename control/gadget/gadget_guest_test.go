//go:build guest

package gadget

import (
	"context"
	"errors"
	"image"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/control"
	"eidetic/control/controltest"
	"eidetic/control/hid"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/rigs/testlab"
)

// The tests in this file run on the box in its virtual machine, where dummy_hcd connects
// a USB device port with a USB host of the same kernel: what the gadget sends is what the
// kernel's own HID drivers get.

func modprobe(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("modprobe", args...).CombinedOutput(); err != nil {
		t.Fatalf("modprobe %v: %v: %s", args, err, out)
	}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	t.Cleanup(cancel)
	return ctx
}

// plug plugs a gadget in, and removes everything when the test ends.
func plug(t *testing.T, o Options) *Gadget {
	t.Helper()
	modprobe(t, "-a", "libcomposite", "dummy_hcd", "hid-multitouch")
	g, err := New(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(g.dir); err == nil {
			t.Errorf("%s is left behind", g.dir)
		}
		modprobe(t, "-r", "dummy_hcd")
	})
	return g
}

// TestGadgetArrives: what each of the input devices sends is what the kernel at the other end gets,
// within the interval that is claimed.
func TestGadgetArrives(t *testing.T) {
	g := plug(t, Options{Touch: true})
	c, err := hid.New(g, hid.Options{Layout: "de", Screen: image.Pt(1920, 1080), Repeat: testlab.Hang})
	if err != nil {
		t.Fatal(err)
	}
	keyboard := hidtest.OpenInput(t, "Eidetic", "led")
	mouse := hidtest.OpenInput(t, "Eidetic", "rel")
	touch := hidtest.OpenInput(t, "Eidetic", "abs")
	t.Logf("input devices: %s; %s; %s", keyboard.Name, mouse.Name, touch.Name)

	if _, err := c.Text(within(t), "z@"); err != nil { // on a German keyboard: Y, and AltGr+Q
		t.Fatal(err)
	}
	var got []int
	for len(got) < 6 {
		e := keyboard.Next()
		if e.Kind == hidtest.KindKey && e.Value != 2 { // the kernel repeats a key that a slow machine holds for long
			got = append(got, int(e.Code)*10+int(e.Value))
		}
	}
	if want := []int{211, 210, 1001, 161}; !slices.Equal(got[:4], want) || !slices.Contains(got, 160) || !slices.Contains(got, 1000) {
		t.Errorf("keys (10 × code + pressed) %v; want %v and the releases of both", got, want)
	}

	e, err := c.Click(within(t), 1919, 0, control.Right)
	if err != nil {
		t.Fatal(err)
	}
	x, y, down := mouse.Await(hidtest.KindAbsolute, hidtest.CodeX), mouse.Await(hidtest.KindAbsolute, hidtest.CodeY),
		mouse.Await(hidtest.KindKey, hidtest.CodeRight)
	if int(x.Value)*1920/(hid.Full+1) != 1919 || int(y.Value)*1080/(hid.Full+1) != 0 || down.Value != 1 {
		t.Errorf("clicked at %d, %d of %d with %+v; want the top right pixel", x.Value, y.Value, hid.Full, down)
	}
	if down.At < e.Earliest || down.At > e.Latest {
		t.Errorf("the press arrived at %d, outside its interval %d … %d", down.At, e.Earliest, e.Latest)
	}
	if _, err := c.Scroll(within(t), 5, 5, 1, 1); err != nil {
		t.Fatal(err)
	}
	if wheel := mouse.Await(hidtest.KindRelative, hidtest.CodeWheel); wheel.Value != -1 {
		t.Errorf("wheel %+v; want -1, which is down", wheel)
	}
	testFingers(t, g, touch)
}

// testFingers moves two fingers.
func testFingers(t *testing.T, sink hid.Sink, touch *hidtest.Input) {
	t.Helper()
	point := func(id byte, down bool, x, y uint16) hid.Contact { return hid.Contact{ID: id, Down: down, X: x, Y: y} }
	for i, contacts := range [][]hid.Contact{
		{point(0, true, 100, 200), point(1, true, 30000, 200)},
		{point(0, true, 200, 300), point(1, true, 29000, 300)},
		{point(0, false, 200, 300), point(1, false, 29000, 300)},
	} {
		if _, err := sink.Send(within(t), hid.Touch{Contacts: contacts, Scan: uint16(100 * i)}); err != nil {
			t.Fatal(err)
		}
	}
	var downs, ups int
	var xs []int32
	for ups < 2 {
		switch e := touch.Next(); {
		case e.Kind == hidtest.KindAbsolute && e.Code == hidtest.CodeTouchID && e.Value >= 0:
			downs++
		case e.Kind == hidtest.KindAbsolute && e.Code == hidtest.CodeTouchID:
			ups++
		case e.Kind == hidtest.KindAbsolute && e.Code == hidtest.CodeTouchX:
			xs = append(xs, e.Value)
		}
	}
	if want := []int32{100, 30000, 200, 29000}; downs != 2 || !slices.Equal(xs, want) {
		t.Errorf("%d fingers came down, at %v; want 2, at %v", downs, xs, want)
	}
}

// TestGadgetUnplugged: pulling the cable in the middle is an error that says so, the device
// lets go of the key that was down, and after plugging in again everything works.
func TestGadgetUnplugged(t *testing.T) {
	g := plug(t, Options{})
	keyboard := hidtest.OpenInput(t, "Eidetic", "led")
	if _, err := g.Send(within(t), hid.Keyboard{Keys: [6]hid.Usage{4}}); err != nil {
		t.Fatal(err)
	}
	if e := keyboard.Await(hidtest.KindKey, 30); e.Value != 1 {
		t.Errorf("a is %+v; want it pressed", e)
	}
	if err := g.Unplug(); err != nil {
		t.Fatal(err)
	}
	keyboard.AwaitReleaseOrEnd(30)
	_, err := g.Send(within(t), hid.Keyboard{})
	if err == nil || !strings.Contains(err.Error(), "plug its cable in") {
		t.Errorf("Send() of an unplugged gadget = %v; want an error that asks for the cable", err)
	}
	if err := g.Plug(); err != nil {
		t.Fatal(err)
	}
	if err := g.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	keyboard = hidtest.OpenInput(t, "Eidetic", "led")
	if _, err := g.Send(within(t), hid.Keyboard{Keys: [6]hid.Usage{5}}); err != nil {
		t.Fatal(err)
	}
	keyboard.Await(hidtest.KindKey, 48)
}

// TestGadgetEcho: whoever has the keyboard switches its light when Caps Lock is pressed, which comes back to
// the gadget by the bus.
func TestGadgetEcho(t *testing.T) {
	c, err := hid.New(plug(t, Options{}), hid.Options{Layout: "us", Screen: image.Pt(640, 480), Repeat: testlab.Hang})
	if err != nil {
		t.Fatal(err)
	}
	hidtest.OpenInput(t, "Eidetic", "led").AnswerCapsLock()
	for range 3 {
		e, err := c.Echo(within(t))
		if err != nil || e.Light.Latest < e.Press.Earliest {
			t.Fatalf("Echo() = %+v, %v", e, err)
		}
		t.Logf("the press is %.1f ms wide, the light came %.1f ms after it at the latest",
			float64(e.Press.Latest.Sub(e.Press.Earliest))/1e6, float64(e.Light.Latest.Sub(e.Press.Earliest))/1e6)
	}
}

// TestGadgetTiming: the moment at which the kernel stamps an event lies in its interval.
func TestGadgetTiming(t *testing.T) {
	g := plug(t, Options{})
	mouse := hidtest.OpenInput(t, "Eidetic", "rel")
	timing := controltest.Timing{Precision: time.Microsecond} // of the kernel's stamps
	for i := range controltest.Events(t, 1000) {
		at, err := g.Send(within(t), hid.Pointer{X: uint16(10 + i%2*1000)})
		if err != nil {
			t.Fatal(err)
		}
		timing.Add(at[0].Earliest, at[0].Latest, mouse.Await(hidtest.KindAbsolute, hidtest.CodeX).At)
	}
	timing.Check(t)
}

func TestGadgetRefusals(t *testing.T) {
	modprobe(t, "-a", "libcomposite", "dummy_hcd")
	defer modprobe(t, "-r", "dummy_hcd")
	if _, err := New(within(t), Options{Port: "none.usb"}); err == nil || !strings.Contains(err.Error(), "dummy_udc.0") {
		t.Errorf("New() at an unknown port = %v; want an error that lists the ports", err)
	}
	modprobe(t, "-r", "dummy_hcd")
	if _, err := New(within(t), Options{}); !errors.Is(err, ErrNoPort) {
		t.Errorf("New() without a port = %v; want %v", err, ErrNoPort)
	}
	modprobe(t, "dummy_hcd")
}
