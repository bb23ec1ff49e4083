package device

import (
	"fmt"
	"slices"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

// giveFocus gives the keyboard to each window that a program opens, and back to the one before when that is closed, as
// a window manager does, until the function that it returns is called. The screen has none: it would draw frames, and
// choose places, that are no part of the program. Menus and the like (override-redirect) take the keyboard themselves.
func (x *XServer) giveFocus() (end func(), err error) {
	c, err := xgb.NewConnDisplay(x.Display)
	if err != nil {
		return nil, fmt.Errorf("giving windows the keyboard: %w", err)
	}
	root := xproto.Setup(c).DefaultScreen(c).Root
	events := []uint32{xproto.EventMaskSubstructureNotify}
	if err := xproto.ChangeWindowAttributesChecked(c, root, xproto.CwEventMask, events).Check(); err != nil {
		c.Close()
		return nil, fmt.Errorf("giving windows the keyboard: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []xproto.Window // the newest last
		is := func(one xproto.Window) func(xproto.Window) bool {
			return func(w xproto.Window) bool { return w == one }
		}
		for {
			event, err := c.WaitForEvent()
			if event == nil && err == nil { // the connection has ended
				return
			}
			switch e := event.(type) {
			case xproto.MapNotifyEvent:
				if e.OverrideRedirect {
					continue
				}
				open = append(slices.DeleteFunc(open, is(e.Window)), e.Window)
			case xproto.UnmapNotifyEvent:
				if open = slices.DeleteFunc(open, is(e.Window)); len(open) == 0 {
					continue
				}
			default: // an error is of a window that has gone since
				continue
			}
			xproto.SetInputFocus(c, xproto.InputFocusPointerRoot, open[len(open)-1], xproto.TimeCurrentTime)
		}
	}()
	return func() {
		c.Close()
		<-done
	}, nil
}
