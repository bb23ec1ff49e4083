package device

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eidetic/control/x11"
	"eidetic/internal/base/programs"
)

// XServer is a virtual X screen without a window manager: Xvfb, or X.Org's own server where it has a touch screen.
type XServer struct {
	// Display names it for X clients: ":0".
	Display string
	// Preferred says that the server runs at a better priority than the programs on it,
	// which needs a privilege.
	Preferred bool
	// Touch is the socket at which its touch screen takes its input; "" if it has none.
	Touch   string
	process *process
	dir     string // of its files; "" for none
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

// StartX starts a virtual screen of 24-bit depth, with a touch screen if the caller asks for it, and waits until it
// accepts clients.
func StartX(ctx context.Context, size Screen, touch bool) (x *XServer, err error) {
	x = &XServer{}
	program, args := programs.Xvfb(), []string{"-screen", "0", fmt.Sprintf("%dx%dx24", size.Width, size.Height)}
	if touch {
		program = programs.Xorg()
		if args, err = x.configure(size); err != nil {
			return nil, err
		}
	}
	if err := x.start(ctx, program, args); err != nil {
		_ = os.RemoveAll(x.dir)
		return nil, err
	}
	return x, nil
}

func (x *XServer) start(ctx context.Context, what programs.Program, args []string) error {
	program, err := what.Find()
	if err != nil {
		return err
	}
	name := what.Files[0]
	// X servers create this folder if it is missing, but with a warning.
	if err := os.MkdirAll("/tmp/.X11-unix", 0o1777); err != nil {
		return fmt.Errorf("making the folder of X sockets: %w", err)
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	defer ready.Close()
	cmd := exec.Command(program, append(args, "-displayfd", "3", "-nolisten", "tcp", "-noreset", "-dpi", "96",
		"-nocursor",            // the pointer is not filmed, and changes of its shape make the server drop damage events
		"-s", "0", "-dpms")...) // a screen saver must not blank the filmed screen
	cmd.ExtraFiles = []*os.File{theirs}
	p, err := start(cmd, name)
	theirs.Close()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	number, err := p.waitLine(ctx, ready)
	if err != nil {
		p.stop(0)
		return err
	}
	x.Display, x.process = ":"+strings.TrimSpace(number), p
	// The server copies each picture for the recorder; if it queues behind the browser's
	// threads, frames are late.
	x.Preferred = renice(p.cmd.Process.Pid, serverNiceness) == nil
	return nil
}

// Stop ends the server; its clients lose their connections.
func (x *XServer) Stop() {
	x.process.stop(time.Second)
	if x.dir != "" {
		_ = os.RemoveAll(x.dir) // what is left is in the folder of temporary files
	}
}

// Program names the server.
func (x *XServer) Program() string {
	if x.Touch != "" {
		return programs.Xorg().Files[0]
	}
	return programs.Xvfb().Files[0]
}

// CheckTouchScreen returns an error that says what this machine lacks for a screen with a touch screen.
func CheckTouchScreen() error {
	return programs.Missing([]programs.Program{programs.Xorg(), programs.Dummy()})
}

// configure writes the configuration of an X.Org server whose screen is memory and whose only device is a touch screen,
// and returns the arguments for it.
func (x *XServer) configure(size Screen) (args []string, err error) {
	if err := CheckTouchScreen(); err != nil {
		return nil, err
	}
	if x.dir, err = os.MkdirTemp("", "xorg-"); err != nil {
		return nil, fmt.Errorf("the X server's files: %w", err)
	}
	x.Touch = filepath.Join(x.dir, "touch")
	file := filepath.Join(x.dir, "xorg.conf")
	if err := os.WriteFile(file, xorgConfig(size, x.Touch), 0o600); err != nil {
		_ = os.RemoveAll(x.dir)
		return nil, fmt.Errorf("the X server's files: %w", err)
	}
	return []string{"-config", file, "-logfile", "/dev/null", "-novtswitch", "-sharevts"}, nil
}

func xorgConfig(size Screen, touch string) []byte {
	w, h := size.Width, size.Height
	// A mode of the screen's size, with the blanks of CVT's second version and at most the driver's clock.
	const right, below, most = 80, 40, 300e6
	clock := min(60*float64((w+right)*(h+below)), most)
	return fmt.Appendf(nil, `Section "ServerFlags"
	Option "AutoAddDevices" "false"
	Option "AutoEnableDevices" "true"
	Option "AllowMouseOpenFail" "true"
EndSection
%sSection "Device"
	Identifier "memory"
	Driver "dummy"
	VideoRam %d
EndSection
Section "Monitor"
	Identifier "monitor"
	HorizSync 1-1000
	VertRefresh 1-1000
	Modeline "mode" %.3f %d %d %d %d %d %d %d %d
EndSection
Section "Screen"
	Identifier "screen"
	Device "memory"
	Monitor "monitor"
	DefaultDepth 24
	SubSection "Display"
		Depth 24
		Modes "mode"
		Virtual %d %d
	EndSubSection
EndSection
Section "ServerLayout"
	Identifier "layout"
	Screen "screen"
	InputDevice "touch" "SendCoreEvents"
EndSection
`, x11.TouchConfig("touch", touch), max(4*w*h/1024+1, 16<<10), clock/1e6, w, w+8, w+40, w+right, h, h+below-14, h+below-6, h+below, w, h)
}
