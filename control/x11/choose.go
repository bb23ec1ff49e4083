package x11

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"eidetic/control"
	"eidetic/internal/lab"
)

var _ control.FileChooser = (*Controller)(nil)

// dialogueTime is how long a program may take to open its file dialogue, and to close it.
const dialogueTime = 10 * time.Second

// chooseKey is the access key of GTK's button Open: Return in the path's field closes Chromium's dialogue without a file.
const chooseKey = "Alt+O"

// errNoDialogue says that a click opened no window that could take a path.
var errNoDialogue = fmt.Errorf("the click opened no file dialogue within %v: aim at what opens it", dialogueTime) // constant

// ChooseFile implements [control.FileChooser] for dialogues of GTK, which Chromium and Firefox show, on a screen without
// a window manager: the dialogue is given the keyboard here.
func (c *Controller) ChooseFile(
	ctx context.Context, x, y int, path string, ready func(ctx context.Context) error,
) (before []lab.Event, chosen lab.Event, err error) {
	w, err := c.watchWindows()
	if err != nil {
		return nil, chosen, err
	}
	defer w.conn.Close()
	clicked, err := c.Click(ctx, x, y, control.Left)
	if err != nil {
		return nil, chosen, err
	}
	before = append(before, clicked)
	dialogue, err := w.opened(ctx)
	if err != nil {
		return before, chosen, err
	}
	earlier, err := xproto.GetInputFocus(w.conn).Reply()
	if err == nil {
		err = xproto.SetInputFocusChecked(w.conn, xproto.InputFocusPointerRoot, dialogue, xproto.TimeCurrentTime).Check()
	}
	if err != nil {
		return before, chosen, fmt.Errorf("giving the file dialogue the keyboard: %w", err)
	}
	typed, err := c.Text(ctx, path)
	if err != nil {
		return before, chosen, err
	}
	before = append(before, typed)
	if ready != nil {
		if err := ready(ctx); err != nil {
			return before, chosen, err
		}
	}
	if chosen, err = c.Key(ctx, chooseKey); err != nil {
		return before, chosen, err
	}
	if err := w.closed(ctx, dialogue); err != nil {
		return before, chosen, fmt.Errorf("the file dialogue did not take %s within %v: %w", path, dialogueTime, err)
	}
	// Where the window has gone meanwhile the keyboard stays with the pointer's.
	xproto.SetInputFocus(w.conn, xproto.InputFocusPointerRoot, earlier.Focus, xproto.TimeCurrentTime)
	return before, chosen, nil
}

// windows tells of windows that programs open and close.
type windows struct {
	conn   *xgb.Conn
	typ    xproto.Atom // _NET_WM_WINDOW_TYPE
	dialog xproto.Atom
	events chan xgb.Event // closed when the connection has ended
}

func (c *Controller) watchWindows() (*windows, error) {
	conn, err := xgb.NewConnDisplay(c.display)
	if err != nil {
		return nil, fmt.Errorf("watching for a file dialogue: %w", err)
	}
	w := &windows{conn: conn, events: make(chan xgb.Event, 64)}
	if err := w.setUp(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("watching for a file dialogue: %w", err)
	}
	go func() {
		defer close(w.events)
		for {
			e, err := conn.WaitForEvent()
			switch {
			case e == nil && err == nil:
				return
			case e == nil: // of a window that has gone since
				continue
			}
			select {
			case w.events <- e:
			default: // nobody waits for so many
			}
		}
	}()
	return w, nil
}

func (w *windows) setUp() error {
	for name, atom := range map[string]*xproto.Atom{
		"_NET_WM_WINDOW_TYPE": &w.typ, "_NET_WM_WINDOW_TYPE_DIALOG": &w.dialog,
	} {
		reply, err := xproto.InternAtom(w.conn, false, uint16(len(name)), name).Reply()
		if err != nil {
			return orClosed(err)
		}
		*atom = reply.Atom
	}
	root := xproto.Setup(w.conn).DefaultScreen(w.conn).Root
	events := []uint32{xproto.EventMaskSubstructureNotify}
	return xproto.ChangeWindowAttributesChecked(w.conn, root, xproto.CwEventMask, events).Check()
}

// opened waits for a dialogue.
func (w *windows) opened(ctx context.Context) (xproto.Window, error) {
	limit := time.NewTimer(dialogueTime)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-limit.C:
			return 0, errNoDialogue
		case e, open := <-w.events:
			if !open {
				return 0, orClosed(nil)
			}
			if m, ok := e.(xproto.MapNotifyEvent); ok && !m.OverrideRedirect && w.isDialogue(m.Window) {
				return m.Window, nil
			}
		}
	}
}

// isDialogue says whether a window is declared a dialogue: a page may open windows, too.
func (w *windows) isDialogue(window xproto.Window) bool {
	reply, err := xproto.GetProperty(w.conn, false, window, w.typ, xproto.AtomAtom, 0, 16).Reply()
	if err != nil || reply.Format != 32 {
		return false // it has gone since, or says nothing of itself
	}
	var types []xproto.Atom
	for b := reply.Value; len(b) >= 4; b = b[4:] {
		types = append(types, xproto.Atom(xgb.Get32(b)))
	}
	return slices.Contains(types, w.dialog)
}

// closed waits until a window is gone.
func (w *windows) closed(ctx context.Context, window xproto.Window) error {
	limit := time.NewTimer(dialogueTime)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return errors.New("it is still open")
		case e, open := <-w.events:
			if !open {
				return orClosed(nil)
			}
			if u, ok := e.(xproto.UnmapNotifyEvent); ok && u.Window == window {
				return nil
			}
		}
	}
}
