package priority

import "runtime"

// Urgently calls f on a thread of its own that goes before others, where the user has the right to one. Without it what
// f does is later, and its times say so.
func Urgently(want int, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread, and its priority, end with the goroutine
		_, _ = Realtime(0, want, false)
		done <- f()
	}()
	return <-done
}
