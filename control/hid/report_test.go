package hid_test

import (
	"bytes"
	"errors"
	"image"
	"strings"
	"testing"

	"eidetic/control"
	"eidetic/control/hid"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/lab"
)

// act opens a controller over a sink that can do this, on a screen of 100×100 pixels,
// does the actions and closes it. It returns what the sink got.
func act(t *testing.T, sink *hidtest.Sink, do func(*hid.Controller) error) (string, error) {
	t.Helper()
	c, err := hid.New(sink, hid.Options{Layout: "us", Screen: image.Pt(100, 100)})
	if err != nil {
		t.Fatal(err)
	}
	err = do(c)
	_ = c.Close()
	return strings.Join(sink.Notes, "; "), err
}

func TestReportsOfActions(t *testing.T) {
	touch, mouse, relative := control.Capabilities{Touch: 5}, control.Capabilities{Pointer: true, Wheel: true, Keyboard: true},
		control.Capabilities{Motion: true, Wheel: true}
	drag := func(c *hid.Controller) error {
		ctx := t.Context()
		_, err := c.Press(ctx, 0, 0, control.Left)
		if err == nil {
			_, err = c.Press(ctx, 1, 1, control.Left)
			if err == nil {
				return errors.New("a second press is accepted")
			}
			_, err = c.Move(ctx, 50, 99)
		}
		if err == nil {
			_, err = c.Lift(ctx)
		}
		return err
	}
	for _, tt := range []struct {
		name string
		can  control.Capabilities
		do   func(*hid.Controller) error
		want string
	}{
		{"tap", touch, func(c *hid.Controller) error { return second(c.Click(t.Context(), 50, 99, control.Left)) },
			"touch 0+16548,32604; touch 0-16548,32604; close"},
		{"swipe", touch, drag, "touch 0+164,164; touch 0+16548,32604; touch 0-16548,32604; close"},
		{"click", mouse, func(c *hid.Controller) error { return second(c.Click(t.Context(), 0, 0, control.Middle)) },
			"mouse 0 164,164 0,0; mouse 4 164,164 0,0; mouse 0 164,164 0,0; close"},
		{"drag", mouse, drag, "mouse 0 164,164 0,0; mouse 1 164,164 0,0; mouse 1 16548,32604 0,0; mouse 0 16548,32604 0,0; close"},
		{"wheel", mouse, func(c *hid.Controller) error { return second(c.Scroll(t.Context(), 0, 0, -1, 2)) },
			"mouse 0 164,164 0,0; mouse 0 164,164 -1,-1; mouse 0 164,164 -1,0; close"},
		{"left down", mouse, func(c *hid.Controller) error { return second(c.Press(t.Context(), 0, 0, control.Right)) },
			"mouse 0 164,164 0,0; mouse 2 164,164 0,0; mouse 0 164,164 0,0; close"},
		{"relative", relative, func(c *hid.Controller) error { return second(c.Move(t.Context(), 9, 3)) },
			"move 0 -127,-127 0,0; move 0 -127,-127 0,0; move 0 8,0 0,0; move 0 1,0 0,0; move 0 0,3 0,0; close"},
		{"chord", mouse, func(c *hid.Controller) error { return second(c.Key(t.Context(), "Ctrl+Shift+T")) },
			"keys 03 00; keys 03 17; keys 00 00; close"},
	} {
		got, err := act(t, &hidtest.Sink{Can: tt.can}, tt.do)
		if got != tt.want || err != nil {
			t.Errorf("%s: reports %s (%v); want %s", tt.name, got, err, tt.want)
		}
	}
}

func second(_ lab.Event, err error) error { return err }

// A report that fails may have arrived: what it pressed is released, and the error names the action.
func TestFailedReportIsReleased(t *testing.T) {
	got, err := act(t, &hidtest.Sink{Can: control.Capabilities{Keyboard: true}, Fail: 2},
		func(c *hid.Controller) error { return second(c.Key(t.Context(), "Ctrl+L")) })
	if want := "keys 01 00; keys 01 0f; keys 00 00; close"; got != want {
		t.Errorf("reports %s; want %s", got, want)
	}
	if !errors.Is(err, hidtest.ErrUnplugged) || !strings.Contains(err.Error(), `key "Ctrl+l"`) {
		t.Errorf("error %v; want one that names the key and the reason", err)
	}
	got, _ = act(t, &hidtest.Sink{Can: control.Capabilities{Touch: 5}, Fail: 2}, func(c *hid.Controller) error {
		_, err := c.Press(t.Context(), 0, 0, control.Left)
		return errors.Join(err, second(c.Move(t.Context(), 1, 1)))
	})
	if want := "touch 0+164,164; touch 0+492,492; touch 0-164,164; close"; got != want {
		t.Errorf("reports %s; want %s", got, want)
	}
}

func TestWhatCannotBeDone(t *testing.T) {
	for _, tt := range []struct {
		can  control.Capabilities
		do   func(*hid.Controller) error
		says string
	}{
		{control.Capabilities{Touch: 5}, func(c *hid.Controller) error { return second(c.Move(t.Context(), 1, 1)) }, "no pointer"},
		{control.Capabilities{Touch: 5}, func(c *hid.Controller) error { return second(c.Scroll(t.Context(), 1, 1, 0, 1)) }, "no wheel"},
		{control.Capabilities{Touch: 5}, func(c *hid.Controller) error { return second(c.Click(t.Context(), 1, 1, 3)) }, "no button 3"},
		{control.Capabilities{Touch: 5}, func(c *hid.Controller) error { return second(c.Key(t.Context(), "x")) }, "no keyboard"},
		{control.Capabilities{Keyboard: true}, func(c *hid.Controller) error { return second(c.Click(t.Context(), 1, 1, 1)) }, "neither"},
		{control.Capabilities{Keyboard: true}, func(c *hid.Controller) error { return second(c.Text(t.Context(), "aж")) }, "character 2"},
		{control.Capabilities{Keyboard: true}, func(c *hid.Controller) error { return second(c.Key(t.Context(), "BrowserBack")) }, "Alt+Left"},
		{control.Capabilities{Pointer: true}, func(c *hid.Controller) error { return second(c.Lift(t.Context())) }, "nothing is held"},
	} {
		if got, err := act(t, &hidtest.Sink{Can: tt.can}, tt.do); err == nil || !strings.Contains(err.Error(), tt.says) || got != "close" {
			t.Errorf("reports %s, error %v; want none and %q", got, err, tt.says)
		}
	}
	if _, err := hid.New(&hidtest.Sink{Can: control.Capabilities{Pointer: true}}, hid.Options{}); err == nil {
		t.Error("a pointer without a screen is accepted")
	}
	if _, err := hid.NewLayout("klingon"); err == nil || !strings.Contains(err.Error(), "dvorak") {
		t.Errorf("layout klingon: %v; want an error that lists the layouts", err)
	}
}

// The lengths of reports are those that their descriptors declare.
func TestDescriptorsDeclareReports(t *testing.T) {
	for name, tt := range map[string]struct {
		descriptor, report []byte
		bytes              int
	}{
		"keyboard": {hid.KeyboardDescriptor(), hid.Keyboard{}.Append(nil), hid.KeyboardBytes},
		"pointer":  {hid.PointerDescriptor(), hid.Pointer{}.Append(nil), hid.PointerBytes},
		"motion":   {hid.MotionDescriptor(), hid.Motion{}.Append(nil), hid.MotionBytes},
		"touch":    {hid.TouchDescriptor(), hid.Touch{}.Append(nil), hid.TouchBytes},
	} {
		if got := inputBits(tt.descriptor); got != 8*tt.bytes || len(tt.report) != tt.bytes {
			t.Errorf("%s: the descriptor declares %d bits, the report has %d bytes; want %d bytes", name, got, len(tt.report), tt.bytes)
		}
	}
	two := hid.Touch{Contacts: []hid.Contact{{ID: 1, Down: true, X: 0x1234, Y: 0x0506}, {ID: 2}}, Scan: 7}.Append(nil)
	want := append([]byte{3, 1, 0x34, 0x12, 6, 5, 0, 2}, make([]byte, 22)...)
	if want = append(want, 7, 0, 2); !bytes.Equal(two, want) {
		t.Errorf("touch report % x; want % x", two, want)
	}
}

// The bytes of reports are in the order of their descriptors, the lower byte of a number first.
func TestReportsAreBytes(t *testing.T) {
	for name, tt := range map[string]struct{ got, want []byte }{
		"keyboard": {hid.Keyboard{Modifiers: 2, Keys: [6]hid.Usage{4, 5}}.Append(nil), []byte{2, 0, 4, 5, 0, 0, 0, 0}},
		"pointer":  {hid.Pointer{Buttons: 1, X: 0x1234, Y: 0x0506, Wheel: -1, Pan: 2}.Append(nil), []byte{1, 0x34, 0x12, 6, 5, 0xff, 2}},
		"motion":   {hid.Motion{Buttons: 4, DX: -2, DY: 3, Wheel: 1, Pan: -1}.Append(nil), []byte{4, 0xfe, 3, 1, 0xff}},
	} {
		if !bytes.Equal(tt.got, tt.want) {
			t.Errorf("%s report % x; want % x", name, tt.got, tt.want)
		}
	}
}

// inputBits sums what the Input items of a descriptor take (HID 1.11, section 6.2.2).
func inputBits(b []byte) (bits int) {
	size, count := 0, 0
	for len(b) > 0 {
		length := int(b[0] & 3)
		if length == 3 {
			length = 4
		}
		value := 0
		for i := range length {
			value |= int(b[1+i]) << (8 * i)
		}
		switch b[0] &^ 3 {
		case 0x74:
			size = value
		case 0x94:
			count = value
		case 0x80:
			bits += size * count
		}
		b = b[1+length:]
	}
	return bits
}

// A pixel that is scaled to a device's steps and back is the same pixel, however the host rounds.
func TestScale(t *testing.T) {
	for _, steps := range []int{hid.Full + 1, 4096} {
		for _, size := range []int{1, 480, 640, 1080, 1920, 2160, 3840} {
			for at := range size {
				v := int(hid.Scale(at, size, steps))
				if v >= steps || v*size/steps != at {
					t.Fatalf("pixel %d of %d is step %d of %d, which is pixel %d", at, size, v, steps, v*size/steps)
				}
			}
		}
	}
}
