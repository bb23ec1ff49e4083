package x11

import (
	"context"
	"image"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jezek/xgb/xproto"

	"eidetic/control"
	"eidetic/control/controltest"
	"eidetic/control/gesture"
	"eidetic/internal/lab"
)

// TestHold: a button stays down while the pointer moves and other input is given, until it is
// lifted.
func TestHold(t *testing.T) {
	d, _ := display(t)
	target, c := controltest.NewWindow(t, d), open(t, d)
	ctx := t.Context()
	if _, err := c.Lift(ctx); err == nil {
		t.Error("Lift() of nothing succeeds")
	}
	if _, err := c.Press(ctx, 10, 20, control.Left); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Press(ctx, 10, 20, control.Left); err == nil {
		t.Error("a second Press() succeeds")
	}
	if _, err := c.Move(ctx, 30, 40); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Key(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Lift(ctx); err != nil {
		t.Fatal(err)
	}
	type seen struct {
		Kind string
		X, Y int16
		Held bool
	}
	var got []seen
	for len(got) < 4 {
		switch e := target.Next().(type) {
		case xproto.ButtonPressEvent:
			got = append(got, seen{"press", e.RootX, e.RootY, e.State&xproto.ButtonMask1 != 0})
		case xproto.MotionNotifyEvent:
			if len(got) > 0 { // the move to the place of the press comes before it
				got = append(got, seen{"move", e.RootX, e.RootY, e.State&xproto.ButtonMask1 != 0})
			}
		case xproto.KeyPressEvent:
			got = append(got, seen{"key", e.RootX, e.RootY, e.State&xproto.ButtonMask1 != 0})
		case xproto.ButtonReleaseEvent:
			got = append(got, seen{"lift", e.RootX, e.RootY, e.State&xproto.ButtonMask1 != 0})
		}
	}
	want := []seen{{"press", 10, 20, false}, {"move", 30, 40, true}, {"key", 30, 40, true}, {"lift", 30, 40, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

// TestFastDrag: a drag of 1000 events a second arrives complete and in order, and each event's
// interval holds.
func TestFastDrag(t *testing.T) {
	d, _ := display(t)
	target, c := controltest.NewWindow(t, d), open(t, d)
	doer := &gesture.Doer{Controller: c, Clock: lab.Monotonic, Find: place}
	log, err := doer.Do(t.Context(), lab.Step{Drag: "0,10 to 300,10", Over: 300, Rate: 1000, Late: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Events) != 302 {
		t.Fatalf("%d events; want 301 and a lift", len(log.Events))
	}
	last, moves := int16(0), 0
	for {
		e := target.Next()
		if m, ok := e.(xproto.MotionNotifyEvent); ok {
			if m.RootX < last {
				t.Fatalf("the pointer went back from %d to %d", last, m.RootX)
			}
			last = m.RootX
			moves++
		}
		if b, ok := e.(xproto.ButtonReleaseEvent); ok {
			if b.RootX != 300 {
				t.Errorf("the button is released at %d; want 300", b.RootX)
			}
			break
		}
	}
	var late []time.Duration
	for i, e := range log.Events[:301] {
		if e.Earliest < e.Planned || e.Latest < e.Earliest || i > 0 && e.Earliest < log.Events[i-1].Latest {
			t.Fatalf("event %d: planned %v, sent in [%v, %v]", i, e.Planned, e.Earliest, e.Latest)
		}
		late = append(late, e.Late())
	}
	slices.Sort(late)
	t.Logf("%d motions seen; lateness: median %v, p99 %v, worst %v", moves, late[150], late[297], late[300])
}

// place finds a target in pixels.
func place(_ context.Context, t lab.Target) (image.Rectangle, error) {
	at := image.Pt(int(t.X), int(t.Y))
	return image.Rectangle{at, at.Add(image.Pt(1, 1))}, nil
}
