package rfb

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"image"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"eidetic/internal/base/rfb/rfbtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

func TestMain(m *testing.M) {
	xtest.Main()
	testlab.NoLeaks(m)
}

var update = flag.Bool("update", false, "record the sessions in testdata again, from Xvnc")

const (
	width  = 160
	height = 120
)

// TestEncodingsAgree: Xvnc's screen has the same pixels in every encoding as in Raw, also
// after parts of it have moved.
func TestEncodingsAgree(t *testing.T) {
	server := rfbtest.Xvnc(t, testlab.NeedProgram(t, "Xvnc", "Xtigervnc"), "-geometry", fmt.Sprintf("%dx%d", width, height))
	c := draw(t, server.Display)
	encodings := map[string]Encoding{"raw": Raw, "zrle": ZRLE, "hextile": Hextile}
	viewers := map[string]*viewer{}
	for name, e := range encodings {
		viewers[name] = view(t, server.Address, e)
	}
	c.scroll(t)
	want := viewers["raw"].settle(t, scrolled)
	if flat := bytes.Count(want, want[:4]); flat > len(want)/8 {
		t.Fatalf("%d pixels of the test picture have one colour: too flat for this test", flat)
	}
	for name, v := range viewers {
		if got := v.settle(t, scrolled); !bytes.Equal(got, want) {
			t.Errorf("%s: the picture differs from the one sent Raw", name)
		}
		if *update {
			v.record(t, name, want)
		}
	}
}

// TestRecordedSessions decodes recorded sessions of Xvnc. To record them again:
// go test ./internal/base/rfb -run TestEncodingsAgree -update
func TestRecordedSessions(t *testing.T) {
	for _, name := range []string{"raw", "zrle", "hextile"} {
		b, err := os.ReadFile("testdata/" + name + ".session")
		if err != nil {
			t.Fatal(err)
		}
		sum, err := os.ReadFile("testdata/picture.sha256")
		if err != nil {
			t.Fatal(err)
		}
		s, err := replay(b, MaxPixels)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%s: %v", name, err)
		}
		if got := fmt.Sprintf("%x\n", sha256.Sum256(s.Pix)); got != string(sum) {
			t.Errorf("%s: the picture's SHA-256 is %s, want %s", name, got, sum)
		}
	}
}

// painter draws on an X screen.
type painter struct {
	conn   *xgb.Conn
	screen *xproto.ScreenInfo
	window xproto.Window
	gc     xproto.Gcontext
}

// draw shows flat, two-coloured and many-coloured areas, gradients and noise, so that every
// kind of tile occurs.
func draw(t *testing.T, display string) *painter {
	t.Helper()
	xgb.Logger.SetOutput(io.Discard)
	conn, err := xgb.NewConnDisplay(display)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	p := &painter{conn: conn, screen: xproto.Setup(conn).DefaultScreen(conn)}
	if p.window, err = xproto.NewWindowId(conn); err != nil {
		t.Fatal(err)
	}
	if p.gc, err = xproto.NewGcontextId(conn); err != nil {
		t.Fatal(err)
	}
	err = xproto.CreateWindowChecked(conn, p.screen.RootDepth, p.window, p.screen.Root, 0, 0, width, height, 0, xproto.WindowClassInputOutput,
		p.screen.RootVisual, xproto.CwBackPixel|xproto.CwOverrideRedirect, []uint32{0x336699, 1}).
		Check()
	if err != nil {
		t.Fatal(err)
	}
	xproto.MapWindow(conn, p.window)
	xproto.CreateGC(conn, p.gc, xproto.Drawable(p.window), 0, nil)
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 4*40*40)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	xproto.PutImage(conn, xproto.ImageFormatZPixmap, xproto.Drawable(p.window), p.gc, 40, 40, 100, 10, 0, 24, noise)
	for i := range 500 { // strokes in 2, 3, 5, 17 and more colours, one area each
		area := i % 5
		colours := []int{2, 3, 5, 17, 120}[area]
		p.fill(uint32(random.IntN(colours)*0x0f1b2d), area*30+random.IntN(28), 60+random.IntN(50), 1+random.IntN(3), 1+random.IntN(6))
	}
	for x := range 90 {
		p.fill(uint32(x*0x020103), x, 0, 1, 30)
	}
	p.sync(t)
	return p
}

func (p *painter) fill(rgb uint32, x, y, w, h int) {
	xproto.ChangeGC(p.conn, p.gc, xproto.GcForeground, []uint32{rgb & 0xffffff})
	xproto.PolyFillRectangle(p.conn, xproto.Drawable(p.window), p.gc,
		[]xproto.Rectangle{{X: int16(x), Y: int16(y), Width: uint16(w), Height: uint16(h)}})
}

func (p *painter) sync(t *testing.T) {
	t.Helper()
	if _, err := xproto.GetInputFocus(p.conn).Reply(); err != nil {
		t.Fatal(err)
	}
}

// scroll moves areas up and down, which Xvnc sends as CopyRect.
func (p *painter) scroll(t *testing.T) {
	t.Helper()
	d := xproto.Drawable(p.window)
	xproto.CopyArea(p.conn, d, d, p.gc, 0, 20, 0, 10, 150, 60)
	xproto.CopyArea(p.conn, d, d, p.gc, 5, 50, 12, 58, 100, 50)
	p.fill(0xabcdef, 70, 35, 20, 9)
	p.sync(t)
}

// scrolled says whether a picture has the last thing that scroll draws, and so everything.
func scrolled(pix []byte) bool {
	return bytes.HasPrefix(pix[4*(40*width+75):], []byte{0xef, 0xcd, 0xab})
}

// viewer is a client that records what the server sends.
type viewer struct {
	conn   *Conn
	screen *Screen
	heard  bytes.Buffer
}

// heard is a connection that records what it reads.
type heard struct {
	net.Conn
	to *bytes.Buffer
}

func (h heard) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.to.Write(b[:n])
	return n, err
}

// view connects and waits for the first picture.
func view(t *testing.T, address string, e Encoding) *viewer {
	t.Helper()
	c, err := net.Dial("unix", strings.TrimPrefix(address, "unix:"))
	if err != nil {
		t.Fatal(err)
	}
	v := &viewer{}
	if v.conn, err = New(t.Context(), heard{c, &v.heard}, lab.Secret{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.conn.Close() })
	v.screen = v.conn.NewScreen()
	hello := AppendEncodings(AppendPixelFormat(nil), e, CopyRect, FenceSupport, ContinuousUpdates)
	v.send(t, AppendRequest(hello, false, v.screen.Bounds()))
	v.settle(t, func([]byte) bool { return true })
	return v
}

func (v *viewer) send(t *testing.T, b []byte) {
	t.Helper()
	if err := v.conn.Send(b); err != nil {
		t.Fatal(err)
	}
}

// settle requests changes until there are none and the picture is the expected one, and
// returns the picture.
func (v *viewer) settle(t *testing.T, ok func([]byte) bool) []byte {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for still := 0; still < 3 || !ok(v.screen.Pix); {
		if time.Now().After(deadline) {
			t.Fatal("the picture did not become the expected one")
		}
		if err := v.conn.net.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := v.conn.r.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
			still++
			v.send(t, AppendRequest(nil, true, v.screen.Bounds()))
			continue
		}
		if err := v.conn.net.SetReadDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		m, err := v.conn.Read(v.screen)
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == Continuous {
			v.send(t, AppendContinuous(nil, true, v.screen.Bounds()))
		}
		still = 0
	}
	return v.screen.Pix
}

// record writes the session to a file.
func (v *viewer) record(t *testing.T, name string, want []byte) {
	t.Helper()
	for file, b := range map[string][]byte{
		name + ".session": v.heard.Bytes(),
		"picture.sha256":  fmt.Appendf(nil, "%x\n", sha256.Sum256(want)),
	} {
		if err := os.WriteFile("testdata/"+file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHostileRectangles(t *testing.T) {
	const hello = "RFB 003.008\n\x01\x01\x00\x00\x00\x00\x00\x40\x00\x30" + "0123456789abcdef" + "\x00\x00\x00\x00" // 64×48
	rect := func(x, y, w, h byte, encoding int32) string {
		b := []byte{0, 0, 0, 1, 0, x, 0, y, 0, w, 0, h}
		return string(be.AppendUint32(b, uint32(encoding)))
	}
	for _, c := range []struct{ name, bytes, want string }{
		{"outside", rect(60, 0, 5, 1, 0), "outside the screen"},
		{"unannounced", rect(0, 0, 1, 1, 7), "encoding 7, which was not announced"},
		{"copy from outside", rect(0, 0, 8, 8, 1) + "\x00\x3f\x00\x00", "a copy from"},
		{"hextile's subrectangle", rect(0, 0, 8, 8, 5) + "\x0a\x00\x00\x00\x00\x01\x77\x11", "is outside its tile"},
		{"ZRLE's length", rect(0, 0, 1, 1, 16) + "\xff\xff\xff\xff", "4294967295 bytes for 1 pixels"},
		{"ZRLE without zlib", rect(0, 0, 1, 1, 16) + "\x00\x00\x00\x02hi", "ZRLE: zlib"},
		{"pointer", "\x00\x00\x00\x01\x00\x00\x00\x00\x09\x00\x09\x00\xff\xff\xff\x11", "a pointer of"},
		{"size", "\x00\x00\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\x21", "claims a screen of 65535×65535"},
		{"no size", "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\x21", "no pixels"},
		{"clipboard", "\x03\x00\x00\x00\xff\xff\xff\xff", "a clipboard of"},
		{"fence", "\xf8\x00\x00\x00\x00\x00\x00\x00\x41", "a fence with 65"},
		{"message", "\x63", "message of type 99"},
	} {
		s, err := replay([]byte(hello+c.bytes), MaxPixels)
		if err == nil || s == nil || !errors.Is(err, errProtocol) && c.name != "size" && c.name != "no size" ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestMoveOverlaps(t *testing.T) {
	for _, by := range []image.Point{{0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}} {
		s := &Screen{Width: 5, Height: 5, Pix: make([]byte, 100)}
		for i := range 25 {
			s.Pix[4*i] = byte(i)
		}
		before := bytes.Clone(s.Pix)
		r := image.Rect(1, 1, 4, 4)
		if err := s.move(r, r.Min.Add(by)); err != nil {
			t.Fatal(err)
		}
		for y := 1; y < 4; y++ {
			for x := 1; x < 4; x++ {
				if got, want := s.Pix[4*(5*y+x)], before[4*(5*(y+by.Y)+x+by.X)]; got != want {
					t.Errorf("by %v: pixel %d,%d is %d, want %d", by, x, y, got, want)
				}
			}
		}
	}
}
