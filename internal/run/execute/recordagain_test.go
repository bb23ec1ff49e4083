package execute

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"image"
	"image/color"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/control"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/experiment"
	"eidetic/netlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/proxy"
)

// visitor is a device whose browser loads one page by the box's proxy when Return is pressed, and another one when F2
// is. Its screen falls silent as cuts say.
type visitor struct {
	control.Controller
	client  *http.Client
	page    string
	cuts    []silence // of its lives, the first one first
	lives   int
	silence silence
	shown   atomic.Int32 // what is on the screen: 0 is green
	failed  atomic.Value
}

// silence is when a screen falls silent.
type silence string

const (
	never     silence = ""
	early     silence = "before the start"
	loading   silence = "while the page loads"
	atRest    silence = "when the page was at rest"
	unplugged silence = "while the page loads, and it ends"
)

func (v *visitor) Birth(context.Context, string) (experiment.Life, error) {
	v.shown.Store(0)
	v.silence = never
	if v.lives < len(v.cuts) {
		v.silence = v.cuts[v.lives]
	}
	v.lives++
	return v, nil
}

func (v *visitor) Done() <-chan struct{}          { return nil }
func (v *visitor) Err() error                     { return nil }
func (v *visitor) Stop() error                    { return nil }
func (v *visitor) Close() error                   { return nil }
func (v *visitor) Size() (p image.Point, e error) { return image.Pt(64, 48), nil }

func (v *visitor) Key(ctx context.Context, name string) (e lab.Event, err error) {
	e.Name, e.Earliest, e.Latest = "key", clock(), clock()
	path := map[string]string{"Return": "", "F2": "second"}[name]
	go func() {
		answer, err := v.client.Get(v.page + path)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		if err != nil {
			v.failed.Store(err)
		}
		v.shown.Add(1)
	}()
	return e, nil
}

// view is the screen of a visitor, for one film.
type view struct {
	v       *visitor
	ticker  *time.Ticker
	frames  uint64
	since   int // frames since the page was shown
	silence silence
	silent  int // frames
}

func (s *view) Format() lab.Format {
	return lab.Format{Pixels: lab.BGRX, Width: 64, Height: 48, Rate: 60}
}

// isTime says whether the screen falls silent now.
func (s *view) isTime() bool {
	switch s.silence {
	case early:
		return s.frames == 12
	case loading, unplugged:
		return s.since == 6
	case atRest:
		return s.since == 80
	}
	return false
}

func (s *view) Next(ctx context.Context) (lab.Frame, error) {
	event := func(kind string) *capture.Interruption {
		return &capture.Interruption{Event: lab.SourceEvent{Kind: kind, Time: lab.Monotonic(), Detail: "the screen is silent"}}
	}
	if s.isTime() {
		gone := event(lab.SourceSignalLost)
		if s.silence == unplugged {
			gone.Ends = io.ErrUnexpectedEOF
		}
		s.silence, s.silent = never, 30
		return lab.Frame{}, gone
	}
	for {
		select {
		case <-ctx.Done():
			return lab.Frame{}, ctx.Err()
		case <-s.ticker.C:
		}
		s.frames++
		if s.silent == 0 {
			break
		}
		if s.silent--; s.silent == 0 {
			return lab.Frame{}, event(lab.SourceSignalBack)
		}
	}
	shown := s.v.shown.Load()
	c := []color.RGBA{lab.SyncGreen(), {200, 30, 90, 255}, {40, 60, 80, 255}}[shown]
	pix := make([]byte, 0, s.Format().FrameSize())
	for i := range s.Format().Width * s.Format().Height {
		if shown > 0 && i%64 < 20 {
			pix = append(pix, 255, 255, 255, 0)
			continue
		}
		pix = append(pix, c.B, c.G, c.R, 0)
	}
	if shown > 0 {
		s.since++
	}
	f := lab.Frame{Pix: pix}
	f.Seq, f.Time, f.Changed = s.frames, lab.Monotonic(), []image.Rectangle{s.Format().Bounds()}
	return f, nil
}

func (s *view) Close() error {
	s.ticker.Stop()
	return nil
}

// visit makes a visitor in a network of the box, with an origin that counts how often its page is asked for.
func visit(t *testing.T, cuts ...silence) (*visitor, *netlab.Network, *atomic.Int32) {
	t.Helper()
	asked := &atomic.Int32{}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			asked.Add(1)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html><title>%s</title>", r.URL.Path)
	}))
	t.Cleanup(origin.Close)
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	network, err := netlab.Start(t.Context(), netlab.Config{
		Gateway: netip.MustParseAddr("127.0.0.1"), CA: authority, Clock: clock, ProxyAddr: "127.0.0.1:0",
		Upstream: &proxy.UpstreamConfig{
			Lookup: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
			},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, origin.Listener.Addr().String())
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	by := &url.URL{Scheme: "http", Host: network.Addrs().Proxy.String()}
	v := &visitor{cuts: cuts, page: "http://www.shop.test/", client: &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(by), TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true,
	}}}
	return v, network, asked
}

// TestRecordedAgain: a recording that its screen spoils is made again, at most three times, and the run goes on; what
// is interrupted before the start, or when the page was at rest, is kept.
func TestRecordedAgain(t *testing.T) {
	journey := []lab.Step{{Name: "open", Open: "http://www.shop.test/"}, {Name: "second", Key: "F2"}}
	for _, c := range []struct {
		name  string
		steps []lab.Step
		cuts  []silence
		asked int32 // of the origin
		fails bool
	}{
		{name: "when the page was at rest", cuts: []silence{atRest}, asked: 1},
		{name: "while the page loads, and then before the start", cuts: []silence{loading, early}, asked: 2},
		{name: "the source ends, and then at rest", cuts: []silence{unplugged, atRest}, asked: 2},
		{name: "always", cuts: []silence{unplugged, loading, loading, loading}, asked: 3, fails: true},
		{name: "in a journey", steps: journey, cuts: []silence{loading, early}, asked: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v, network, asked := visit(t, c.cuts...)
			x := &Execution{
				ID: "1-records", Plan: checked(t, lab.Plan{Trials: 1, Still: 1, Limit: 20, Arm: lab.Arm{Page: v.page}, Steps: c.steps}), Root: t.TempDir(),
				Rig: Rig{
					Network: network, Device: v, Control: v, Describe: func(*lab.Environment) {}, Hands: &Hands{Controller: v},
					Prepare: func(context.Context, plan.Arm) error { return nil },
					Screen: Screen{Name: "pretended", Open: func(context.Context) (capture.Source, error) {
						return &view{v: v, ticker: time.NewTicker(time.Second / 60), silence: v.silence}, nil
					}},
				},
			}
			err := x.Run(t.Context())
			if now := v.failed.Load(); now != nil {
				t.Errorf("the device's request failed: %v", now)
			}
			if n := asked.Load(); n != c.asked {
				t.Errorf("the origin was asked for the page %d times, want %d", n, c.asked)
			}
			dir := filepath.Join(x.Root, "runs", x.ID)
			spoilt, _ := filepath.Glob(filepath.Join(dir, "recording-spoilt-*", experiment.ReelFile))
			if len(spoilt) != int(c.asked)-1 {
				t.Errorf("the films of spoilt recordings: %q, want %d", spoilt, c.asked-1)
			}
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), "it was spoilt 3 times in a row") || !strings.Contains(err.Error(), "the screen is silent") {
					t.Errorf("Run() = %v; want that it was spoilt 3 times in a row, and by what", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			run, err := store.ReadRun(dir)
			if err != nil || run.State != store.StateDone || len(run.Trials) == 0 {
				t.Fatalf("the run is %s with %d trials, %v", run.State, len(run.Trials), err)
			}
			for _, trial := range run.Trials {
				if trial.Misses > 0 || trial.Requests == 0 {
					t.Errorf("trial %d replayed %d requests, with %d misses", trial.Number, trial.Requests, trial.Misses)
				}
			}
			told := slices.ContainsFunc(run.Warnings, func(w string) bool { return strings.Contains(w, "was spoilt and is made again") })
			if told != (c.asked > 1) {
				t.Errorf("the run's warnings are %q; want that a recording was made again: %v", run.Warnings, c.asked > 1)
			}
			if page, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || strings.Contains(string(page), "made again (2 of at most 3)") != told {
				t.Errorf("the report does not tell it: %v", err)
			}
		})
	}
}
