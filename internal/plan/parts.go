package plan

import (
	"errors"
	"fmt"
	"image"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"eidetic/capture/source"
	"eidetic/capture/through"
	"eidetic/capture/v4l2"
	"eidetic/control/connect"
	"eidetic/control/power"
	"eidetic/control/recipe"
	"eidetic/internal/base/scrcpyserver"
	"eidetic/internal/lab"
)

// CheckParts returns an error, a *lab.FieldError, for parts of a device that cannot be used; nil ones
// are as usual.
func CheckParts(screen *lab.ScreenPart, controls *lab.ControlsPart, recipeName string) error {
	if screen != nil {
		if field, err := checkScreen(*screen); err != nil {
			return &lab.FieldError{Path: "screen" + field, Err: err}
		}
	}
	if controls != nil {
		if field, err := checkControls(*controls); err != nil {
			return &lab.FieldError{Path: "controls" + field, Err: err}
		}
	}
	if recipeName != "" {
		if _, err := recipe.Find(recipeName); err != nil {
			return &lab.FieldError{Path: "recipe", Err: err}
		}
	}
	return nil
}

// CheckPower returns an error, a *lab.FieldError, for a power supply that cannot be switched; nil is none.
func CheckPower(p *lab.PowerPart) error {
	if p == nil {
		return nil
	}
	if field, err := power.Check(*p); err != nil {
		return &lab.FieldError{Path: "power" + field, Err: err}
	}
	return nil
}

// maxLatency bounds what a screen's pictures may be late, in ms.
const maxLatency = 10_000

// leastVirtualRate is how often a second the virtual device is filmed at least.
const leastVirtualRate = 30

func checkScreen(p lab.ScreenPart) (field string, err error) {
	if p.Through != "" {
		if _, err := through.Parse(p.Through); err != nil {
			return ".through", err
		}
	}
	if p.Rate != 0 && !(p.Rate >= 1 && p.Rate <= 240) {
		return ".rate", fmt.Errorf("%g a second: at least 1 and at most 240", p.Rate)
	}
	if p.IsVirtual() {
		if p.Rate != 0 && p.Rate < leastVirtualRate {
			return ".rate", fmt.Errorf("%g a second: the virtual device is filmed at least %d times a second", p.Rate, leastVirtualRate)
		}
		return "", nil
	}
	if p.Kinds() != 1 {
		return "", errors.New("name one of v4l2, camera, rfb, x11 and scrcpy")
	}
	if p.V4L2 != "" {
		if err := checkFile(p.V4L2, "/dev/video", "/dev/v4l/"); err != nil {
			return ".v4l2", err
		}
	}
	if p.Camera != "" {
		if err := checkFile(p.Camera, "/dev/video", "/dev/v4l/"); err != nil {
			return ".camera", err
		}
	}
	if p.RFB != "" {
		if _, err := serverOf(p.RFB, netip.IPv4Unspecified()); err != nil {
			return ".rfb", err
		}
	}
	if err := checkServer(p.Server, p.Scrcpy, "scrcpy"); err != nil {
		return ".server", err
	}
	if _, _, err := lab.ParseSize(p.Size); err != nil {
		return ".size", err
	}
	switch p.Pixels {
	case "", lab.BGRX, lab.BGR24, lab.YUYV, lab.UYVY, lab.NV12, lab.Grey, lab.MJPEG:
	default:
		return ".format", fmt.Errorf("%q is none of BGRX, BGR24, YUYV, UYVY, NV12, GREY and MJPEG", p.Pixels)
	}
	if p.EDID != "" {
		if _, err := v4l2.NewEDID(p.EDID); err != nil {
			return ".edid", err
		}
	}
	if l := p.Latency; len(l) != 0 && (len(l) != 2 || !(l[0] >= 0 && l[0] <= l[1] && l[1] <= maxLatency)) {
		return ".latency_ms", fmt.Errorf("%v: write the least and the greatest latency in ms, such as [8, 25]", l)
	}
	return "", nil
}

// checkServer returns an error for the file of scrcpy's server where nothing uses it, or that has no absolute name. The
// phone is what the part names by a field.
func checkServer(file, phone, field string) error {
	switch {
	case file != "" && phone == "":
		return fmt.Errorf("it is scrcpy's: write %s: auto, or leave it out", field)
	case file != "" && (!filepath.IsAbs(file) || filepath.Clean(file) != file):
		return fmt.Errorf("%.100q is no absolute name of a file, such as %s", file, scrcpyserver.Default)
	}
	return nil
}

func checkControls(p lab.ControlsPart) (field string, err error) {
	if p.Kinds() != 1 {
		return "", errors.New("name one of gadget, ch9329, adb, rfb and x11")
	}
	if p.CH9329 != "" {
		if err := checkFile(p.CH9329, "/dev/serial/", "/dev/tty"); err != nil {
			return ".ch9329", err
		}
	}
	if p.RFB != "" {
		if _, err := serverOf(p.RFB, netip.IPv4Unspecified()); err != nil {
			return ".rfb", err
		}
	}
	if err := checkServer(p.Server, p.ADB, "adb"); err != nil {
		return ".server", err
	}
	if _, _, err := lab.ParseSize(p.Screen); err != nil {
		return ".screen", err
	}
	if p.Baud != 0 && p.Baud != 9600 && p.Baud != 115200 {
		return ".baud", fmt.Errorf("%d is neither 9600 nor 115200", p.Baud)
	}
	if err := connect.CheckGain(p.Gain, p.Relative); err != nil {
		return ".gain", err
	}
	if err := connect.Check(ConnectOptions(p, netip.IPv4Unspecified(), lab.Secret{})); err != nil {
		return "", err
	}
	return "", nil
}

// checkFile bounds the device files that a plan from the network can name.
func checkFile(name string, begins ...string) error {
	for _, b := range begins {
		if strings.HasPrefix(name, b) && filepath.Clean(name) == name {
			return nil
		}
	}
	return fmt.Errorf("%.100q is no such device file: its name begins with %s", name, strings.Join(begins, " or "))
}

// IsPort says whether a VNC server is named by its port alone, at the device.
func IsPort(name string) bool {
	port, err := strconv.ParseUint(name, 10, 16)
	return err == nil && port > 0
}

// serverOf returns the address of a VNC server that is named by its port or as HOST:PORT.
func serverOf(name string, device netip.Addr) (string, error) {
	if IsPort(name) {
		return net.JoinHostPort(device.String(), name), nil
	}
	if _, port, err := net.SplitHostPort(name); err != nil || port == "" {
		return "", fmt.Errorf("%.100q is neither a port, such as 5900, nor HOST:PORT", name)
	}
	return name, nil
}

// scrcpyLatency is the least and the greatest time, in ms, that a phone's encoder and its cable are taken to need for the
// picture that takes the least, where nobody has measured it: docs/devices/android.md says what that rests on.
func scrcpyLatency() []float64 { return []float64{5, 15} }

// Latency is what is subtracted from the times of a screen's pictures, in ms; none is nothing.
func Latency(p lab.ScreenPart) []float64 {
	if p.Scrcpy != "" && len(p.Latency) == 0 {
		return scrcpyLatency()
	}
	return p.Latency
}

// usualScreen is how many pixels a device's screen is taken to have where nobody says: points on
// the film are mapped to them.
var usualScreen = image.Pt(1920, 1080) // constant

// ConnectOptions are those of a device's controls.
func ConnectOptions(p lab.ControlsPart, device netip.Addr, password lab.Secret) connect.Options {
	o := connect.Options{
		Name: p.Device(), Layout: p.Layout, Password: password, Baud: p.Baud, Relative: p.Relative, Gain: p.Gain, Touch: p.Touch,
		Server: p.Server, Screen: usualScreen,
	}
	if p.RFB != "" {
		at, err := serverOf(p.RFB, device)
		if err == nil { // it was checked
			o.Name = "rfb:" + at
		}
	}
	if width, height, err := lab.ParseSize(p.Screen); err == nil && width > 0 {
		o.Screen = image.Pt(width, height)
	}
	return o
}

// SourceOptions are those of a device's screen.
func SourceOptions(p lab.ScreenPart, device netip.Addr, password lab.Secret) source.Options {
	o := source.Options{
		Name: p.Source(), Format: lab.Format{Pixels: p.Pixels, Rate: p.Rate}, Password: password, Controls: p.Set, EDID: p.EDID,
		Through: p.Through, Server: p.Server,
	}
	if p.RFB != "" {
		at, err := serverOf(p.RFB, device)
		if err == nil {
			o.Name = "rfb:" + at
		}
	}
	o.Format.Width, o.Format.Height, _ = lab.ParseSize(p.Size) // it was checked
	if l := Latency(p); len(l) == 2 {
		o.Latency = [2]time.Duration{milliseconds(l[0]), milliseconds(l[1])}
	}
	return o
}

func milliseconds(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
