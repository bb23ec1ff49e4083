package device

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"eidetic/internal/programs"
)

// XServer is a virtual X screen (Xvfb) without a window manager.
type XServer struct {
	// Display names it for X clients: ":0".
	Display string
	// Preferred says that the server runs at a better priority than the
	// programs it shows, which takes a privilege.
	Preferred bool
	process   *process
}

// serverNiceness is the X server's where it may be set, browserNiceness the
// browser's where it may not: one of the two lets the server run first.
const (
	serverNiceness  = -10
	browserNiceness = 5
)

// Screen is the size of a virtual screen in pixels.
type Screen struct {
	Width, Height int
}

// StartX starts a virtual screen of 24-bit depth and waits until it takes clients.
func StartX(ctx context.Context, size Screen) (*XServer, error) {
	program, err := programs.Xvfb().Find()
	if err != nil {
		return nil, err
	}
	// X servers make this folder when it is missing, but warn about it.
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
		"-nocursor",        // nobody sees it, and a change of its shape makes the server lose damage
		"-s", "0", "-dpms") // a screen saver must never blank what we film
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
	// The server copies each picture for the recorder; where it has to queue
	// behind the browser's threads, frames are late.
	x.Preferred = renice(p.cmd.Process.Pid, serverNiceness) == nil
	return x, nil
}

// Stop ends the server; its clients lose their connection.
func (x *XServer) Stop() { x.process.stop(time.Second) }
