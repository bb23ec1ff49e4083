package power

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// allowBroadcast lets a socket send to all of a network.
func allowBroadcast(_, _ string, c syscall.RawConn) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1) }), err)
}
