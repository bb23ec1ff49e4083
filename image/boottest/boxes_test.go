package boottest

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

// boxes are the tests that use boxes. They start in this order, the longest first, as many at a time as there are
// processors; a long one that started last would run alone. None asserts a time, so they may run side by side.
// How long each took is logged. A test with a reason why it is dear is left to make test-all.
var boxes = []struct {
	name string
	dear string
	run  func(*testing.T)
}{
	{"cases", "", onHealthyBox(cases)},
	{"browsers", "builds an image with a browser, and boots it", testBrowsers},
	{"installer", "boots twice: the installer, and what it wrote", testInstaller},
	{"plug-in", "one more box: the story of a laptop that is filmed by a grabber, hangs, and has each cable pulled", testPlugIn},
	{"updates", "boots six times or more: each update and each try of a bad one is a start", onHealthyBox(updateCases)},
	{"restarts", "boots three times: a configuration, a hang and a reset are each a start", onHealthyBox(restartCases)},
	{"life", "boots twice: after a power cut and after damage to the disk", onHealthyBox(lifeCases)},
	{"rebuild", "builds the image once more", testRebuild},
	{"Debian package", "repeats the test of image/deb in a whole Debian", testDebianPackage},
}

// TestBoxes starts the tests itself: tests that call t.Parallel start in the order in which
// the scheduler wakes them, which is nearly that of their files' names.
func TestBoxes(t *testing.T) {
	next, began := make(chan int), time.Now()
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for n := range next {
				t.Run(boxes[n].name, func(t *testing.T) {
					if boxes[n].dear != "" {
						testlab.Long(t, boxes[n].dear)
					}
					since := time.Now()
					boxes[n].run(t)
					t.Logf("it began after %.0f s and took %.0f s", since.Sub(began).Seconds(), time.Since(since).Seconds())
				})
			}
		})
	}
	for n := range boxes {
		next <- n
	}
	close(next)
	workers.Wait()
}

// guestCase is a test on a box that is healthy. It can run by itself, on a HealthyBox, and after the cases
// before it.
type guestCase struct {
	name string
	dear string // why it is left to make test-all; "" if it is not
	run  func(*testing.T, *Box)
}

// onHealthyBox returns a test that runs cases in their order on one HealthyBox. After a case that failed, whose box
// may be in any state, the next one gets another.
func onHealthyBox(cases []guestCase) func(*testing.T) {
	return func(t *testing.T) {
		b, whole := HealthyBox(t), true
		for _, c := range cases {
			if !whole {
				b.cut(t)
				b = HealthyBox(t)
			}
			whole = t.Run(c.name, func(t *testing.T) {
				if c.dear != "" {
					testlab.Long(t, c.dear)
				}
				began, before := time.Now(), b.CPU()
				c.run(t, b)
				t.Logf("it took %.0f s, and %.0f s of the processors", time.Since(began).Seconds(), (b.CPU() - before).Seconds())
			})
		}
	}
}
