package replay

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/hop"
	"eidetic/netlab/inject"

	"github.com/andybalholm/brotli"
)

// manyRequests are sent at once by TestManyClients. They fit on one connection of
// HTTP/2: net/http's client fails requests now and then when it opens many at once and
// closes those that it does not need.
const manyRequests = 1000

// bench is a device, a box and an origin on loopback: the origin speaks TLS,
// the device speaks TLS to the box, both h1 and h2.
type bench struct {
	t       testing.TB
	origin  *httptest.Server
	front   *httptest.Server
	client  *http.Client
	handler http.Handler // what the box does now
	mu      sync.Mutex
	log     []lab.Served
	logged  chan lab.Served
}

func newBench(t testing.TB, origin http.Handler, h2 bool) *bench {
	b := &bench{t: t, origin: httptest.NewUnstartedServer(origin), logged: make(chan lab.Served, 1000)}
	b.origin.EnableHTTP2 = h2
	b.origin.Config.ErrorLog = quiet()
	b.origin.StartTLS()
	b.front = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host = "https", r.Host
		proto := map[int]string{1: "http/1.1", 2: "h2"}[r.ProtoMajor]
		b.handler.ServeHTTP(
			w,
			r.WithContext(hop.WithConn(r.Context(), hop.Conn{Client: netip.MustParseAddr("192.0.2.77"), Protocol: proto, TLS: "tls/1.3"})),
		)
	}))
	b.front.EnableHTTP2 = h2
	b.front.Config.ErrorLog = quiet()
	b.front.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: manyRequests}
	b.front.StartTLS()
	tr := newTransport(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, b.front.Listener.Addr().String())
	}, &tls.Config{InsecureSkipVerify: true})
	b.client = &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		b.front.CloseClientConnections()
		b.front.Close()
		b.origin.CloseClientConnections()
		b.origin.Close()
	})
	return b
}

// newTransport returns a transport that is fit for a Recorder and connects by dial.
func newTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error), t *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext: dial, TLSClientConfig: t, DisableCompression: true, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 32, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 20 * time.Second,
	}
}

func (b *bench) note(line lab.Served) {
	b.mu.Lock()
	b.log = append(b.log, line)
	b.mu.Unlock()
	b.logged <- line
}

// record makes the box a recorder; the returned function ends the recording.
func (b *bench) record(path string) (*Recorder, func() *archive.Archive) {
	w, err := archive.Create(path, archive.CreateOptions{Software: "test", Wall: time.Now(), Seed: 3, PageDate: recordedAt})
	if err != nil {
		b.t.Fatal(err)
	}
	tr := newTransport(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, b.origin.Listener.Addr().String())
	}, &tls.Config{InsecureSkipVerify: true})
	rec := NewRecorder(
		w,
		tr,
		RecordOptions{Clock: lab.Monotonic, Wall: time.Now, Inject: inject.Options{Seed: 3, Date: recordedAt}, Log: b.note},
	)
	b.handler = rec
	return rec, func() *archive.Archive {
		if err := rec.Wait(); err != nil {
			b.t.Error(err)
		}
		tr.CloseIdleConnections()
		if err := w.Close(); err != nil {
			b.t.Fatal(err)
		}
		a, err := archive.Open(path)
		if err != nil {
			b.t.Fatal(err)
		}
		return a
	}
}

func (b *bench) replay(a *archive.Archive, o Options) *Session {
	o.Clock, o.Log = lab.Monotonic, b.note
	s, err := NewSession(a, o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.handler = s
	return s
}

// get returns what a device can tell of an answer.
func (b *bench) get(method, url, body string, header http.Header) string {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header = header.Clone()
	resp, err := b.client.Do(r)
	if err != nil {
		return "error: " + err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	h := resp.Header.Clone()
	h.Del("Date")
	return fmt.Sprintf("%s %s %v %q %v %v", resp.Proto, resp.Status, h, text, resp.Trailer, err != nil)
}

// site is an origin with one path for each kind of answer.
func site() http.Handler {
	var mu sync.Mutex
	count := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		w.Header().Set("Alt-Svc", `h3=":443"`)
		_, _ = io.WriteString(w, "<!doctype html><html><head><title>page</title>")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "<body>rest")
	})
	mux.HandleFunc("/br", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", "br")
		z := brotli.NewWriter(w)
		_, _ = io.WriteString(z, "<html><head>"+strings.Repeat("compressed ", 500))
		_ = z.Close()
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s %q", r.Method, b, r.Header["Accept-Encoding"])
	})
	mux.HandleFunc("/count", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		count++
		fmt.Fprint(w, count)
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/page", http.StatusFound) })
	mux.HandleFunc("/cookies", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.WriteHeader(204)
	})
	mux.HandleFunc("/trailer", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "body")
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("X-Sum", "42")
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/empty", func(http.ResponseWriter, *http.Request) {})
	return mux
}

// TestRecordReplay: the device sees in a replay what it saw during the recording, with the
// origin gone, over h1 and h2.
func TestRecordReplay(t *testing.T) {
	asks := []struct {
		method, path, body string
		header             http.Header
	}{
		{"GET", "/page", "", http.Header{"Sec-Fetch-Dest": {"document"}}},
		{"GET", "/br", "", http.Header{"Sec-Fetch-Dest": {"document"}, "Accept-Encoding": {"gzip, br, zstd"}}},
		{"GET", "/echo?q=1&r", "", http.Header{"Accept-Encoding": {"gzip, br"}}},
		{"POST", "/echo", "one", http.Header{"Content-Type": {"text/plain"}}},
		{"POST", "/echo", "two", http.Header{"Content-Type": {"text/plain"}}},
		{"PUT", "/echo", "", nil},
		{"HEAD", "/echo", "", nil},
		{"GET", "/count", "", nil}, {"GET", "/count", "", nil}, {"GET", "/count", "", nil},
		{"GET", "/redirect", "", nil},
		{"GET", "/cookies", "", nil},
		{"GET", "/trailer", "", nil},
		{"GET", "/empty", "", nil},
		{"GET", "/none", "", nil},
	}
	for _, h2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "h1", true: "h2"}[h2], func(t *testing.T) {
			b := newBench(t, site(), h2)
			_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
			var live []string
			for _, a := range asks {
				live = append(live, b.get(a.method, "https://www.example.com"+a.path, a.body, a.header))
			}
			a := finish()
			b.origin.Close()
			if len(a.Exchanges()) != len(asks) {
				t.Fatalf("%d exchanges were recorded, want %d", len(a.Exchanges()), len(asks))
			}
			for i, e := range a.Exchanges() {
				want := map[bool]string{false: "http/1.1", true: "h2"}[h2]
				if e.Protocol != want || e.TLS != "tls/1.3" || !e.Server.IsValid() || e.Order != i || e.FirstByte <= 0 {
					t.Errorf("exchange %d is %+v; want %s over tls/1.3 with order %d, a server and a first byte", i, e, want, i)
				}
				if strings.Contains(string(e.Response.Body), "eidetic") {
					t.Errorf("exchange %d was recorded with the script in it, want it as the origin sent it", i)
				}
			}
			if !strings.Contains(live[0], "eidetic") || !strings.Contains(live[0], "rest") || strings.Contains(live[0], "Alt-Svc") {
				t.Errorf("the device saw %s; want the page with the script and without Alt-Svc", live[0])
			}
			if !strings.Contains(live[2], `gzip, br`) {
				t.Errorf("the origin saw %s, want the device's Accept-Encoding", live[2])
			}
			s := b.replay(a, Options{})
			for i, a := range asks {
				again := b.get(a.method, "https://www.example.com"+a.path, a.body, a.header)
				if live[i] != again && !(a.path == "/br" && len(again) > 1000) {
					t.Errorf("%s %s: the replay differs:\ngot  %s\nwant %s", a.method, a.path, again, live[i])
				}
			}
			if st := s.Stats(); st.Misses != 0 || st.Requests != len(asks) {
				t.Errorf("Stats() = %+v, want %d requests and no miss", st, len(asks))
			}
			want := map[bool]string{false: "[http/1.1]", true: "[h2 http/1.1]"}[h2]
			if got := fmt.Sprint(s.Protocols("www.example.com")); got != want || fmt.Sprint(s.Hosts()) != "[www.example.com]" ||
				s.Protocols("x.example") != nil {
				t.Errorf("Protocols = %s, Hosts() = %v; want %s, [www.example.com], and none for another host", got, s.Hosts(), want)
			}
		})
	}
}

// TestFailures: a failed request is never recorded as a good one.
func TestFailures(t *testing.T) {
	b := newBench(t, site(), true)
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	if got := b.get("GET", "https://www.example.com/cut", "", nil); !strings.HasSuffix(got, "true") && !strings.HasPrefix(got, "error: ") {
		t.Errorf("the device gets %s for a cut-off body, want an error", got)
	}
	b.origin.CloseClientConnections()
	b.origin.Close()
	if got := b.get("GET", "https://www.example.com/gone", "", nil); !strings.Contains(got, "502") {
		t.Errorf("an origin that is gone is answered with %s, want 502", got)
	}
	a := finish()
	if len(a.Exchanges()) != 1 || a.Exchanges()[0].Truncated != "disconnect" || string(a.Exchanges()[0].Response.Body) != "half" {
		t.Errorf("recorded %+v; want one exchange with the body \"half\", truncated by a disconnect", a.Exchanges())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.log {
		if line.Error == "" || line.Stage != lab.StageLive {
			t.Errorf("the log has %+v, want the stage live and an error", line)
		}
	}
}

// TestDeviceGoesAway: the recorder fetches the complete body although the device left.
func TestDeviceGoesAway(t *testing.T) {
	release := make(chan struct{})
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first ")
		_ = http.NewResponseController(w).Flush()
		<-release
		_, _ = io.WriteString(w, "second")
	}), true)
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", "https://www.example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(resp.Body).ReadString(' '); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = resp.Body.Close()
	close(release)
	<-b.logged
	a := finish()
	if len(a.Exchanges()) != 1 || string(a.Exchanges()[0].Response.Body) != "first second" || a.Exchanges()[0].Truncated != "" {
		t.Errorf("recorded %+v; want one exchange with the complete body", a.Exchanges())
	}
}

// TestManyClients: a thousand requests at once are all answered, race-clean.
func TestManyClients(t *testing.T) {
	b := newBench(t, http.NotFoundHandler(), true)
	var list []exchange
	for i := range 50 {
		list = append(
			list,
			exchange{
				ask:    fmt.Sprint("GET https://www.example.com/", i),
				header: "Content-Type: text/plain",
				answer: fmt.Sprint("body ", i),
			},
		)
	}
	s := b.replay(build(list...), Options{})
	ask := func(i int) bool {
		got := b.get("GET", fmt.Sprint("https://www.example.com/", i%50), "", nil)
		ok := strings.Contains(got, fmt.Sprintf("%q", fmt.Sprint("body ", i%50)))
		if !ok {
			t.Errorf("request %d is answered with %s, want the body %d", i, got, i%50)
		}
		return ok
	}
	if !ask(0) { // opens the connection
		return
	}
	<-b.logged
	var wg sync.WaitGroup
	var answered atomic.Int64
	for i := range manyRequests {
		wg.Go(func() {
			if ask(i) {
				answered.Add(1)
			}
		})
	}
	wg.Wait()
	for range answered.Load() {
		<-b.logged
	}
	if st := s.Stats(); st.Requests != 1+manyRequests || st.Misses != 0 || st.InFlight != 0 {
		t.Errorf("Stats() = %+v; want %d requests, no miss, none in flight", st, 1+manyRequests)
	}
}

// TestMissLiveAndFill: a request that the archive lacks is fetched from the origin, under
// MissFill once.
func TestMissLiveAndFill(t *testing.T) {
	b := newBench(t, site(), true)
	dir := t.TempDir()
	a := build(exchange{ask: "GET https://www.example.com/recorded", header: "Content-Type: text/plain", answer: "from the archive"})
	tr := newTransport(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, b.origin.Listener.Addr().String())
	}, &tls.Config{InsecureSkipVerify: true})
	t.Cleanup(tr.CloseIdleConnections)
	w, err := archive.Create(filepath.Join(dir, "fill.wacz"), archive.CreateOptions{Wall: recordedAt})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) string {
		got := b.get("GET", "https://www.example.com"+path, "", nil)
		line := <-b.logged
		return string(line.Stage) + " " + got[strings.Index(got, `"`):]
	}
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Miss: MissLive, Live: tr}, "exact from the archive, live 1, live 2"},
		{Options{Miss: MissFill, Live: tr, Fill: NewView(w, recordedAt)}, "exact from the archive, live 3, exact 3"},
		{Options{}, "exact from the archive, miss , miss "},
	} {
		s := b.replay(a, tt.o)
		var got []string
		for _, path := range []string{"/recorded", "/count", "/count"} {
			stage, body, _ := strings.Cut(get(path), " ")
			body = strings.Split(body, `"`)[1]
			if stage == "miss" {
				body = ""
			}
			got = append(got, stage+" "+body)
		}
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: got %q, want %q", tt.o.Miss, got, tt.want)
		}
		if st := s.Stats(); st.Requests != 3 || st.InFlight != 0 {
			t.Errorf("%s: Stats() = %+v; want 3 requests, none in flight", tt.o.Miss, st)
		}
	}
	if w.Count() != 1 {
		t.Errorf("%d exchanges were filled in, want 1", w.Count())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	for _, o := range []Options{{Miss: MissLive}, {Miss: MissFill, Live: tr}, {Miss: "x"}} {
		o.Clock = lab.Monotonic
		if _, err := NewSession(a, o); err == nil {
			t.Errorf("NewSession(%+v) = nil error, want one", o)
		}
	}
}

// TestTraceparent: where it is asked for, the origin gets a traceparent with each request that has none, and the
// recording has it; a page's own stays, and a replay of either is exact.
func TestTraceparent(t *testing.T) {
	got := make(chan string, 3)
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get(Traceparent)
		io.WriteString(w, "ok")
	}), true)
	rec, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	const own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	ask := func(path string, header http.Header) string { return b.get("GET", "https://a.test"+path, "", header) }
	ask("/before", nil)
	rec.o.Traceparent = true
	ask("/after", nil)
	ask("/own", http.Header{"Traceparent": {own}})
	form := regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`)
	before, after, kept := <-got, <-got, <-got
	if before != "" || !form.MatchString(after) || kept != own {
		t.Errorf("the origin got %q, %q and %q; want none, one of ours and %q", before, after, kept, own)
	}
	a := finish()
	for _, e := range a.Exchanges() {
		if want := map[string]string{"/after": after, "/own": own}[lab.ParseURL(e.URL).Net().Path]; e.Request.Get(Traceparent) != want {
			t.Errorf("%s is recorded with %q, want %q", e.URL, e.Request.Get(Traceparent), want)
		}
	}
	s := b.replay(a, Options{Timing: Timing{Mode: TimingNone}})
	if again := ask("/after", nil); !strings.Contains(again, `"ok"`) || s.Stats().Misses != 0 {
		t.Errorf("the replay says %s, %d misses", again, s.Stats().Misses)
	}
}
