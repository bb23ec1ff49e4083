package gesture

import (
	"runtime"

	"eidetic/internal/base/priority"
)

// urgently calls f on a thread that goes before others, where the user has the right to one.
// Without it events are later, and their times say so.
func urgently(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread, and its priority, end with the goroutine
		_, _ = priority.Realtime(0, priority.Input, false)
		done <- f()
	}()
	return <-done
}
