package execute

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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
