package port

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestInterruptedListings(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		errs []error
		want error
	}{
		"changed twice":   {[]error{netlink.ErrDumpInterrupted, fmt.Errorf("list: %w", netlink.ErrDumpInterrupted), nil}, nil},
		"another failure": {[]error{netlink.ErrDumpInterrupted, broken, nil}, broken},
		"always changing": {slices.Repeat([]error{netlink.ErrDumpInterrupted}, 100), netlink.ErrDumpInterrupted},
	} {
		n := 0
		got, err := listWithRetry(func() ([]int, error) {
			n++
			return []int{n}, c.errs[n-1]
		})
		if !errors.Is(err, c.want) || len(got) != 1 || got[0] != n {
			t.Errorf("%s: listWithRetry() = %v, %v after %d calls", name, got, err, n)
		}
	}
}
