package priority

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestScaled(t *testing.T) {
	for _, test := range []struct{ limit, link, recorder int }{{99, 20, 10}, {20, 20, 10}, {10, 10, 5}, {2, 2, 1}, {1, 1, 1}} {
		if l, r := scaled(Link, test.limit), scaled(Recorder, test.limit); l != test.link || r != test.recorder {
			t.Errorf("a limit of %d gives the link %d and the recorder %d, want %d and %d", test.limit, l, r, test.link, test.recorder)
		}
	}
}

// What a thread is told that it got is what the kernel says.
func TestRealtime(t *testing.T) {
	type answer struct {
		got  int
		err  error
		attr *unix.SchedAttr
	}
	answers := make(chan answer)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread and its priority end with the goroutine
		got, err := Realtime(0, Recorder, false)
		attr, attrErr := unix.SchedGetAttr(0, 0)
		if attrErr != nil {
			err = attrErr
		}
		answers <- answer{got, err, attr}
	}()
	a := <-answers
	switch {
	case a.attr == nil:
		t.Fatal(a.err)
	case a.err != nil && (a.attr.Policy == unix.SCHED_FIFO || a.got != 0):
		t.Errorf("it got %d (%v) and the kernel says %+v", a.got, a.err, a.attr)
	case a.err == nil && (a.attr.Policy != unix.SCHED_FIFO || int(a.attr.Priority) != a.got):
		t.Errorf("it got %d and the kernel says %+v", a.got, a.attr)
	}
}
