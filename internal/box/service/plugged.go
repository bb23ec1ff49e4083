package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"eidetic/internal/base/adbserver"
	"eidetic/internal/base/scrcpyserver"
	"eidetic/internal/lab"
	"eidetic/internal/run/device"
	"eidetic/internal/web/panel"
)

// partList lists what is plugged into this machine. A list is kept for a while, because
// pages ask often and looking opens every grabber.
type partList struct {
	look func(context.Context) []device.Part

	mu   sync.Mutex
	seen time.Time
	last []device.Part
}

const (
	partsKept  = 5 * time.Second
	partsLimit = 2 * time.Second // an adb server may hang
)

// plugged looks at this machine. It starts no adb server: phones are listed where a person
// has started one.
func plugged(log *slog.Logger) func(context.Context) []device.Part {
	look := device.Look{
		Root: os.DirFS("/"), Grabbers: "/dev/video*", Phones: true,
		ADB: adbserver.Client{Address: adbserver.Address},
	}
	return func(ctx context.Context) []device.Part {
		parts, problems := device.Found(ctx, look)
		if err := errors.Join(problems...); err != nil {
			log.Debug("looking for what is plugged in", "error", err)
		}
		return parts
	}
}

// all lists what is plugged in.
func (p *partList) all(ctx context.Context) []device.Part {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.seen.IsZero() && time.Since(p.seen) < partsKept {
		return p.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), partsLimit) // others get the list, too
	defer cancel()
	p.last, p.seen = p.look(ctx), time.Now()
	return p.last
}

// list is all for the panel.
func (p *partList) list(ctx context.Context) (out []panel.PluggedPart) {
	for _, part := range p.all(ctx) {
		out = append(out, panel.PluggedPart(part))
	}
	return out
}

// screenWords says how a screen is seen.
func screenWords(s lab.ScreenPart) string {
	if _, err := strconv.Atoi(s.RFB); err == nil {
		return "VNC at its port " + s.RFB
	}
	return s.Source()
}

// partsOf says whether the parts of a device are ready, as far as the box can know: what shares
// its screen over the network is known when it is asked.
func (p *partList) partsOf(ctx context.Context, c deviceConfig) []panel.DevicePart {
	screen := panel.DevicePart{Part: "screen", Use: screenWords(*c.Screen), Ready: true}
	controls := panel.DevicePart{Part: "controls", Use: c.Controls.Device(), Ready: true}
	video := cmp.Or(c.Screen.V4L2, c.Screen.Camera)
	if p == nil || video == "" && c.Screen.Scrcpy == "" && c.Controls.Gadget == "" && c.Controls.CH9329 == "" && c.Controls.ADB == "" {
		return []panel.DevicePart{screen, controls}
	}
	all := p.all(ctx)
	const cable = "plug the phone's USB cable in, and switch USB debugging on"
	switch {
	case video != "":
		judge(&screen, all, device.PartGrabber, video, "plug it in, or name one that is listed under parts")
	case c.Screen.Scrcpy != "":
		judge(&screen, all, device.PartPhone, c.Screen.Scrcpy, cable)
		if _, err := scrcpyserver.Read(cmp.Or(c.Screen.Server, scrcpyserver.Default)); err != nil && screen.Problem == "" {
			screen.Ready, screen.Problem = false, err.Error()
		}
	}
	switch {
	case c.Controls.Gadget != "":
		judge(&controls, all, device.PartUSB, c.Controls.Gadget, "only boards with a USB device port have one; use a CH9329 serial chip")
	case c.Controls.CH9329 != "":
		judge(&controls, all, device.PartSerial, c.Controls.CH9329, "plug the chip's serial cable into the box")
	case c.Controls.ADB != "":
		judge(&controls, all, device.PartPhone, c.Controls.ADB, cable)
		if c.Controls.Server != "" && controls.Problem == "" {
			if _, err := scrcpyserver.Read(c.Controls.Server); err != nil {
				controls.Ready, controls.Problem = false, err.Error()
			}
		}
	}
	return []panel.DevicePart{screen, controls}
}

// judge fills in what is known of the part of a kind and a name among those that are plugged in.
func judge(p *panel.DevicePart, all []device.Part, kind, name, mend string) {
	var found []device.Part
	for _, part := range all {
		_, path, _ := strings.Cut(part.Use, ":")
		if part.Kind == kind && (name == lab.AutoPart || path == name || sameFile(path, name)) {
			found = append(found, part)
		}
	}
	switch {
	case len(found) == 0 && kind == device.PartSerial && exists(name): // a port of the board, which has no name by its id
		p.State = "a serial port"
	case len(found) == 0 && name == lab.AutoPart:
		p.Ready, p.Problem = false, fmt.Sprintf("there is no %s: %s", kind, mend)
	case len(found) == 0:
		p.Ready, p.Problem = false, fmt.Sprintf("there is no %s %s: %s", kind, name, mend)
	case len(found) > 1:
		p.Ready, p.Problem = false, fmt.Sprintf("there are %d: name one of them in place of auto", len(found))
	default:
		p.State, p.Ready, p.Problem = found[0].State, found[0].Ready, found[0].Problem
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// sameFile says whether two names are of one device file; by-id names are links.
func sameFile(a, b string) bool {
	if !strings.HasPrefix(a, "/") || !strings.HasPrefix(b, "/") {
		return false
	}
	one, err := filepath.EvalSymlinks(a)
	if err != nil {
		return false
	}
	other, err := filepath.EvalSymlinks(b)
	return err == nil && one == other
}
