package conformance

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/hop"
	"eidetic/netlab/inject"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
)

// kase is one named case.
type kase struct {
	name string
	// page is the body of the document at https://a.test/, whose scripts set
	// window.result in the end; html replaces the whole document.
	page, html string
	header     map[string]string // of the document
	// routes answers everything else, by path, for every host.
	routes map[string]http.HandlerFunc
	// want must be in the result; empty means any.
	want string
	// label is what the page tells the box, such as "done=NAME" by lab.done, or "mark=NAME" by lab.mark.
	label string
	// told is what the realms of the page tell the box, each with its name, in any order.
	told   []string
	inject inject.Options // of its replay
	// check, if set, checks the log of the last replay.
	check  func(t *testing.T, result string, log []lab.Served)
	h1     bool          // the origin speaks HTTP/1.1 only
	hints  string        // a Link that is sent in a 103 before the document
	timing replay.Timing // zero is none
}

// stand is the box and a browser, all of whose connections lead to the box.
type stand struct {
	core      *switchable
	authority *ca.Authority
	// The addresses that the box listens on.
	http, https, explicit string
	browser               browser
	origins               *ca.Authority // signs for the origins
}

// browser runs the cases.
type browser interface {
	// load opens a page in a fresh profile and returns its window.result.
	load(t *testing.T, address string) string
}

// switchable is the core behind the box's listeners.
type switchable struct {
	mu        sync.Mutex
	handler   http.Handler
	protocols func(string) []string
}

func (s *switchable) current() (http.Handler, func(string) []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handler, s.protocols
}

func (s *switchable) set(h http.Handler, protocols func(string) []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler, s.protocols = h, protocols
}

// ServeHTTP implements proxy.Core.
func (s *switchable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, _ := s.current()
	c := hop.ConnOf(r.Context())
	c.Client, c.QUIC = netip.MustParseAddr("192.0.2.1"), false
	h.ServeHTTP(w, r.WithContext(hop.WithConn(r.Context(), c)))
}

// Protocols implements proxy.Core.
func (s *switchable) Protocols(host string) []string {
	if _, protocols := s.current(); protocols != nil {
		return protocols(host)
	}
	return nil
}

// HTTP3 implements proxy.Core.
func (s *switchable) HTTP3(string) bool { return false }

// newStand starts the box's listeners.
func newStand(t *testing.T) *stand {
	s := &stand{core: &switchable{handler: http.NotFoundHandler()}}
	var err error
	s.authority, err = ca.New(time.Now)
	check(t, err)
	s.origins, err = ca.New(time.Now)
	check(t, err)
	listen := func(addr *string) net.Listener {
		l, err := proxy.Listen(t.Context(), "127.0.0.1:0", "")
		check(t, err)
		*addr = l.Addr().String()
		return l
	}
	box, err := proxy.Serve(proxy.Config{
		HTTP: listen(&s.http), HTTPS: listen(&s.https), Explicit: listen(&s.explicit), Certificates: s.authority, Core: s.core,
	})
	check(t, err)
	t.Cleanup(func() { check(t, box.Close()) })
	return s
}

// origin serves a case.
func (k *kase) origin() http.Handler {
	mux, hinted := http.NewServeMux(), make(chan struct{})
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		if k.hints != "" {
			w.Header().Set("Link", k.hints)
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			// The origin takes longer to make the document than the browser to ask for the hinted
			// resource.
			for _, wait := range []<-chan struct{}{hinted, after(time.Second)} {
				select {
				case <-wait:
				case <-time.After(5 * time.Second):
				case <-r.Context().Done():
				}
			}
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		for name, v := range k.header {
			w.Header().Set(name, v)
		}
		html := k.html
		if html == "" {
			html = "<!doctype html><html><head><title>" + k.name + "</title></head><body>" + k.page + "</body></html>"
		}
		_, _ = io.WriteString(w, html)
	})
	var once sync.Once
	for path, h := range k.routes {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			once.Do(func() { close(hinted) })
			h(w, r)
		})
	}
	return mux
}

// after returns a channel that is closed after d.
func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}

// run records the case and replays it.
func (s *stand) run(t *testing.T, k kase) {
	a, live := s.record(t, &k)
	s.replay(t, &k, a, live)
}

// load opens a page for the case. Chromium ignores hints now and then, above all while it starts, although it got them,
// as TestWire shows.
func (s *stand) load(t *testing.T, k *kase, url string) string {
	got := s.browser.load(t, url)
	for tries := 1; k.hints != "" && tries < 5 && !strings.Contains(got, k.want); tries++ {
		got = s.browser.load(t, url)
	}
	return got
}

// record records the case, and returns what the page saw.
func (s *stand) record(t *testing.T, k *kase) (a *archive.Archive, live string) {
	origin := httptest.NewUnstartedServer(k.origin())
	origin.EnableHTTP2 = !k.h1
	origin.Config.ErrorLog = log.New(io.Discard, "", 0)
	origin.TLS = &tls.Config{GetCertificate: s.origins.GetCertificate}
	origin.StartTLS()
	path := filepath.Join(t.TempDir(), "case.wacz")
	date := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	w, err := archive.Create(path, archive.CreateOptions{Software: "conformance", Wall: time.Now(), Seed: 11, PageDate: date})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Discard() }()
	up := proxy.NewUpstream(proxy.UpstreamConfig{
		Roots: s.origins.Pool(),
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
		},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, origin.Listener.Addr().String())
		},
	})
	defer up.Close()
	rec := replay.NewRecorder(w, up, replay.RecordOptions{
		Clock: lab.Monotonic, Wall: time.Now, Inject: inject.Options{Seed: 11, Date: date},
		Protocols: up.Protocols,
	})
	s.core.set(rec, rec.Protocols)
	live = s.load(t, k, "https://a.test/#live")
	if err := rec.Wait(); err != nil {
		t.Fatal(err)
	}
	origin.CloseClientConnections()
	origin.Close()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if a, err = archive.Open(path); err != nil {
		t.Fatal(err)
	}
	if k.want != "" && !strings.Contains(live, k.want) {
		t.Errorf("live: %q does not have %q in it", live, k.want)
	}
	return a, live
}

// replay replays the case: the page sees again what it saw.
func (s *stand) replay(t *testing.T, k *kase, a *archive.Archive, live string) {
	timing := k.timing
	if timing.Mode == "" {
		timing.Mode = replay.TimingNone
	}
	var mu sync.Mutex
	var served []lab.Served
	labels := ""
	var told []string
	came, sent := map[string]string{}, map[string]bool{} // keys of messages: by what was told of those that came
	session, err := replay.NewSession(a, replay.Options{
		Clock: lab.Monotonic, Wall: time.Now(), Timing: timing, Inject: k.inject,
		Annotate: func(a replay.Annotation) {
			mu.Lock()
			defer mu.Unlock()
			if k.told == nil {
				labels += strings.Join(labelsOf(a), "")
				return
			}
			of := keysOf(a)
			for i, label := range labelsOf(a) {
				one := strings.TrimSpace(whereOf(a) + ": " + label)
				if !slices.Contains(told, one) {
					told = append(told, one)
				}
				if strings.HasPrefix(label, "receive=") {
					came[one] = of[i]
				} else if strings.HasPrefix(label, "send=") {
					sent[of[i]] = true
				}
			}
		},
		Log: func(line lab.Served) {
			mu.Lock()
			defer mu.Unlock()
			served = append(served, line)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.core.set(session, session.Protocols)
	got := s.load(t, k, "https://a.test/#replay")
	// The page may have its result before the answer is logged, which is after it was sent.
	awaitLogged(session, func() int { mu.Lock(); defer mu.Unlock(); return len(served) })
	mu.Lock()
	defer mu.Unlock()
	if got != live {
		t.Errorf("the page saw\n%s\nwhile it was recorded\n%s", got, live)
	}
	for _, line := range served {
		// Requests of the browser's own services are none of the page's. Whether the browser asks for an
		// icon before the page is closed is random.
		if strings.HasSuffix(line.URL, "/favicon.ico") {
			continue
		}
		if u, err := url.Parse(line.URL); line.Stage == lab.StageMiss && err == nil && strings.HasSuffix(u.Hostname(), ".test") {
			t.Errorf("missed %s %s (nearest %s)", line.Method, line.URL, line.RunnerUp)
		}
	}
	if strings.TrimSpace(labels) != k.label {
		t.Errorf("the page told the box %q, want %q", labels, k.label)
	}
	for i, one := range told {
		if key, ok := came[one]; ok && !sent[key] {
			told[i] += " that nobody sent"
		}
	}
	slices.Sort(told)
	if diff := cmp.Diff(k.told, told); diff != "" {
		t.Errorf("the realms told the box (-want +got):\n%s", diff)
	}
	if k.check != nil {
		k.check(t, got, served)
	}
}

// awaitLogged returns when no request is being answered and all are logged, or after a while: a
// connection that stays open for longer is no answer to the page.
func awaitLogged(session *replay.Session, logged func() int) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		if s := session.Stats(); s.InFlight == 0 && logged() >= s.Requests {
			return
		}
	}
}

// whereOf is the frame or worker that told the box something.
func whereOf(a replay.Annotation) string {
	var post struct{ Where string }
	if err := json.Unmarshal(a.Body, &post); err != nil {
		return err.Error()
	}
	return post.Where
}

// keysOf are the keys of a page's annotations, which a message has at both ends.
func keysOf(a replay.Annotation) (keys []string) {
	var post struct{ List []struct{ Key string } }
	if json.Unmarshal(a.Body, &post) != nil || len(post.List) == 0 {
		return []string{""}
	}
	for _, one := range post.List {
		keys = append(keys, one.Key)
	}
	return keys
}

// labelsOf are what a page told the box: a name, or its annotations with their colours, and the sizes of messages.
func labelsOf(a replay.Annotation) (texts []string) {
	if a.Name != "annotations" {
		return []string{a.Name + "=" + a.Label() + " "}
	}
	var post struct {
		List []struct {
			Op, Text, Colour string
			Bytes            int
		}
	}
	if err := json.Unmarshal(a.Body, &post); err != nil {
		return []string{err.Error()}
	}
	for _, one := range post.List {
		size := ""
		if one.Bytes > 0 {
			size = fmt.Sprintf(" (%d)", one.Bytes)
		}
		texts = append(texts, one.Op+"="+one.Text+one.Colour+size+" ")
	}
	return texts
}
