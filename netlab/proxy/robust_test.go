package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/replay"
)

// large is a body that does not fit into a connection's buffers.
const large = 8 << 20

// recordSite writes an archive with a small and a large answer.
func recordSite(t *testing.T, path string) {
	t.Helper()
	w, err := archive.Create(path, archive.CreateOptions{Software: "test", Wall: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for i, size := range map[string]int{"small": 10_000, "large": large} {
		body := []byte(strings.Repeat("x", size))
		e := &lab.Exchange{
			Wall: time.Now(), Method: "GET", URL: "https://www.shop.test/" + i, Protocol: "h2", TLS: "tls/1.3",
			Server: netip.MustParseAddrPort("203.0.113.1:443"), Status: 200,
			Response: lab.Message{
				Header: []lab.HeaderField{{Name: "content-type", Value: "text/plain"}, {Name: "content-length", Value: fmt.Sprint(size)}},
				Body:   body,
			},
			Chunks: []lab.Chunk{{Bytes: size}},
		}
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// descriptors counts the process's open files and sockets.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// startReplay serves an archive whose file is deleted as soon as it is open.
func startReplay(t *testing.T) (b *box, session *replay.Session, served *atomic.Int64) {
	path := filepath.Join(t.TempDir(), "site.wacz")
	recordSite(t, path)
	a, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	served = new(atomic.Int64)
	session, err = replay.NewSession(a, replay.Options{
		Clock: lab.Monotonic, Timing: replay.Timing{Mode: replay.TimingNone}, Log: func(lab.Served) { served.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	return serve(t, session), session, served
}

// eventually waits for a condition that will soon hold.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(2 * time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited 2 minutes for %s", what)
		}
	}
}

// TestAThousandDevices: each gets every byte, from an archive whose file is
// gone, and afterwards no descriptor is left.
func TestAThousandDevices(t *testing.T) {
	b, session, served := startReplay(t)
	before := descriptors(t)
	const clients = 1000
	var wg, connected sync.WaitGroup
	var complete atomic.Int64
	connected.Add(clients)
	shaking := make(chan struct{}, 16) // hands at once: the machine is the clients' too
	for i := range clients {
		wg.Go(func() {
			c := b.client(t, i%2 == 0)
			c.Timeout = 2 * time.Minute
			defer c.CloseIdleConnections()
			get := func() {
				resp, err := c.Get("https://www.shop.test/small")
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if n, err := io.Copy(io.Discard, resp.Body); err == nil && n == 10_000 {
					complete.Add(1)
				}
			}
			shaking <- struct{}{}
			get()
			<-shaking
			connected.Done()
			connected.Wait() // now all thousand are connected
			get()
			get()
		})
	}
	wg.Wait()
	if complete.Load() != 3*clients || session.Stats().Misses != 0 {
		t.Errorf("%d complete answers, %+v; want %d and no miss", complete.Load(), session.Stats(), 3*clients)
	}
	eventually(t, "a log line for each request", func() bool { return served.Load() == 3*clients })
	eventually(t, "the end of all connections", func() bool { return b.Connections() == 0 })
	eventually(t, "the end of all descriptors", func() bool { return descriptors(t) <= before })
}

// TestDevicesThatLeaveMidBody: their requests, connections and descriptors end, and other
// devices are served meanwhile.
func TestDevicesThatLeaveMidBody(t *testing.T) {
	b, session, served := startReplay(t)
	before := descriptors(t)
	const leavers = 40
	var clients []*http.Client
	for i := range leavers {
		c := b.client(t, i%2 == 0)
		clients = append(clients, c)
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", "https://www.shop.test/large", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, resp.Body, 100_000); err != nil {
			t.Fatal(err)
		}
		cancel()
		resp.Body.Close()
	}
	eventually(t, "the end of their requests", func() bool { return session.Stats().InFlight == 0 && served.Load() == leavers })
	resp, err := b.client(t, true).Get("https://www.shop.test/large")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != large || err != nil {
		t.Errorf("read %d bytes, %v; want %d, nil", n, err, large)
	}
	eventually(t, "the end of their connections", func() bool {
		for _, c := range clients {
			c.CloseIdleConnections() // net/http's client lets go of a stream in its own time
		}
		return b.Connections() <= 1
	})
	eventually(t, "the end of their descriptors", func() bool { return descriptors(t) <= before+4 })
}

// Whoever holds connections loses the oldest: an address that has all that one may have, or most when there is no room.
func TestConnectionsOfOneAddress(t *testing.T) {
	s := &Server{conns: map[*conn]seat{}, of: map[netip.Addr]int{}}
	from := func(a string) *conn {
		c := &conn{Conn: &fromAddr{TCPAddr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(a + ":1"))}, forget: s.forget}
		if !s.remember(c) {
			t.Fatalf("a connection of %s was refused", a)
		}
		return c
	}
	isClosed := func(c *conn) bool { return c.Conn.(*fromAddr).closed }
	device, first := from("192.0.2.8"), from("192.0.2.7")
	for range maxOfClient - 1 {
		from("192.0.2.7")
	}
	if isClosed(first) {
		t.Error("a connection was closed before its address had too many")
	}
	second := from("192.0.2.7")
	if !isClosed(first) || isClosed(second) || s.of[netip.MustParseAddr("192.0.2.7")] != maxOfClient {
		t.Errorf("of the address %d are open, the oldest is closed: %v; want %d, true", s.of[netip.MustParseAddr("192.0.2.7")], isClosed(first), maxOfClient)
	}
	for i := range maxConnections {
		from(fmt.Sprintf("10.0.0.%d", i%9))
	}
	late := from("192.0.2.9")
	if len(s.conns) != maxConnections || isClosed(device) || isClosed(late) {
		t.Errorf("%d are open; closed: the device's %v, a late one %v; want %d, false, false", len(s.conns), isClosed(device), isClosed(late), maxConnections)
	}
	s.forget(late)
	s.forget(late) // a second time changes nothing
	if len(s.conns) != maxConnections-1 {
		t.Errorf("%d are open after one ended; want %d", len(s.conns), maxConnections-1)
	}
	s.take()
	s.forget(device)
	if len(s.of) != 0 {
		t.Errorf("%d addresses are counted after all connections were taken; want none", len(s.of))
	}
}

// fromAddr is a connection of which the address is known alone.
type fromAddr struct {
	*net.TCPAddr
	closed bool
}

func (a *fromAddr) RemoteAddr() net.Addr          { return a.TCPAddr }
func (fromAddr) LocalAddr() net.Addr              { return nil }
func (fromAddr) Read([]byte) (int, error)         { return 0, io.EOF }
func (fromAddr) Write([]byte) (int, error)        { return 0, io.EOF }
func (a *fromAddr) Close() error                  { a.closed = true; return nil }
func (fromAddr) SetDeadline(time.Time) error      { return nil }
func (fromAddr) SetReadDeadline(time.Time) error  { return nil }
func (fromAddr) SetWriteDeadline(time.Time) error { return nil }

// TestSlowLoris: many devices that send a byte now and then do not delay others.
func TestSlowLoris(t *testing.T) {
	b, _, _ := startReplay(t)
	const slow = 200
	var open []net.Conn
	for i := range slow {
		nc, err := tls.Dial(
			"tcp",
			b.https,
			&tls.Config{InsecureSkipVerify: true, ServerName: "www.shop.test", NextProtos: []string{"http/1.1"}},
		)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, nc)
		if _, err := io.WriteString(nc, "GET /small HTTP/1.1\r\nHost: www.shop.test\r\nX-Slow: "+strings.Repeat("a", i%10)); err != nil {
			t.Fatal(err)
		}
	}
	c := b.client(t, false)
	for range 20 {
		resp, err := c.Get("https://www.shop.test/small")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); n != 10_000 || err != nil {
			t.Errorf("read %d bytes, %v; want 10000, nil", n, err)
		}
		resp.Body.Close()
	}
	// A device that ends its header in time is served.
	if _, err := io.WriteString(open[0], "\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(open[0]), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("a header that ends in time is answered with %v, %v; want 200", resp, err)
	}
	for _, nc := range open {
		nc.Close()
	}
	c.CloseIdleConnections()
	eventually(t, "the end of their connections", func() bool { return b.Connections() == 0 })
}
