package execute

import (
	"context"
	"errors"
	"fmt"
	"image"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/capture/source"
	"eidetic/capture/v4l2"
	"eidetic/control/connect"
	"eidetic/control/recipe"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// PartError says which field of a device's parts cannot be used.
type PartError struct {
	Field string // "screen.edid"
	Err   error
}

func (e *PartError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *PartError) Unwrap() error { return e.Err }

// CheckParts returns an error, a *PartError, for parts of a device that cannot be used; nil ones
// are as usual.
func CheckParts(screen *lab.ScreenPart, controls *lab.ControlsPart, recipeName string) error {
	if screen != nil {
		if field, err := checkScreen(*screen); err != nil {
			return &PartError{"screen" + field, err}
		}
	}
	if controls != nil {
		if field, err := checkControls(*controls); err != nil {
			return &PartError{"controls" + field, err}
		}
	}
	if recipeName != "" {
		if _, err := recipe.Find(recipeName); err != nil {
			return &PartError{"recipe", err}
		}
	}
	return nil
}

// maxLatency bounds what a screen's pictures may be late, in ms.
const maxLatency = 10_000

func checkScreen(p lab.ScreenPart) (field string, err error) {
	if p.Kinds() != 1 {
		return "", errors.New("name one of v4l2, camera, rfb and x11")
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
	if _, _, err := lab.ParseSize(p.Size); err != nil {
		return ".size", err
	}
	switch p.Pixels {
	case "", lab.BGRX, lab.BGR24, lab.YUYV, lab.UYVY, lab.NV12, lab.Grey:
	default:
		return ".format", fmt.Errorf("%q is none of BGRX, BGR24, YUYV, UYVY, NV12 and GREY", p.Pixels)
	}
	if p.Rate != 0 && !(p.Rate >= 1 && p.Rate <= 240) {
		return ".rate", fmt.Errorf("%g a second: at least 1 and at most 240", p.Rate)
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
	if _, _, err := lab.ParseSize(p.Screen); err != nil {
		return ".screen", err
	}
	if p.Baud != 0 && p.Baud != 9600 && p.Baud != 115200 {
		return ".baud", fmt.Errorf("%d is neither 9600 nor 115200", p.Baud)
	}
	if err := connect.Check(connectOptions(p, netip.IPv4Unspecified(), "")); err != nil {
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

// isPort says whether a VNC server is named by its port alone, at the device.
func isPort(name string) bool {
	port, err := strconv.ParseUint(name, 10, 16)
	return err == nil && port > 0
}

// serverOf returns the address of a VNC server that is named by its port or as HOST:PORT.
func serverOf(name string, device netip.Addr) (string, error) {
	if isPort(name) {
		return net.JoinHostPort(device.String(), name), nil
	}
	if _, port, err := net.SplitHostPort(name); err != nil || port == "" {
		return "", fmt.Errorf("%.100q is neither a port, such as 5900, nor HOST:PORT", name)
	}
	return name, nil
}

// usualScreen is how many pixels a device's screen is taken to have where nobody says: points on
// the film are mapped to them.
var usualScreen = image.Pt(1920, 1080) // constant

// connectOptions are those of a device's controls.
func connectOptions(p lab.ControlsPart, device netip.Addr, password string) connect.Options {
	o := connect.Options{
		Name: p.Device(), Layout: p.Layout, Password: password, Baud: p.Baud, Relative: p.Relative, Clock: clock, Screen: usualScreen,
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

// sourceOptions are those of a device's screen.
func sourceOptions(p lab.ScreenPart, device netip.Addr, password string) source.Options {
	o := source.Options{
		Name: p.Source(), Format: lab.Format{Pixels: p.Pixels, Rate: p.Rate}, Password: password, Controls: p.Set, EDID: p.EDID,
	}
	if p.RFB != "" {
		at, err := serverOf(p.RFB, device)
		if err == nil {
			o.Name = "rfb:" + at
		}
	}
	o.Format.Width, o.Format.Height, _ = lab.ParseSize(p.Size) // it was checked
	if len(p.Latency) == 2 {
		o.Latency = [2]time.Duration{ms(p.Latency[0]), ms(p.Latency[1])}
	}
	return o
}

// replugLimit is how long a part that was unplugged is waited for before the next trial.
const replugLimit = 3 * time.Minute

// patiently opens a part of a device, and waits until it is plugged in. Its error makes one trial
// invalid, unless the part was asked for something that it never does.
func patiently[P any](ctx context.Context, limit time.Duration, open func(context.Context) (P, error)) (P, error) {
	deadline := time.Now().Add(limit)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		p, err := open(ctx)
		var wrongSource *source.OptionError
		var wrongControls *connect.OptionError
		switch {
		case err == nil || ctx.Err() != nil || errors.As(err, &wrongSource) || errors.As(err, &wrongControls):
			return p, err
		case time.Now().After(deadline):
			return p, experiment.Broken(fmt.Errorf("%w (it was waited for, for %v)", err, limit))
		}
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-ticker.C:
		}
	}
}

// partScreen is the screen of a plugged-in device: what it has said of itself, and where a picture
// of it lies.
type partScreen struct {
	name    string // "v4l2:/dev/video0"
	latency []float64

	mu   sync.Mutex
	last *lab.SourceState // nil before it was opened
}

// opened notes what a source says of itself.
func (p *partScreen) opened(h reel.Header) (*lab.SourceState, error) {
	if h.Format.Pixels == lab.MJPEG {
		return nil, fmt.Errorf("%s delivers compressed pictures (MJPEG), which cannot be compared: ask it for another format and size, "+
			"such as format: YUYV; appliance devices lists what it has", p.name)
	}
	s := &lab.SourceState{
		Name: p.name, Pixels: h.Format.Pixels, Chroma: chroma(h.Format.Pixels), Width: h.Format.Width, Height: h.Format.Height,
		Rate: micro(h.Format.Rate), Notes: h.Notes, NotLossless: h.NotLossless, Latency: p.latency,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = s
	return s, nil
}

// chroma says how a format has colours in less resolution; "" where it has them whole.
func chroma(p lab.PixelFormat) string {
	return map[lab.PixelFormat]string{lab.YUYV: "4:2:2", lab.UYVY: "4:2:2", lab.NV12: "4:2:0"}[p]
}

// size is that of the newest film's pictures; 0, 0 before the first.
func (p *partScreen) size() image.Point {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return image.Point{}
	}
	return image.Pt(p.last.Width, p.last.Height)
}

// describe is for a run's environment.
func (p *partScreen) describe() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return p.name
	}
	s := p.last
	words := []string{p.name, fmt.Sprintf("%d×%d %s at %g Hz", s.Width, s.Height, s.Pixels, s.Rate)}
	for _, note := range []string{"card", "colour", "signal"} {
		if text := s.Notes[note]; text != "" {
			words = append(words, note+" "+text)
		}
	}
	if s.Chroma != "" {
		words = append(words, "chroma "+s.Chroma+": lossless of what the grabber delivers, not of the picture")
	}
	if len(s.Latency) == 2 {
		words = append(words, fmt.Sprintf("%g … %g ms of latency subtracted", s.Latency[0], s.Latency[1]))
	}
	return strings.Join(words, ", ")
}

// pageOf returns the part of a picture that the green page covers: at least a quarter of the
// screen, or nothing.
func pageOf(f lab.Format, frame lab.Frame) image.Rectangle {
	area, err := visual.ContentOf(f, frame.Pix)
	if err != nil || 4*area.Dx()*area.Dy() < f.Width*f.Height {
		return image.Rectangle{}
	}
	return area
}
