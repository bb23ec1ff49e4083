package usbgrabber

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// controller is the kernel's host controller at the other end of USB/IP (module vhci-hcd).
const controller = "/sys/devices/platform/vhci_hcd.0"

// Cable is a plug in this machine's port.
type Cable struct {
	stop  context.CancelFunc
	ended chan struct{}
}

// Plug plugs the stick into a port of this machine. It takes a kernel with vhci-hcd, and root.
func (g *Grabber) Plug(ctx context.Context) (*Cable, error) {
	host, stick, err := pair()
	if err != nil {
		return nil, fmt.Errorf("plug: %w", err)
	}
	defer host.Close() // the kernel keeps the socket
	ctx, stop := context.WithCancel(ctx)
	c := &Cable{stop, make(chan struct{})}
	conn, err := net.FileConn(stick)
	_ = stick.Close()
	if err != nil {
		stop()
		return nil, fmt.Errorf("plug: %w", err)
	}
	go func() {
		defer close(c.ended)
		_ = g.Serve(ctx, conn) // the kernel's log says what it did not understand
	}()
	if err := Import(host); err != nil {
		c.Pull()
		return nil, err
	}
	return c, nil
}

// Import plugs the stick at the other end of a connection into a port of this machine, whose kernel keeps the
// connection. It takes a kernel with vhci-hcd, and root.
func Import(conn *os.File) error {
	err := importDevice(conn)
	if err == nil {
		err = attach(conn)
	}
	if err != nil {
		return fmt.Errorf("plug: %w", err)
	}
	return nil
}

func pair() (host, stick *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "stick"), nil
}

// importDevice asks for the device, as a host does before its kernel takes the connection over.
func importDevice(conn io.ReadWriter) error {
	name := make([]byte, 32)
	copy(name, busID)
	if _, err := conn.Write(append(operation(reqImport, 0), name...)); err != nil {
		return err
	}
	answer := make([]byte, 8+deviceInfo)
	if _, err := io.ReadFull(conn, answer[:8]); err != nil {
		return err
	}
	if order.Uint16(answer[2:]) != repImport || order.Uint32(answer[4:]) != 0 {
		return fmt.Errorf("import: %x", answer[:8])
	}
	_, err := io.ReadFull(conn, answer[8:])
	return err
}

// attach gives the connection to the first free port for SuperSpeed. A line of the file with the state of the ports is
// "ss  0008 004 000 00000000 000000 0-0": hub, port, state (4: free), speed, device, socket, local name.
func attach(conn *os.File) error {
	status, err := os.ReadFile(filepath.Join(controller, "status"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		var port, state int
		if n, _ := fmt.Sscanf(line, "ss %d %d", &port, &state); n == 2 && state == 4 {
			text := fmt.Sprintf("%d %d %d %d", port, conn.Fd(), deviceID, speedSuper)
			return os.WriteFile(filepath.Join(controller, "attach"), []byte(text), 0)
		}
	}
	return fmt.Errorf("no port of %s is free:\n%s", controller, status)
}

// Pull pulls the stick out.
func (c *Cable) Pull() {
	c.stop()
	<-c.ended
}
