package x11

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// segment is a piece of System V shared memory.
type segment struct {
	id      int
	mem     []byte
	removed bool
}

func newSegment(size int) (*segment, error) {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, size, unix.IPC_CREAT|0o600)
	if err != nil {
		return nil, fmt.Errorf("shared memory of %d bytes: %w", size, err)
	}
	mem, err := unix.SysvShmAttach(id, 0, 0)
	s := &segment{id: id}
	if err != nil {
		s.release()
		return nil, fmt.Errorf("attach shared memory: %w", err)
	}
	s.mem = mem
	return s, nil
}

// release marks the segment for removal: the kernel frees it when the last
// process has gone, however it ends.
func (s *segment) release() {
	if !s.removed {
		_, _ = unix.SysvShmCtl(s.id, unix.IPC_RMID, nil)
		s.removed = true
	}
}

func (s *segment) close() {
	if s.mem != nil {
		_ = unix.SysvShmDetach(s.mem)
		s.release()
		s.mem = nil
	}
}
