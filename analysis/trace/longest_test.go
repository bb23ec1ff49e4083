package trace

import (
	"fmt"
	"testing"

	"eidetic/internal/lab"
)

// TestLongest: the longest stay, in their order, and of equals those that are spread over the time.
func TestLongest(t *testing.T) {
	var events []Event
	for i := range 1000 {
		e := Event{Name: fmt.Sprint(i), Start: lab.Time(i * 10), End: lab.Time(i*10 + 5)}
		if i%100 == 50 {
			e.End += 1000
		}
		events = append(events, e)
	}
	got := Longest(events, 110)
	if len(got) != 110 {
		t.Fatalf("Longest(1000 events, 110) has %d", len(got))
	}
	long, halves := 0, [2]int{}
	for i, place := range got {
		e := events[place]
		if i > 0 && place <= got[i-1] {
			t.Errorf("event %d starts before the one before it", i)
		}
		if e.End-e.Start > 1000 {
			long++
		} else {
			halves[min(int(e.Start)/5000, 1)]++
		}
	}
	if long != 10 || halves != [2]int{50, 50} {
		t.Errorf("%d of 10 long ones, others %v in the halves of the time; want all, and 50 in each", long, halves)
	}
	if got := Longest(events, 1000); len(got) != 1000 {
		t.Errorf("of 1000 events 1000 may stay, and %d do", len(got))
	}
	if got := Longest(events, 0); len(got) != 0 {
		t.Errorf("none may stay, and %d do", len(got))
	}
}
