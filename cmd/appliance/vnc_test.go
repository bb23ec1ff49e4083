package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"

	rfbscreen "eidetic/capture/rfb"
	"eidetic/control/controltest"
	rfbinput "eidetic/control/rfb"
	"eidetic/internal/base/rfb/rfbtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// TestKeyToFrame drives and films one VNC server: a client paints its window
// when a key arrives. The frame that shows it must not be older than the key, however wide both
// intervals are. What the latency is on this machine is logged.
func TestKeyToFrame(t *testing.T) {
	server := rfbtest.Xvnc(t, testlab.NeedProgram(t, "Xvnc", "Xtigervnc"), "-geometry", "320x200")
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	target := controltest.NewWindow(t, server.Display)
	screen, err := rfbscreen.Open(ctx, rfbscreen.Options{Address: server.Address})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	keys, err := rfbinput.Open(ctx, rfbinput.Options{Address: server.Address})
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	const strokes = 20
	var event, least, most []time.Duration
	for n := range uint32(strokes) {
		e, err := keys.Key(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		target.Typed(1)
		colour := 0x100000 + 0x0a*(n+1)
		err = xproto.ChangeWindowAttributesChecked(target.Conn, target.ID, xproto.CwBackPixel, []uint32{colour}).Check()
		if err == nil {
			err = xproto.ClearAreaChecked(target.Conn, false, target.ID, 0, 0, 0, 0).Check()
		}
		if err != nil {
			t.Fatal(err)
		}
		f := lab.Frame{Pix: []byte{0}}
		for f.Pix[0] != byte(colour) {
			if f, err = screen.Next(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if f.Time < e.Earliest {
			t.Errorf("a frame of %d shows what a key did at %d or later", f.Time, e.Earliest)
		}
		event = append(event, e.Latest.Sub(e.Earliest))
		least = append(least, max(0, f.Time.Add(-f.Uncertainty).Sub(e.Latest)))
		most = append(most, f.Time.Sub(e.Earliest))
	}
	for _, list := range [][]time.Duration{event, least, most} {
		slices.Sort(list)
	}
	t.Logf("key to frame, medians of %d: at least %v, at most %v; the key's own interval %v",
		strokes, least[strokes/2], most[strokes/2], event[strokes/2])
}
