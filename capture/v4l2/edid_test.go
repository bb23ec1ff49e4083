package v4l2

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestEDID(t *testing.T) {
	for name, want := range map[string]struct {
		width, height int
		rate          float64
	}{"1080p60": {1920, 1080, 60}, "1080p50": {1920, 1080, 50}, "1080p30": {1920, 1080, 30}, "720p60": {1280, 720, 60},
		"720p50": {1280, 720, 50}} {
		e, err := NewEDID(name)
		if err != nil || len(e) != 128 {
			t.Fatal(name, len(e), err)
		}
		var sum byte
		for _, b := range e {
			sum += b
		}
		d := e[54:72] // the detailed timing
		twelve := func(low, high byte) int { return int(low) | int(high)<<8 }
		width, blankH := twelve(d[2], d[4]>>4), twelve(d[3], d[4]&15)
		height, blankV := twelve(d[5], d[7]>>4), twelve(d[6], d[7]&15)
		rate := 1e4 * float64(binary.LittleEndian.Uint16(d)) / float64((width+blankH)*(height+blankV))
		if sum != 0 || width != want.width || height != want.height || math.Abs(rate-want.rate) > 0.01 {
			t.Errorf("%s: sum %d, %d × %d at %v", name, sum, width, height, rate)
		}
	}
	if _, err := NewEDID("4k"); err == nil || !strings.Contains(err.Error(), "1080p60") {
		t.Errorf("an unknown mode: %v", err)
	}
}

// TestControls: controls are set by name, through the library and by our ioctls.
func TestControls(t *testing.T) {
	for name, open := range map[string]func(*fake) settings{
		"library": func(f *fake) settings { return fakeLibrary{f} },
		"ioctls":  func(f *fake) settings { return direct{dev: f, kind: typeCapture} },
	} {
		for _, c := range []struct {
			values map[string]int
			want   string
		}{
			{map[string]int{"gain": 7}, ""},
			{map[string]int{"Gain": 11}, `control "Gain": 11 is outside 0 … 10`},
			{map[string]int{"Temperature": 1}, `control "Temperature" can only be read`},
			{map[string]int{"Zoom": 1}, `the device has no control "Zoom"; it has: Gain, Temperature`},
		} {
			dev := newFake(4, 4, "BGR3", 12)
			dev.controls = []Control{{Name: "Gain", Max: 10, Default: 3, Value: 3, id: 5},
				{Name: "Temperature", Max: 100, Value: 40, ReadOnly: true, id: 9}}
			err := setControls(dev, open(dev), c.values)
			if c.want == "" && (err != nil || dev.controls[0].Value != 7) || c.want != "" && (err == nil || err.Error() != c.want) {
				t.Errorf("%s: setControls(%v) = %v, want %q; the device has %+v", name, c.values, err, c.want, dev.controls)
			}
			if list, err := controls(dev, open(dev)); err != nil || !slices.Equal(list, dev.controls) {
				t.Errorf("%s: controls() = %+v, %v; want %+v", name, list, err, dev.controls)
			}
		}
	}
}
