package conformance

import (
	"bytes"
	"encoding/base64"
	"image/png"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	mdns "github.com/miekg/dns"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/dns"
	"eidetic/netlab/inject"
	"eidetic/netlab/nstest"
	"eidetic/netlab/replay"
)

// replays is how often each recording must show the same last frame.
const replays = 10

// filmed is a browser whose last frame the test sees.
type filmed interface {
	// frame opens a page in a fresh profile, waits until still returns, which it does when the page
	// sends no more requests, and returns the rendered page as PNG.
	frame(t *testing.T, address string, still func()) []byte
}

// appsLab is a farLab whose origins are applications.
type appsLab struct {
	*farLab
	apps *webapps

	mu       sync.Mutex
	resolved map[string]dns.Query // the last answers for addresses, by name
}

func newAppsLab(t *testing.T) *appsLab {
	l := &appsLab{resolved: map[string]dns.Query{}}
	origins, err := ca.New(time.Now)
	check(t, err)
	l.farLab = newFarLab(t, netlab.Config{OnQuery: l.heard}, origins, func(far *farLab) {
		l.apps = startWebapps(t, far.away, origins)
		far.serveNames(t, func(host string, qtype uint16) (string, bool) {
			addr, known := webappAddrs[host]
			if qtype != mdns.TypeA {
				addr = ""
			}
			return addr, known
		})
	})
	return l
}

func (l *appsLab) heard(q dns.Query) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.Type == "A" {
		l.resolved[q.Name] = q
	}
}

// forget forgets the resolved names.
func (l *appsLab) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.resolved)
}

// checkNames fails unless source resolved the page's host to an address that stands for the
// origin's.
func (l *appsLab) checkNames(t *testing.T, page, source string) {
	t.Helper()
	u, err := url.Parse(page)
	check(t, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	q, asked := l.resolved[u.Host]
	if !asked || q.Source != source || len(q.Answers) != 1 || !netip.MustParsePrefix("198.18.0.0/15").Contains(q.Answers[0]) ||
		!slices.Contains(q.Origins, netip.MustParseAddr(webappAddrs[u.Host])) {
		t.Errorf("%s was resolved (%v) as %+v, want one synthetic address of %s by %s", u.Host, asked, q, webappAddrs[u.Host], source)
	}
}

// cut stops the origins and removes the route to them.
func (l *appsLab) cut(t *testing.T) {
	l.apps.stop()
	up, err := l.box.Netlink.LinkByName("up0")
	check(t, err)
	check(t, l.box.Netlink.LinkSetDown(up))
	if c, err := net.DialTimeout("tcp", originAddress+":443", time.Second); err == nil {
		_ = c.Close()
		t.Error("the origin can be reached")
	}
}

// TestRealApplications records applications from Debian, by the device's own network and names,
// cuts them off, and replays each ten times: no request is missed, and every last frame is the
// same to the pixel.
func TestRealApplications(t *testing.T) {
	testlab.Long(t, "other people's applications")
	if !nstest.Inside(t) {
		return
	}
	l := newAppsLab(t)
	pages := []struct{ name, url string }{
		{"MediaWiki", "https://wiki.test/index.php?title=Main_Page"},
		{"DokuWiki", "https://doku.test/doku.php?id=start"},
		{"PythonDocumentation", "https://docs.test/library/functions.html"},
	}
	browsers := []struct {
		name  string
		start func(*testing.T) filmed
	}{
		{"Chromium", func(t *testing.T) filmed {
			browser, _ := l.chromium(t, oneTile()...)
			return &chromium{browser}
		}},
		{"Firefox", func(t *testing.T) filmed { return l.firefox(t) }},
	}
	type taken struct {
		archive *archive.Archive
		live    []byte
	}
	recorded := map[string]taken{}
	for _, b := range browsers {
		t.Run("record/"+b.name, func(t *testing.T) {
			device := b.start(t)
			for _, p := range pages {
				t.Run(p.name, func(t *testing.T) {
					l.forget()
					a, live := l.recordPage(t, device, p.url)
					l.checkNames(t, p.url, "upstream")
					recorded[b.name+p.name] = taken{a, live}
				})
			}
		})
	}
	l.cut(t)
	for _, b := range browsers {
		t.Run("replay/"+b.name, func(t *testing.T) {
			device := b.start(t) // one that has never seen the origins
			for _, p := range pages {
				t.Run(p.name, func(t *testing.T) {
					r, ok := recorded[b.name+p.name]
					if !ok {
						t.Fatal("it was not recorded")
					}
					l.replayed(t, device, b.name+p.name, p.url, r.archive, r.live)
				})
			}
		})
	}
}

// replayed replays a page many times and compares its last frames.
func (l *appsLab) replayed(t *testing.T, device filmed, name, page string, a *archive.Archive, live []byte) {
	if q := archive.Assess(a); q.Score != 1 {
		t.Errorf("the recording's quality is %.3f: %v", q.Score, q.Problems)
	}
	l.forget()
	same := 0
	for i := range replays {
		got, misses := l.replayPage(t, device, a, page)
		for _, m := range misses {
			t.Errorf("replay %d missed %s %s (nearest %s)", i, m.Method, m.URL, m.RunnerUp)
		}
		if samePixels(t, got, live) {
			same++
			continue
		}
		keepFrames(t, name, live, got)
	}
	l.checkNames(t, page, "table")
	if same != replays {
		t.Errorf("%d of %d last frames are those of the recording", same, replays)
	}
}

// recordPage opens a page while its application runs.
func (l *appsLab) recordPage(t *testing.T, b filmed, page string) (*archive.Archive, []byte) {
	path := filepath.Join(t.TempDir(), "page.wacz")
	date := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	w, err := archive.Create(path, archive.CreateOptions{Software: "conformance", Wall: time.Now(), Seed: 11, PageDate: date})
	check(t, err)
	defer func() { _ = w.Discard() }()
	check(t, w.AddPage(archive.Page{URL: page, Wall: time.Now()}))
	rec, err := l.network.Record(t.Context(), w, replay.RecordOptions{Wall: time.Now, Inject: inject.Options{Seed: 11, Date: date}})
	check(t, err)
	frame := b.frame(t, page, func() { awaitStill(t, rec.Stats, 3*time.Second) })
	l.network.Disarm()
	check(t, rec.Wait())
	check(t, w.Close())
	a, err := archive.Open(path)
	check(t, err)
	return a, frame
}

// replayPage opens the page when only the archive is left.
func (l *appsLab) replayPage(t *testing.T, b filmed, a *archive.Archive, page string) (frame []byte, misses []lab.Served) {
	var mu sync.Mutex
	session, err := l.network.Replay(t.Context(), a, replay.Options{
		Wall: time.Now(), Timing: replay.Timing{Mode: replay.TimingNone},
		Log: func(line lab.Served) {
			if line.Stage == lab.StageMiss {
				mu.Lock()
				misses = append(misses, line)
				mu.Unlock()
			}
		},
	})
	check(t, err)
	frame = b.frame(t, page, func() { awaitStill(t, session.Stats, time.Second) })
	l.network.Disarm()
	mu.Lock()
	defer mu.Unlock()
	return frame, misses
}

// awaitStill returns when no request came for a while: a longer one while recording, since a
// request that is missing then is missing in every replay.
func awaitStill(t *testing.T, stats func() replay.Stats, still time.Duration) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(2 * time.Minute); ; {
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

// painted is evaluated in the page. It is true once the fonts are loaded, the animations that end have
// ended, and the page was drawn.
const painted = `Promise.all([document.fonts.ready, ...document.getAnimations()
	.filter(a => a.effect && a.effect.getComputedTiming().endTime !== Infinity).map(a => a.finished.catch(() => {}))])
	.then(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done("painted")))))`

func (c *chromium) frame(t *testing.T, address string, still func()) []byte {
	t.Helper()
	ctx, cancel := chromedp.NewContext(c.Context, chromedp.WithNewBrowserContext())
	defer cancel()
	check(t, chromedp.Do(ctx, chromedp.EmulateViewport(1000, 800)))
	check(t, navigate(ctx, address))
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
	f.call(
		t,
		"browsingContext.setViewport",
		map[string]any{"context": tab.Context, "viewport": map[string]any{"width": 1000, "height": 800}},
		nil,
	)
	f.call(t, "browsingContext.navigate", map[string]any{"context": tab.Context, "url": address, "wait": "complete"}, nil)
	still()
	f.call(t, "script.evaluate", map[string]any{"expression": painted, "awaitPromise": true, "target": here}, nil)
	var shot struct{ Data string }
	f.call(t, "browsingContext.captureScreenshot", here, &shot)
	b, err := base64.StdEncoding.DecodeString(shot.Data)
	check(t, err)
	return b
}

// samePixels compares pictures, not files: a PNG of one picture can be compressed in many ways.
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

// awaitListener returns when a server accepts connections there.
func awaitListener(t *testing.T, in *nstest.Namespace, network, addr string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(2 * time.Minute); ; {
		c, err := dial(in, network, addr)
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
