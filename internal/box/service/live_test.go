package service

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"

	"eidetic/control/controltest"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
	"eidetic/internal/web/panel"
)

// probed is a panel with a device whose screen is an X display. Into the device's page goes a script that tells what it
// sees there by say(text), whose answer is that of heard.
func probed(t testing.TB, display, script string, heard func(string) string) (address string, at *deviceList) {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	desk := &portDevice{config: deviceConfig{
		Name: "desk", Screen: &lab.ScreenPart{X11: display}, Controls: &lab.ControlsPart{X11: display},
	}.withDefaults(0), err: errNoRole}
	at = &deviceList{}
	desk.seat.Open, desk.seat.Live, desk.seat.Runs = desk.parts, t.TempDir(), &at.runs
	at.add("desk", desk)
	t.Cleanup(func() { _, _ = desk.seat.Take(context.Background(), nil) }) // which closes the screen
	devices := func(context.Context) []panel.Device { return []panel.Device{{Name: "desk", Kind: "port", Ready: true}} }
	p, err := panel.New(panel.Config{
		Store: s, Version: "v1", Modules: []panel.Module{panel.WithSeats(seats{at}), panel.WithDevices(devices, nil)},
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/probe.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprintf(w, `const say = body => fetch("/probe", { method: "POST", body }).then(a => a.text());
				const $ = id => document.getElementById(id), frame = () => new Promise(requestAnimationFrame);
				const until = async test => { while (!test()) await frame(); };
				(async () => {%s})().catch(e => say("failed: " + e));`, script)
		case "/probe":
			body, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			fmt.Fprint(w, heard(string(body)))
		case "/device":
			page := httptest.NewRecorder()
			p.ServeHTTP(page, r)
			for name, values := range page.Header() {
				w.Header()[name] = values
			}
			fmt.Fprint(w, strings.Replace(page.Body.String(), "</body>", `<script type="module" src="/probe.js"></script></body>`, 1))
		default:
			p.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(web.Close)
	return web.URL, at
}

// TestLiveViewAndInput: a person's browser shows the device's screen and each change of it, and a click there reaches the
// device, with what that cost; a run takes the screen, and the page says so.
func TestLiveViewAndInput(t *testing.T) {
	testlab.EachBrowser(t, func(t *testing.T, program string) {
		xvfb := testlab.NeedProgram(t, "Xvfb")
		device, person := xtest.Start(t, xvfb, "-screen", "0", "640x480x24"), xtest.Start(t, xvfb, "-screen", "0", "800x600x24")
		window := controltest.NewWindow(t, device.Display)
		paint := func(colour uint32) {
			xproto.ChangeWindowAttributes(window.Conn, window.ID, xproto.CwBackPixel, []uint32{colour})
			if err := xproto.ClearAreaChecked(window.Conn, false, window.ID, 0, 0, 0, 0).Check(); err != nil {
				t.Error(err)
			}
		}
		paint(0x0000c0)
		said := make(chan string, 10)
		address, list := probed(t, device.Display, `
			const screen = $("screen"), has = (...colour) => screen.checkVisibility() && screen.width === 640 &&
				[...screen.getContext("2d").getImageData(320, 240, 1, 1).data].slice(0, 3).join() === colour.join();
			await until(() => has(0, 0, 192));
			await say("blue");
			await until(() => has(192, 0, 0));
			$("take").click();
			await until(() => $("state").textContent === "You have the controls.");
			screen.scrollIntoView();
			const box = screen.getBoundingClientRect(), at = (type, x, y) => screen.dispatchEvent(new PointerEvent(type,
				{ clientX: box.left + x * box.width, clientY: box.top + y * box.height, button: 0, bubbles: true, cancelable: true }));
			at("pointerdown", 0.25, 0.5);
			at("pointerup", 0.25, 0.5);
			await until(() => / changed /.test($("did").textContent));
			await say($("did").textContent);
			await until(() => $("state").textContent.includes("a run uses the device") && !screen.checkVisibility());
			await say("taken");`, func(text string) string {
			if text == "blue" {
				paint(0xc00000)
			}
			said <- text
			return ""
		})
		xtest.Browser(t, person.Display, program, address+"/device?name=desk")
		next := func() string {
			t.Helper()
			select {
			case text := <-said:
				return text
			case <-time.After(testlab.Hang):
				t.Fatal("the page says nothing")
				return ""
			}
		}
		if got := next(); got != "blue" {
			t.Fatalf("the page says %q", got)
		}
		for {
			e, ok := window.Next().(xproto.ButtonPressEvent)
			if !ok {
				continue
			}
			if x, y := int(e.EventX), int(e.EventY); e.Detail != 1 || x < 155 || x > 165 || y < 235 || y > 245 {
				t.Errorf("the device got a press of %d at %d, %d; want 1 at 160, 240", e.Detail, x, y)
			}
			break
		}
		paint(0x00c000) // what the click does
		if got := next(); !strings.HasPrefix(got, "click 25.00%,50.00%: given to the device in ") || !strings.Contains(got, "; its screen changed ") {
			t.Errorf("of its cost the page says %q", got)
		}
		back, err := list.get("desk").place().Take(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer back()
		if got := next(); got != "taken" {
			t.Errorf("in a run the page says %q", got)
		}
	})
}
