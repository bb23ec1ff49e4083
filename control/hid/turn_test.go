package hid_test

import (
	"image"
	"testing"
	"time"

	"eidetic/control"
	"eidetic/control/hid"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/lab"
)

// A host reads keyboard and pointer each for itself: what is typed right after a click must not overtake it, nor a
// click what is typed.
func TestPartsTakeTurns(t *testing.T) {
	sink := &hidtest.Sink{Can: control.Capabilities{Keyboard: true, Pointer: true, Touch: 1}}
	c, err := hid.New(sink, hid.Options{Layout: "us", Screen: image.Pt(100, 100)})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	const least = 15 * time.Millisecond
	must := func(e lab.Event, err error) lab.Event {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	click := must(c.Click(ctx, 10, 10, control.Left))
	typed := must(c.Text(ctx, "a"))
	if gap := typed.Earliest.Sub(click.Latest); gap < least {
		t.Errorf("a key comes %v after a click, want at least %v", gap, least)
	}
	again := must(c.Click(ctx, 20, 20, control.Left))
	if gap := again.Earliest.Sub(typed.Latest); gap < least {
		t.Errorf("a click comes %v after a key, want at least %v", gap, least)
	}
}
