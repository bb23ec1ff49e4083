package xtest

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) {
	Main()
	testlab.NoLeaks(m)
}

// TestStrangersAreRefused checks that a program that knows only the display's number
// cannot draw on a test's screen, and that a program with the cookie can.
func TestStrangersAreRefused(t *testing.T) {
	server := Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "200x100x24")
	c, err := net.Dial("unix", "/tmp/.X11-unix/X"+strings.TrimPrefix(server.Display, ":"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A little-endian client of version 11.0, without authorisation.
	if _, err := c.Write([]byte{'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	var status [1]byte
	if _, err := io.ReadFull(c, status[:]); err != nil || status[0] != 0 {
		t.Errorf("the server answers a stranger with status %d, %v; want 0, refused", status[0], err)
	}
	xgb.Logger.SetOutput(io.Discard)
	friend, err := xgb.NewConnDisplay(server.Display)
	if err != nil {
		t.Fatal(err)
	}
	defer friend.Close()
	id, err := xproto.NewWindowId(friend)
	if err != nil {
		t.Fatal(err)
	}
	screen := xproto.Setup(friend).DefaultScreen(friend)
	xproto.CreateWindow(friend, 0, id, screen.Root, 0, 0, 200, 100, 0, xproto.WindowClassInputOutput, screen.RootVisual, 0, nil)
	const name = "New Tab"
	xproto.ChangeProperty(friend, xproto.PropModeReplace, id, xproto.AtomWmName, xproto.AtomString, 8, uint32(len(name)), []byte(name))
	if err := xproto.MapWindowChecked(friend, id).Check(); err != nil {
		t.Fatal(err)
	}
	if got := windows(server.Display); !strings.Contains(got, `200×100 at 0,0, shown, name "New Tab"`) {
		t.Errorf("windows() = %s; want the one that covers the screen", got)
	}
	if got := machine(); !strings.Contains(got, "/tmp/.X11-unix/X"+server.Display[1:]) {
		t.Errorf("machine() = %s; want the server's socket in it", got)
	}
}
