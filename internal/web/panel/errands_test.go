package panel

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// fakeErrands is that of one device, which does what it is told at once.
type fakeErrands struct {
	mu     sync.Mutex
	run    bool // a run uses the device
	latest *Errand
}

func (f *fakeErrands) Start(device string, r ErrandRequest, by string) (Errand, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case device != "laptop" && device != "a desk/2":
		return Errand{}, &Refusal{http.StatusNotFound, errors.New("there is no device " + device)}
	case f.run:
		return Errand{}, &Refusal{http.StatusConflict, errors.New("a run uses the device: wait until it has ended, or cancel it")}
	}
	ends := time.Now().Add(time.Minute).UTC()
	e := Errand{Do: r.Do, Name: r.Name, State: "working", By: by, Began: time.Now().UTC(), Ends: &ends, Doing: "filming"}
	switch {
	case r.Do == "noise":
		noise := lab.ScreenNoise{Pixel: 3, Mean: 0.5}
		e.State, e.Ends, e.Noise = "done", nil, &ErrandNoise{ScreenNoise: noise, Floor: noise.Floor(), Sees: noise.Sees(), Screen: "v4l2:/dev/video0, 1920 × 1080 YUYV at 60/s"}
	case r.PreRoll > 0:
		e.State, e.Doing = "waiting", "keeping the last 5s until the trigger"
	}
	f.latest = &e
	return e, nil
}

func (f *fakeErrands) Get(string) (Errand, error) {
	e, err := f.change(func(*Errand) {})
	if err != nil {
		return Errand{State: "none"}, nil
	}
	return e, nil
}

func (f *fakeErrands) Trigger(string) (Errand, error) {
	return f.change(func(e *Errand) { e.State, e.Doing, e.Frames = "working", "filming", 300 })
}

func (f *fakeErrands) End(_ string, keep bool) (Errand, error) {
	return f.change(func(e *Errand) {
		e.State, e.Doing, e.Ends = "stopped", "", nil
		if keep {
			e.State, e.Run, e.Note = "done", "20261121-091400-film", "it has a note"
		}
	})
}

func (f *fakeErrands) change(how func(*Errand)) (Errand, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest == nil {
		return Errand{}, &Refusal{http.StatusNotFound, errors.New("nothing was asked of the device since the appliance started")}
	}
	how(f.latest)
	return *f.latest, nil
}

// TestErrandRoutes: an errand is started, asked for and ended; one that cannot be is refused with a sentence.
func TestErrandRoutes(t *testing.T) {
	fake := &fakeErrands{}
	s := newServer(t, setup{Store: emptyStore(t), Version: "v1", Errands: fake})
	const path = "/api/v1/devices/a%20desk%2F2/errand"
	send := func(method, path, body string) reply {
		return ask(t, s, method, path, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
			r.Body = io.NopCloser(strings.NewReader(body))
		})
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		within             string
	}{
		{"GET", path, "", 200, `"state":"none"`},
		{"POST", path, `{"do":"dance"}`, 422, "film, record, qualify, noise"},
		{"POST", path, `{"do":"film","seconds":1e9}`, 422, "seconds"},
		{"POST", path, `{"do":"film","pre_roll_s":-1}`, 422, "pre_roll_s"},
		{"POST", "/api/v1/devices/none/errand", `{"do":"film"}`, 404, "there is no device none"},
		{"POST", path, `{"do":"film","pre_roll_s":5,"name":"crash"}`, 202, `"state":"waiting"`},
		{"POST", path + "/trigger", "", 200, `"state":"working"`},
		{"GET", path, "", 200, `"frames":300`},
		{"DELETE", path + "?keep=true", "", 200, `"run":"20261121-091400-film"`},
		{"POST", path, `{"do":"noise"}`, 202, `"pixel_codes":3`},
	} {
		if got := send(c.method, c.path, c.body); got.StatusCode != c.status || !strings.Contains(got.text, c.within) {
			t.Errorf("%s %s %s: %d %s; want %d and %q", c.method, c.path, c.body, got.StatusCode, got.text, c.status, c.within)
		} else if c.status == 202 && got.Header.Get("Location") != path {
			t.Errorf("%s: it is at %q; want %q", c.body, got.Header.Get("Location"), path)
		}
	}
	fake.run = true
	if got := send("POST", path, `{"do":"film"}`); got.StatusCode != 409 || !strings.Contains(got.text, "a run uses the device") {
		t.Errorf("during a run: %d %s", got.StatusCode, got.text)
	}
}
