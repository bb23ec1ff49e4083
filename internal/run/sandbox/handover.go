package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"eidetic/internal/run/isolate"
)

// taskFile is the descriptor of the task in the inner half. A task is no argument of the process: every
// user of the machine may read those (ps), and the plan may hold cookies and fields that log in; and they
// are bounded by the kernel.
const taskFile = 3

// handOver returns a file in memory that holds the task as JSON, for the inner half's [taskFile].
func handOver(task any) (*os.File, error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("task", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("handing the task to the inner half: %w", err)
	}
	f := os.NewFile(uintptr(fd), "task")
	if _, err = f.Write(text); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("handing the task to the inner half: %w", err)
	}
	return f, nil
}

// takeOver reads the task in the inner half, and takes over its limits. No process that is started from
// now on gets a descriptor that the inner half was started with: they lead to the outer half.
func takeOver(task any) error {
	if err := errors.Join(isolate.KeepDescriptors(), isolate.Limit()); err != nil {
		return err
	}
	f := os.NewFile(taskFile, "task")
	defer f.Close()
	if err := json.NewDecoder(f).Decode(task); err != nil {
		return fmt.Errorf("the task of the inner half: %w", err)
	}
	return nil
}
