package v4l2

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// device is the narrow part of the kernel that a source needs: an open
// /dev/video*, or a test's stand-in.
type device interface {
	ioctl(request uint, arg unsafe.Pointer) error
	mmap(offset int64, length int) ([]byte, error)
	munmap([]byte) error
	// wait returns what the device has, or nothingCame after the limit.
	wait(ctx context.Context, limit time.Duration) (readiness, error)
	close() error
}

// readiness is what a device has for us.
type readiness int

const (
	nothingCame readiness = iota
	frameReady
	eventReady
	streamError // the stream has failed, or is off
	deviceGone
)

// node is a real device.
type node struct{ fd int }

func openNode(path string) (*node, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &node{fd}, nil
}

func (n *node) ioctl(request uint, arg unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(n.fd), uintptr(request), uintptr(arg))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return errno
		}
		return nil
	}
}

func (n *node) mmap(offset int64, length int) ([]byte, error) {
	return unix.Mmap(n.fd, offset, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func (n *node) munmap(b []byte) error { return unix.Munmap(b) }
func (n *node) close() error          { return unix.Close(n.fd) }

// wait polls in short steps, so that ctx is heard.
func (n *node) wait(ctx context.Context, limit time.Duration) (readiness, error) {
	const step = 100 * time.Millisecond
	fds := []unix.PollFd{{Fd: int32(n.fd), Events: unix.POLLIN | unix.POLLPRI}}
	for waited := time.Duration(0); waited < limit; waited += step {
		if err := ctx.Err(); err != nil {
			return nothingCame, err
		}
		got, err := unix.Poll(fds, int(step.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			waited -= step // a signal ends a step before its time
			continue
		}
		if err != nil {
			return nothingCame, fmt.Errorf("poll: %w", err)
		}
		if got == 0 {
			continue
		}
		// A device that has gone reports everything at once; one whose stream
		// has failed may have an event that says why.
		switch r := fds[0].Revents; {
		case r&(unix.POLLHUP|unix.POLLNVAL) != 0:
			return deviceGone, nil
		case r&unix.POLLPRI != 0:
			return eventReady, nil
		case r&unix.POLLERR != 0:
			return streamError, nil
		case r&unix.POLLIN != 0:
			return frameReady, nil
		}
	}
	return nothingCame, nil
}
