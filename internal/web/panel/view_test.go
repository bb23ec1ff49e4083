package panel

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// countingSeats have a screen that shows something new whenever somebody looks: how often that was.
type countingSeats struct {
	fakeSeats
	made atomic.Int64
	open atomic.Int64
}

func (c *countingSeats) View(string, string) (View, error) {
	c.open.Add(1)
	return countingView{c}, nil
}

type countingView struct{ of *countingSeats }

func (v countingView) Next(context.Context) (lab.LiveUpdate, error) {
	n := v.of.made.Add(1)
	if n == 1 {
		return lab.LiveUpdate{}, fmt.Errorf("the screen is dark")
	}
	return lab.LiveUpdate{
		Size: image.Pt(2, 3), Changes: []lab.Time{lab.Time(n)}, Taken: lab.Monotonic(), Move: &lab.Move{R: image.Rect(0, 0, 2, 1), DY: 2},
		Parts: []lab.LivePart{{Area: image.Rect(0, 1, 2, 3), Type: "image/png", Bytes: []byte(fmt.Sprint("number ", n))}, {Type: "image/jpeg", Bytes: []byte("x")}},
	}, nil
}

func (v countingView) Close() { v.of.open.Add(-1) }

// TestView: the messages of a live view; a page that does not say that it shows them gets two, and then the newest.
func TestView(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), testlab.Hang)
	defer stop()
	seats := &countingSeats{}
	s := newServer(t, setup{Store: emptyStore(t), Version: "v1", Seats: seats, Token: lab.NewSecret(token)})
	reader := newToken(t, s, "viewer", "read").Secret
	const path = "/api/v1/devices/desk/view"
	if got := ask(t, s, http.MethodGet, path, sending(reader, "")); got.StatusCode != http.StatusUpgradeRequired || !strings.Contains(got.text, "WebSocket") {
		t.Errorf("without an upgrade: %s %s", got.Status, got.text)
	}
	dial := func(change func(http.Header)) (*websocket.Conn, int) {
		t.Helper()
		h := http.Header{"Authorization": {"Bearer " + reader}}
		if change != nil {
			change(h)
		}
		conn, answer, err := websocket.Dial(ctx, s.URL+path, &websocket.DialOptions{HTTPHeader: h})
		if err != nil && answer == nil {
			t.Fatal(err)
		}
		return conn, answer.StatusCode
	}
	for what, change := range map[string]func(http.Header){
		"no token": func(h http.Header) { h.Del("Authorization") },
		"a page of another origin": func(h http.Header) {
			h.Set("Origin", "http://other.example")
			h.Set("Sec-Fetch-Site", "cross-site")
		},
		"an old browser's page of another origin": func(h http.Header) { h.Set("Origin", "http://other.example") },
	} {
		if _, status := dial(change); status != http.StatusUnauthorized && status != http.StatusForbidden {
			t.Errorf("%s: %d; want it refused", what, status)
		}
	}
	if n := seats.made.Load(); n != 0 {
		t.Errorf("who is refused had %d looks", n)
	}
	conn, _ := dial(nil)
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	kind, text, err := conn.Read(ctx)
	if err != nil || kind != websocket.MessageText || string(text) != `{"problem":"the screen is dark"}` {
		t.Fatalf("first comes %v %s, %v; want the problem", kind, text, err)
	}
	read := func() (n int, delay int64) {
		t.Helper()
		kind, b, err := conn.Read(ctx)
		if err != nil || kind != websocket.MessageBinary || len(b) < 4 {
			t.Fatalf("a message: %v, %d bytes, %v", kind, len(b), err)
		}
		size := 4 + binary.BigEndian.Uint32(b)
		var head ViewHead
		if err := json.Unmarshal(b[4:size], &head); err != nil || head.Width != 2 || head.Height != 3 || len(head.Parts) != 2 || len(head.Changes) != 1 {
			t.Fatalf("the head %s: %+v, %v", b[4:size], head, err)
		}
		if want := (ViewMove{Width: 2, Height: 1, DY: 2}); head.Move == nil || *head.Move != want {
			t.Fatalf("the head %s has the move %+v; want %+v", b[4:size], head.Move, want)
		}
		if _, err := fmt.Sscanf(string(b[size:]), "number %dx", &n); err != nil || lab.Time(n) != head.Changes[0] ||
			head.Parts[0].Bytes != len(b)-int(size)-1 || head.Parts[0].Y != 1 || !bytes.HasSuffix(b, []byte("x")) {
			t.Fatalf("the parts %q of %+v: %v", b[size:], head, err)
		}
		return n, head.Delay
	}
	for want := 2; want < 4; want++ {
		if got, delay := read(); got != want || delay != 0 {
			t.Errorf("message %d, of which one took %d ns; want %d, none is answered", got, delay, want)
		}
	}
	// Nobody has said that they are shown: another look is not made until then.
	seats.made.Store(100)
	if err := conn.Write(ctx, websocket.MessageText, []byte("shown")); err != nil {
		t.Fatal(err)
	}
	if got, delay := read(); got != 101 || delay <= 0 {
		t.Errorf("after a while comes message %d, and one took %d ns; want the newest, 101, and how long the first took", got, delay)
	}
	// Who says that more is shown than there was, or sends much, is cut off.
	for range 4 {
		if err := conn.Write(ctx, websocket.MessageText, []byte(strings.Repeat("much ", 100))); err != nil {
			break
		}
	}
	for err == nil {
		_, _, err = conn.Read(ctx)
	}
	for deadline := time.Now().Add(testlab.Hang); seats.open.Load() != 0; <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the view stays open")
		}
	}
	// Looking is all that this token may.
	for _, refused := range [][2]string{{http.MethodPut, "/api/v1/devices/desk/driver"}, {http.MethodPost, "/api/v1/devices/desk/input"}} {
		if got := ask(t, s, refused[0], refused[1], sending(reader, `{"steps": "key a"}`)); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s with a token of the scope read: %s; want 403", refused[0], refused[1], got.Status)
		}
	}
	// A revoked token sees no more.
	gone := newToken(t, s, "gone", "read")
	reader = gone.Secret
	conn, _ = dial(nil)
	defer conn.CloseNow()
	if got := ask(t, s, http.MethodDelete, "/api/v1/tokens/"+gone.ID, sending(token, "")); got.StatusCode >= 300 {
		t.Fatalf("revoking: %s %s", got.Status, got.text)
	}
	for err = nil; err == nil; {
		if _, _, err = conn.Read(ctx); err == nil {
			err = conn.Write(ctx, websocket.MessageText, []byte("shown"))
		}
	}
	if ctx.Err() != nil {
		t.Error("the view of a revoked token goes on")
	}
}
