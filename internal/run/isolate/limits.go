package isolate

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// mostProcesses bounds the processes and threads of a run; of the browser's user there may be so many as well. A
	// Chromium with ten tabs has about 500.
	mostProcesses = 8192
	// mostFiles bounds the open files of each process.
	mostFiles = 65536
	// endsFirst is how much likelier than others the kernel ends a run's processes if memory is short: before the
	// service that started it.
	endsFirst = 500
)

// Limit bounds what this process, and all that it starts, may take of the machine. A limit that is lower already stays.
func Limit() error {
	limits := map[int]uint64{unix.RLIMIT_NPROC: mostProcesses, unix.RLIMIT_NOFILE: mostFiles, unix.RLIMIT_CORE: 0}
	if !isGroupBounded() {
		most, err := memoryBound()
		if err != nil {
			return err
		}
		limits[unix.RLIMIT_DATA] = most // of each process; what it reserves and does not use is not counted
	}
	for resource, most := range limits {
		var is unix.Rlimit
		if err := unix.Getrlimit(resource, &is); err != nil {
			return fmt.Errorf("reading the limits of the run: %w", err)
		}
		is.Cur, is.Max = min(is.Cur, most), min(is.Max, most)
		if err := unix.Setrlimit(resource, &is); err != nil {
			return fmt.Errorf("limiting the run: %w", err)
		}
	}
	err := os.WriteFile("/proc/self/oom_score_adj", fmt.Append(nil, endsFirst), 0)
	if err != nil && !errors.Is(err, fs.ErrPermission) { // it is higher already
		return fmt.Errorf("having the run end first if memory is short: %w", err)
	}
	return nil
}

// KeepDescriptors keeps all descriptors of this process but the standard streams from the programs that it starts, also
// those that it was started with. What a program is to have is passed on by exec.Cmd's ExtraFiles all the same.
func KeepDescriptors() error {
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping descriptors from other programs, which needs Linux 5.11: %w", err)
	}
	return nil
}
