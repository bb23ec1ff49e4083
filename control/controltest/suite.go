package controltest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jezek/xgb/xproto"

	"eidetic/control"
	"eidetic/internal/lab"
)

// Suite is what every controller must do, tried with a controller whose input reaches a
// window of 640×480 pixels.
type Suite struct {
	Target *Window
	Open   func(t *testing.T) control.Controller
	// Text is what is typed; a US keyboard's characters when empty.
	Text      string
	PlainPlus bool // the layout types + without Shift
	NoPointer bool // nothing to move: a keyboard alone
	NoWheel   bool
	NoPan     bool          // the wheel turns one way only
	Ahead     time.Duration // by how much an interval may reach into the future: what a transport cannot know of its end
}

// Run runs all cases as subtests, one after another on one window.
func (s Suite) Run(t *testing.T) {
	c := s.Open(t)
	t.Run("text", func(t *testing.T) { s.text(t, c) })
	t.Run("chords", func(t *testing.T) { s.chords(t, c) })
	if !s.NoPointer {
		t.Run("pointer", func(t *testing.T) { s.pointer(t, c) })
	}
	t.Run("refusals", func(t *testing.T) {
		Refusals(t, c)
		if _, err := c.Key(within(t), "x"); err != nil {
			t.Errorf("Key() after refusals: %v", err)
		}
	})
	if err := c.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if mask := s.Target.Held(); mask != 0 {
		t.Errorf("something is still held after Close: mask %#x", mask)
	}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// checkInterval holds an event's interval against the clock around the call.
func (s Suite) checkInterval(t *testing.T, e lab.Event, before lab.Time) {
	t.Helper()
	if e.Earliest < before || e.Latest <= e.Earliest || e.Latest > lab.Monotonic().Add(s.Ahead) {
		t.Errorf("%s %q: interval %d … %d, want it after %d and not empty", e.Name, e.Detail, e.Earliest, e.Latest, before)
	}
}

func (s Suite) text(t *testing.T, c control.Controller) {
	s.Target.t = t
	text := s.Text
	if text == "" {
		text = "Hello, World! https://shop.example/?q=a&b=~ #1\nA"
	}
	before := lab.Monotonic()
	e, err := c.Text(within(t), text)
	if err != nil {
		t.Fatal(err)
	}
	if e.Name != lab.EventText || e.Detail != text {
		t.Errorf("Text() = %+v, want the event of %q", e, text)
	}
	s.checkInterval(t, e, before)
	want := Syms(text)
	got, _ := s.Target.Typed(len(want))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("keysyms of the text: -want +got\n", diff)
	}
}

func (s Suite) chords(t *testing.T, c control.Controller) {
	s.Target.t = t
	plus := uint16(xproto.ModMaskControl | xproto.ModMaskShift)
	if s.PlainPlus {
		plus = xproto.ModMaskControl
	}
	for _, tt := range []struct {
		chord string
		sym   xproto.Keysym
		state uint16
	}{
		{"Ctrl+L", 'l', xproto.ModMaskControl},
		{"F5", 0xffc2, 0},
		{"Alt+ArrowLeft", 0xff51, xproto.ModMask1},
		{"Enter", 0xff0d, 0},
		{"Ctrl++", '+', plus},
		{"Meta+d", 'd', xproto.ModMask4},
	} {
		before := lab.Monotonic()
		e, err := c.Key(within(t), tt.chord)
		if err != nil {
			t.Fatal(err)
		}
		s.checkInterval(t, e, before)
		syms, state := s.Target.Typed(1)
		if syms[0] != tt.sym || state[0] != tt.state {
			t.Errorf("%s: keysym %#x state %#x, want %#x %#x", tt.chord, syms[0], state[0], tt.sym, tt.state)
		}
	}
	if _, err := c.Key(within(t), "x"); err != nil { // answered after the last release
		t.Fatal(err)
	}
	s.Target.Typed(1)
	if mask := s.Target.Held(); mask != 0 {
		t.Errorf("something is still held: mask %#x", mask)
	}
}

func (s Suite) pointer(t *testing.T, c control.Controller) {
	s.Target.t = t
	if _, err := c.Move(within(t), 100, 50); err != nil {
		t.Fatal(err)
	}
	before := lab.Monotonic()
	e, err := c.Click(within(t), 639, 479, control.Right)
	if err != nil {
		t.Fatal(err)
	}
	s.checkInterval(t, e, before)
	want := []byte{3, 103}
	if !s.NoWheel {
		pan := -1
		if s.NoPan {
			pan = 0
		} else {
			want = append(want, 6, 106)
		}
		want = append(want, 5, 105, 5, 105)
		if _, err := c.Scroll(within(t), 10, 10, pan, 2); err != nil {
			t.Fatal(err)
		}
	}
	moved := false
	var got []byte
	for len(got) < len(want) {
		switch e := s.Target.Next().(type) {
		case xproto.MotionNotifyEvent:
			moved = moved || e.RootX == 100 && e.RootY == 50
		case xproto.ButtonPressEvent:
			got = append(got, byte(e.Detail))
			if e.Detail == 3 && (e.RootX != 639 || e.RootY != 479) {
				t.Errorf("clicked at %d,%d, want 639,479", e.RootX, e.RootY)
			}
		case xproto.ButtonReleaseEvent:
			got = append(got, 100+byte(e.Detail))
		}
	}
	if !moved {
		t.Error("the pointer was never at 100,50")
	}
	// Which of the two wheels turns first is the controller's choice.
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("buttons pressed (and 100 + released): -want +got\n", diff)
	}
}

// Refusals asks for what no controller of a screen of 640×480 pixels can send.
func Refusals(t *testing.T, c control.Controller) {
	t.Helper()
	ctx := within(t)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, f := range map[string]func() (lab.Event, error){
		"outside":   func() (lab.Event, error) { return c.Move(ctx, 640, 0) },
		"negative":  func() (lab.Event, error) { return c.Click(ctx, 0, -1, control.Left) },
		"button":    func() (lab.Event, error) { return c.Click(ctx, 0, 0, 9) },
		"notches":   func() (lab.Event, error) { return c.Scroll(ctx, 0, 0, 0, 5000) },
		"no text":   func() (lab.Event, error) { return c.Text(ctx, "") },
		"long text": func() (lab.Event, error) { return c.Text(ctx, strings.Repeat("x", control.MaxText+1)) },
		"control":   func() (lab.Event, error) { return c.Text(ctx, "a\x07") },
		"key":       func() (lab.Event, error) { return c.Key(ctx, "Hyper+x") },
		"cancelled": func() (lab.Event, error) { return c.Key(ended, "x") },
	} {
		if e, err := f(); err == nil || e != (lab.Event{}) {
			t.Errorf("%s: %+v, %v; want no event and an error", name, e, err)
		}
	}
}
