package service

import (
	"context"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/run/device"
)

// Each part of a device says whether it is ready, and how to mend it.
func TestPartsOfADevice(t *testing.T) {
	list := &partList{look: func(context.Context) []device.Part {
		return []device.Part{
			{Kind: device.PartGrabber, Use: "v4l2:/dev/video0", State: "1920×1080 at 60 Hz", Ready: true},
			{Kind: device.PartGrabber, Use: "v4l2:/dev/video2", State: "no signal", Problem: "there is no signal: is the device on?"},
			{Kind: device.PartSerial, Use: "ch9329:/dev/serial/by-id/usb-x", Ready: true},
			{Kind: device.PartPhone, Use: "adb:A", Ready: true}, {Kind: device.PartPhone, Use: "adb:B", Ready: true},
		}
	}}
	for _, c := range []struct {
		screen   lab.ScreenPart
		controls lab.ControlsPart
		want     string // what each says
	}{
		{lab.ScreenPart{V4L2: "/dev/video0"}, lab.ControlsPart{CH9329: "/dev/serial/by-id/usb-x"}, "v4l2:/dev/video0 1920×1080 at 60 Hz; ch9329:/dev/serial/by-id/usb-x "},
		{lab.ScreenPart{V4L2: "/dev/video2"}, lab.ControlsPart{ADB: "A"}, "v4l2:/dev/video2 there is no signal: is the device on?; adb:A "},
		{lab.ScreenPart{V4L2: "/dev/video9"}, lab.ControlsPart{ADB: lab.AutoPart}, "there is no grabber /dev/video9: plug it in"},
		{lab.ScreenPart{Scrcpy: "A", Server: "/none"}, lab.ControlsPart{ADB: "A"}, "scrcpy:A scrcpy: there is no server at /none"},
		{lab.ScreenPart{Scrcpy: lab.AutoPart}, lab.ControlsPart{ADB: "A"}, "scrcpy: there are 2: name one"},
		{lab.ScreenPart{RFB: "5900"}, lab.ControlsPart{ADB: lab.AutoPart}, "VNC at its port 5900 ; adb: there are 2: name one"},
		{lab.ScreenPart{RFB: "5900"}, lab.ControlsPart{Gadget: lab.AutoPart}, "there is no USB device port: only boards"},
		{lab.ScreenPart{RFB: "5900"}, lab.ControlsPart{ADB: "A", Server: "/none"}, "VNC at its port 5900 ; adb:A scrcpy: there is no server at /none"},
		{lab.ScreenPart{RFB: "5900"}, lab.ControlsPart{RFB: "5900"}, "VNC at its port 5900 ; rfb:5900 "},
	} {
		var words []string
		for _, p := range list.partsOf(t.Context(), deviceConfig{Screen: &c.screen, Controls: &c.controls}) {
			if p.Ready != (p.Problem == "") {
				t.Errorf("%s is ready: %t, with the problem %q", p.Use, p.Ready, p.Problem)
			}
			says := p.Problem
			if p.Ready {
				says = p.State
			}
			words = append(words, p.Use+" "+says)
		}
		if got := strings.Join(words, "; "); !strings.Contains(got, c.want) {
			t.Errorf("partsOf(%+v, %+v) = %q; want %q", c.screen, c.controls, got, c.want)
		}
	}
}

// What a device shares over its network is not there before the device is.
func TestPartsOverTheNetworkWaitForIt(t *testing.T) {
	d := &portDevice{config: deviceConfig{Name: "laptop", Screen: &lab.ScreenPart{RFB: "5900"}, Controls: &lab.ControlsPart{RFB: "5900"}}}
	for _, p := range d.describe(t.Context()).Parts {
		if p.Ready || p.Problem == "" {
			t.Errorf("%s of a device that is not plugged in: ready %t, problem %q; want a problem", p.Part, p.Ready, p.Problem)
		}
	}
}

// A plan's parts take the place of the configuration's.
func TestPlanReplacesParts(t *testing.T) {
	c := deviceConfig{Port: "e0", Fresh: []string{"key F5"}}.withDefaults(0)
	if c.Screen.RFB != "5900" || c.Controls.RFB != "5900" {
		t.Errorf("without parts the device has screen %+v and controls %+v; want VNC", *c.Screen, *c.Controls)
	}
	screen := lab.ScreenPart{V4L2: "/dev/video0"}
	got := c.forPlan(lab.Plan{Screen: &screen, Recipe: "linux-chrome"})
	if got.Screen.V4L2 != "/dev/video0" || got.Controls.RFB != "5900" || got.Recipe != "linux-chrome" || got.Fresh != nil {
		t.Errorf("forPlan() = %+v", got)
	}
}
