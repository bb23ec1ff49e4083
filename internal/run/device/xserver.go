package device

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"eidetic/internal/base/programs"
)

// XServer is a virtual X screen (Xvfb) without a window manager.
type XServer struct {
	// Display names it for X clients: ":0".
	Display string
	// Preferred says that the server runs at a better priority than the programs on it,
	// which needs a privilege.
	Preferred bool
	process   *process
}

// serverNiceness is for the X server if it may be raised, browserNiceness for the browser
// otherwise: either lets the server run before the browser.
const (
	serverNiceness  = -10
	browserNiceness = 5
)

// Screen is the size of a virtual screen in pixels.
type Screen struct {
	Width, Height int
}

// StartX starts a virtual screen of 24-bit depth and waits until it accepts clients.
func StartX(ctx context.Context, size Screen) (*XServer, error) {
	program, err := programs.Xvfb().Find()
	if err != nil {
		return nil, err
	}
	// X servers create this folder if it is missing, but with a warning.
	if err := os.MkdirAll("/tmp/.X11-unix", 0o1777); err != nil {
		return nil, fmt.Errorf("making the folder of X sockets: %w", err)
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting Xvfb: %w", err)
	}
	defer ready.Close()
	cmd := exec.Command(program, "-displayfd", "3", "-screen", "0", fmt.Sprintf("%dx%dx24", size.Width, size.Height),
		"-nolisten", "tcp", "-noreset", "-dpi", "96",
		"-nocursor",        // the pointer is not filmed, and changes of its shape make the server drop damage events
		"-s", "0", "-dpms") // a screen saver must not blank the filmed screen
	cmd.ExtraFiles = []*os.File{theirs}
	p, err := start(cmd, "Xvfb")
	theirs.Close()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	number, err := p.waitLine(ctx, ready)
	if err != nil {
		p.stop(0)
		return nil, err
	}
	x := &XServer{Display: ":" + strings.TrimSpace(number), process: p}
	// The server copies each picture for the recorder; if it queues behind the browser's
	// threads, frames are late.
	x.Preferred = renice(p.cmd.Process.Pid, serverNiceness) == nil
	return x, nil
}

// Stop ends the server; its clients lose their connections.
func (x *XServer) Stop() { x.process.stop(time.Second) }
