package xtest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

// windows describes the windows of a screen, from the lowest to the topmost.
func windows(display string) string {
	xgb.Logger.SetOutput(io.Discard) // xgb also logs the errors that it returns
	c, err := xgb.NewConnDisplay(display)
	if err != nil {
		return fmt.Sprintf("display %s accepts no client: %v", display, err)
	}
	defer c.Close()
	tree, err := xproto.QueryTree(c, xproto.Setup(c).DefaultScreen(c).Root).Reply()
	if err != nil || tree == nil {
		return fmt.Sprintf("display %s does not list its windows: %v", display, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "display %s has %d windows", display, len(tree.Children))
	for _, w := range tree.Children {
		g, err := xproto.GetGeometry(c, xproto.Drawable(w)).Reply()
		if err != nil || g == nil {
			continue // it was closed meanwhile
		}
		a, err := xproto.GetWindowAttributes(c, w).Reply()
		if err != nil || a == nil {
			continue
		}
		state := "hidden"
		if a.MapState == xproto.MapStateViewable {
			state = "shown"
		}
		fmt.Fprintf(&b, "\n  %#x %d×%d at %d,%d, %s, name %q, class %q", uint32(w), g.Width, g.Height, g.X, g.Y, state,
			property(c, w, xproto.AtomWmName), property(c, w, xproto.AtomWmClass))
	}
	return b.String()
}

func property(c *xgb.Conn, w xproto.Window, name xproto.Atom) string {
	r, err := xproto.GetProperty(c, false, w, name, xproto.AtomAny, 0, 64).Reply()
	if err != nil || r == nil {
		return ""
	}
	return string(r.Value)
}

// machine describes state of the machine that earlier tests may have left.
func machine() string {
	var b strings.Builder
	for _, file := range []string{"/proc/uptime", "/proc/loadavg", "/proc/pressure/cpu"} {
		text, err := os.ReadFile(file)
		if err == nil {
			fmt.Fprintf(&b, "%s: %s\n", file, strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "; "))
		}
	}
	if text, err := os.ReadFile("/proc/sysvipc/shm"); err == nil {
		fmt.Fprintf(&b, "shared memory segments: %d\n", max(0, bytes.Count(text, []byte("\n"))-1))
	}
	sockets, _ := filepath.Glob("/tmp/.X11-unix/X*") // the pattern is valid
	locks, _ := filepath.Glob("/tmp/.X*-lock")
	fmt.Fprintf(&b, "X servers' sockets and locks: %q\n", append(sockets, locks...))
	fmt.Fprintf(&b, "processes with a display: %q", displays())
	return b.String()
}

// displays lists the processes whose environment names a display: a process that no test
// started may draw on a test's screen.
func displays() (all []string) {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is valid
	for _, file := range environments {
		env, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended, or is another user's
		}
		for entry := range strings.SplitSeq(string(env), "\x00") {
			if display, ok := strings.CutPrefix(entry, "DISPLAY="); ok {
				command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "comm")) // empty where it has ended
				all = append(all, fmt.Sprintf("%s %s on %s", filepath.Base(filepath.Dir(file)), bytes.TrimSpace(command), display))
			}
		}
	}
	return all
}
