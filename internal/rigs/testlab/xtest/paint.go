package xtest

import (
	"io"
	"testing"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

// Paint sets the root window to a colour, with another client.
func Paint(t testing.TB, display string, rgb uint32) {
	t.Helper()
	xgb.Logger.SetOutput(io.Discard) // it reports that there is no authority file
	c, err := xgb.NewConnDisplay(display)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	screen := xproto.Setup(c).DefaultScreen(c)
	err = xproto.ChangeWindowAttributesChecked(c, screen.Root, xproto.CwBackPixel, []uint32{rgb}).Check()
	if err == nil {
		err = xproto.ClearAreaChecked(c, false, screen.Root, 0, 0, 0, 0).Check()
	}
	if err != nil {
		t.Fatal(err)
	}
}
