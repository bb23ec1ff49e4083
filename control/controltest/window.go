// Package controltest receives the input that controllers send, in their tests: an X
// client with a window over the whole screen. What was typed and clicked flows out.
package controltest

import (
	"io"
	"testing"
	"time"
	"unicode"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"eidetic/control/keysym"
	"eidetic/internal/rigs/testlab"
)

// Patience is how long a test waits for what must come; machines are busy.
const Patience = testlab.Hang

// Window is a window over the whole screen that notes what it gets.
type Window struct {
	Conn *xgb.Conn
	ID   xproto.Window

	t      testing.TB
	events chan xgb.Event
}

// NewWindow opens a window with the keyboard's focus, which closes with the test.
func NewWindow(t testing.TB, display string) *Window {
	t.Helper()
	xgb.Logger.SetOutput(io.Discard) // it reports that there is no authority file
	conn, err := xgb.NewConnDisplay(display)
	if err != nil {
		t.Fatal(err)
	}
	w := &Window{Conn: conn, t: t, events: make(chan xgb.Event, 1000)}
	screen := xproto.Setup(conn).DefaultScreen(conn)
	if w.ID, err = xproto.NewWindowId(conn); err != nil {
		t.Fatal(err)
	}
	mask := uint32(xproto.EventMaskKeyPress | xproto.EventMaskKeyRelease | xproto.EventMaskButtonPress |
		xproto.EventMaskButtonRelease | xproto.EventMaskPointerMotion | xproto.EventMaskExposure)
	err = xproto.CreateWindowChecked(conn, screen.RootDepth, w.ID, screen.Root, 0, 0, screen.WidthInPixels, screen.HeightInPixels, 0,
		xproto.WindowClassInputOutput, screen.RootVisual, xproto.CwBackPixel|xproto.CwOverrideRedirect|xproto.CwEventMask,
		[]uint32{0, 1, mask}).Check()
	if err != nil {
		t.Fatal(err)
	}
	xproto.MapWindow(conn, w.ID)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(w.events)
		for {
			e, err := conn.WaitForEvent()
			if e == nil && err == nil {
				return
			}
			if e != nil {
				w.events <- e
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		for range w.events { // so that the goroutine is not stuck
		}
		<-ended
	})
	for { // the window can have the focus once it is shown
		if _, ok := w.Next().(xproto.ExposeEvent); ok {
			break
		}
	}
	if err := xproto.SetInputFocusChecked(conn, xproto.InputFocusParent, w.ID, xproto.TimeCurrentTime).Check(); err != nil {
		t.Fatal(err)
	}
	return w
}

// Next returns the next event.
func (w *Window) Next() xgb.Event {
	w.t.Helper()
	select {
	case e, ok := <-w.events:
		if !ok {
			w.t.Fatal("the X server went away")
		}
		return e
	case <-time.After(Patience):
		w.t.Fatal("no event came")
		return nil
	}
}

// Typed reads n key presses as a client does, with the keyboard mapping of
// that moment; modifiers by themselves do not count.
func (w *Window) Typed(n int) (syms []xproto.Keysym, state []uint16) {
	w.t.Helper()
	for len(syms) < n {
		e, ok := w.Next().(xproto.KeyPressEvent)
		if !ok {
			continue
		}
		reply, err := xproto.GetKeyboardMapping(w.Conn, e.Detail, 1).Reply()
		if err != nil {
			w.t.Fatal(err)
		}
		column := 0
		if e.State&xproto.ModMaskShift != 0 {
			column = 1
		}
		if e.State&xproto.ModMask5 != 0 {
			column += 4
		}
		s := at(reply.Keysyms, column)
		if s >= 0xffe1 && s <= 0xffee || s == keysym.Level3 {
			continue
		}
		syms, state = append(syms, s), append(state, e.State)
	}
	return syms, state
}

// at returns a column of a key's keysyms. Where the second column is missing, it is the
// capital of a letter, and the first column of any other key (X Protocol, chapter 5).
func at(syms []xproto.Keysym, column int) xproto.Keysym {
	if column < len(syms) && syms[column] != 0 {
		return syms[column]
	}
	if column != 1 || len(syms) == 0 {
		return 0
	}
	if s := syms[0]; s < 0x100 && unicode.IsLower(rune(s)) {
		return xproto.Keysym(keysym.OfRune(unicode.ToUpper(rune(s))))
	}
	return syms[0]
}

// Held says which modifiers and buttons are down.
func (w *Window) Held() uint16 {
	w.t.Helper()
	p, err := xproto.QueryPointer(w.Conn, w.ID).Reply()
	if err != nil {
		w.t.Fatal(err)
	}
	return p.Mask
}

// Syms returns the keysyms of a text's characters.
func Syms(text string) (syms []xproto.Keysym) {
	for _, r := range text {
		syms = append(syms, xproto.Keysym(keysym.OfRune(r)))
	}
	return syms
}
