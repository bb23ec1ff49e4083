package adb

import (
	"image"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/control/hid"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

const printed = "add device 1: /dev/input/event0\r\n  name:     \"gpio-keys\"\r\nadd device 2: /dev/input/event5\r\n  name:     \"Eidetic keyboard\"\r\n" +
	"[    1234.567890] /dev/input/event5: 0001 001e 00000001\r\nremove device 2: /dev/input/event5\r\ncould not get driver version\r\n"

func TestGetevent(t *testing.T) {
	want := []heard{
		{device: "/dev/input/event0", isAdded: true}, {device: "/dev/input/event0", name: "gpio-keys", isAdded: true},
		{device: "/dev/input/event5", isAdded: true}, {device: "/dev/input/event5", name: "Eidetic keyboard", isAdded: true},
		{device: "/dev/input/event5", stamp: 1234567890 * time.Microsecond, kind: 1, code: 30, value: 1, isEvent: true},
		{device: "/dev/input/event5", isRemoved: true},
	}
	for size := 1; size < len(printed); size += 7 { // however it comes in pieces
		var r geteventReader
		var got []heard
		for rest := []byte(printed); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			got = append(got, r.add(rest[:min(size, len(rest))], 0)...)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(heard{})); diff != "" {
			t.Fatalf("in pieces of %d bytes: -want +got\n%s", size, diff)
		}
	}
}

// Round trips narrow the bounds, drift widens them, and a clock that was set begins anew.
func TestClockBounds(t *testing.T) {
	var c clocks
	const second = lab.Time(time.Second)
	c.narrow(0, [2]lab.Time{10 * second, 11 * second})
	c.narrow(time.Second, [2]lab.Time{11*second + second/2, 12*second + second/2})
	early, late := c.interval(2*time.Second, [2]lab.Time{12 * second, 20 * second})
	if early < 12*second+second/2-second/1000 || early > 12*second+second/2 || late < 13*second || late > 13*second+second/1000 {
		t.Errorf("interval %v … %v; want 12.5 … 13 s, wider by 100 ppm", early, late)
	}
	c.narrow(500*time.Second, [2]lab.Time{20 * second, 21 * second})
	if early, late := c.interval(500*time.Second, [2]lab.Time{20 * second, 21 * second}); early != 20*second || late != 21*second {
		t.Errorf("interval after the clock was set: %v … %v; want 20 … 21 s", early, late)
	}
}

func TestTurnBack(t *testing.T) {
	for quarters, want := range [][2]uint16{{1, 2}, {hid.Full - 2, 1}, {hid.Full - 1, hid.Full - 2}, {2, hid.Full - 1}} {
		if x, y := turnBack(1, 2, quarters); x != want[0] || y != want[1] {
			t.Errorf("turned %d quarters: %d, %d; want %v", quarters, x, y, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]image.Point{
		"Physical size: 1080x2400\n":                              {X: 1080, Y: 2400},
		"Physical size: 1080x2400\nOverride size: 720x1600\r\n":   {X: 720, Y: 1600},
		"Physical size: 99999x1\n":                                {},
		"Physical size: axb\n":                                    {},
		"/system/bin/sh: wm: inaccessible or not found\nanything": {},
	} {
		if got, err := parseSize(text); got != want && err == nil || (err == nil) != (want != image.Point{}) {
			t.Errorf("parseSize(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

// TestRotationIn: the rotation of the first display, as several versions of Android print it.
func TestRotationIn(t *testing.T) {
	for text, want := range map[string]int{
		"      SurfaceOrientation: 1\r\n      SurfaceOrientation: 1\r\n":                                                    1,
		"    Viewport INTERNAL: displayId=0, orientation=2, logicalFrame=[0, 0, 1080, 1920]\n      SurfaceOrientation: 0\n": 2,
		"    Viewport INTERNAL: displayId=3, uniqueId=local:2, port=2, orientation=1, isActive=[1]\n" +
			"    Viewport INTERNAL: displayId=0, uniqueId=local:1, port=1, orientation=0, isActive=[0]\n" +
			"    Viewport INTERNAL: displayId=0, uniqueId=local:4, port=3, orientation=3, deviceSize=[1080, 2400], isActive=[1]\n": 3,
		"    Viewport INTERNAL: displayId=0, uniqueId=local:1, port=1, orientation=1, isActive=[0]\n      SurfaceOrientation: 0\n": -1,
		"    Viewport EXTERNAL: displayId=1, orientation=1, isActive=[1]\n":                                                        -1,
		"SurfaceOrientation: 7\n": -1,
		"":                        -1,
	} {
		if got, ok := rotationIn(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("rotationIn(%q) = %d, %v; want %d", text, got, ok, want)
		}
	}
}

// FuzzPrinted: whatever a phone prints, reading it ends, in bounded memory.
func FuzzPrinted(f *testing.F) {
	f.Add([]byte("Physical size: 1080x2400"))
	f.Add([]byte(printed))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		_, _ = parseSize(string(b))
		_, _ = rotationIn(string(b))
		var lines geteventReader
		lines.add(b, 0)
		if len(lines.rest) > maxLine {
			t.Fatalf("%d bytes of a line are kept", len(lines.rest))
		}
	})
}
