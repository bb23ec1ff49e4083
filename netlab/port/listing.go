package port

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// listWithRetry calls list again when the kernel reports that the list changed
// meanwhile (netlink's NLM_F_DUMP_INTR): interfaces and addresses come and go while
// a box starts.
func listWithRetry[T any](list func() ([]T, error)) (all []T, err error) {
	const most = 10
	for range most {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
