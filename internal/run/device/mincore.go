package device

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mincore tells, for each page of a mapping, whether it is in memory (mincore(2)).
func mincore(m, in []byte) error {
	_, _, number := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&in[0])))
	if number != 0 {
		return number
	}
	return nil
}
