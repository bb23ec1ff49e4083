package hid_test

import (
	"context"
	"errors"
	"image"
	"slices"
	"testing"
	"time"

	"eidetic/control"
	"eidetic/control/hid"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/lab"
)

// batches notes how many reports it gets at once.
type batches struct {
	*hidtest.Sink
	sizes []int
}

func (b *batches) Send(ctx context.Context, reports ...hid.Report) ([]hid.Interval, error) {
	b.sizes = append(b.sizes, len(reports))
	return b.Sink.Send(ctx, reports...)
}

// A transport gets a release together with its press, and what may have been down for too long is told by name.
func TestReleaseIsSentWithItsPress(t *testing.T) {
	mouse, touch := control.Capabilities{Keyboard: true, Pointer: true}, control.Capabilities{Keyboard: true, Touch: 5}
	relative := control.Capabilities{Motion: true}
	for _, tt := range []struct {
		name    string
		can     control.Capabilities
		act     func(context.Context, *hid.Controller) (lab.Event, error)
		want    []int // reports at once
		repeats bool
	}{
		{"key", mouse, func(ctx context.Context, c *hid.Controller) (lab.Event, error) { return c.Key(ctx, "Ctrl+L") }, []int{1, 2}, true},
		{"text", mouse, func(ctx context.Context, c *hid.Controller) (lab.Event, error) { return c.Text(ctx, "a") }, []int{2}, true},
		{"click", mouse, func(ctx context.Context, c *hid.Controller) (lab.Event, error) {
			return c.Click(ctx, 1, 1, control.Left)
		},
			[]int{1, 2}, false},
		{"relative", relative, func(ctx context.Context, c *hid.Controller) (lab.Event, error) {
			return c.Click(ctx, 0, 0, control.Left)
		},
			[]int{1, 1, 1, 2}, false},
		{"tap", touch, func(ctx context.Context, c *hid.Controller) (lab.Event, error) {
			return c.Click(ctx, 1, 1, control.Left)
		},
			[]int{2}, true},
	} {
		for _, slow := range []time.Duration{0, time.Hour} {
			sink := &batches{Sink: &hidtest.Sink{Can: tt.can, Slow: slow}}
			c, err := hid.New(sink, hid.Options{Screen: image.Pt(100, 100), Repeat: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			e, err := tt.act(t.Context(), c)
			var held *control.HeldError
			late := tt.repeats && slow > 0
			if errors.As(err, &held) != late || !late && err != nil || e == (lab.Event{}) {
				t.Errorf("%s, %v late: %+v, %v; want an event, and a HeldError if it is late and may repeat", tt.name, slow, e, err)
			}
			if !slices.Equal(sink.sizes, tt.want) {
				t.Errorf("%s: reports came in groups of %v; want %v", tt.name, sink.sizes, tt.want)
			}
			if err := c.Close(); err != nil || sink.Notes[len(sink.Notes)-1] != "close" || len(sink.Notes) != sum(tt.want)+1 {
				t.Errorf("%s: Close() = %v with %q; want nothing left to release", tt.name, err, sink.Notes)
			}
		}
	}
}

func sum(numbers []int) (n int) {
	for _, v := range numbers {
		n += v
	}
	return n
}

// Two fingers come down, move and leave; more than the touch screen knows are refused before the first.
func TestFingers(t *testing.T) {
	sink := &hidtest.Sink{Can: control.Capabilities{Touch: 2}}
	c, err := hid.New(sink, hid.Options{Screen: image.Pt(1<<14, 1<<14)})
	if err != nil {
		t.Fatal(err)
	}
	a, b := image.Pt(10, 20), image.Pt(30, 40)
	if _, err := c.Touch(t.Context(), a, b, a); err == nil || len(sink.Notes) > 0 {
		t.Errorf("Touch() by three fingers = %v after %q; want a refusal", err, sink.Notes)
	}
	for _, fingers := range [][]image.Point{{a, b}, {b, a}, {b}, nil} {
		if _, err := c.Touch(t.Context(), fingers...); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"touch 0+21,41 1+61,81", "touch 0+61,81 1+21,41", "touch 0+61,81 1-21,41", "touch 0-61,81"}
	if !slices.Equal(sink.Notes, want) {
		t.Errorf("the reports are %q; want %q", sink.Notes, want)
	}
}
