package device

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"eidetic/control/x11"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/isolate"
)

// touches is a page that tells of each touch which fingers are where.
const touches = `<!doctype html><meta name=viewport content="width=device-width"><style>body {margin: 0; height: 100vh; touch-action: none}</style><script>
	const tell = e => navigator.sendBeacon("/tell", JSON.stringify({Kind: e.type, Fingers: [...e.touches].map(t => [t.screenX, t.screenY])}))
	for (const kind of ["touchstart", "touchmove", "touchend"]) addEventListener(kind, tell)
	addEventListener("mousemove", e => navigator.sendBeacon("/tell", JSON.stringify({Kind: e.type})))
</script>`

// told is what a page tells.
type told struct {
	Kind, Text string
	Fingers    [][2]int
}

// listen serves a page at 192.168.77.1 and returns what it posts to /tell.
func listen(t *testing.T, page string) <-chan told {
	t.Helper()
	events := make(chan told, 100)
	l, err := net.Listen("tcp", "192.168.77.1:80")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e told
		if r.URL.Path != "/tell" {
			fmt.Fprint(w, page)
		} else if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		} else {
			events <- e
		}
	})}
	go server.Serve(l)
	t.Cleanup(func() { _ = server.Close() })
	return events
}

// openPage opens that page in a browser on a screen of its own, which can be driven.
func openPage(t *testing.T, ns *Namespace, b lab.Browser, size Screen, touch bool) (*XServer, *x11.Controller) {
	t.Helper()
	x, err := StartX(t.Context(), size, touch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Stop)
	sandbox, err := isolate.ProbeSandbox(t.Context(), ns.Do)
	if err != nil {
		t.Fatal(err)
	}
	dir := testlab.TempDir(t)
	browser, err := OpenBrowser(t.Context(), Workshop{Dir: dir, Authority: authority(t, dir), Namespace: ns, Sandbox: sandbox}, &b)
	if err != nil {
		t.Fatal(err)
	}
	running, err := browser.Start(Options{Namespace: ns, Display: x.Display, Screen: size, Touch: touch, URL: "http://192.168.77.1/", Sandbox: sandbox})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = running.Stop() })
	c, err := x11.Open(t.Context(), x.Display, lab.Monotonic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return x, c
}

// awaitInput moves the mouse until the page tells that it sees it: a browser may show a page before it passes it input.
func awaitInput(t *testing.T, c *x11.Controller, events <-chan told) {
	t.Helper()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for limit, x := time.After(testlab.Hang), 300; ; x++ {
		select {
		case e := <-events:
			if e.Kind == "mousemove" {
				return
			}
		case <-again.C:
			if _, err := c.Move(t.Context(), x%600, 300); err != nil {
				t.Fatal(err)
			}
		case <-limit:
			t.Fatal("the page never saw the mouse")
		}
	}
}

// TestTouchScreen: a browser on a screen with a touch screen gets each finger at its pixel, and keys and a mouse as ever.
func TestTouchScreen(t *testing.T) {
	ns := cabled(t)
	testlab.NeedProgram(t, "chromium", "certutil")
	testlab.NeedProgram(t, "firefox-esr")
	missing := CheckTouchScreen()
	testlab.Need(t, missing == nil, fmt.Sprint("a touch screen: ", missing))
	events := listen(t, touches)
	order := func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }
	for _, name := range []string{lab.Chromium, lab.FirefoxESR} {
		t.Run(name, func(t *testing.T) {
			x, c := openPage(t, ns, lab.Browser{Name: name}, Screen{1000, 640}, true)
			if err := c.ConnectTouch(t.Context(), x.Touch); err != nil {
				t.Fatal(err)
			}
			await := func(kind string, fingers ...[2]int) {
				t.Helper()
				slices.SortFunc(fingers, order)
				ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
				defer cancel()
				var last told
				for {
					select {
					case last = <-events:
						slices.SortFunc(last.Fingers, order) // browsers list them in orders of their own
						if last.Kind == kind && slices.Equal(last.Fingers, fingers) {
							return
						}
						t.Log(last)
					case <-ctx.Done():
						t.Fatalf("the page told at last of %+v; want %s of %v", last, kind, fingers)
					}
				}
			}
			touch := func(fingers ...image.Point) {
				t.Helper()
				e, err := c.Touch(t.Context(), fingers...)
				if err != nil || !(e.Earliest < e.Latest) || e.Latest.Sub(e.Earliest) > time.Minute {
					t.Fatalf("Touch(%v) = %+v, %v; want an interval", fingers, e, err)
				}
			}
			awaitInput(t, c, events)
			touch(image.Pt(0, 200), image.Pt(999, 639)) // above is the browser's own bar
			await("touchstart", [2]int{0, 200}, [2]int{999, 639})
			touch(image.Pt(400, 320), image.Pt(600, 321))
			await("touchmove", [2]int{400, 320}, [2]int{600, 321})
			touch(image.Pt(400, 320))
			await("touchend", [2]int{400, 320})
			touch(image.Pt(401, 333), image.Pt(10, 220), image.Pt(30, 240))
			await("touchstart", [2]int{401, 333}, [2]int{10, 220}, [2]int{30, 240})
			touch()
			await("touchend")
			if _, err := c.Move(t.Context(), 300, 300); err != nil {
				t.Fatal(err)
			}
			await("mousemove")
		})
	}
}
