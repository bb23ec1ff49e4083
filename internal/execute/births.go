package execute

import (
	"context"
	"fmt"
	"image"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"eidetic/control"
	"eidetic/internal/device"
	"eidetic/internal/experiment"
	"eidetic/internal/lab"
)

// StartURL is what the browser of a plugged-in device opens whenever it is
// started: the way to the page of the trial.
const StartURL = boxURL + "/start"

// boxURL is the box in the device's network.
const boxURL = "http://box.test"

// StartPage answers StartURL, and gives out the script that keeps a browser
// there. Between trials it shows the box's own first page.
type StartPage struct {
	pages http.Handler // the box's others

	mu   sync.Mutex
	next string
	came chan struct{} // closed when the device asks for next
}

// NewStartPage puts the start page before the box's pages.
func NewStartPage(pages http.Handler) *StartPage { return &StartPage{pages: pages} }

// ServeHTTP implements http.Handler.
func (s *StartPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/kiosk.sh":
		w.Header().Set("Content-Type", "text/x-shellscript")
		_, _ = w.Write(device.KioskScript(boxURL, StartURL)) // the device went away
		return
	case r.Method != http.MethodGet || r.URL.Path != "/start":
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

// lead sends the device to a URL of the box from now on, and returns a channel
// that is closed when it asked.
func (s *StartPage) lead(to string) (came <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = to
	s.came = make(chan struct{})
	return s.came
}

// Fresh is what makes a device fresh: keys that end its browser, whose owner
// starts a new one at StartURL, or that lead the one that it has there.
type Fresh []freshStep

type freshStep struct{ verb, what string }

// ParseFresh reads steps: "key Ctrl+W" presses a key or chord, "text WORDS" types.
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

func (f Fresh) do(ctx context.Context, c freshControl) error {
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

// startLimits are how long a device may take to come to StartURL after its keys
// were pressed for the first time, the second … A key that meets a browser which
// has just been started, or a page that ended without an answer, is lost.
var startLimits = []time.Duration{15 * time.Second, 30 * time.Second, time.Minute}

// pluggedBirths gives experiment the births of a device that is plugged in.
type pluggedBirths struct {
	start   *StartPage
	fresh   Fresh
	control freshControl
}

// screenControl knows how large the screen is that it drives.
type screenControl interface {
	control.Controller
	Size() (image.Point, error)
}

// freshControl is what it takes to make a device fresh.
type freshControl interface {
	Key(ctx context.Context, chord string) (lab.Event, error)
	Text(ctx context.Context, text string) (lab.Event, error)
	Move(ctx context.Context, x, y int) (lab.Event, error)
	Size() (image.Point, error)
}

// Birth implements [experiment.Device].
func (p pluggedBirths) Birth(ctx context.Context, to string) (experiment.Life, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	for _, limit := range startLimits {
		// The device has to come after its keys: what came before is closed by them.
		came := p.start.lead(u.RequestURI()) // the box's pages are all on one host
		if err := p.fresh.do(ctx, p.control); err != nil {
			return nil, fmt.Errorf("making it fresh: %w", err)
		}
		select {
		case <-came:
			if err := p.park(ctx); err != nil {
				return nil, fmt.Errorf("moving the pointer aside: %w", err)
			}
			return plugged{p.start}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(limit):
		}
	}
	return nil, experiment.Broken(fmt.Errorf("the device did not open %s though its keys were pressed %d times: is its browser there, and does it start again with that page?", StartURL, len(startLimits)))
}

// park puts the pointer into the last corner, where next to nothing of it shows:
// servers draw it into the picture of a client that did not move it itself.
func (p pluggedBirths) park(ctx context.Context) error {
	size, err := p.control.Size()
	if err != nil {
		return err
	}
	if _, err := p.control.Move(ctx, size.X-2, size.Y-2); err != nil { // a pointer that is there already would not be seen to move
		return err
	}
	_, err = p.control.Move(ctx, size.X-1, size.Y-1)
	return err
}

// plugged lives on after its trial.
type plugged struct{ start *StartPage }

func (plugged) Done() <-chan struct{} { return nil }
func (plugged) Err() error            { return nil }

// Stop leads the device to the box's own page again.
func (p plugged) Stop() error {
	p.start.lead("")
	return nil
}

// guarded is a link whose report also knows of the device's cable.
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
	report.Invalid = strings.Join(g.reasons(), "; ") // its own is among those of the port
	return report
}

var _ experiment.Link = (*guarded)(nil)
