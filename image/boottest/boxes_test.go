package boottest

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// boxes are the tests that boot boxes of their own, or take as long. They start in this
// order, the longest first, as many at a time as there are processors; a long one that
// started last would run alone. None asserts a time, so they may run side by side.
// How long each took is logged.
var boxes = []struct {
	name string
	run  func(*testing.T)
}{
	{"life", testLife},
	{"cases", testCases},
	{"restarts", testRestarts},
	{"installer", testInstaller},
	{"rebuild", testRebuild},
	{"Debian package", testDebianPackage},
}

// TestBoxes starts the tests itself: tests that call t.Parallel start in the order in which
// the scheduler wakes them, which is nearly that of their files' names.
func TestBoxes(t *testing.T) {
	next, began := make(chan int), time.Now()
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for n := range next {
				since := time.Now()
				t.Run(boxes[n].name, boxes[n].run)
				t.Logf("%s began after %.0f s and took %.0f s", boxes[n].name, since.Sub(began).Seconds(), time.Since(since).Seconds())
			}
		})
	}
	for n := range boxes {
		next <- n
	}
	close(next)
	workers.Wait()
}
