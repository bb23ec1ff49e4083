package conformance

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/testlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/replay"

	"github.com/chromedp/chromedp"
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
	// check looks further, at the log of the last replay.
	check  func(t *testing.T, result string, log []lab.Served)
	h1     bool          // the origin speaks HTTP/1.1 only
	timing replay.Timing // zero is none
}

// stand is the box and a browser whose every connection goes to it.
type stand struct {
	t       *testing.T
	browser context.Context
	core    *switchable
}

// switchable is the handler behind the box's listener.
type switchable struct {
	mu        sync.Mutex
	handler   http.Handler
	protocols func(string) []string
}

func (s *switchable) set(h http.Handler, protocols func(string) []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler, s.protocols = h, protocols
}

func (s *switchable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	h := s.handler
	s.mu.Unlock()
	r.URL.Scheme, r.URL.Host = "https", r.Host
	if r.TLS == nil {
		r.URL.Scheme = "http"
	}
	proto := map[int]string{1: "http/1.1", 2: "h2"}[r.ProtoMajor]
	h.ServeHTTP(w, r.WithContext(replay.WithConn(r.Context(), replay.Conn{Client: netip.MustParseAddr("192.0.2.1"), Protocol: proto, TLS: "tls/1.3"})))
}

// newStand starts the listeners and Chromium.
func newStand(t *testing.T) *stand {
	chromium := testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome")
	s := &stand{t: t, core: &switchable{handler: http.NotFoundHandler()}}
	tlsServer := httptest.NewUnstartedServer(s.core)
	tlsServer.EnableHTTP2 = true
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.TLS = &tls.Config{}
	tlsServer.StartTLS()
	base := tlsServer.TLS
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		s.core.mu.Lock()
		defer s.core.mu.Unlock()
		c := base.Clone()
		c.GetConfigForClient = nil
		if s.core.protocols != nil {
			if list := s.core.protocols(hello.ServerName); list != nil {
				c.NextProtos = list
			}
		}
		return c, nil
	}
	plain := httptest.NewServer(s.core)
	t.Cleanup(func() {
		for _, srv := range []*httptest.Server{tlsServer, plain} {
			srv.CloseClientConnections()
			srv.Close()
		}
	})
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("ignore-certificate-errors", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", fmt.Sprintf("MAP *:443 %s, MAP *:80 %s", tlsServer.Listener.Addr(), plain.Listener.Addr())),
		chromedp.WSURLReadTimeout(time.Minute),
	)
	alloc, stop := chromedp.NewExecAllocator(t.Context(), options...)
	browser, stopBrowser := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		_ = chromedp.Cancel(browser) // waits for the process to end
		stopBrowser()
		stop()
	})
	if _, err := chromedp.Run(browser, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	s.browser = browser
	return s
}

// load opens the case's page in a fresh profile and returns its result.
func (s *stand) load(t *testing.T, address string) string {
	ctx, cancel := chromedp.NewContext(s.browser, chromedp.WithNewBrowserContext())
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Navigate(address)); err != nil {
		t.Fatalf("load %s: %v", address, err)
	}
	result, err := chromedp.Run(ctx, chromedp.Poll[string](`window.result === undefined ? "" : "=" + window.result`, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(8*time.Second)))
	if err != nil {
		t.Fatalf("load %s: the page has no result: %v", address, err)
	}
	return result[1:]
}

// origin serves a case.
func (k *kase) origin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
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
	for path, h := range k.routes {
		mux.HandleFunc(path, h)
	}
	return mux
}

// run records the case and replays it twice.
func (s *stand) run(t *testing.T, k kase) {
	origin := httptest.NewUnstartedServer(k.origin())
	origin.EnableHTTP2 = !k.h1
	origin.Config.ErrorLog = log.New(io.Discard, "", 0)
	origin.StartTLS()
	path := filepath.Join(t.TempDir(), "case.wacz")
	date := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	w, err := archive.Create(path, archive.CreateOptions{Software: "conformance", Wall: time.Now(), Seed: 11, PageDate: date})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Discard() }()
	tr := replay.NewTransport(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, origin.Listener.Addr().String())
	}, &tls.Config{InsecureSkipVerify: true})
	protocols := []string{"h2", "http/1.1"}
	if k.h1 {
		protocols = protocols[1:]
	}
	rec := replay.NewRecorder(w, tr, replay.RecordOptions{
		Clock: lab.Monotonic, Wall: time.Now, Inject: inject.Options{Seed: 11, Date: date},
		Protocols: func(string) []string { return protocols },
	})
	s.core.set(rec, rec.Protocols)
	live := s.load(t, "https://a.test/")
	if err := rec.Wait(); err != nil {
		t.Fatal(err)
	}
	tr.CloseIdleConnections()
	origin.CloseClientConnections()
	origin.Close()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if k.want != "" && !strings.Contains(live, k.want) {
		t.Errorf("live: %q does not have %q in it", live, k.want)
	}
	if k.timing.Mode == "" {
		k.timing.Mode = replay.TimingNone
	}
	for i := range 2 {
		var mu sync.Mutex
		var served []lab.Served
		session, err := replay.NewSession(a, replay.Options{
			Clock: lab.Monotonic, Wall: time.Now(), Timing: k.timing,
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
		got := s.load(t, "https://a.test/")
		mu.Lock()
		if got != live {
			t.Errorf("replay %d: the page saw\n%s\nwhile it was recorded\n%s", i+1, got, live)
		}
		for _, line := range served {
			// Chromium's own services ask too, and are none of the page's.
			if u, err := url.Parse(line.URL); line.Stage == lab.StageMiss && err == nil && strings.HasSuffix(u.Hostname(), ".test") {
				t.Errorf("replay %d missed %s %s (nearest %s)", i+1, line.Method, line.URL, line.RunnerUp)
			}
		}
		if k.check != nil {
			k.check(t, got, served)
		}
		mu.Unlock()
	}
}
