package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// programs looks for those that are run.
func programs() (list []finding) {
	for _, p := range []struct{ name, program, also, what, pack string }{
		{"chromium", "chromium", "chromium-browser", "virtual devices", "chromium"},
		{"certutil", "certutil", "", "virtual devices: the browser trusts the box", "libnss3-tools"},
		{"xvfb", "Xvfb", "", "virtual devices: their screen", "xvfb"},
		{"vpxenc", "vpxenc", "", "evidence videos", "vpx-tools"},
		{"adb", "adb", "", "Android devices", "adb"},
		{"hostapd", "hostapd", "", "devices by Wi-Fi", "hostapd"},
	} {
		f := finding{Name: p.name, For: p.what}
		path := findProgram(p.program, p.also)
		if path == "" {
			list = append(list, f.lacking("not installed", "apt-get install "+p.pack))
			continue
		}
		list = append(list, f.good(path))
	}
	return list
}

// findProgram looks on the PATH and where Debian keeps root's programs, which
// a user's PATH lacks.
func findProgram(names ...string) string {
	for _, name := range names {
		for _, dir := range []string{"", "/usr/sbin/", "/sbin/"} {
			if name == "" {
				continue
			}
			if path, err := exec.LookPath(dir + name); err == nil {
				return path
			}
		}
	}
	return ""
}

// devices looks for hardware, and the drivers that make it, below root.
func devices(root fs.FS) []finding {
	count := func(pattern string) int {
		m, err := fs.Glob(root, pattern)
		if err != nil {
			return 0 // the patterns are constant
		}
		return len(m)
	}
	grabber := finding{Name: "v4l2", For: "filming a screen by a grabber"}
	if n := count("dev/video*"); n > 0 {
		grabber = grabber.good(fmt.Sprintf("%d video devices; appliance devices tells more", n))
	} else {
		grabber = grabber.lacking("no /dev/video*", "plug in an HDMI grabber (UVC), or load its driver; to try without one: modprobe vivid")
	}
	uinput := finding{Name: "uinput", For: "input to this machine's own screen"}
	if f, err := os.OpenFile("/dev/uinput", os.O_WRONLY, 0); err == nil {
		_ = f.Close() // nothing was made
		uinput = uinput.good("/dev/uinput")
	} else if os.IsPermission(err) {
		uinput = uinput.lacking("/dev/uinput may not be written", "run as root, or give your user the group of /dev/uinput")
	} else {
		uinput = uinput.lacking("no /dev/uinput", "modprobe uinput")
	}
	gadget := finding{Name: "gadget", For: "being a device's keyboard and touch screen (USB HID gadget)"}
	if n := count("sys/class/udc/*"); n > 0 {
		gadget = gadget.good(fmt.Sprintf("%d USB device controllers", n))
	} else {
		gadget = gadget.lacking("no USB device controller", "this needs a port that can be a device (USB OTG); most PCs have none: use a CH9329 adapter. To try without one: modprobe dummy_hcd")
	}
	serial := finding{Name: "serial", For: "being a device's keyboard and mouse (CH9329 adapter)"}
	if n := count("dev/ttyUSB*") + count("dev/ttyACM*"); n > 0 {
		serial = serial.good(fmt.Sprintf("%d serial adapters", n))
	} else {
		serial = serial.lacking("no /dev/ttyUSB* or /dev/ttyACM*", "plug the adapter in; its driver is ch341")
	}
	radio := finding{Name: "radio", For: "devices by Wi-Fi"}
	if n := count("sys/class/ieee80211/*"); n > 0 {
		radio = radio.good(fmt.Sprintf("%d Wi-Fi radios; whether one can be an access point its driver says (iw list)", n))
	} else {
		radio = radio.lacking("no Wi-Fi radio", "plug one in that can be an access point; to try without one: modprobe mac80211_hwsim")
	}
	return []finding{grabber, uinput, gadget, serial, radio}
}

// processor says whether there is room beside what is measured.
func processor() finding {
	f := finding{Name: "processors", For: "filming and forwarding beside a browser"}
	n := runtime.NumCPU()
	clock, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	source := strings.TrimSpace(string(clock))
	if err != nil {
		source = "unknown"
	}
	found := fmt.Sprintf("%d, clock %s", n, source)
	if n < 2 {
		return f.lacking(found, "a machine with two processors at least; with one, trials are invalid for lost frames and late packets")
	}
	return f.good(found)
}
