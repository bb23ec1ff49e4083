package replay

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
)

// live is an origin whose answers do not end: three events and silence, polls of which the
// one for the newest number waits, a socket on which it speaks last and stays.
func liveOrigin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	})
	mux.HandleFunc("/poll", func(w http.ResponseWriter, r *http.Request) {
		if since := r.URL.Query().Get("since"); since != "1002" {
			fmt.Fprintf(w, "after %s", since)
			return
		}
		<-r.Context().Done()
	})
	mux.HandleFunc("/socket", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer c.CloseNow()
		_ = c.Write(r.Context(), websocket.MessageText, []byte("the last word"))
		_, _, _ = c.Read(r.Context())
	})
	return mux
}

// device does what a page would: it reads what comes, until nothing more does. leave ends it.
type openPage struct {
	events int
	polls  []string
	word   string
	leave  func()
}

// open opens all three, each poll with the number that follows from the last answer.
func (b *bench) open(ctx context.Context, first int) *openPage {
	t := b.t
	ctx, cancel := context.WithCancel(ctx)
	p := &openPage{leave: cancel}
	get := func(path string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://www.example.com"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := get("/events")
	lines := bufio.NewScanner(resp.Body)
	for p.events < 3 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			p.events++
		}
	}
	for i := range 2 {
		resp := get(fmt.Sprint("/poll?since=", first+i))
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		p.polls = append(p.polls, string(text))
	}
	go func() { // the poll that waits
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprint("https://www.example.com/poll?since=", first+2), nil)
		if err != nil {
			return
		}
		if resp, err := b.client.Do(r); err == nil {
			t.Errorf("the poll that waited in the recording was answered: %d", resp.StatusCode)
			resp.Body.Close()
		}
	}()
	c, _, err := websocket.Dial(ctx, "wss://www.example.com/socket", &websocket.DialOptions{HTTPClient: b.client})
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.word = string(text)
	ended := make(chan error, 2)
	go func() { _, _, err := c.Read(ctx); ended <- err }()
	go func() {
		for lines.Scan() { // the empty line that ends the last event
		}
		ended <- lines.Err()
	}()
	p.leave = func() {
		select {
		case err := <-ended:
			t.Errorf("a connection that was open when the recording ended was ended by the box: %v", err)
		default:
		}
		cancel()
		_ = c.CloseNow()
		resp.Body.Close()
	}
	return p
}

// TestOpenConnectionsStayOpen: what had not ended when the recording did is recorded as
// open, is not in flight, and stays open and silent in a replay.
func TestOpenConnectionsStayOpen(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	b := newBench(t, liveOrigin(), false)
	rec, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	p := b.open(ctx, 1000)
	waitFor(ctx, t, "five requests", func() bool { return rec.Stats().Requests == 5 })
	// The poll counts as one after ten seconds only, so that a slow answer is waited for.
	if s := rec.Stats(); s.InFlight != 1 {
		t.Errorf("while recording, %d requests are in flight, want the poll alone", s.InFlight)
	}
	p.leave()
	a := finish()
	for range 5 {
		<-b.logged
	}
	var open []string
	for _, e := range a.Exchanges() {
		if e.IsOpen() {
			open = append(open, strings.TrimPrefix(e.URL, "https://www.example.com"))
		}
		if e.Status == http.StatusSwitchingProtocols && e.OriginClosed {
			t.Error("the origin is said to have closed the socket")
		}
	}
	if got := strings.Join(open, " "); got != "/events /poll?since=1002" && got != "/poll?since=1002 /events" {
		for _, e := range a.Exchanges() {
			t.Logf("%s: status %d, truncated %q", e.URL, e.Status, e.Truncated)
		}
		t.Fatalf("open when the recording ended: %q; want the events and the last poll", got)
	}
	if q := archive.Assess(a); len(q.Problems) != 0 {
		t.Errorf("Assess() = %+v, want no problem: what is open is no flaw", q.Problems)
	}
	b.origin.CloseClientConnections()
	for name, first := range map[string]int{"the same numbers": 1000, "other numbers": 5000} {
		t.Run(name, func(t *testing.T) {
			s := b.replay(a, Options{})
			p := b.open(ctx, first)
			waitFor(ctx, t, "rest", func() bool { st := s.Stats(); return st.Requests == 5 && st.InFlight == 0 })
			p.leave()
			stages := map[lab.Stage]int{}
			for range 5 {
				line := <-b.logged
				stages[line.Stage]++
			}
			if p.events != 3 || p.word != "the last word" || strings.Join(p.polls, ", ") != "after 1000, after 1001" {
				t.Errorf("the page got %+v; want 3 events, the last word, and the polls in their order", p)
			}
			if s.Stats().Misses != 0 {
				t.Errorf("%d misses (%v), want 0", s.Stats().Misses, stages)
			}
		})
	}
}

// waitFor waits until a condition holds.
func waitFor(ctx context.Context, t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s did not come", what)
		case <-tick.C:
		}
	}
}

// TestSilentRequestIsAPoll: a request whose origin has said nothing for ten seconds does not keep
// a page from being at rest, and one that does is in flight again.
func TestSilentRequestIsAPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := func() lab.Time { return lab.Time(time.Now().UnixNano()) }
		c := NewRecorder(nil, nil, RecordOptions{Clock: now, Wall: time.Now})
		r, err := http.NewRequest(http.MethodGet, "https://a.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		f := c.begin(nil, r)
		for _, step := range []struct {
			after time.Duration
			heard bool
			want  int
		}{{0, false, 1}, {silentAfter - 1, false, 1}, {1, false, 0}, {0, true, 1}, {silentAfter, false, 0}} {
			<-time.After(step.after)
			if step.heard {
				f.heard.Store(int64(now()))
			}
			if got := c.Stats().InFlight; got != step.want {
				t.Errorf("%v later (heard: %t) %d are in flight, want %d", step.after, step.heard, got, step.want)
			}
		}
		c.end(f, now())
		c.pending.Done()
	})
}

// TestAnswersWithoutEnd: an answer without a length that trickles, and one that plays, keep a page from being at rest for
// ten seconds and no longer; what comes fast, has a length or is a document does so to its end.
func TestAnswersWithoutEnd(t *testing.T) {
	for name, c := range map[string]struct {
		dest, kind string
		length     int64
		perSecond  int
		want       int // in flight after that time
	}{
		"a feed":            {"empty", "application/x-ndjson", -1, 100, 0},
		"a radio":           {"audio", "audio/mpeg", -1, 40 << 10, 0},
		"a download":        {"empty", "application/zip", -1, 1 << 20, 1},
		"one with a length": {"empty", "application/x-ndjson", 5000, 100, 1},
		"a document":        {"document", "text/html", -1, 100, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := func() lab.Time { return lab.Time(time.Now().UnixNano()) }
				c0 := NewRecorder(nil, nil, RecordOptions{Clock: now, Wall: time.Now})
				r, err := http.NewRequest(http.MethodGet, "https://a.test/", nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Sec-Fetch-Dest", c.dest)
				f := c0.begin(nil, r)
				f.e.Method, f.e.Request.Header = r.Method, []lab.HeaderField{{Name: "Sec-Fetch-Dest", Value: c.dest}}
				f.response(&http.Response{StatusCode: 200, Status: "200 OK", ProtoMajor: 1, Header: http.Header{"Content-Type": {c.kind}}, ContentLength: c.length})
				for second := range 11 {
					if got := c0.Stats().InFlight; second < 10 && got != 1 {
						t.Errorf("after %d s %d are in flight; want 1", second, got)
					}
					<-time.After(time.Second)
					f.heard.Store(int64(now()))
					f.got.Add(int64(c.perSecond))
				}
				if got, waits := c0.Stats().InFlight, len(c0.Waits()); got != c.want || waits != c.want {
					t.Errorf("after 11 s %d are in flight, and %d are waited for; want %d", got, waits, c.want)
				}
				c0.end(f, now())
				c0.pending.Done()
			})
		})
	}
}

// TestLoopIsTold: a page that asks much more often than it did has a low score.
func TestLoopIsTold(t *testing.T) {
	b := newBench(t, http.NotFoundHandler(), false)
	a := build(exchange{ask: "GET https://www.example.com/a", status: 200, answer: "a"})
	b.replay(a, Options{Timing: Timing{Mode: TimingNone}})
	for asked := 1; asked <= 9; asked++ {
		resp, err := b.client.Get("https://www.example.com/a")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		line := <-b.logged
		if isLoop := asked > 3; isLoop != (line.Score < 1) || isLoop != (len(line.Differs) > 0) {
			t.Errorf("request %d of an exchange that was recorded once: score %v, %v", asked, line.Score, line.Differs)
		}
	}
}
