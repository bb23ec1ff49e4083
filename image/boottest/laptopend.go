package boottest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"

	"eidetic/capture/x11"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/usbgrabber"
)

// laptopEnd is the near end of a laptop's cables, whose far end is the command image/boottest/laptop: a grabber is
// emulated here, which films an X screen and is plugged into the box by USB/IP, and the screen gets the input that comes
// from the box.
type laptopEnd struct {
	screen *x11.Source
	input  *xgb.Conn
	root   xproto.Window
	width  int
	height int

	newest  atomic.Pointer[[]byte] // the screen's picture
	dark    atomic.Bool            // no signal comes over the HDMI cable
	grabber *usbgrabber.Grabber

	mu  sync.Mutex
	usb net.Conn // of the grabber; nil while it is not plugged in
}

// attach makes the near end: input comes from the first connection to one listener, and each connection to the other
// is a box into which the grabber is plugged. It is served until ctx ends.
func attach(ctx context.Context, t *testing.T, display string, input, usb net.Listener) *laptopEnd {
	t.Helper()
	screen, err := x11.Open(x11.Options{Display: display, Rate: 30})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := xgb.NewConnDisplay(display)
	if err == nil {
		err = xtest.Init(keys)
	}
	if err == nil {
		// How long a key is down is decided by the box's kernel, whose emulated processor may stall while it brings a
		// release here. A server that repeats the key by itself would type what nobody typed.
		err = xproto.ChangeKeyboardControlChecked(keys, xproto.KbAutoRepeatMode, []uint32{xproto.AutoRepeatModeOff}).Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	f := screen.Format()
	end := &laptopEnd{screen: screen, input: keys, root: xproto.Setup(keys).DefaultScreen(keys).Root, width: f.Width, height: f.Height}
	end.grabber = usbgrabber.New(usbgrabber.Options{Film: end.draw})
	ctx, stop := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() { end.serveInput(ctx, input) })
	serving.Go(func() { end.serveGrabber(ctx, usb) })
	serving.Go(func() {
		if err := end.film(ctx); ctx.Err() == nil {
			t.Errorf("the laptop's screen: %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		input.Close()
		usb.Close()
		serving.Wait()
		keys.Close()
		screen.Close()
	})
	return end
}

// film keeps the screen's newest picture, until it fails.
func (e *laptopEnd) film(ctx context.Context) error {
	for {
		frame, err := e.screen.Next(ctx)
		if err != nil {
			return err
		}
		if len(frame.Changed) > 0 || e.newest.Load() == nil {
			picture := yuyv(frame.Pix, e.width, e.height)
			e.newest.Store(&picture)
		}
	}
}

// draw is what the grabber films.
func (e *laptopEnd) draw(f lab.Format, pix []byte, n int) {
	picture := e.newest.Load()
	if e.dark.Load() || picture == nil || len(*picture) != len(pix) {
		usbgrabber.NoSignal(f, pix, n)
		return
	}
	copy(pix, *picture)
}

// serveGrabber plugs the grabber into whoever connects.
func (e *laptopEnd) serveGrabber(ctx context.Context, from net.Listener) {
	for {
		conn, err := from.Accept()
		if err != nil {
			return // the test is over
		}
		e.mu.Lock()
		e.usb = conn
		e.mu.Unlock()
		_ = e.grabber.Serve(ctx, conn) // it ends when the plug is pulled, or with the test
	}
}

// pullUSB pulls the grabber out of the box.
func (e *laptopEnd) pullUSB() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.usb == nil {
		return errors.New("the grabber is not plugged in")
	}
	err := e.usb.Close()
	e.usb = nil
	return err
}

// serveInput gives the screen the input of whoever connects first.
func (e *laptopEnd) serveInput(ctx context.Context, from net.Listener) {
	conn, err := from.Accept()
	if err != nil {
		return // the test is over
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	e.act(conn)
}

// yuyv converts BGRX to limited-range BT.601 with half of the colour's columns, as a graphics card
// does for a television.
func yuyv(pix []byte, width, height int) []byte {
	out := make([]byte, 0, 2*width*height)
	for i := 0; i+8 <= 4*width*height; i += 8 {
		b, g, r := int(pix[i]), int(pix[i+1]), int(pix[i+2])
		b2, g2, r2 := int(pix[i+4]), int(pix[i+5]), int(pix[i+6])
		bm, gm, rm := (b+b2)/2, (g+g2)/2, (r+r2)/2
		luma := func(r, g, b int) byte { return byte(16 + (16829*r+33039*g+6416*b+1<<15)>>16) }
		out = append(out, luma(r, g, b), byte(128+(-9714*rm-19071*gm+28784*bm+1<<15)>>16),
			luma(r2, g2, b2), byte(128+(28784*rm-24103*gm-4681*bm+1<<15)>>16))
	}
	return out
}

// Kinds and codes of Linux's input events (input-event-codes.h).
const (
	evKey, evRelative, evAbsolute = 1, 2, 3
	relX, relY, relWheel          = 0, 1, 8
	absX, absY                    = 0, 1
	buttonLeft                    = 272
	absoluteRange                 = 32768
)

// act gives the screen the input that comes from the box.
func (e *laptopEnd) act(from io.Reader) {
	var b [8]byte
	var x, y int
	for {
		if _, err := io.ReadFull(from, b[:]); err != nil {
			return // the box has ended, or the test is over
		}
		kind, code := binary.BigEndian.Uint16(b[0:]), binary.BigEndian.Uint16(b[2:])
		value := int(int32(binary.BigEndian.Uint32(b[4:])))
		switch {
		case kind == evKey && code >= buttonLeft && code < buttonLeft+3:
			e.send(pressed(value, xproto.ButtonPress), []byte{1, 3, 2}[code-buttonLeft], 0, 0)
		case kind == evKey && code < 248 && value < 2: // nothing is repeated
			e.send(pressed(value, xproto.KeyPress), byte(code+8), 0, 0)
		case kind == evAbsolute && (code == absX || code == absY):
			if code == absX {
				x = value * e.width / absoluteRange
			} else {
				y = value * e.height / absoluteRange
			}
			e.send(xproto.MotionNotify, 0, int16(x), int16(y))
		case kind == evRelative && code == relWheel:
			button := byte(4)
			if value < 0 {
				button, value = 5, -value
			}
			for range min(value, 100) {
				e.send(xproto.ButtonPress, button, 0, 0)
				e.send(xproto.ButtonRelease, button, 0, 0)
			}
		}
	}
}

// pressed is the kind of a press, or of the release, which follows it in X's numbers.
func pressed(value int, press byte) byte {
	if value == 0 {
		return press + 1
	}
	return press
}

func (e *laptopEnd) send(kind, detail byte, x, y int16) {
	xtest.FakeInput(e.input, kind, detail, 0, e.root, x, y, 0)
}
