package execute

import (
	"context"
	"errors"
	"image"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/control"
	rfbcontrol "eidetic/control/rfb"
	"eidetic/internal/base/rfb/rfbtest"
)

// A screen that does not answer costs a bounded time and is asked again over a new connection;
// without a limit the run would never end.
func TestKeysOfASilentScreen(t *testing.T) {
	server := rfbtest.New(t, rfbtest.Config{Fences: true})
	opened := 0
	k := &keys{limit: time.Minute, open: func(ctx context.Context) (screenControl, error) {
		opened++
		return rfbcontrol.Open(ctx, rfbcontrol.Options{Address: server.Addr(), Clock: clock})
	}}
	defer k.Close()
	if _, err := k.Key(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	server.Silence(true)
	k.limit = 50 * time.Millisecond
	if _, err := k.Key(t.Context(), "b"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Key() on a silent screen: %v", err)
	}
	if _, err := k.Size(); !errors.Is(err, errNoKeys) {
		t.Errorf("Size() without a connection: %v", err)
	}
	server.Silence(false)
	k.limit = time.Minute
	if _, err := k.Key(t.Context(), "c"); err != nil || opened != 2 {
		t.Errorf("after %d connections: %v", opened, err)
	}
	if got := strings.Join(server.Input(), " "); !strings.Contains(got, "down 63") {
		t.Errorf("the screen got %q", got)
	}
}

// silentControl is a control of which only its end is asked.
type silentControl struct{ control.Controller }

func (silentControl) Size() (image.Point, error) { return image.Point{}, nil }
func (silentControl) Close() error               { return nil }

// layoutControl is one that knows what its layout has.
type layoutControl struct {
	silentControl
	asked []string
}

func (l *layoutControl) PrepareText(_ context.Context, text string) (pasted bool, err error) {
	if l.asked = append(l.asked, text); text == "ß" {
		err = errors.New("no key types it")
	}
	return false, err
}

// Each text of a plan is asked for before the run; controls that know nothing before they type refuse none.
func TestTextsAreAskedFor(t *testing.T) {
	layout := &layoutControl{}
	k := &keys{limit: time.Minute, open: func(context.Context) (screenControl, error) { return layout, nil }}
	if err := k.texts(t.Context(), []string{"a", "ß", "b"}); err == nil || !strings.Contains(err.Error(), "no key types it") {
		t.Errorf("texts() = %v; want the controller's error", err)
	}
	if want := []string{"a", "ß"}; !slices.Equal(layout.asked, want) {
		t.Errorf("it was asked for %q; want %q", layout.asked, want)
	}
	k = &keys{limit: time.Minute, open: func(context.Context) (screenControl, error) { return silentControl{}, nil }}
	if err := k.texts(t.Context(), []string{"ß"}); err != nil {
		t.Errorf("texts() of controls that know nothing = %v; want nil", err)
	}
}
