package replay

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// chat greets, answers each message with a count that changes from one
// connection to the next, and says goodbye.
func chat() http.Handler {
	connections := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections++
		c, err := websocket.Accept(
			w,
			r,
			&websocket.AcceptOptions{
				InsecureSkipVerify:   true,
				CompressionMode:      websocket.CompressionContextTakeover,
				CompressionThreshold: 1,
			},
		)
		if err != nil {
			return
		}
		defer c.CloseNow()
		ctx := r.Context()
		_ = c.Write(ctx, websocket.MessageText, []byte("hello"))
		for i := range 3 {
			kind, text, err := c.Read(ctx)
			if err != nil {
				return
			}
			_ = c.Write(ctx, kind, []byte(fmt.Sprintf("%s %d of connection %d %s", text, i, connections, strings.Repeat("again ", 100))))
		}
		_ = c.Close(websocket.StatusNormalClosure, "bye")
	})
}

// talk is what a device hears.
func (b *bench) talk(ctx context.Context) string {
	// The device opens WebSockets over HTTP/1.1.
	c, _, err := websocket.Dial(
		ctx,
		"wss://www.example.com/chat",
		&websocket.DialOptions{HTTPClient: b.client, CompressionMode: websocket.CompressionContextTakeover},
	)
	if err != nil {
		return "dial: " + err.Error()
	}
	defer c.CloseNow()
	var heard []string
	_, text, err := c.Read(ctx)
	heard = append(heard, string(text))
	for i := 0; i < 3 && err == nil; i++ {
		kind := []websocket.MessageType{websocket.MessageText, websocket.MessageBinary}[i%2]
		if err = c.Write(ctx, kind, []byte(fmt.Sprint("message ", i))); err == nil {
			var got websocket.MessageType
			got, text, err = c.Read(ctx)
			heard = append(heard, fmt.Sprint(got, " ", string(text)))
		}
	}
	if err == nil {
		_, _, err = c.Read(ctx)
	}
	return strings.Join(heard, "\n") + "\n" + fmt.Sprint(websocket.CloseStatus(err))
}

func TestWebSocket(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := newBench(t, chat(), false)
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	live := b.talk(ctx)
	if !strings.Contains(live, "message 2 2 of connection 1") || !strings.HasSuffix(live, "StatusNormalClosure") {
		t.Fatalf("live, the device heard %s; want three answers and a normal closure", live)
	}
	<-b.logged
	a := finish()
	b.origin.Close()
	if e := a.Exchanges()[0]; e.Status != 101 || len(e.Socket) < 7 {
		t.Fatalf("recorded %+v; want a 101 with at least 7 pieces", e)
	}
	for _, timing := range []TimingMode{TimingRecorded, TimingNone} {
		s := b.replay(a, Options{Timing: Timing{Mode: timing}})
		if got := b.talk(ctx); got != live {
			t.Errorf("%s: heard\n%s\nwant\n%s", timing, got, live)
		}
		line := <-b.logged
		if line.Stage != "exact" || line.Status != 101 || s.Stats().Misses != 0 {
			t.Errorf("%s: the log has %+v, %d misses; want an exact 101, 0 misses", timing, line, s.Stats().Misses)
		}
	}
}

// TestWebSocketWithMoreThanWasRecorded: a device that sends more messages than in the
// recording, such as heartbeats, is read until it leaves, whichever side spoke last in
// the recording.
func TestWebSocketWithMoreThanWasRecorded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := newBench(t, http.NotFoundHandler(), false)
	device := lab.SocketPiece{Device: true, Data: []byte{0x81, 0x01, 'x'}}
	origin := lab.SocketPiece{At: 300 * time.Millisecond, Data: []byte{0x81, 0x01, 'y'}}
	for name, pieces := range map[string][]lab.SocketPiece{
		"nothing": nil, "the device": {device}, "the origin": {device, origin}, "the device, after the origin": {origin, device},
	} {
		t.Run(name, func(t *testing.T) {
			a := build(
				exchange{
					ask:    "GET https://www.example.com/chat",
					status: 101,
					header: "Upgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Accept: x",
				},
			)
			a.Exchanges()[0].Socket = pieces
			b.replay(a, Options{Timing: Timing{Mode: TimingRecorded}})
			c, _, err := websocket.Dial(ctx, "wss://www.example.com/chat", &websocket.DialOptions{HTTPClient: b.client})
			if err != nil {
				t.Fatal(err)
			}
			for range 5000 {
				if err := c.Write(ctx, websocket.MessageText, []byte("beat")); err != nil {
					break // the origin's end of a recording ends the connection
				}
			}
			_ = c.CloseNow()
			select {
			case line := <-b.logged:
				if line.Status != 101 {
					t.Errorf("the log has %+v, want status 101", line)
				}
			case <-ctx.Done():
				t.Fatal("the handler did not end with the device's connection")
			}
		})
	}
}

// TestSubprotocols: of several WebSockets with one URL, a device gets the one with the subprotocol that it asks for; and
// where it sends a token as a subprotocol, its own is answered.
func TestSubprotocols(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := newBench(t, http.NotFoundHandler(), false)
	opened := func(ask, with, chosen string) exchange {
		return exchange{ask: "GET https://www.example.com/" + ask, with: "Upgrade: websocket\nSec-WebSocket-Protocol: " + with, status: 101,
			header: "Upgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Accept: x\nSec-WebSocket-Protocol: " + chosen}
	}
	a := build(opened("two", "news", "news"), opened("two", "chat", "chat"), opened("token", "auth, 0a1b", "0a1b"), opened("token", "json, 0a1b", "json"))
	for i, e := range a.Exchanges() {
		e.Socket = []lab.SocketPiece{{At: time.Millisecond, Data: []byte{0x81, 0x01, '0' + byte(i)}}}
	}
	b.replay(a, Options{Timing: Timing{Mode: TimingNone}})
	for _, c := range []struct {
		path   string
		ask    []string
		chosen string
		heard  string
	}{
		{"two", []string{"chat"}, "chat", "1"}, {"two", []string{"news"}, "news", "0"},
		{"token", []string{"auth", "ffff"}, "ffff", "2"}, {"token", []string{"json", "ffff"}, "json", "3"},
	} {
		conn, _, err := websocket.Dial(ctx, "wss://www.example.com/"+c.path, &websocket.DialOptions{HTTPClient: b.client, Subprotocols: c.ask})
		if err != nil {
			t.Errorf("%s with %q: %v", c.path, c.ask, err)
			continue
		}
		_, heard, err := conn.Read(ctx)
		if conn.Subprotocol() != c.chosen || err != nil || string(heard) != c.heard {
			t.Errorf("%s with %q: answered %q, heard %q, %v; want %q and %q", c.path, c.ask, conn.Subprotocol(), heard, err, c.chosen, c.heard)
		}
		_ = conn.CloseNow()
		<-b.logged
	}
}

func TestMessageCounter(t *testing.T) {
	frames := []byte{0x01, 0x03, 'a', 'b', 'c', 0x89, 0x00, 0x80, 0x02, 'd', 'e', // two fragments around a ping: one message
		0x82, 0x80, 1, 2, 3, 4, // an empty masked one
		0x81, 126, 0, 200}
	frames = append(frames, make([]byte, 200)...)
	for n := 1; n < len(frames); n++ {
		var m messageCounter
		got := 0
		for rest := frames; len(rest) > 0; {
			k := min(n, len(rest))
			got += m.feed(rest[:k])
			rest = rest[k:]
		}
		if got != 3 {
			t.Fatalf("in pieces of %d: %d messages, want 3", n, got)
		}
	}
}

func FuzzMessageCounter(f *testing.F) {
	f.Add([]byte{0x81, 0x01, 'x', 0x88, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		var whole, single messageCounter
		n := whole.feed(b)
		for i := range b {
			n -= single.feed(b[i : i+1])
		}
		if n != 0 {
			t.Errorf("one piece has %d messages more than its bytes one by one, want 0", n)
		}
	})
}

// TestEndOfWebSocket: a recording knows when the origin ended a connection without a word.
func TestEndOfWebSocket(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err == nil {
			_, _, _ = c.Read(r.Context())
			_ = c.CloseNow()
		}
	}), false)
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	talk := func() error {
		c, _, err := websocket.Dial(ctx, "wss://www.example.com/chat", &websocket.DialOptions{HTTPClient: b.client})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		if err := c.Write(ctx, websocket.MessageText, []byte("x")); err != nil {
			t.Fatal(err)
		}
		_, _, err = c.Read(ctx)
		<-b.logged
		return err
	}
	_ = talk()
	a := finish()
	e := a.Exchanges()[0]
	if n := len(e.Socket); n != 2 || !e.OriginClosed || e.Socket[1].Device || len(e.Socket[1].Data) > 0 || e.Socket[1].At < e.Socket[0].At {
		t.Fatalf("recorded %+v, ended by the origin: %v; want the device's message and the origin's end", e.Socket, e.OriginClosed)
	}
	b.replay(a, Options{Timing: Timing{Mode: TimingRecorded}})
	if err := talk(); err == nil || ctx.Err() != nil {
		t.Errorf("in a replay, the device heard %v; want that the connection has ended", err)
	}
}

// TestRefusedWebSocket: what a device did not accept as a WebSocket while it was recorded, it does not accept in a replay.
func TestRefusedWebSocket(t *testing.T) {
	b := newBench(t, http.NotFoundHandler(), false)
	a := build(exchange{
		ask: "GET https://www.example.com/chat", with: "Upgrade: websocket\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", status: 101,
		header: "Upgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Accept: x",
	})
	b.replay(a, Options{Timing: Timing{Mode: TimingNone}})
	c, _, err := websocket.Dial(t.Context(), "wss://www.example.com/chat", &websocket.DialOptions{HTTPClient: b.client})
	if err == nil {
		_ = c.CloseNow()
		t.Error("the device has a WebSocket; want that it refuses the answer")
	}
}
