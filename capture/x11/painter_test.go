package x11_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/composite"
	"github.com/jezek/xgb/render"
	"github.com/jezek/xgb/shm"
	"github.com/jezek/xgb/xproto"
	"golang.org/x/sys/unix"
)

// painter draws on a screen with every kind of request that changes pixels.
type painter struct {
	c       *xgb.Conn
	screen  *xproto.ScreenInfo
	random  *rand.Rand
	windows []xproto.Window
	gc      xproto.Gcontext
	font    xproto.Font
	pixmap  xproto.Pixmap
	picture render.Picture // of the first window
	segment shm.Seg
	memory  []byte
	cursors []xproto.Cursor
	done    map[string]int // operations, by name
}

const (
	sheet  = 200 // side of the pixmap and the shared picture
	panels = 4
)

func newPainter(t testing.TB, display string, seed uint64) *painter {
	t.Helper()
	xgb.Logger.SetOutput(io.Discard)
	c, err := xgb.NewConnDisplay(display)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	p := &painter{c: c, screen: xproto.Setup(c).DefaultScreen(c), random: rand.New(rand.NewPCG(seed, 1)), done: map[string]int{}}
	if err := p.prepare(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.SysvShmDetach(p.memory) })
	return p
}

// prepare makes windows (with a backing store, redirected by COMPOSITE), a pixmap
// and shared memory to copy from, and cursors.
func (p *painter) prepare() error {
	c, root := p.c, p.screen.Root
	for _, initial := range []func(*xgb.Conn) error{render.Init, composite.Init, shm.Init} {
		if err := initial(c); err != nil {
			return err
		}
	}
	if _, err := composite.QueryVersion(c, 0, 4).Reply(); err != nil {
		return err
	}
	for i := range panels {
		w, err := xproto.NewWindowId(c)
		if err != nil {
			return err
		}
		const always = 2
		err = xproto.CreateWindowChecked(c, p.screen.RootDepth, w, root, p.at(), p.at(), 150, 120, uint16(i%2),
			xproto.WindowClassInputOutput,
			p.screen.RootVisual, xproto.CwBackPixel|xproto.CwBorderPixel|xproto.CwBackingStore|xproto.CwOverrideRedirect,
			[]uint32{p.colour(), p.colour(), always, 1}).Check()
		if err == nil && i == 1 {
			err = composite.RedirectWindowChecked(c, w, composite.RedirectAutomatic).Check()
		}
		if err == nil {
			err = xproto.MapWindowChecked(c, w).Check()
		}
		if err != nil {
			return err
		}
		p.windows = append(p.windows, w)
	}
	for _, step := range []func() error{p.sources, p.pictures, p.pointers} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// sources makes what is copied from.
func (p *painter) sources() (err error) {
	c, root := p.c, p.screen.Root
	if p.gc, err = xproto.NewGcontextId(c); err != nil {
		return err
	}
	if p.font, err = xproto.NewFontId(c); err != nil {
		return err
	}
	if p.pixmap, err = xproto.NewPixmapId(c); err != nil {
		return err
	}
	if p.segment, err = shm.NewSegId(c); err != nil {
		return err
	}
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4*sheet*sheet, unix.IPC_CREAT|0o600)
	if err != nil {
		return err
	}
	defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	if p.memory, err = unix.SysvShmAttach(id, 0, 0); err != nil {
		return err
	}
	const belowToo = xproto.SubwindowModeIncludeInferiors
	for _, cookie := range []interface{ Check() error }{
		xproto.OpenFontChecked(c, p.font, uint16(len("fixed")), "fixed"),
		xproto.CreateGCChecked(c, p.gc, xproto.Drawable(root), xproto.GcFont|xproto.GcSubwindowMode, []uint32{uint32(p.font), belowToo}),
		xproto.CreatePixmapChecked(c, p.screen.RootDepth, p.pixmap, xproto.Drawable(root), sheet, sheet),
		shm.AttachChecked(c, p.segment, uint32(id), true),
	} {
		if err := cookie.Check(); err != nil {
			return fmt.Errorf("%T: %w", cookie, err)
		}
	}
	return nil
}

// pictures prepares RENDER.
func (p *painter) pictures() error {
	formats, err := render.QueryPictFormats(p.c).Reply()
	if err != nil {
		return err
	}
	var format render.Pictformat
	for _, d := range formats.Screens[0].Depths {
		for _, v := range d.Visuals {
			if v.Visual == p.screen.RootVisual {
				format = v.Format
			}
		}
	}
	if p.picture, err = render.NewPictureId(p.c); err != nil {
		return err
	}
	return render.CreatePictureChecked(p.c, p.picture, xproto.Drawable(p.windows[0]), format, 0, nil).Check()
}

// pointers makes two cursors, which are no part of a picture, but drawn over it.
func (p *painter) pointers() error {
	f, err := xproto.NewFontId(p.c)
	if err != nil {
		return err
	}
	if err := xproto.OpenFontChecked(p.c, f, uint16(len("cursor")), "cursor").Check(); err != nil {
		return err
	}
	for _, glyph := range []uint16{34, 68} {
		id, err := xproto.NewCursorId(p.c)
		if err != nil {
			return err
		}
		if err := xproto.CreateGlyphCursorChecked(p.c, id, f, f, glyph, glyph+1, 0, 0, 0, 65535, 65535, 65535).Check(); err != nil {
			return err
		}
		p.cursors = append(p.cursors, id)
	}
	return nil
}

func (p *painter) at() int16      { return int16(p.random.IntN(int(p.screen.WidthInPixels)) - 50) }
func (p *painter) colour() uint32 { return p.random.Uint32() & 0xffffff }

// target is the root window or one of ours.
func (p *painter) target() xproto.Drawable {
	if i := p.random.IntN(panels + 1); i < panels {
		return xproto.Drawable(p.windows[i])
	}
	return xproto.Drawable(p.screen.Root)
}

func (p *painter) rectangle() xproto.Rectangle {
	return xproto.Rectangle{X: p.at(), Y: p.at(), Width: uint16(1 + p.random.IntN(90)), Height: uint16(1 + p.random.IntN(90))}
}

// operations are the requests that change what a screen shows.
func (p *painter) operations() map[string]func() {
	c, root := p.c, p.screen.Root
	window := func() xproto.Window { return p.windows[p.random.IntN(panels)] }
	return map[string]func(){
		"PolyFillRectangle": func() { xproto.PolyFillRectangle(c, p.target(), p.gc, []xproto.Rectangle{p.rectangle()}) },
		"PolyRectangle":     func() { xproto.PolyRectangle(c, p.target(), p.gc, []xproto.Rectangle{p.rectangle()}) },
		"PolyPoint":         func() { xproto.PolyPoint(c, 0, p.target(), p.gc, []xproto.Point{{X: p.at(), Y: p.at()}}) },
		"PolyLine": func() {
			xproto.PolyLine(c, 0, p.target(), p.gc, []xproto.Point{{X: p.at(), Y: p.at()}, {X: p.at(), Y: p.at()}})
		},
		"PolyFillArc": func() {
			xproto.PolyFillArc(c, p.target(), p.gc, []xproto.Arc{{X: p.at(), Y: p.at(), Width: 60, Height: 40, Angle2: 360 * 64}})
		},
		"ImageText8": func() { xproto.ImageText8(c, 5, p.target(), p.gc, p.at(), p.at(), "words") },
		"PutImage": func() {
			pix := make([]byte, 4*32*32)
			for i := range pix {
				pix[i] = byte(p.random.Uint32())
			}
			xproto.PutImage(c, xproto.ImageFormatZPixmap, p.target(), p.gc, 32, 32, p.at(), p.at(), 0, p.screen.RootDepth, pix)
		},
		"ShmPutImage": func() {
			for i := range p.memory {
				p.memory[i] = byte(p.random.Uint32())
			}
			shm.PutImage(c, p.target(), p.gc, sheet, sheet, 0, 0, sheet, sheet/2, p.at(), p.at(), p.screen.RootDepth,
				xproto.ImageFormatZPixmap, 0, p.segment, 0)
		},
		"CopyArea":        func() { xproto.CopyArea(c, p.target(), p.target(), p.gc, p.at(), p.at(), p.at(), p.at(), 100, 70) },
		"CopyArea pixmap": func() { xproto.CopyArea(c, xproto.Drawable(p.pixmap), p.target(), p.gc, 0, 0, p.at(), p.at(), 100, 70) },
		"ClearArea":       func() { xproto.ClearArea(c, false, window(), 10, 10, 50, 50) },
		"ClearArea root":  func() { xproto.ClearArea(c, false, root, p.at(), p.at(), 80, 80) },
		"background": func() {
			xproto.ChangeWindowAttributes(c, root, xproto.CwBackPixel, []uint32{p.colour()})
			xproto.ClearArea(c, false, root, 0, 0, 60, 60)
		},
		"border": func() { xproto.ChangeWindowAttributes(c, window(), xproto.CwBorderPixel, []uint32{p.colour()}) },
		"map":    func() { xproto.MapWindow(c, window()) },
		"unmap":  func() { xproto.UnmapWindow(c, window()) },
		"move":   func() { xproto.ConfigureWindow(c, window(), 3, []uint32{uint32(p.at()), uint32(p.at())}) },
		"resize": func() {
			xproto.ConfigureWindow(c, window(), 4|8, []uint32{uint32(50 + p.random.IntN(150)), uint32(50 + p.random.IntN(150))})
		},
		"raise":    func() { xproto.ConfigureWindow(c, window(), 64, []uint32{uint32(p.random.IntN(2))}) },
		"reparent": func() { xproto.ReparentWindow(c, p.windows[3], root, p.at(), p.at()) },
		"RENDER": func() {
			colour := render.Color{Red: uint16(p.random.Uint32()), Green: uint16(p.random.Uint32()), Alpha: 0x8000}
			render.FillRectangles(c, render.PictOpOver, p.picture, colour, []xproto.Rectangle{p.rectangle()})
		},
		"pointer": func() { xproto.WarpPointer(c, 0, root, 0, 0, 0, 0, p.at(), p.at()) },
		"cursor": func() {
			xproto.ChangeWindowAttributes(c, root, xproto.CwCursor, []uint32{uint32(p.cursors[p.random.IntN(2)])})
		},
	}
}

// burst does a few operations, and waits until the server has done them.
func (p *painter) burst(names []string, ops map[string]func()) error {
	for range 1 + p.random.IntN(4) {
		xproto.ChangeGC(p.c, p.gc, xproto.GcForeground, []uint32{p.colour()})
		name := names[p.random.IntN(len(names))]
		p.done[name]++
		ops[name]()
	}
	_, err := xproto.GetInputFocus(p.c).Reply()
	return err
}
