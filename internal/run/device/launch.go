package device

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"eidetic/internal/lab"
	"eidetic/internal/run/isolate"
)

// started is how a browser was started, so that its program can be started again.
type started struct {
	program, name string
	args          []string
	options       Options
}

// Launch starts the browser's program again with a URL, as a program does in which somebody clicks a
// link: the running browser shows it in a new tab. The event is the start of the program.
func (b *Browser) Launch(_ context.Context, url string) (lab.Event, error) {
	args, err := launchArguments(b.started.args, url)
	if err != nil {
		return lab.Event{}, fmt.Errorf("launch %s: %w", url, err)
	}
	o := b.started.options
	o.Files = nil
	second := &Browser{home: b.home, kills: isolate.MemoryKills()}
	e := lab.Event{Name: "launch", Detail: url, Earliest: lab.Monotonic()}
	if err := second.begin(exec.Command(b.started.program, args...), b.started.name, o); err != nil {
		return e, fmt.Errorf("launch %s: %w", url, err)
	}
	e.Latest = lab.Monotonic()
	b.launched = append(b.launched, second)
	return e, nil
}

// launchArguments are those that lead a second start to the profile of the first.
func launchArguments(first []string, url string) (args []string, err error) {
	for i, a := range first {
		switch {
		case strings.HasPrefix(a, "--user-data-dir="), a == "--no-sandbox", a == "--profile":
			args = append(args, a)
		case i > 0 && first[i-1] == "--profile":
			args = append(args, a)
		}
	}
	if len(args) == 0 {
		return nil, errors.New("nobody knows how this browser's program is told its profile: name a browser instead of a whole command line")
	}
	return append(args, url), nil
}

// Dormant is a device whose browser does not run yet: the screen has the synchronisation colour.
type Dormant struct {
	device *Virtual
	done   chan struct{}
	// unfocus ends what gives the windows of an app the keyboard; nil for a browser, which fills the screen.
	unfocus func()
	*mutexed
}

// mutexed is the state of a dormant device that its watchers share.
type mutexed struct {
	sync.Mutex
	browser *Browser
}

// Sleep returns the device without a browser, with the synchronisation colour on its screen.
func (v *Virtual) Sleep() (*Dormant, error) {
	if v.Browser == nil {
		return nil, errors.New("starting a device: it has no browser")
	}
	c := lab.SyncGreen()
	if err := v.X.paint(uint32(c.R)<<16 | uint32(c.G)<<8 | uint32(c.B)); err != nil {
		return nil, err
	}
	d := &Dormant{device: v, done: make(chan struct{}), mutexed: &mutexed{}}
	if o, ok := v.Browser.(*other); ok && o.what.IsApp {
		var err error
		if d.unfocus, err = v.X.giveFocus(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Start starts the browser at a URL. The event is the start of its program: from just before the
// kernel was asked until the program ran.
func (d *Dormant) Start(_ context.Context, url string) (lab.Event, error) {
	e := lab.Event{Name: "launch", Earliest: lab.Monotonic()}
	b, err := d.device.Birth(url)
	if err != nil {
		return e, err
	}
	// Making the profile is no part of the start.
	e.Earliest, e.Latest = b.execed.Earliest, b.execed.Latest
	d.Lock()
	d.browser = b
	d.Unlock()
	go func() {
		<-b.Done()
		close(d.done)
	}()
	return e, nil
}

func (d *Dormant) awake() *Browser {
	d.Lock()
	defer d.Unlock()
	return d.browser
}

// Done is closed when the browser has ended.
func (d *Dormant) Done() <-chan struct{} { return d.done }

// Err says why the browser ended, once Done is closed.
func (d *Dormant) Err() error { return d.awake().Err() }

// Stop ends the browser, if it was started.
func (d *Dormant) Stop() error {
	if d.unfocus != nil {
		d.unfocus()
	}
	err := d.device.X.paint(0)
	if b := d.awake(); b != nil {
		err = errors.Join(b.Stop(), err)
	}
	return err
}

// Running is the browser behind a device's life; nil before it has started.
func Running(life any) *Browser {
	switch l := life.(type) {
	case *Browser:
		return l
	case *Dormant:
		return l.awake()
	}
	return nil
}

// paint gives the screen behind all windows a colour.
func (x *XServer) paint(pixel uint32) error {
	c, err := xgb.NewConnDisplay(x.Display)
	if err != nil {
		return fmt.Errorf("painting the screen: %w", err)
	}
	defer c.Close()
	root := xproto.Setup(c).DefaultScreen(c).Root
	err = xproto.ChangeWindowAttributesChecked(c, root, xproto.CwBackPixel, []uint32{pixel}).Check()
	if err == nil {
		err = xproto.ClearAreaChecked(c, false, root, 0, 0, 0, 0).Check()
	}
	if err != nil {
		return fmt.Errorf("painting the screen: %w", err)
	}
	return nil
}

// protocolOf says whether a browser can be asked by the DevTools protocol.
func protocolOf(p Program) bool {
	switch p := p.(type) {
	case *Chromium:
		return true
	case *other:
		return p.what.Family() == lab.Chromium && p.whole == nil
	}
	return false
}

// startAsked starts a browser that can be asked.
func startAsked(p Program, o Options) (*Browser, error) {
	d, theirs, err := openDevtools()
	if err != nil {
		return nil, err
	}
	o.Files = append(theirs, o.Files...)
	b, err := p.Start(o.with(protocolFlags()))
	for _, f := range theirs {
		_ = f.Close() // the browser has its own
	}
	if err != nil {
		d.close()
		return nil, err
	}
	b.devtools = d
	return b, nil
}

// with returns the options with more flags.
func (o Options) with(flags []string) Options {
	o.Extra = append(slices.Clone(o.Extra), flags...)
	return o
}
