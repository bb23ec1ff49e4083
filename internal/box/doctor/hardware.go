package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"eidetic/control/power"
	"eidetic/internal/base/scrcpyserver"
	"eidetic/internal/run/counters"
)

// checkHardware looks for devices, and for the drivers that make their files, below root.
func checkHardware(root fs.FS) []Finding {
	count := func(pattern string) int {
		m, err := fs.Glob(root, pattern)
		if err != nil {
			return 0 // the patterns are constant
		}
		return len(m)
	}
	grabber := Finding{Name: "v4l2", For: "filming a screen by a grabber"}
	if n := count("dev/video*"); n > 0 {
		grabber = grabber.good(fmt.Sprintf("%d video devices; appliance devices tells more", n))
	} else {
		grabber = grabber.bad("no /dev/video*", "plug in an HDMI grabber (UVC), or load its driver; to try without one: modprobe vivid")
	}
	keys := Finding{Name: "controls", For: "driving a device's keyboard and mouse by USB"}
	ports, serial := count("sys/class/udc/*"), count("dev/serial/by-id/*")
	if ports+serial > 0 {
		keys = keys.good(fmt.Sprintf("%d USB device ports, %d USB serial ports; appliance devices names them", ports, serial))
	} else {
		keys = keys.bad("no USB device port, as on every x86 machine, and no USB serial port",
			"plug in a CH9329 serial keyboard chip; to try without one: modprobe dummy_hcd")
	}
	return []Finding{grabber, keys}
}

// checkScrcpy looks for the server that films phones and pastes text, where packages keep it.
func checkScrcpy(path string) Finding {
	f := Finding{Name: "scrcpy", For: "filming an Android phone by its cable, and pasting text that no key types"}
	server, err := scrcpyserver.Read(path)
	if err != nil {
		return f.bad(err.Error(), "put the server's file there, or name another by server: of the device's screen (scrcpy: auto) "+
			"or controls (adb: auto)")
	}
	return f.good(fmt.Sprintf("%s, version %s", path, server.Version))
}

// checkEnergy looks for what tells the energy that this machine takes, below /sys or another root.
func checkEnergy(system string) Finding {
	f := Finding{Name: "energy", For: "what a load takes of this machine's processors, in J"}
	e := counters.NewEnergy(system)
	defer e.Close()
	if err := e.Err(); err != nil {
		return f.bad(err.Error(), "measure as root on a machine whose processor tells it; nothing else needs it")
	}
	return f.good(e.Describe())
}

// checkPower looks for what can take a hanging device's power away at this machine itself.
func checkPower(ctx context.Context, k power.Kernel) Finding {
	f := Finding{Name: "power", For: "restarting a plugged-in device that hangs, by its USB port or a relay"}
	hubs, denied := k.Hubs(ctx)
	chips, err := filepath.Glob(filepath.Join(k.Root, "dev/gpiochip*"))
	if err != nil {
		return f.bad("not known", err.Error())
	}
	var found []string
	if len(hubs) > 0 {
		found = append(found, "power: {usb: PORT} can switch "+strings.Join(hubs, ", "))
	}
	for _, chip := range chips {
		found = append(found, "power: {gpio: "+filepath.Base(chip)+"/LINE} is possible")
	}
	const another = "plug in a USB hub that switches its ports one by one, or use a plug (power: {shelly: http://ADDRESS})"
	switch {
	case len(found) > 0:
		return f.good(strings.Join(found, "; "))
	case denied != nil:
		return f.bad("the USB hubs could not be asked", "run appliance doctor as root; "+another)
	}
	return f.bad("no USB hub that switches its ports one by one, and no GPIO chip", another)
}
