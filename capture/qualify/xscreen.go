package qualify

import (
	"errors"
	"fmt"
	"io"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"eidetic/internal/lab"
)

// XScreen shows the picture on all of an X screen, above everything else.
type XScreen struct {
	conn   *xgb.Conn
	window xproto.Window
	gc     xproto.Gcontext
	depth  byte
	width  int
	height int
}

// OpenXScreen connects to a display (":0"; empty means $DISPLAY).
func OpenXScreen(display string) (*XScreen, error) {
	// xgb writes to standard error what it also returns; its logger has a lock of its own.
	xgb.Logger.SetOutput(io.Discard)
	conn, err := xgb.NewConnDisplay(display)
	if err != nil {
		return nil, fmt.Errorf("open display %q: %w (is the X server up, and does $XAUTHORITY name its cookie?)", display, err)
	}
	s := &XScreen{conn: conn}
	if err := s.open(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("open display %q: %w", display, err)
	}
	return s, nil
}

func (s *XScreen) open() error {
	setup := xproto.Setup(s.conn)
	screen := setup.DefaultScreen(s.conn)
	s.depth, s.width, s.height = screen.RootDepth, int(screen.WidthInPixels), int(screen.HeightInPixels)
	for _, f := range setup.PixmapFormats {
		if f.Depth == s.depth && (f.BitsPerPixel != 32 || s.depth < 24) {
			return fmt.Errorf("the screen has depth %d in %d bits, 24 in 32 is needed", s.depth, f.BitsPerPixel)
		}
	}
	if s.width < MinWidth || s.height < MinHeight {
		return fmt.Errorf("the screen of %d × %d is too small: %d × %d are needed", s.width, s.height, MinWidth, MinHeight)
	}
	var err error
	if s.window, err = xproto.NewWindowId(s.conn); err != nil {
		return err
	}
	if s.gc, err = xproto.NewGcontextId(s.conn); err != nil {
		return err
	}
	cursor, err := s.noPointer(screen.Root)
	if err != nil {
		return fmt.Errorf("hide the pointer: %w", err)
	}
	const aboveAll = 1
	err = xproto.CreateWindowChecked(s.conn, s.depth, s.window, screen.Root, 0, 0, screen.WidthInPixels, screen.HeightInPixels, 0,
		xproto.WindowClassInputOutput, screen.RootVisual, xproto.CwBackPixel|xproto.CwOverrideRedirect|xproto.CwCursor,
		[]uint32{0, aboveAll, uint32(cursor)}).Check()
	if err == nil {
		err = xproto.MapWindowChecked(s.conn, s.window).Check()
	}
	if err == nil {
		err = xproto.CreateGCChecked(s.conn, s.gc, xproto.Drawable(s.window), 0, nil).Check()
	}
	return err
}

// noPointer makes a cursor of nothing.
func (s *XScreen) noPointer(root xproto.Window) (xproto.Cursor, error) {
	bitmap, err := xproto.NewPixmapId(s.conn)
	if err != nil {
		return 0, err
	}
	if err := xproto.CreatePixmapChecked(s.conn, 1, bitmap, xproto.Drawable(root), 1, 1).Check(); err != nil {
		return 0, err
	}
	gc, err := xproto.NewGcontextId(s.conn)
	if err != nil {
		return 0, err
	}
	if err := xproto.CreateGCChecked(s.conn, gc, xproto.Drawable(bitmap), xproto.GcForeground, []uint32{0}).Check(); err != nil {
		return 0, err
	}
	xproto.PolyFillRectangle(s.conn, xproto.Drawable(bitmap), gc, []xproto.Rectangle{{Width: 1, Height: 1}})
	cursor, err := xproto.NewCursorId(s.conn)
	if err != nil {
		return 0, err
	}
	return cursor, xproto.CreateCursorChecked(s.conn, cursor, bitmap, bitmap, 0, 0, 0, 0, 0, 0, 0, 0).Check()
}

// Size is the screen's.
func (s *XScreen) Size() (width, height int) { return s.width, s.height }

// Show draws the number, in one request so that it is not half drawn by us.
func (s *XScreen) Show(n uint32) (earliest, latest lab.Time, err error) {
	pix := Strip(s.width, n)
	if n == 0 {
		pix = Picture(s.width, s.height, 0)
	}
	earliest = lab.Monotonic()
	// A request holds at most 256 KiB.
	rows := max(1, min(stripRows, (250<<10)/(4*s.width)))
	for y := 0; len(pix) > 0; y += rows {
		part := pix[:min(len(pix), 4*s.width*rows)]
		xproto.PutImage(s.conn, xproto.ImageFormatZPixmap, xproto.Drawable(s.window), s.gc,
			uint16(s.width), uint16(len(part)/(4*s.width)), 0, int16(y), 0, s.depth, part)
		pix = pix[len(part):]
	}
	// The server answers a request when it has done all earlier ones.
	reply, err := xproto.GetInputFocus(s.conn).Reply()
	if err == nil && reply == nil {
		err = errors.New("the X server closed the connection")
	}
	return earliest, lab.Monotonic(), err
}

// Close takes the picture away.
func (s *XScreen) Close() error {
	s.conn.Close()
	return nil
}
