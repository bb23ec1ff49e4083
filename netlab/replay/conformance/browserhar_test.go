package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
)

// quiet is how long the sample page has asked for nothing when its picture is taken. Its site does not
// think, and its parts ask for the next one at once.
const quiet = 400 * time.Millisecond

// shop is the sample site on loopback. Each shop answers its n-th request of a kind with the same.
type shop struct {
	mu    sync.Mutex
	at    map[string]string // "203.0.113.10:443" → "127.0.0.1:34567"
	files http.Handler
}

func newShop(t *testing.T, s *stand) *shop {
	site, err := samplesite.New(samplesite.Options{
		Rand:  rand.New(rand.NewPCG(7, 7)),
		Clock: func() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) },
		Think: func(context.Context, time.Duration) error { return nil },
	})
	check(t, err)
	sh := &shop{at: map[string]string{}, files: site.HandlerFor(samplesite.CDN, samplesite.WWW, samplesite.Ads)}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- samplesite.Serve(ctx, samplesite.Config{
			Site: site, Certificates: s.origins.GetCertificate, Ready: func() { close(ready) },
			Listen: func(ctx context.Context, network, address string) (net.Listener, error) {
				l, err := new(net.ListenConfig).Listen(ctx, network, "127.0.0.1:0")
				if err == nil {
					sh.mu.Lock()
					sh.at[address] = l.Addr().String()
					sh.mu.Unlock()
				}
				return l, err
			},
			ListenPacket: func(ctx context.Context, network, _ string) (net.PacketConn, error) {
				return new(net.ListenConfig).ListenPacket(ctx, network, "127.0.0.1:0")
			},
		})
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("the sample site ended before it was ready: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		check(t, <-done)
	})
	return sh
}

// dial connects to a host name or an address of the site.
func (s *shop) dial(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if a, ok := samplesite.Hosts()[host]; ok {
		host = a.String()
	}
	s.mu.Lock()
	to := s.at[net.JoinHostPort(host, port)]
	s.mu.Unlock()
	if to == "" {
		return nil, fmt.Errorf("the sample site has no address %s", address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", to)
}

// lookup resolves the site's names.
func (s *shop) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	a, ok := samplesite.Hosts()[host]
	if !ok {
		return nil, fmt.Errorf("%s: no such host", host)
	}
	return []netip.Addr{a}, nil
}

// file returns what the site answers for one of its files, in base64: all of it, or for a 206 the range
// that the sample page asks for.
func (s *shop) file(t *testing.T, address string, status int) string {
	u, err := url.Parse(address)
	check(t, err)
	if u.Scheme != "https" || filepath.Ext(u.Path) == "" {
		return ""
	}
	r := httptest.NewRequest(http.MethodGet, address, nil)
	if status == http.StatusPartialContent {
		r.Header.Set("Range", "bytes=0-65535")
	}
	w := httptest.NewRecorder()
	s.files.ServeHTTP(w, r)
	if w.Code != status {
		return ""
	}
	return base64.StdEncoding.EncodeToString(w.Body.Bytes())
}

// ownRecording records the page's next load as the product does, with the date that the import of a HAR
// gives pages and the seed 0.
func (s *stand) ownRecording(t *testing.T, b filmed, site *shop, date time.Time) []byte {
	path := filepath.Join(t.TempDir(), "own.wacz")
	w, err := archive.Create(path, archive.CreateOptions{Software: "conformance", Wall: time.Now(), PageDate: date})
	check(t, err)
	defer func() { _ = w.Discard() }()
	up := proxy.NewUpstream(proxy.UpstreamConfig{
		Roots: s.origins.Pool(), Lookup: site.lookup,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return site.dial(ctx, address) },
	})
	defer up.Close()
	rec := replay.NewRecorder(w, up, replay.RecordOptions{
		Clock: lab.Monotonic, Wall: time.Now, Inject: inject.Options{Date: date}, Protocols: up.Protocols,
	})
	s.core.set(rec, rec.Protocols)
	frame := b.frame(t, samplesite.Home, func() { awaitStill(t, rec.Stats, quiet) })
	check(t, rec.Wait())
	return frame
}

// replayHAR opens the page from an archive and returns its picture and what was missed.
func (s *stand) replayHAR(t *testing.T, b filmed, a *archive.Archive) (frame []byte, misses []lab.Served) {
	var mu sync.Mutex
	session, err := replay.NewSession(a, replay.Options{
		Clock: lab.Monotonic, Wall: time.Now(), Timing: replay.Timing{Mode: replay.TimingNone},
		Match: replay.PolicyOf(a),
		Log: func(line lab.Served) {
			mu.Lock()
			defer mu.Unlock()
			if u, err := url.Parse(line.URL); line.Stage == lab.StageMiss && err == nil && strings.HasSuffix(u.Hostname(), ".test") {
				misses = append(misses, line)
			}
		},
	})
	check(t, err)
	s.core.set(session, session.Protocols)
	frame = b.frame(t, samplesite.Home, func() { awaitStill(t, session.Stats, quiet) })
	mu.Lock()
	defer mu.Unlock()
	return frame, misses
}

// TestBrowserHAR: what Chromium and Firefox themselves saved of the sample page, of a first load and of a
// reload, shows in two replays the picture that our own recording of that load shows, without a miss; its
// export is a fixed point. Of a reload from the cache, the bodies that the browser left out are told.
//
// go test ./netlab/replay/conformance -run TestBrowserHAR -save-hars made the files, with Chromium
// 156.0.8078.79 and Firefox 153.7.0esr.
func TestBrowserHAR(t *testing.T) {
	for _, b := range []struct {
		name  string
		start func(*testing.T, *stand) filmed
		save  func(*testing.T, *stand, *shop) savedHARs
		lost  int // bodies that a reload from the cache has not
	}{
		{"chromium", func(t *testing.T, s *stand) filmed { return newChromium(t, s, oneTile()...) }, saveChromium, 2},
		{"firefox", func(t *testing.T, s *stand) filmed { return newFirefox(t, s) }, saveFirefox, 35},
	} {
		t.Run(b.name, func(t *testing.T) {
			if b.name != "chromium" {
				testlab.Long(t, "second browser")
			}
			s := newStand(t)
			path := func(load string) string { return filepath.Join("testdata", b.name+"-"+load+".zhar") }
			if *saveHARs {
				site := newShop(t, s)
				for load, har := range b.save(t, s, site) {
					check(t, os.WriteFile(path(load), slim(t, har, site), 0o644))
				}
			}
			site, device := newShop(t, s), b.start(t, s)
			for _, load := range []string{firstLoad, reloaded} {
				a := openHAR(t, path(load), site)
				if q := archive.Assess(a); q.Score != 1 {
					t.Errorf("%s: Assess() = %+v; want the score 1", load, q)
				}
				want := s.ownRecording(t, device, site, replay.InjectOptions(a, inject.Options{}).Date)
				for i := range 2 {
					got, misses := s.replayHAR(t, device, a)
					for _, m := range misses {
						t.Errorf("%s, replay %d: missed %s %s (nearest %s)", load, i+1, m.Method, m.URL, m.RunnerUp)
					}
					if !samePixels(t, got, want) {
						keepFrames(t, b.name+"-"+load, want, got)
						t.Errorf("%s, replay %d: the last picture is not that of our own recording", load, i+1)
					}
				}
			}
			lost := 0
			for _, e := range openHAR(t, path(reloadCached), site).Exchanges() {
				if e.Truncated != "" {
					lost++
				}
			}
			if lost != b.lost {
				t.Errorf("%s: %d bodies are lost, want %d", reloadCached, lost, b.lost)
			}
		})
	}
}

// openHAR opens a kept HAR, whose export and import must be the same archive again.
func openHAR(t *testing.T, path string, site *shop) *archive.Archive {
	packed, err := os.ReadFile(path)
	check(t, err)
	text := filled(t, packed, site)
	var exports [2]bytes.Buffer
	var list [3]*archive.Archive
	for i := range list {
		list[i], err = archive.OpenReader(bytes.NewReader(text), int64(len(text)), archive.Limits{})
		check(t, err)
		if i < len(exports) {
			check(t, archive.WriteHAR(&exports[i], list[i]))
			text = exports[i].Bytes()
		}
	}
	if !bytes.Equal(exports[0].Bytes(), exports[1].Bytes()) {
		t.Errorf("%s: the export of the imported export has %d bytes, or others than the %d of the first",
			path, exports[1].Len(), exports[0].Len())
	}
	return list[0]
}
