package boottest

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// boxes are the tests that boot boxes of their own, or work as long as if they
// did, the longest first: they begin in this order, as many at a time as there
// are processors, and one that is long and begins last would be waited for alone.
// None asserts a time, so they mind no company.
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

// Tests that call t.Parallel themselves begin in the order in which the
// scheduler wakes them, which is nearly that of their files' names.
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
