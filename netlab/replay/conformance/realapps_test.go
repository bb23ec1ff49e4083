package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"image/png"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/replay"
)

// replays is how often each recording must show the same last frame.
const replays = 10

// filmed is a browser whose last frame is looked at.
type filmed interface {
	// frame opens a page in a fresh profile, waits until still says that the
	// page asks for nothing more, and returns what it looks like, as PNG.
	frame(t *testing.T, address string, still func()) []byte
}

// TestRealApplications records applications that nobody here wrote, stops
// them, and replays each ten times: nothing is missed, and every last frame is
// the same to the pixel.
func TestRealApplications(t *testing.T) {
	s := newStand(t)
	apps := startWebapps(t, s)
	pages := []struct{ name, url string }{
		{"MediaWiki", "https://wiki.test/index.php?title=Main_Page"},
		{"DokuWiki", "https://doku.test/doku.php?id=start"},
		{"PythonDocumentation", "https://docs.test/library/functions.html"},
	}
	browsers := []struct {
		name string
		browser
	}{{"Chromium", newChromium(t, s)}, {"Firefox", newFirefox(t, s)}}
	type taken struct {
		archive *archive.Archive
		live    []byte
	}
	recorded := map[string]taken{}
	for _, b := range browsers {
		for _, p := range pages {
			t.Run("record/"+b.name+"/"+p.name, func(t *testing.T) {
				a, live := s.recordPage(t, b.browser.(filmed), apps.addr, p.url)
				recorded[b.name+p.name] = taken{a, live}
			})
		}
	}
	apps.stop()
	for _, b := range browsers {
		for _, p := range pages {
			t.Run("replay/"+b.name+"/"+p.name, func(t *testing.T) {
				r, ok := recorded[b.name+p.name]
				if !ok {
					t.Fatal("it was not recorded")
				}
				if q := archive.Assess(r.archive); q.Score != 1 {
					t.Errorf("the recording's quality is %.3f: %v", q.Score, q.Problems)
				}
				same := 0
				for i := range replays {
					got, misses := s.replayPage(t, b.browser.(filmed), r.archive, p.url)
					for _, m := range misses {
						t.Errorf("replay %d missed %s %s (nearest %s)", i, m.Method, m.URL, m.RunnerUp)
					}
					if samePixels(t, got, r.live) {
						same++
						continue
					}
					keepFrames(t, b.name+p.name, r.live, got)
				}
				if same != replays {
					t.Errorf("%d of %d last frames are those of the recording", same, replays)
				}
			})
		}
	}
}

// recordPage opens a page while its application runs.
func (s *stand) recordPage(t *testing.T, b filmed, addr, page string) (*archive.Archive, []byte) {
	path := filepath.Join(t.TempDir(), "page.wacz")
	date := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	w, err := archive.Create(path, archive.CreateOptions{Software: "conformance", Wall: time.Now(), Seed: 11, PageDate: date})
	check(t, err)
	defer func() { _ = w.Discard() }()
	check(t, w.AddPage(archive.Page{URL: page, Wall: time.Now()}))
	tr := replay.NewTransport(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}, &tls.Config{InsecureSkipVerify: true})
	defer tr.CloseIdleConnections()
	rec := replay.NewRecorder(w, tr, replay.RecordOptions{
		Clock: lab.Monotonic, Wall: time.Now, Inject: inject.Options{Seed: 11, Date: date},
		Protocols: func(string) []string { return []string{"h2", "http/1.1"} },
	})
	s.core.set(ownOnly(rec), rec.Protocols)
	frame := b.frame(t, page, func() { awaitStill(t, rec.Stats) })
	check(t, rec.Wait())
	check(t, w.Close())
	a, err := archive.Open(path)
	check(t, err)
	return a, frame
}

// replayPage opens it when there is nothing but the archive.
func (s *stand) replayPage(t *testing.T, b filmed, a *archive.Archive, page string) (frame []byte, misses []lab.Served) {
	var mu sync.Mutex
	session, err := replay.NewSession(a, replay.Options{
		Clock: lab.Monotonic, Wall: time.Now(), Timing: replay.Timing{Mode: replay.TimingNone},
		Log: func(line lab.Served) {
			if line.Stage == lab.StageMiss {
				mu.Lock()
				misses = append(misses, line)
				mu.Unlock()
			}
		},
	})
	check(t, err)
	s.core.set(ownOnly(session), session.Protocols)
	frame = b.frame(t, page, func() { awaitStill(t, session.Stats) })
	mu.Lock()
	defer mu.Unlock()
	return frame, misses
}

// ownOnly keeps browsers' own services away, which ask too, and not for the page.
func ownOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Hostname(), ".test") {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// awaitStill returns when nothing was asked for during 400 ms.
func awaitStill(t *testing.T, stats func() replay.Stats) {
	const still = 400 * time.Millisecond
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); ; {
		if s := stats(); s.Requests > 0 && s.InFlight == 0 && lab.Monotonic().Sub(s.LastActivity) >= still {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the page goes on asking: %+v", stats())
		}
	}
}

// painted is evaluated in the page: its fonts are there and it was drawn.
const painted = `document.fonts.ready.then(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done("painted")))))`

func (c *chromium) frame(t *testing.T, address string, still func()) []byte {
	t.Helper()
	ctx, cancel := chromedp.NewContext(c.Context, chromedp.WithNewBrowserContext())
	defer cancel()
	check(t, chromedp.Do(ctx, chromedp.EmulateViewport(1000, 800)))
	check(t, chromedp.Do(ctx, chromedp.Navigate(address)))
	still()
	_, err := chromedp.Run(ctx, chromedp.Evaluate[string](painted, chromedp.EvalAwaitPromise))
	check(t, err)
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	check(t, err)
	return shot
}

func (f *firefox) frame(t *testing.T, address string, still func()) []byte {
	t.Helper()
	var user struct{ UserContext string }
	f.call(t, "browser.createUserContext", map[string]any{}, &user)
	defer f.call(t, "browser.removeUserContext", map[string]any{"userContext": user.UserContext}, nil)
	var tab struct{ Context string }
	f.call(t, "browsingContext.create", map[string]any{"type": "tab", "userContext": user.UserContext}, &tab)
	here := map[string]any{"context": tab.Context}
	f.call(t, "browsingContext.setViewport", map[string]any{"context": tab.Context, "viewport": map[string]any{"width": 1000, "height": 800}}, nil)
	f.call(t, "browsingContext.navigate", map[string]any{"context": tab.Context, "url": address, "wait": "complete"}, nil)
	still()
	f.call(t, "script.evaluate", map[string]any{"expression": painted, "awaitPromise": true, "target": here}, nil)
	var shot struct{ Data string }
	f.call(t, "browsingContext.captureScreenshot", here, &shot)
	b, err := base64.StdEncoding.DecodeString(shot.Data)
	check(t, err)
	return b
}

// samePixels compares pictures, not files: a PNG may be packed in many ways.
func samePixels(t *testing.T, a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err := png.Decode(bytes.NewReader(a))
	check(t, err)
	y, err := png.Decode(bytes.NewReader(b))
	check(t, err)
	if x.Bounds() != y.Bounds() {
		return false
	}
	for py := x.Bounds().Min.Y; py < x.Bounds().Max.Y; py++ {
		for px := x.Bounds().Min.X; px < x.Bounds().Max.X; px++ {
			if x.At(px, py) != y.At(px, py) {
				return false
			}
		}
	}
	return true
}

// keepFrames keeps two pictures that differ, for people.
func keepFrames(t *testing.T, name string, live, replayed []byte) {
	dir := filepath.Join(os.TempDir(), "realapps")
	check(t, os.MkdirAll(dir, 0o755))
	check(t, os.WriteFile(filepath.Join(dir, name+"-live.png"), live, 0o644))
	check(t, os.WriteFile(filepath.Join(dir, name+"-replayed.png"), replayed, 0o644))
	t.Logf("the two frames are in %s", dir)
}

// awaitListener returns when something takes connections there.
func awaitListener(t *testing.T, network, addr string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); ; {
		c, err := net.Dial(network, addr)
		if err == nil {
			check(t, c.Close())
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("nobody listens: %v", err)
		}
	}
}
