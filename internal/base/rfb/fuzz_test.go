package rfb

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// canned is a connection to a server that sends recorded bytes.
type canned struct {
	io.Reader
	net.Conn // nil: no other method is called
}

func (c canned) Read(b []byte) (int, error)       { return c.Reader.Read(b) }
func (canned) Write(b []byte) (int, error)        { return len(b), nil }
func (canned) Close() error                       { return nil }
func (canned) SetDeadline(time.Time) error        { return nil }
func (canned) SetWriteDeadline(t time.Time) error { return nil }
func (canned) RemoteAddr() net.Addr               { return nil }

// replay reads a whole session, from the handshake to the last message. It returns the screen
// and the error that ended it.
func replay(b []byte, pixels int) (*Screen, error) {
	conn := newConn(canned{Reader: bytes.NewReader(b)})
	conn.maxPixels = pixels
	if err := conn.handshake(lab.NewSecret("sesame")); err != nil {
		return nil, err
	}
	s := conn.NewScreen()
	for {
		if _, err := conn.Read(s); err != nil {
			return s, err
		}
		if n := len(s.Changed); n > maxChanged {
			panic("a list of changes without bound")
		}
	}
}

// FuzzSession feeds arbitrary bytes of a hostile server. The size of Pix must fit the screen,
// and every fourth byte must be 0.
func FuzzSession(f *testing.F) {
	names, err := filepath.Glob("testdata/*.session")
	if err != nil || len(names) == 0 {
		f.Fatal("no recorded sessions", err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		// Short seeds, because mutations of them reach further; TestRecordedSessions reads whole sessions.
		f.Add(b[:min(len(b), 3000)])
	}
	for _, s := range []string{
		"RFB 003.003\n\x00\x00\x00\x00\x00\x00\x00\x04busy",
		"RFB 003.007\n\x01\x02" + "0123456789abcdef" + "\x00\x00\x00\x02",
		"RFB 003.008\n\x00\x00\x00\x00\x04gone",
		"GET / HTTP/1.1\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		const pixels = 1 << 16
		s, err := replay(b, pixels)
		if err == nil {
			t.Fatal("replay() ended without an error; want one, at least for the end of input")
		}
		if s == nil {
			return
		}
		if len(s.Pix) != bytesPerPixel*s.Width*s.Height || s.Width*s.Height > pixels {
			t.Fatalf("%d bytes for %d×%d pixels", len(s.Pix), s.Width, s.Height)
		}
		for i := 3; i < len(s.Pix); i += bytesPerPixel {
			if s.Pix[i] != 0 {
				t.Fatalf("pixel %d has a fourth byte %d", i/bytesPerPixel, s.Pix[i])
			}
		}
	})
}
