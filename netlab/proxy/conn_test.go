package proxy

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestDrained: a connection whose device takes nothing is not drained before
// the device does.
func TestDrained(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		nc, _ := l.Accept()
		accepted <- nc
	}()
	device, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	c := &conn{Conn: <-accepted, forget: func(*conn) {}}
	defer c.Close()
	if waited, err := c.Drained(); waited || err != nil {
		t.Fatalf("when nothing was sent: %v, %v", waited, err)
	}
	_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	n, err := c.Write(make([]byte, 64<<20)) // more than any buffer
	if err == nil {
		t.Fatal("nothing is full")
	}
	if _, err := c.Drained(); err == nil {
		t.Error("the deadline does not end the wait")
	}
	_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
	took := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, device, int64(n))
		took <- err
	}()
	if _, err := c.Drained(); err != nil { // it may have, before we asked
		t.Errorf("when the device takes it: %v", err)
	}
	if err := <-took; err != nil {
		t.Error(err)
	}
}
