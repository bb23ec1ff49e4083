package panel

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/tell/report/reporttest"
)

// fakeSeats notes what a device is given.
type fakeSeats struct {
	mu     sync.Mutex
	run    bool
	driver Driver
	steps  []string
	// released counts how often the controls were given back: a script's way to have the devices go on.
	released int
}

func (f *fakeSeats) Screen(_ context.Context, device string) (ScreenPicture, error) {
	if err := named(device); err != nil {
		return ScreenPicture{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var b bytes.Buffer
	err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 320, 240)))
	return ScreenPicture{PNG: b.Bytes(), Run: f.run}, err
}

// fakeView shows the picture, and shows it again when a run begins or ends.
type fakeView struct {
	seats  *fakeSeats
	device string
	shown  bool
	run    bool
}

func (f *fakeSeats) View(device, _ string) (View, error) {
	if err := named(device); err != nil {
		return nil, err
	}
	return &fakeView{seats: f, device: device}, nil
}

func (v *fakeView) Next(ctx context.Context) (lab.LiveUpdate, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		p, err := v.seats.Screen(ctx, v.device)
		if err != nil {
			return lab.LiveUpdate{}, err
		}
		if !v.shown || v.run != p.Run {
			v.shown, v.run = true, p.Run
			size := image.Pt(320, 240)
			return lab.LiveUpdate{Size: size, Run: p.Run, Parts: []lab.LivePart{{Area: image.Rectangle{Max: size}, Type: "image/png", Bytes: p.PNG}}}, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return lab.LiveUpdate{}, ctx.Err()
		}
	}
}

func (*fakeView) Close() {}

// named returns an error for another device than the one there is.
func named(device string) error {
	if device != "a desk/2" {
		return &Refusal{http.StatusNotFound, errors.New("there is no device " + device)}
	}
	return nil
}

func (f *fakeSeats) Drive(device string, who Driver) (Turn, error) {
	if err := named(device); err != nil {
		return Turn{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.driver != (Driver{}) && f.driver != who {
		return Turn{}, &Refusal{http.StatusConflict, errors.New(f.driver.Name + " drives the device")}
	}
	f.driver = who
	return Turn{Driver: who.Name, Seconds: 60}, nil
}

func (f *fakeSeats) Release(device string, who Driver) error {
	if err := named(device); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released++
	if f.driver == who {
		f.driver = Driver{}
	}
	return nil
}

func (f *fakeSeats) Input(_ context.Context, device string, who Driver, steps string) ([]lab.Event, error) {
	if err := named(device); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.driver != who {
		return nil, &Refusal{http.StatusConflict, errors.New("take the controls first")}
	}
	f.steps = append(f.steps, steps)
	return nil, nil
}

func (f *fakeSeats) given() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.steps)
}

// A person takes a device's controls on its page, clicks, types and presses keys there; a run takes
// them away.
func TestDeviceInBrowser(t *testing.T) {
	fake := &fakeSeats{}
	s := newServer(t, setup{Store: emptyStore(t), Version: "v1", Seats: fake, Devices: func(context.Context) []Device {
		return []Device{{Name: "a desk/2", Kind: "port", Port: "enp2s0", Ready: true, Screen: "v4l2:/dev/video0"}}
	}})
	b := browsers.New(t)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, width := range []int64{390, 1100} {
		fake.mu.Lock()
		fake.run, fake.steps, fake.driver = false, nil, Driver{}
		fake.mu.Unlock()
		if err := b.View(width, 800, "light"); err != nil {
			t.Fatal(err)
		}
		if err := b.Open(s.URL + "/device?name=a%20desk%2F2"); err != nil {
			t.Fatal(err)
		}
		until := func(what, script string) {
			t.Helper()
			for deadline := time.Now().Add(testlab.Hang); ; <-tick.C {
				ok, err := reporttest.Eval[bool](b, script)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					return
				}
				if time.Now().After(deadline) {
					text, err := reporttest.Eval[string](b, `document.body.innerText`)
					t.Fatalf("%s: the page never showed it; it says %q, %v", what, text, err)
				}
			}
		}
		until("the picture", `document.getElementById("screen").checkVisibility() && document.getElementById("screen").width === 320`)
		if _, err := reporttest.Eval[bool](b, `document.getElementById("take").click(), true`); err != nil {
			t.Fatal(err)
		}
		until("the turn", `document.getElementById("state").textContent === "You have the controls."`)
		box, err := reporttest.Eval[[]float64](b, `(() => { document.getElementById("screen").scrollIntoView();
			const r = document.getElementById("screen").getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()`)
		if err != nil {
			t.Fatal(err)
		}
		mouse := func(kind input.DispatchMouseEventType, x, y float64) {
			t.Helper()
			if _, err := chromedp.Call(b.Context, input.DispatchMouseEvent, input.DispatchMouseEventParams{
				Type: kind, X: box[0] + x*box[2], Y: box[1] + y*box[3], Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1,
			}); err != nil {
				t.Fatal(err)
			}
		}
		mouse(input.DispatchMouseEventTypeMousePressed, 0.5, 0.25)
		mouse(input.DispatchMouseEventTypeMouseReleased, 0.5, 0.25)
		mouse(input.DispatchMouseEventTypeMousePressed, 0.25, 0.25)
		mouse(input.DispatchMouseEventTypeMouseReleased, 0.75, 0.75)
		if _, err := reporttest.Eval[bool](b, `(() => {
			const screen = document.getElementById("screen"), key = (key, more) => screen.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
			key("a"); key('"'); key("l", { ctrlKey: true }); key("Tab", { shiftKey: true });
			document.getElementById("text").value = 'say "\\ß';
			document.getElementById("type").click();
			return true;
		})()`); err != nil {
			t.Fatal(err)
		}
		want := []string{"click ", "drag ", `type "a"`, `type "\""`, "key Ctrl+l", "key Shift+Tab", `type "say \"\\ß"`}
		var got []string
		for deadline := time.Now().Add(testlab.Hang); len(got) < len(want) && time.Now().Before(deadline); <-tick.C {
			got = fake.given()
		}
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("%d pixels wide: the device was given %q; want %q", width, got, want)
		}
		fake.mu.Lock()
		fake.run = true
		fake.mu.Unlock()
		until("the run", `document.getElementById("state").textContent.startsWith("A run uses the device") && document.getElementById("take").disabled && document.getElementById("say").hidden`)
		wide, err := reporttest.Eval[bool](b, `document.documentElement.scrollWidth <= innerWidth`)
		if err != nil || !wide {
			t.Errorf("%d pixels wide: the page scrolls sideways, %v", width, err)
		}
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}

// TestScreenRoute: the picture has an ETag, and a device's name may have any character.
func TestScreenRoute(t *testing.T) {
	s := newServer(t, setup{Store: emptyStore(t), Version: "v1", Seats: &fakeSeats{run: true}})
	first := ask(t, s, http.MethodGet, "/api/v1/devices/a%20desk%2F2/screen", nil)
	if first.StatusCode != http.StatusOK || first.Header.Get("Content-Type") != "image/png" || first.Header.Get("Eidetic-Run") != "true" {
		t.Fatalf("%s, %v", first.Status, first.Header)
	}
	again := ask(t, s, http.MethodGet, "/api/v1/devices/a%20desk%2F2/screen", func(r *http.Request) {
		r.Header.Set("If-None-Match", first.Header.Get("ETag"))
	})
	if again.StatusCode != http.StatusNotModified || again.text != "" {
		t.Errorf("the same picture again: %s with %d bytes", again.Status, len(again.text))
	}
}
