package execute

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"eidetic/control"
	"eidetic/internal/run/device"
	"eidetic/internal/run/experiment"
	"eidetic/netlab"
)

// StartURL is the page that the browser of a plugged-in device opens whenever it starts. It
// redirects to the page of the trial.
const StartURL = boxURL + "/start"

// boxURL is the box's address in the device's network.
const boxURL = "http://box.test"

// StartPage serves StartURL, and the script that keeps a browser open there. Between trials
// it redirects to the box's own first page.
type StartPage struct {
	pages http.Handler // the box's other pages

	mu    sync.Mutex
	next  string
	came  chan struct{} // closed when the device requests next
	setUp SetUp
	owner string // whose it is
}

// SetUp is how far a device has been set up, as far as it has shown.
type SetUp struct {
	Opened  time.Time // the box's first page; the zero time is never
	Trusted time.Time // the box's certificate
}

// note remembers what a request says of the device's set-up.
func (s *StartPage) note(r *http.Request) {
	trusted := r.URL.Path == netlab.TrustedPath && r.URL.Scheme == "https"
	if r.Method != http.MethodGet || r.URL.Path != "/" && !trusted {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if trusted {
		s.setUp.Trusted = time.Now()
	} else {
		s.setUp.Opened = time.Now()
	}
}

// SetUp returns what the device with a hardware address has shown. What another one has shown is forgotten. Addresses
// of the network would not tell: a device asks by IPv6, too, from addresses of its own choice.
func (s *StartPage) SetUp(owner string) SetUp {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != "" && s.owner != owner {
		s.setUp = SetUp{}
	}
	s.owner = owner
	return s.setUp
}

// NewStartPage makes a handler that serves the start page, and pages for all other paths.
func NewStartPage(pages http.Handler) *StartPage { return &StartPage{pages: pages} }

// ServeHTTP implements http.Handler.
func (s *StartPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/kiosk.sh":
		w.Header().Set("Content-Type", "text/x-shellscript")
		_, _ = w.Write(device.KioskScript(boxURL, StartURL)) // the device has disconnected
		return
	case r.Method != http.MethodGet || r.URL.Path != "/start":
		s.note(r)
		s.pages.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	next := s.next
	if s.came != nil {
		close(s.came)
		s.came = nil
	}
	s.mu.Unlock()
	if next == "" {
		next = "/"
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// lead redirects the device to a URL of the box from now on, and returns a channel that is
// closed when the device has requested it.
func (s *StartPage) lead(to string) (came <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = to
	s.came = make(chan struct{})
	return s.came
}

// Fresh is the steps that make a device fresh: keys that close its browser, whose owner starts
// a new one at StartURL, or that open StartURL in the existing one.
type Fresh []freshStep

type freshStep struct{ verb, what string }

// ParseFresh parses steps: "key Ctrl+W" presses a key or chord, "text WORDS" types text.
func ParseFresh(steps []string) (Fresh, error) {
	if len(steps) == 0 || len(steps) > 20 {
		return nil, fmt.Errorf("%d steps; at least 1 and at most 20", len(steps))
	}
	var f Fresh
	for _, s := range steps {
		verb, what, _ := strings.Cut(s, " ")
		switch verb {
		case "key":
			if _, err := control.ParseChord(what); err != nil {
				return nil, fmt.Errorf("step %q: %w", s, err)
			}
		case "text":
			if what == "" || len(what) > 1000 {
				return nil, fmt.Errorf("step %q: nothing, or too much, to type", s)
			}
		default:
			return nil, fmt.Errorf("step %q: write key CHORD or text WORDS", s)
		}
		f = append(f, freshStep{verb, what})
	}
	return f, nil
}

// do implements [refresher].
func (f Fresh) do(ctx context.Context, c screenControl) error {
	for _, s := range f {
		var err error
		if s.verb == "key" {
			_, err = c.Key(ctx, s.what)
		} else {
			_, err = c.Text(ctx, s.what)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", s.verb, s.what, err)
		}
	}
	return nil
}

// shown implements [refresher]: the owner's script has made the browser fill the screen.
func (Fresh) shown(context.Context, screenControl) error { return nil }

// begin implements [refresher].
func (Fresh) begin(string) {}

// refresher makes a device fresh.
type refresher interface {
	// begin is told the state in which the next trial begins, which is one of those that the device reaches.
	begin(state string)
	// do opens StartURL in a browser that is in that state.
	do(context.Context, screenControl) error
	// shown is called when the device has asked for that page.
	shown(context.Context, screenControl) error
}

// startLimits are how long a device may take to open StartURL after its keys were pressed for
// the first time, the second time, and so on. A key is lost if the browser has just been
// started, or if its page ended without an answer.
var startLimits = []time.Duration{15 * time.Second, 30 * time.Second, time.Minute}

// pluggedBirths implements experiment.Device for a device that is plugged in.
type pluggedBirths struct {
	start   *StartPage
	fresh   refresher
	control screenControl
	// recovery brings back a device that hangs; nil for one that only a person can.
	recovery *recovery
	apps     *apps
}

// Birth implements [experiment.Device].
func (p pluggedBirths) Birth(ctx context.Context, to string) (experiment.Life, error) {
	if k, ok := p.control.(*keys); ok && p.recovery != nil && p.recovery.soon {
		k.replug = soonLimit
	}
	life, err := p.born(ctx, to)
	if err == nil || p.recovery == nil || ctx.Err() != nil || !experiment.IsBroken(err) {
		return life, err
	}
	return p.recovery.bring(ctx, err, func() (experiment.Life, error) { return p.born(ctx, to) })
}

func (p pluggedBirths) born(ctx context.Context, to string) (experiment.Life, error) {
	part, isPart := p.control.(interface{ await(context.Context) error }) // which may be unplugged
	for _, limit := range startLimits {
		if isPart {
			if err := part.await(ctx); err != nil {
				return nil, err
			}
		}
		// Only a request after the keys counts, since they close the page that made earlier ones.
		came := p.start.lead(to)
		err := p.fresh.do(ctx, p.control)
		if isPart && experiment.IsBroken(err) && ctx.Err() == nil && !errors.Is(err, errHangs) {
			continue // it was unplugged since the last trial
		} else if err != nil {
			return nil, fmt.Errorf("making it fresh: %w", err)
		}
		select {
		case <-came:
			err := p.fresh.shown(ctx, p.control)
			if err != nil {
				return nil, fmt.Errorf("making the browser fill the screen: %w", err)
			}
			if err = p.park(ctx); err != nil {
				return nil, fmt.Errorf("moving the pointer aside: %w", err)
			}
			return p.apps.of(ctx, plugged{p.start})
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(limit):
		}
	}
	return nil, experiment.Broken(
		fmt.Errorf(
			"the device did not open %s though its keys were pressed %d times: is its browser there, and does it start again with that page?",
			StartURL,
			len(startLimits),
		),
	)
}

// park moves the pointer to the bottom right corner, where almost nothing of it is visible:
// servers draw it into the picture of a client that did not move it itself.
func (p pluggedBirths) park(ctx context.Context) error {
	if c, ok := p.control.(interface{ points() bool }); ok && !c.points() {
		return nil
	}
	size, err := p.control.Size()
	if err != nil {
		return err
	}
	// Move elsewhere first: a pointer that is in the corner already would not move.
	if _, err := p.control.Move(ctx, size.X-2, size.Y-2); err != nil {
		return err
	}
	_, err = p.control.Move(ctx, size.X-1, size.Y-1)
	return err
}

// plugged is a device that keeps running after its trial.
type plugged struct{ start *StartPage }

func (plugged) Done() <-chan struct{} { return nil }
func (plugged) Err() error            { return nil }

// Stop redirects the device to the box's own page again.
func (p plugged) Stop() error {
	p.start.lead("")
	return nil
}

// guarded is a link whose report includes problems of the device's cable.
type guarded struct {
	emulated
	watch   func() func() []string
	reasons func() []string
}

func (g *guarded) Restart() {
	g.reasons = g.watch()
	g.emulated.Restart()
}

func (g *guarded) Report() experiment.LinkReport {
	report := g.emulated.Report()
	report.Invalid = strings.Join(g.reasons(), "; ") // the port's reasons include the link's own
	return report
}

var _ experiment.Link = (*guarded)(nil)
