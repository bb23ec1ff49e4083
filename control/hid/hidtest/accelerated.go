package hidtest

import (
	"context"
	"image"
	"math"
	"sync"
	"testing"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"eidetic/control"
	"eidetic/control/hid"
	"eidetic/internal/lab"
)

// Accelerated is a computer that moves its pointer farther the faster its mouse moves, as tablets do. Its pointer is a small
// black window of an X server: X itself draws none into its pictures.
type Accelerated struct {
	Sink
	Point image.Point // what the pointer points to, from the window's corner

	conn   *xgb.Conn
	window xproto.Window
	size   image.Point

	mu   sync.Mutex
	x, y float64
}

// NewAccelerated plugs into the X server, whose screen becomes light grey.
func NewAccelerated(t testing.TB, display string) *Accelerated {
	t.Helper()
	conn, err := xgb.NewConnDisplay(display)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	root := xproto.Setup(conn).DefaultScreen(conn)
	a := &Accelerated{
		Sink: Sink{Can: control.Capabilities{Keyboard: true, Motion: true, Wheel: true}}, Point: image.Pt(3, 2),
		conn: conn, size: image.Pt(int(root.WidthInPixels), int(root.HeightInPixels)),
	}
	if a.window, err = xproto.NewWindowId(conn); err != nil {
		t.Fatal(err)
	}
	const grey, side = 0xdddddd, 20
	xproto.ChangeWindowAttributes(conn, root.Root, xproto.CwBackPixel, []uint32{grey})
	xproto.ClearArea(conn, false, root.Root, 0, 0, 0, 0)
	err = xproto.CreateWindowChecked(conn, root.RootDepth, a.window, root.Root, 0, 0, side, side, 0, xproto.WindowClassInputOutput,
		root.RootVisual, xproto.CwBackPixel|xproto.CwOverrideRedirect, []uint32{root.BlackPixel, 1}).Check()
	if err == nil {
		err = xproto.MapWindowChecked(conn, a.window).Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Send moves the pointer: a count is 1 pixel and 8 % more for each count of its report.
func (a *Accelerated) Send(ctx context.Context, reports ...hid.Report) (all []hid.Interval, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range reports {
		from := lab.Monotonic()
		if m, ok := r.(hid.Motion); ok {
			gain := 1 + 0.08*math.Hypot(float64(m.DX), float64(m.DY))
			a.x = max(0, min(a.x+gain*float64(m.DX), float64(a.size.X-1)))
			a.y = max(0, min(a.y+gain*float64(m.DY), float64(a.size.Y-1)))
			at := image.Pt(int(a.x), int(a.y)).Sub(a.Point)
			if err := xproto.ConfigureWindowChecked(a.conn, a.window, xproto.ConfigWindowX|xproto.ConfigWindowY,
				[]uint32{uint32(int32(at.X)), uint32(int32(at.Y))}).Check(); err != nil {
				return all, err
			}
		}
		all = append(all, hid.Interval{Earliest: from, Latest: lab.Monotonic()})
	}
	return all, nil
}

// At is where the pointer points to.
func (a *Accelerated) At() image.Point {
	a.mu.Lock()
	defer a.mu.Unlock()
	return image.Pt(int(a.x), int(a.y))
}

// Hide takes the pointer away.
func (a *Accelerated) Hide(t testing.TB) {
	t.Helper()
	if err := xproto.UnmapWindowChecked(a.conn, a.window).Check(); err != nil {
		t.Fatal(err)
	}
}
