package drive_test

import (
	"context"
	"fmt"
	"image"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/capture/x11"
	"eidetic/control/ch9329"
	"eidetic/control/ch9329/chiptest"
	"eidetic/control/connect"
	"eidetic/control/gesture"
	"eidetic/control/hid/hidtest"
	"eidetic/control/recipe"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
	"eidetic/internal/run/drive"
)

func TestMain(m *testing.M) {
	xtest.Main()
	os.Exit(m.Run())
}

// page reads for what URL the browser shows it, and what was typed into its text field.
type page struct {
	*httptest.Server
	asked, typed chan string
}

func newPage(t *testing.T) page {
	p := page{asked: make(chan string, 100), typed: make(chan string, 1000)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/shown":
			p.asked <- r.PostFormValue("q")
		case "/page":
			fmt.Fprint(w, `<!doctype html><meta charset=utf-8><body style="margin:0"><textarea spellcheck=false `+
				`style="width:100vw;height:60vh;caret-color:transparent" oninput="fetch('/typed', {method:'POST', body: new URLSearchParams({v: this.value})})">`+
				`</textarea><script>requestAnimationFrame(() => requestAnimationFrame(() => fetch('/shown', {method: 'POST', `+
				`body: new URLSearchParams({q: new URLSearchParams(location.search).get('q')})})))</script>`)
		case "/typed":
			p.typed <- r.PostFormValue("v")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// browse starts a browser with a window that has an address bar.
func browse(t *testing.T, display, url string) {
	t.Helper()
	home := testlab.TempDir(t)
	cmd := exec.Command(testlab.NeedProgram(t, "chromium"), "--no-sandbox", "--no-first-run", "--disable-gpu", "--test-type",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--password-store=basic",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir="+filepath.Join(home, "profile"),
		"--window-position=0,0", "--window-size=1000,700", url)
	// Chromium's painting process does not take the cookie from where Main puts it: its screen stays grey.
	cmd.Env = append(os.Environ(), "XAUTHORITY="+xtest.File(t, display), "HOME="+home, "DISPLAY="+display, "LANG=C.UTF-8", "DBUS_SESSION_BUS_ADDRESS=disabled:",
		"GTK_IM_MODULE=gtk-im-context-simple")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
}

func await(ctx context.Context, t *testing.T, from chan string, want string) {
	t.Helper()
	last := ""
	for {
		select {
		case last = <-from:
			if last == want {
				return
			}
		case <-ctx.Done():
			t.Fatalf("the browser got %q; want %q", last, want)
		}
	}
}

// TestTextInFiveLayouts: with a simulated CH9329 and nothing else, a real browser is given
// a text in its page's field and in its address bar, which arrives as it was meant, whichever
// keyboard layout the device has.
func TestTextInFiveLayouts(t *testing.T) {
	testlab.Long(t, "four layouts besides that of control/x11's")
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	r, err := recipe.Find("linux-chrome")
	if err != nil {
		t.Fatal(err)
	}
	for layout, national := range map[string]string{"us": "", "de": "äöüÄÖÜß€µ§°²³", "fr": "éèçàùâêîôûëïü£§°µ€²", "ja": "", "dvorak": "", "us+compose": "éèâñöÿßœ€—«»"} {
		t.Run(layout, func(t *testing.T) {
			server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "1000x700x24")
			// The layout is the device's before its browser starts: Chromium goes on to take shortcuts
			// from the layout that it found.
			chip := chiptest.New(t, ch9329.Fast, hidtest.NewHost(t, server.Display, layout))
			p := newPage(t)
			browse(t, server.Display, p.URL+"/page?q=start")
			await(ctx, t, p.asked, "start")
			source, err := x11.Open(x11.Options{Display: server.Display, Rate: 30})
			if err != nil {
				t.Fatal(err)
			}
			screen := drive.Watch(ctx, source)
			defer screen.Close()
			controls, err := connect.Open(ctx, connect.Options{Name: "ch9329:" + chip.Path, Layout: layout, Screen: image.Pt(1000, 700)})
			if err != nil {
				t.Fatal(err)
			}
			defer controls.Close()
			text := national
			for c := ' '; c <= '~'; c++ {
				text += string(c)
			}
			options := drive.Options{
				Controller: controls.Controller, Size: controls.Screen, Screen: screen, Opening: r.Opening, Clock: lab.Monotonic,
				Limit: 30 * time.Second,
			}
			var events []gesture.Sent
			// On a busy machine a key may stay down for so long that the controller refuses to say what
			// was typed; then it is typed again.
			run := func(steps ...lab.Step) {
				t.Helper()
				for tries := 0; ; tries++ {
					events = nil
					err := drive.Run(ctx, options, steps, func(_ int, e gesture.Sent) { events = append(events, e) })
					if err == nil {
						return
					}
					if tries == 9 || !strings.Contains(err.Error(), "may have repeated it") {
						t.Fatal(err)
					}
				}
			}
			run(lab.Step{Wait: "still 300ms"}, lab.Step{Click: "50%,30%"}, lab.Step{Key: "Ctrl+A"}, lab.Step{Type: text})
			await(ctx, t, p.typed, text)
			checkEvents(t, events)
			// In a query these characters stand for themselves.
			query := national + "azertyqwyz0123456789AZQWM-_.~!*()'$,;:@/?=" + strings.ReplaceAll(layout, "+", "-") // a + would be read as a space
			opening, err := r.Opening(strings.TrimPrefix(p.URL, "http://") + "/page?q=" + query)
			if err != nil {
				t.Fatal(err)
			}
			run(opening...)
			await(ctx, t, p.asked, query)
		})
	}
}

// checkEvents holds the events of a text in a field.
func checkEvents(t *testing.T, events []gesture.Sent) {
	t.Helper()
	if len(events) != 4 {
		t.Errorf("%d events; want 4: end, click, chord, text", len(events))
	}
	for i, e := range events {
		if e.Latest < e.Earliest || i > 0 && e.Earliest < events[0].Earliest {
			t.Errorf("event %d, %s: interval %v", i, e.Name, time.Duration(e.Latest-e.Earliest))
		}
	}
}
