package x11

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jezek/xgb/xproto"

	"eidetic/control/controltest"
	"eidetic/internal/lab"
)

// popUp opens a window of a program, whose events are w's; dialogue declares it one.
func popUp(t *testing.T, w *controltest.Window, dialogue bool) xproto.Window {
	t.Helper()
	atom := func(name string) xproto.Atom {
		reply, err := xproto.InternAtom(w.Conn, false, uint16(len(name)), name).Reply()
		if err != nil {
			t.Fatal(err)
		}
		return reply.Atom
	}
	id, err := xproto.NewWindowId(w.Conn)
	if err != nil {
		t.Fatal(err)
	}
	screen := xproto.Setup(w.Conn).DefaultScreen(w.Conn)
	err = xproto.CreateWindowChecked(w.Conn, screen.RootDepth, id, screen.Root, 300, 300, 50, 50, 0, xproto.WindowClassInputOutput,
		screen.RootVisual, xproto.CwEventMask, []uint32{xproto.EventMaskKeyPress}).Check()
	if err == nil && dialogue {
		value := binary.NativeEndian.AppendUint32(nil, uint32(atom("_NET_WM_WINDOW_TYPE_DIALOG")))
		err = xproto.ChangePropertyChecked(w.Conn, xproto.PropModeReplace, id, atom("_NET_WM_WINDOW_TYPE"), xproto.AtomAtom, 32,
			1, value).Check()
	}
	if err == nil {
		err = xproto.MapWindowChecked(w.Conn, id).Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestChooseFile: the path goes to the dialogue, which lies elsewhere than the pointer, and not to another window that
// the click opens.
func TestChooseFile(t *testing.T) {
	d, _ := display(t)
	page, c := controltest.NewWindow(t, d), open(t, d)
	type answer struct {
		before []lab.Event
		chosen lab.Event
		err    error
	}
	done, shown := make(chan answer, 1), make(chan struct{})
	go func() {
		before, chosen, err := c.ChooseFile(t.Context(), 20, 30, "~/files/b", func(context.Context) error {
			close(shown)
			return nil
		})
		done <- answer{before, chosen, err}
	}()
	for is := false; !is; {
		_, is = page.Next().(xproto.ButtonReleaseEvent)
	}
	popUp(t, page, false)
	dialogue := popUp(t, page, true)
	syms, _ := page.Typed(len("~/files/b"))
	if diff := cmp.Diff(controltest.Syms("~/files/b"), syms); diff != "" {
		t.Error("-want +got\n", diff)
	}
	<-shown
	syms, state := page.Typed(1)
	if diff := cmp.Diff(controltest.Syms("o"), syms); diff != "" || state[0]&xproto.ModMask1 == 0 {
		t.Errorf("with the modifiers %x: -want +got\n%s", state, diff)
	}
	select {
	case got := <-done:
		t.Fatalf("ChooseFile() = %+v before the dialogue has gone", got)
	default:
	}
	if err := xproto.DestroyWindowChecked(page.Conn, dialogue).Check(); err != nil {
		t.Fatal(err)
	}
	got := <-done
	if got.err != nil || len(got.before) != 2 || got.chosen.Earliest < got.before[1].Latest {
		t.Errorf("ChooseFile() = %+v; want a click and a text, and then the key", got)
	}
}
