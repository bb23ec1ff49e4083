package isolate

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// KeepDescriptors keeps all descriptors of this process but the standard streams from the programs that it starts, also those that it was
// started with. What a program is to have is passed on by exec.Cmd's ExtraFiles all the same.
func KeepDescriptors() error {
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping descriptors from other programs, which needs Linux 5.11: %w", err)
	}
	return nil
}
