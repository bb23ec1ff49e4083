package drive_test

import (
	"image"
	"strings"
	"testing"

	"eidetic/capture/mjpeg"
	"eidetic/capture/through"
	"eidetic/capture/x11"
	"eidetic/control/hid"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
	"eidetic/internal/run/drive"
)

// On a device that accelerates its pointer, a relative mouse misses its points until its gain is calibrated, also by the pictures of
// a grabber that compresses them and adds noise. Where no pointer moves, that is said.
func TestCalibrate(t *testing.T) {
	display := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "1280x720x24").Display
	host := hidtest.NewAccelerated(t, display)
	size := image.Pt(1280, 720)
	mouse := func(gain float64) *hid.Controller {
		c, err := hid.New(host, hid.Options{Screen: size, Gain: gain})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	shown, err := x11.Open(x11.Options{Display: display, Rate: 30})
	if err != nil {
		t.Fatal(err)
	}
	w, err := through.Parse("noise=2,mjpeg=80")
	if err != nil {
		t.Fatal(err)
	}
	noisy, err := through.New(shown, w, 1)
	if err != nil {
		t.Fatal(err)
	}
	screen := drive.Watch(t.Context(), mjpeg.New(noisy))
	defer screen.Close()
	got, err := drive.Calibrate(t.Context(), mouse(0), size, screen)
	if err != nil {
		t.Fatal(err)
	}
	const gain = 1 + 0.08*8 // of the steps of a walk
	if got.Gain < 0.98*gain || got.Gain > 1.02*gain {
		t.Errorf("a gain of %.3f; want %.2f", got.Gain, gain)
	}
	misses, err := drive.Misses(t.Context(), mouse(got.Gain), size, screen, got)
	if err != nil {
		t.Fatal(err)
	}
	const near = 6 // pixels: the last step is a shorter one
	for _, m := range misses {
		if m.Pixel > near {
			t.Errorf("the point %v is said to be missed by %.1f pixels; want %d at most", m.At, m.Pixel, near)
		}
	}
	if _, err := mouse(got.Gain).Move(t.Context(), 900, 500); err != nil {
		t.Fatal(err)
	}
	if d := host.At().Sub(image.Pt(900, 500)); d.X*d.X+d.Y*d.Y > near*near {
		t.Errorf("the pointer is at %v; want it near 900,500", host.At())
	}
	host.Hide(t)
	if _, err := drive.Calibrate(t.Context(), mouse(0), size, screen); err == nil || !strings.Contains(err.Error(), "no pointer is seen to move") {
		t.Errorf("without a pointer: %v", err)
	}
}
