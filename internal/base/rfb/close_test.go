package rfb

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"eidetic/internal/lab"
)

// gated gives its first bytes, and the rest once more is closed. It closes came when the rest is asked for.
type gated struct {
	first      io.Reader
	came, more chan struct{}
	rest       io.Reader
}

func (g *gated) Read(b []byte) (int, error) {
	if n, err := g.first.Read(b); err == nil {
		return n, nil
	}
	select {
	case <-g.came:
	default:
		close(g.came)
	}
	<-g.more
	return g.rest.Read(b)
}

// A server asks for 60,000 copies of the screen in one update, which take hours on a large one: a connection that is
// closed meanwhile does not finish them.
func TestCloseEndsAnUpdate(t *testing.T) {
	const side, copies, before = 64, 60_000, 10
	var hello, update bytes.Buffer
	hello.WriteString("RFB 003.008\n\x01\x01\x00\x00\x00\x00")
	hello.Write(be.AppendUint16(be.AppendUint16(nil, side), side))
	hello.Write(make([]byte, 16+4))
	hello.Write(be.AppendUint16([]byte{framebufferUpdate, 0}, copies))
	for i := range copies {
		to := &update
		if i < before {
			to = &hello
		}
		for _, v := range []uint16{0, 0, side, side, 0, uint16(CopyRect), 0, 0} {
			to.Write(be.AppendUint16(nil, v))
		}
	}
	from := &gated{&hello, make(chan struct{}), make(chan struct{}), &update}
	conn := newConn(canned{Reader: from})
	if err := conn.handshake(lab.Secret{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := conn.Read(conn.NewScreen())
		ended <- err
	}()
	<-from.came
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	close(from.more)
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read() of a connection that was closed amid an update = %v; want %v", err, net.ErrClosed)
	}
}
