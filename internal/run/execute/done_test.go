package execute

import (
	"sync/atomic"
	"testing"

	"eidetic/internal/lab"
	"eidetic/netlab/replay"
)

type noStats struct{}

func (noStats) Stats() replay.Stats { return replay.Stats{} }

// TestDone: the first lab.done() of a page ends its trial, and the event has the name from the call.
func TestDone(t *testing.T) {
	a := &armed{core: noStats{}, done: &atomic.Pointer[lab.Event]{}}
	for _, n := range []replay.Annotation{
		{Time: 1, Name: "mark", Body: []byte(`{"name":"hero shown"}`)},
		{Time: 2, Name: "done", Body: []byte(`{"name":"cart shown","at_ms":812.5}`)},
		{Time: 3, Name: "done", Body: []byte(`{"name":"footer shown"}`)},
	} {
		if got := a.Traffic().Done; n.Time < 3 && got != nil {
			t.Errorf("Traffic().Done = %+v before the page called lab.done(), want nil", *got)
		}
		a.annotate(n)
	}
	want := lab.Event{Name: "done", Detail: "cart shown", Earliest: 2, Latest: 2}
	if got := a.Traffic().Done; got == nil || *got != want {
		t.Errorf("Traffic().Done = %+v, want %+v", got, want)
	}
}
