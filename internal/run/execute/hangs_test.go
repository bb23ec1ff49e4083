package execute

import (
	"context"
	"errors"
	"image"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/control"
	"eidetic/control/power"
	"eidetic/control/power/powertest"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// The ways in which a simulated device hangs.
const (
	hangsPage   = "its browser opens no page, and adb can restart it"
	hangsAnswer = "adb takes what it is told and never answers"
	hangsGone   = "it is gone from its USB cable"
	hangsKeys   = "a computer without adb does nothing when its keys are pressed"
	hangsStart  = "restarted by adb, it never gets ready"
)

// hanger is a device that hangs, with all that it is told and what it takes away. It is a refresher, its controls, and
// what its USB hub cuts the power of. All its times are of the simulated clock.
type hanger struct {
	control.Controller
	page *StartPage
	took time.Duration // to start

	mu    sync.Mutex
	hangs string
	up    time.Time // when it has started
}

func (h *hanger) state() (hangs string, up bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hangs, !time.Now().Before(h.up)
}

// boot starts it anew.
func (h *hanger) boot() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hangs, h.up = "", time.Now().Add(h.took)
}

// open connects with its controls.
func (h *hanger) open(context.Context) (screenControl, error) {
	if hangs, up := h.state(); hangs == hangsGone || !up {
		return nil, errors.New("there is no such device")
	}
	return h, nil
}

func (h *hanger) begin(string)                               {}
func (h *hanger) shown(context.Context, screenControl) error { return nil }
func (h *hanger) Size() (image.Point, error)                 { return image.Pt(100, 100), nil }
func (h *hanger) Close() error                               { return nil }
func (h *hanger) Move(context.Context, int, int) (lab.Event, error) {
	return lab.Event{}, nil
}

// do opens the start page, or hangs.
func (h *hanger) do(ctx context.Context, _ screenControl) error {
	switch hangs, _ := h.state(); hangs {
	case hangsAnswer, hangsStart: // as onPhone.open does
		if err := lab.Wait(ctx, freshLimit); err != nil {
			return err
		}
		return experiment.Broken(errHangs)
	case "":
		const loading = 2 * time.Second
		time.AfterFunc(loading, func() { h.page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", StartURL, nil)) })
	}
	return nil
}

// withADB is a hanger that adb can restart.
type withADB struct{ *hanger }

func (h withADB) startAgain(ctx context.Context, _ screenControl) error {
	switch hangs, _ := h.state(); hangs {
	case hangsGone:
		return errors.New("adb has no phone")
	case hangsAnswer, hangsStart:
		<-ctx.Done()
		return ctx.Err()
	}
	h.boot()
	return lab.Wait(ctx, h.took)
}

// TestHangs: of twenty devices that hang in five ways, with starts of 15 to 58 seconds, 19 or more are back within
// three minutes without a person. The clock is simulated; births, limits, recovery and the switch of the power are the
// real ones.
func TestHangs(t *testing.T) {
	const within = 3 * time.Minute
	back, all := 0, 0
	for _, kind := range []string{hangsPage, hangsAnswer, hangsGone, hangsKeys, hangsStart} {
		var times []time.Duration
		for _, took := range []time.Duration{15 * time.Second, 30 * time.Second, 45 * time.Second, 58 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				d := &hanger{page: NewStartPage(nil), took: took, hangs: kind}
				var fresh refresher = withADB{d}
				if kind == hangsKeys {
					fresh = d
				}
				var plug *power.Switch
				if kind != hangsPage {
					k := powertest.NewKernel(t)
					k.AddHub("1-1", powertest.Hub2, func(port int, on bool) {
						if on && port == 4 {
							d.boot()
						}
					})
					plug = power.New(lab.PowerPart{USB: "1-1.4"}, netip.Addr{}, k.Kernel)
				}
				controls := &keys{limit: keyLimit, open: d.open}
				births := pluggedBirths{d.page, fresh, controls, newRecovery(fresh, controls, plug, nil), nil}
				begun := time.Now()
				life, err := births.Birth(t.Context(), "/trial")
				all++
				if spent := time.Since(begun).Round(time.Second); err == nil && life != nil && spent <= within {
					back++
					times = append(times, spent)
				} else {
					t.Logf("%s, a start of %v: %v after %v", kind, took, err, spent)
				}
				if told := births.recovery.told(); err == nil && len(told) != 1 {
					t.Errorf("%s: told %q; want what was done", kind, told)
				}
			})
		}
		t.Logf("%s: back after %v", kind, times)
	}
	if all != 20 || back < 19 {
		t.Errorf("%d of %d were back within %v; want 19 of 20 or more", back, all, within)
	}
	t.Logf("%d of %d were back within %v", back, all, within)
}
