package port

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// whole lists again when the kernel says that what it lists changed meanwhile:
// interfaces and addresses come and go while a box starts.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	const most = 10
	for range most {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
