package runqueue

import (
	"fmt"
	"testing"

	"eidetic/internal/keep/store"
)

// runs lists the runs of progress in order, with how they are.
func runs(all []Progress) (text string) {
	for _, s := range all {
		text += s.Run + ":" + s.State + " "
	}
	return text
}

// A listener that comes back learns of the runs that ended meanwhile.
func TestListenAfter(t *testing.T) {
	e := NewEvents()
	first := e.Listen("")
	e.Publish(Progress{Run: "a", State: store.StateRunning})
	e.Publish(Progress{Run: "b", State: store.StateRunning})
	if got := runs(first.Take()); got != "a:running b:running " {
		t.Fatalf("the first listener got %s", got)
	}
	place := first.Place()
	first.Close()
	e.Publish(Progress{Run: "a", State: store.StateDone})
	e.Publish(Progress{Run: "b", State: store.StateRunning, Trial: 2})
	e.Publish(Progress{Run: "c", State: store.StateFailed})
	l, complete := e.ListenAfter("", place)
	defer l.Close()
	if got := runs(l.Take()); got != "b:running a:done c:failed " || !complete {
		t.Errorf("after %s: %s, complete %v; want the ends of a and c", place, got, complete)
	}
	again, complete := e.ListenAfter("", l.Place())
	defer again.Close()
	if got := runs(again.Take()); got != "b:running " || !complete {
		t.Errorf("after all of it: %s, complete %v; want what goes on", got, complete)
	}
	for _, strange := range []string{"", "x", "other-1", e.process + "-99", e.process + "--1", e.process + "-99999999999999999999"} {
		l, complete := e.ListenAfter("", strange)
		if complete {
			t.Errorf("ListenAfter(%q) is complete", strange)
		}
		l.Close()
	}
	for i := range mostEnds + 1 {
		e.Publish(Progress{Run: fmt.Sprint("r", i), State: store.StateDone})
	}
	late, complete := e.ListenAfter("", place)
	defer late.Close()
	if complete || len(e.ends) != mostEnds {
		t.Errorf("after %d ends: complete %v, %d are kept; want %d", mostEnds+1, complete, len(e.ends), mostEnds)
	}
}
