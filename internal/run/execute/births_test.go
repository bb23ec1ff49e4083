package execute

import (
	"context"
	"errors"
	"image"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"eidetic/control"
	"eidetic/internal/lab"
	"eidetic/netlab"
)

// fakeKeys records the actions on a device, whose owner's script reacts to Ctrl+W.
type fakeKeys struct {
	control.Controller // other methods are not called
	did                []string
	onKey              func()
}

func (f *fakeKeys) Key(_ context.Context, chord string) (lab.Event, error) {
	f.did = append(f.did, "key "+chord)
	if f.onKey != nil {
		f.onKey()
	}
	return lab.Event{}, nil
}

func (f *fakeKeys) Text(_ context.Context, text string) (lab.Event, error) {
	f.did = append(f.did, "text "+text)
	return lab.Event{}, nil
}

func (f *fakeKeys) Move(_ context.Context, x, y int) (lab.Event, error) {
	f.did = append(f.did, "move "+image.Pt(x, y).String())
	return lab.Event{}, nil
}

func (f *fakeKeys) Close() error { return nil }

func (f *fakeKeys) Size() (image.Point, error) { return image.Pt(800, 600), nil }

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, boxURL+path, nil))
	return w
}

func TestStartPage(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("the box")) })
	s := NewStartPage(pages)
	if got := get(s, "/").Body.String(); got != "the box" {
		t.Errorf("/ is %q", got)
	}
	if got := get(s, "/start"); got.Code != http.StatusSeeOther || got.Header().Get("Location") != "/" {
		t.Errorf("between trials: %d to %q", got.Code, got.Header().Get("Location"))
	}
	came := s.lead("/sync?next=x")
	select {
	case <-came:
		t.Error("lead reports a request before there was one")
	default:
	}
	for range 2 { // a browser may ask twice
		if got := get(s, "/start"); got.Header().Get("Location") != "/sync?next=x" || got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("in a trial: %v", got.Header())
		}
	}
	<-came
	if one := s.SetUp("a"); one.Opened.IsZero() || !one.Trusted.IsZero() {
		t.Errorf("after / by http: %+v, want opened and not trusted", one)
	}
	get(s, "/trusted")
	if one := s.SetUp("a"); !one.Trusted.IsZero() {
		t.Error("a picture by http shows trust")
	}
	s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "https://box.test/trusted?2", nil))
	if one := s.SetUp("a"); one.Trusted.IsZero() || one.Opened.IsZero() {
		t.Errorf("after the picture by https: %+v", one)
	}
	if one := s.SetUp("b"); one != (SetUp{}) {
		t.Errorf("another device has %+v", one)
	}
	if got := get(s, "/kiosk.sh").Body.String(); !strings.HasPrefix(got, "#!/bin/sh") {
		t.Errorf("the script is %.40q", got)
	}
}

func TestPluggedBirth(t *testing.T) {
	fresh, err := ParseFresh([]string{"key Ctrl+L", "text box.test/start", "key Return"})
	if err != nil {
		t.Fatal(err)
	}
	s := NewStartPage(http.NotFoundHandler())
	keys := &fakeKeys{}
	keys.onKey = func() { // the browser opens the start page after Return
		if keys.did[len(keys.did)-1] == "key Return" {
			get(s, "/start")
		}
	}
	green := netlab.SyncURL("https://www.x.test/?a=b&c")
	life, err := pluggedBirths{s, fresh, keys, nil, nil}.Birth(t.Context(), green)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"key Ctrl+L", "text box.test/start", "key Return", "move (798,598)", "move (799,599)"}; !slices.Equal(
		keys.did,
		want,
	) {
		t.Errorf("actions = %q; want %q", keys.did, want)
	}
	if got := get(s, "/start").Header().Get("Location"); got != green {
		t.Errorf("the device is led to %s", got)
	}
	if err := life.Stop(); err != nil {
		t.Error(err)
	}
	if got := get(s, "/start").Header().Get("Location"); got != "/" {
		t.Errorf("after its trial the device is led to %s", got)
	}
}

// A key that arrives while a browser starts is lost: it is pressed again.
func TestPluggedBirthAtSecondTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh, err := ParseFresh([]string{"key Ctrl+W"})
		if err != nil {
			t.Fatal(err)
		}
		s, keys := NewStartPage(http.NotFoundHandler()), &fakeKeys{}
		keys.onKey = func() {
			if len(keys.did) == 2 {
				get(s, "/start")
			}
		}
		if _, err := (pluggedBirths{s, fresh, keys, nil, nil}).Birth(t.Context(), netlab.SyncURL("https://x.test/")); err != nil {
			t.Fatal(err)
		}
		if want := []string{"key Ctrl+W", "key Ctrl+W", "move (798,598)", "move (799,599)"}; !slices.Equal(keys.did, want) {
			t.Errorf("actions = %q; want %q", keys.did, want)
		}
	})
}

// A device that does not open the start page fails only its trial.
func TestPluggedBirthThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh, err := ParseFresh([]string{"key Ctrl+W"})
		if err != nil {
			t.Fatal(err)
		}
		b := pluggedBirths{NewStartPage(http.NotFoundHandler()), fresh, &fakeKeys{}, nil, nil}
		if _, err := b.Birth(t.Context(), netlab.SyncURL("https://x.test/")); err == nil ||
			!strings.Contains(err.Error(), "did not open http://box.test/start though its keys were pressed 3 times") {
			t.Errorf("error %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Birth(ctx, netlab.SyncURL("https://x.test/")); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
	})
}

func TestParseFresh(t *testing.T) {
	for _, steps := range [][]string{nil, {""}, {"press x"}, {"key"}, {"key Ctrl+"}, {"key NoSuchKey"}, {"text "}, make([]string, 21)} {
		if f, err := ParseFresh(steps); err == nil {
			t.Errorf("ParseFresh(%q) = %v; want an error", steps, f)
		}
	}
}
