package plan

import (
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestCheckParts(t *testing.T) {
	good := lab.ScreenPart{V4L2: "/dev/v4l/by-id/usb-x-index0", Pixels: lab.YUYV, Size: "1920x1080", EDID: "1080p60", Latency: []float64{8, 25}}
	keys := lab.ControlsPart{CH9329: "/dev/serial/by-id/usb-x", Layout: "de", Screen: "1920x1080", Baud: 115200}
	if err := CheckParts(&good, &keys, "windows-chrome"); err != nil {
		t.Errorf("CheckParts() = %v; want nil", err)
	}
	if err := CheckParts(nil, nil, ""); err != nil {
		t.Errorf("CheckParts() of nothing = %v; want nil", err)
	}
	for _, c := range []struct {
		change func(*lab.ScreenPart, *lab.ControlsPart, *string)
		want   string
	}{
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.V4L2 = "" }, "screen: name one of v4l2"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.RFB = "5900" }, "screen: name one of v4l2"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.V4L2 = "/etc/shadow" }, "screen.v4l2"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.V4L2 = "/dev/v4l/../mem" }, "screen.v4l2"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.V4L2, s.RFB = "", "70000" }, "screen.rfb"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.Size = "1920" }, "screen.size"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.Size = "1920x1080 " }, ""},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.Pixels = "H264" }, "screen.format"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.EDID = "8k" }, "screen.edid"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.Latency = []float64{9, 8} }, "screen.latency_ms"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.Server = "/srv/x" }, "screen.server: it is scrcpy's"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) {
			s.V4L2, s.Scrcpy, s.Server = "", "auto", "srv"
		}, "screen.server"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) {
			s.V4L2, s.Scrcpy, s.Server = "", "auto", "/srv/x"
		}, ""},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.Scrcpy = "auto" }, "screen: name one of v4l2"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { s.Rate = 1000 }, "screen.rate"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { *s = lab.ScreenPart{Rate: 120} }, ""},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { *s = lab.ScreenPart{Rate: 20} }, "screen.rate: 20 a second: the virtual"},
		{func(s *lab.ScreenPart, _ *lab.ControlsPart, _ *string) { *s = lab.ScreenPart{Rate: 1000} }, "screen.rate: 1000 a second"},
		{func(_ *lab.ScreenPart, c *lab.ControlsPart, _ *string) { c.ADB = "auto" }, "controls: name one of gadget"},
		{func(_ *lab.ScreenPart, c *lab.ControlsPart, _ *string) { c.Server = "/srv/x" }, "controls.server: it is scrcpy's: write adb: auto"},
		{func(_ *lab.ScreenPart, c *lab.ControlsPart, _ *string) {
			*c = lab.ControlsPart{ADB: "auto", Server: "srv"}
		}, "controls.server"},
		{func(_ *lab.ScreenPart, c *lab.ControlsPart, _ *string) {
			*c = lab.ControlsPart{ADB: "auto", Server: "/srv/x"}
		}, ""},
		{func(_ *lab.ScreenPart, c *lab.ControlsPart, _ *string) { c.CH9329 = "/dev/sda" }, "controls.ch9329"},
		{func(_ *lab.ScreenPart, c *lab.ControlsPart, _ *string) { c.Baud = 300 }, "controls.baud"},
		{func(_ *lab.ScreenPart, c *lab.ControlsPart, _ *string) { c.Gain = 2 }, "controls.gain"},
		{func(_ *lab.ScreenPart, c *lab.ControlsPart, _ *string) { c.Gain, c.Relative = 20, true }, "controls.gain"},
		{func(_ *lab.ScreenPart, c *lab.ControlsPart, _ *string) { c.Gain, c.Relative = 2, true }, ""},
		{func(_ *lab.ScreenPart, c *lab.ControlsPart, _ *string) { c.Layout = "klingon" }, "controls: "},
		{func(_ *lab.ScreenPart, c *lab.ControlsPart, _ *string) { c.Screen = "0x0" }, "controls.screen"},
		{func(_ *lab.ScreenPart, _ *lab.ControlsPart, r *string) { *r = "beos-netpositive" }, "recipe: there is no recipe"},
	} {
		s, k, name := good, keys, "windows-chrome"
		c.change(&s, &k, &name)
		err := CheckParts(&s, &k, name)
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || c.want == "" && err != nil {
			t.Errorf("CheckParts(%+v, %+v, %s) = %v; want %q", s, k, name, err, c.want)
		}
	}
}

func FuzzCheckParts(f *testing.F) {
	f.Add("/dev/video0", "5900", "1920x1080", "auto", "de")
	f.Add("/dev/v4l/../../x", "h:", "0x99999", "x\x00", "")
	f.Fuzz(func(t *testing.T, file, server, size, name, layout string) {
		defer testlab.Input(t)()
		s := lab.ScreenPart{V4L2: file, Size: size}
		if CheckParts(&s, nil, "") == nil && !strings.HasPrefix(filepath.Clean(file), "/dev/v") {
			t.Errorf("the device file %q is accepted", file)
		}
		_ = CheckParts(&lab.ScreenPart{RFB: server}, &lab.ControlsPart{Gadget: name, Layout: layout, Screen: size}, "")
	})
}
