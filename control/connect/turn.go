package connect

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrDriven says that another program has a device's controls.
var ErrDriven = errors.New("another program drives this device: a run, or appliance control; one at a time can") // constant

// takeTurn makes this program the only one that drives a device by these controls, until the
// returned value is closed; nil for servers (X11, VNC), which serve several. The turn is a name in
// the kernel's abstract namespace of Unix sockets: it needs no folder that all programs may write
// to, and ends with the program.
func takeTurn(name string) (io.Closer, error) {
	kind, path, _ := strings.Cut(name, ":")
	switch kind {
	case "ch9329":
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
	case "gadget", "adb":
	default:
		return nil, nil
	}
	sum := sha256.Sum256([]byte(kind + ":" + path))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("@eidetic-controls-%x", sum[:16]), Net: "unix"})
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %w", name, ErrDriven)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: taking the turn: %w", name, err)
	}
	return l, nil
}
