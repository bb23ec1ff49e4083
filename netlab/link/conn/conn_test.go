package conn

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/link"
	"eidetic/netlab/link/linktest"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

func TestConnConforms(t *testing.T) {
	l := newLink(t, "rtt=1ms")
	linktest.Conform(t, linktest.Backend{
		Name: "conn", Set: l.Set, Close: l.Close, Cannot: Cannot,
		Report: func() link.Report {
			r := l.Report()
			if r.Backend == "native" {
				r.Backend = "conn" // a native link has another name in reports
			}
			return r
		},
		Dial: linktest.Dialer(t, nil, l.Listener(linktest.Listen(t, "127.0.0.1:0"))),
	})
}

// pair returns the device's end and the box's end of a connection through a link.
func pair(t testing.TB, l *Link) (device, box net.Conn) {
	t.Helper()
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	device, err = net.Dial("tcp", raw.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	box, err = l.Listener(raw).Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { device.Close(); box.Close() })
	return device, box
}

func newLink(t testing.TB, profile string) *Link {
	t.Helper()
	p, err := link.Parse(profile)
	if err != nil {
		t.Fatal(err)
	}
	l := New(p, lab.Monotonic)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// tries is how often a time is measured again after a busy machine was late.
const tries = 5

// near fails unless every measured time is at least want, and one of several is at
// most 80 ms more.
func near(t *testing.T, what string, want time.Duration, measure func() time.Duration) {
	t.Helper()
	var all []time.Duration
	for range tries {
		got := measure()
		all = append(all, got)
		if got < want {
			break
		}
		if got <= want+80*time.Millisecond {
			return
		}
	}
	t.Errorf("%s took %v, want %v to 80ms more", what, all, want)
}

// echoing returns a function that makes the box's end of a connection an echo
// server, until the end of the test.
func echoing(t *testing.T) (start func(box net.Conn)) {
	var all sync.WaitGroup
	t.Cleanup(all.Wait) // runs after the connections are closed
	return func(box net.Conn) { all.Go(func() { _, _ = io.Copy(box, box) }) }
}

func TestConnDelaysEachWay(t *testing.T) {
	l := newLink(t, "rtt=100ms")
	echo := echoing(t)
	ask := func(device net.Conn) {
		t.Helper()
		b := make([]byte, 1)
		if _, err := device.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(device, b); err != nil {
			t.Fatal(err)
		}
	}
	var device net.Conn
	near(t, "the first answer (handshake and one round trip)", 200*time.Millisecond, func() time.Duration {
		begin := time.Now()
		var box net.Conn
		device, box = pair(t, l)
		echo(box)
		ask(device)
		return time.Since(begin)
	})
	again := func() time.Duration {
		begin := time.Now()
		ask(device)
		return time.Since(begin)
	}
	near(t, "the second answer", 100*time.Millisecond, again)
	l.Set(link.Profile{Name: "custom", RTT: 20 * time.Millisecond})
	near(t, "an answer after the link became faster", 20*time.Millisecond, again)
	l.SetExtra(map[netip.Addr]time.Duration{netip.MustParseAddr("127.0.0.1"): 50 * time.Millisecond})
	near(t, "the first answer of an origin that is 50 ms farther", 2*70*time.Millisecond, func() time.Duration {
		begin := time.Now()
		device, box := pair(t, l)
		echo(box)
		ask(device)
		return time.Since(begin)
	})
}

func TestConnPacesAllConnectionsTogether(t *testing.T) {
	const rate, each = 4_000_000, 50_000 // two transfers take 200 ms at 4 Mbit/s, 207 ms with headers
	ideal := time.Duration(2*each*8*1500/1448) * time.Second / rate
	var firsts, lasts []time.Duration
	for range tries {
		first, last := together(t, each)
		firsts, lasts = append(firsts, first), append(lasts, last)
		if last < ideal {
			t.Fatalf("two transfers took %v, want %v", last, ideal)
		}
		if last <= ideal+80*time.Millisecond && first >= ideal*8/10 {
			return
		}
	}
	t.Errorf("two equal transfers ended after %v and %v, want both near %v", firsts, lasts, ideal)
}

// together returns when two simultaneous transfers of each bytes end.
func together(t *testing.T, each int) (first, last time.Duration) {
	t.Helper()
	l := newLink(t, "down=4mbit,up=4mbit")
	d1, b1 := pair(t, l)
	d2, b2 := pair(t, l)
	begin := time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex
	var ends []time.Duration
	for _, c := range [][2]net.Conn{{d1, b1}, {d2, b2}} {
		all.Go(func() {
			if _, err := c[1].Write(make([]byte, each)); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, err := io.ReadFull(c[0], make([]byte, each)); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, time.Since(begin))
		})
	}
	all.Wait()
	r := l.Report()
	if r.Backend != "conn" || r.Down.Bytes < int64(2*each) || r.Down.Packets < int64(2*each/segment) || len(r.Limits) == 0 {
		t.Errorf("Report() = %+v; want the back end conn with limits and both transfers counted", r)
	}
	return min(ends[0], ends[1]), max(ends[0], ends[1])
}

func TestConnCarriesEveryByteAndTheEnd(t *testing.T) {
	l := newLink(t, "rtt=4ms,jitter=1ms,down=200mbit,up=200mbit,seed=3")
	device, box := pair(t, l)
	data := make([]byte, 3<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	var all sync.WaitGroup
	for _, d := range []struct{ from, to net.Conn }{{device, box}, {box, device}} {
		all.Go(func() {
			_, err := io.Copy(d.from, bytes.NewReader(data))
			if err := errors.Join(err, d.from.(interface{ CloseWrite() error }).CloseWrite()); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			h := sha256.New()
			if _, err := io.Copy(h, d.to); err != nil {
				t.Error(err)
			}
			if [32]byte(h.Sum(nil)) != sha256.Sum256(data) {
				t.Error("the received bytes differ from the sent ones")
			}
		})
	}
	all.Wait()
}

func TestConnCloseDeliversWrittenBytes(t *testing.T) {
	l := newLink(t, "rtt=60ms,down=8mbit")
	device, box := pair(t, l)
	if _, err := box.Write(make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	box.Close()
	n, err := io.Copy(io.Discard, device)
	if n != 100_000 || err != nil {
		t.Errorf("%d bytes arrived (%v), want 100000", n, err)
	}
}

func TestConnDeadlines(t *testing.T) {
	l := newLink(t, "rtt=10ms,down=0")
	device, box := pair(t, l)
	_ = box.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	if _, err := box.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read() = %v, want %v", err, os.ErrDeadlineExceeded)
	}
	_ = box.SetReadDeadline(time.Time{})
	if _, err := device.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := box.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("after the deadline was lifted Read() = %d, %v; want 1, nil", n, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if n, err := box.Write(make([]byte, window+1)); n != window || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write() in an outage = %d, %v; want %d, %v", n, err, window, os.ErrDeadlineExceeded)
		}
	}()
	held := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return box.(*shaped).down.held
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for held() < window { // the deadline must not expire before the window is full
		<-tick.C
	}
	_ = box.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	<-ended
	box.Close()
	if _, err := box.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write() after Close() = %v, want %v", err, net.ErrClosed)
	}
}

func TestConnOutageEnds(t *testing.T) {
	near(t, "a byte through an outage of 150 ms", 150*time.Millisecond, func() time.Duration {
		begin := time.Now()
		l := newLink(t, "rtt=10ms,down=0; 150ms: down=100mbit")
		device, box := pair(t, l)
		if _, err := box.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(device, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	})
}

func TestConnAbortEndsBothEnds(t *testing.T) {
	l := newLink(t, "rtt=1ms")
	device, box := pair(t, l)
	l.Set(link.Profile{Name: "custom", RTT: time.Hour}) // no byte arrives before the abort
	if _, err := box.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	l.Abort()
	if n, err := device.Read(make([]byte, 4)); n != 0 || err == nil {
		t.Errorf("after Abort() the device's Read() = %d, %v; want 0 and an error", n, err)
	}
	if _, err := box.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Abort() the box's Read() = %v, want %v", err, net.ErrClosed)
	}
}

func TestNativeConnIsNotWrapped(t *testing.T) {
	l := newLink(t, "native")
	_, box := pair(t, l)
	if _, ok := box.(*net.TCPConn); !ok {
		t.Errorf("a native link returns a %T, want the *net.TCPConn itself", box)
	}
	if r := l.Report(); r.Backend != "native" || l.Delay(100, 100) != 0 {
		t.Errorf("Report() = %+v and Delay() = %v; want the back end native and 0", r, l.Delay(100, 100))
	}
}
