package gadget

import (
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/control"
	"eidetic/control/hid"
	"eidetic/internal/base/priority"
	"eidetic/internal/lab"
)

// Options of a controller.
type Options struct {
	Port   string      // the USB device port; "" is the only one
	Layout string      // of the device's keyboard
	Screen image.Point // of the device
	Clock  lab.Clock
	// Relative is a relative mouse in place of the absolute one; Touch adds a touch screen.
	Relative, Touch bool
	Gain            float64 // of a relative mouse, see hid.Options
}

// Gadget is keyboard, mouse and touch screen at a USB device port. It is a hid.Sink.
type Gadget struct {
	o        Options
	clock    lab.Clock
	port     string
	emulated bool // the port is dummy_hcd's
	dir      string
	files    map[string]int // descriptors by function
	caps     bool           // what the device said of Caps Lock last
	told     bool
	lent     bool // root made it, and keeps it
}

var _ hid.Sink = (*Gadget)(nil)

// Open plugs the input devices in, waits until the device has accepted them, and makes a
// controller of them. Close unplugs them.
func Open(ctx context.Context, o Options) (*hid.Controller, error) {
	g, err := New(ctx, o)
	if err != nil {
		return nil, err
	}
	h, err := hid.New(g, hid.Options{Layout: o.Layout, Screen: o.Screen, Gain: o.Gain, Clock: o.Clock})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return h, nil
}

// newGadget is a gadget that is not made yet.
func newGadget(o Options) (*Gadget, error) {
	if o.Clock == nil {
		o.Clock = lab.Monotonic
	}
	ports, err := Ports(os.DirFS("/"))
	if err != nil {
		return nil, err
	}
	port, err := choose(ports, o.Port)
	if err != nil {
		return nil, fmt.Errorf("gadget: %w", err)
	}
	return &Gadget{
		o: o, clock: o.Clock, port: port.Name, emulated: port.Emulated, dir: filepath.Join(configfs, "eidetic-"+port.Name),
		files: map[string]int{},
	}, nil
}

// Make makes a keyboard, both mice and a touch screen at a port and plugs them in, for programs
// that may open their device files, but may not make them. They stay until the machine ends.
func Make(port string) error {
	g, err := newGadget(Options{Port: port})
	if err != nil {
		return err
	}
	list := append(Options{Touch: true}.functions(), Options{Relative: true}.functions()[1])
	if err := g.build(list); err != nil {
		return fmt.Errorf("gadget: %w", err)
	}
	return g.Plug()
}

// New makes the input devices and plugs them in. Without root's rights it uses those that Make
// has made.
func New(ctx context.Context, o Options) (*Gadget, error) {
	g, err := newGadget(o)
	if err != nil {
		return nil, err
	}
	list := g.o.functions()
	if _, made := os.Stat(g.dir); made == nil && os.Geteuid() != 0 {
		g.lent = true
	} else if err = g.build(list); err == nil {
		err = g.Plug()
	}
	for _, f := range list {
		if err == nil {
			err = g.open(ctx, f.name)
		}
	}
	if err == nil {
		err = g.Ready(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("gadget: %w", err), g.Close())
	}
	return g, nil
}

// look is how often a state is read that the kernel does not announce.
const look = 5 * time.Millisecond

// until waits until done, which may fail with a reason that is given if ctx ends first.
func until(ctx context.Context, done func() error) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		}
	}
}

// open opens a function's device file, once udev has made it.
func (g *Gadget) open(ctx context.Context, name string) error {
	return until(ctx, func() error {
		node, err := g.node(name)
		if err != nil {
			return err
		}
		fd, err := unix.Open(node, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			g.files[name] = fd
			return nil
		}
		return &os.PathError{Op: "open", Path: node, Err: err}
	})
}

// Ready waits until the device has accepted the input devices. The port's state alone does
// not say so, because it is that of before while the gadget is plugged in again: only a
// report that is taken does, one in which no key is down.
func (g *Gadget) Ready(ctx context.Context) error {
	return until(ctx, func() error {
		state, err := g.state()
		if err == nil && state != "configured" {
			err = notReady(state)
		}
		if err == nil {
			_, err = g.Send(ctx, hid.Keyboard{})
		}
		return err
	})
}

func (g *Gadget) state() (string, error) {
	b, err := os.ReadFile("/sys/class/udc/" + g.port + "/state")
	return strings.TrimSpace(string(b)), err
}

// notReady says what a state of the port means for the person at it.
func notReady(state string) error {
	switch state {
	case "not attached", "attached":
		return errors.New("no device is plugged into the USB port: plug its cable in")
	case "suspended":
		return errors.New("the device sleeps: wake it")
	}
	return fmt.Errorf("the device has not accepted the USB devices yet (it is %q)", state)
}

// Capabilities say which of its parts were asked for.
func (g *Gadget) Capabilities() control.Capabilities {
	can := control.Capabilities{
		Keyboard: true, Pointer: !g.o.Relative, Motion: g.o.Relative, Wheel: true,
		Timing: "the moment at which the device has fetched the report, as the kernel says",
	}
	if g.o.Touch {
		can.Touch = hid.MaxContacts
		can.Limits = append(can.Limits,
			"Windows asks how many fingers the touch screen knows, which the kernel answers with 0 before Linux 6.12.")
	}
	if g.o.Relative {
		can.Limits = append(can.Limits, "The mouse is relative: it arrives where it should if the device does not accelerate it, or its gain was calibrated.")
	}
	return can
}

// Send sends reports and waits until the device has taken them. The kernel holds one report of a function at a time, so
// a thread that nothing of this machine holds up writes each as soon as the device has fetched the one before.
func (g *Gadget) Send(ctx context.Context, reports ...hid.Report) (all []hid.Interval, err error) {
	err = priority.Urgently(priority.Input, func() error {
		for _, r := range reports {
			at, err := g.send(ctx, r)
			if err != nil {
				return err
			}
			all = append(all, at)
		}
		return nil
	})
	if err == nil {
		// An unplugged port forgets the report, and is writable again.
		var state string
		if state, err = g.state(); err == nil && state != "configured" {
			err = notReady(state)
		}
	}
	if err != nil {
		return all, fmt.Errorf("gadget: %w", err)
	}
	return all, nil
}

// send writes a report and waits until the device has taken it. The port that dummy_hcd emulates claims that at once
// for a first report, and is asked by a second one: the same state again, in which nothing has moved.
func (g *Gadget) send(ctx context.Context, report hid.Report) (hid.Interval, error) {
	name, same := "keyboard", report
	switch r := report.(type) {
	case hid.Pointer:
		r.Wheel, r.Pan = 0, 0
		name, same = "pointer", r
	case hid.Motion:
		name, same = "motion", hid.Motion{Buttons: r.Buttons}
	case hid.Touch:
		name = "touch"
	}
	fd, ok := g.files[name]
	if !ok {
		return hid.Interval{}, fmt.Errorf("there is no %s", name)
	}
	at := hid.Interval{Earliest: g.clock()}
	err := g.write(ctx, fd, report.Append(nil))
	if err == nil {
		err = g.writable(ctx, fd)
	}
	if err == nil && g.emulated {
		if err = g.write(ctx, fd, same.Append(nil)); err == nil {
			err = g.writable(ctx, fd)
		}
	}
	at.Latest = g.clock()
	if err != nil {
		return at, fmt.Errorf("%s: %w", name, err)
	}
	return at, nil
}

// sendLimit is how long a device may take to fetch a report where the caller's context ends
// later: it asks every few milliseconds.
const sendLimit = 5 * time.Second

func (g *Gadget) write(ctx context.Context, fd int, report []byte) error {
	for began := time.Now(); ; {
		_, err := unix.Write(fd, report)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN) && time.Since(began) < sendLimit: // a report is on its way still
			if err := g.writable(ctx, fd); err != nil {
				return err
			}
			continue
		case errors.Is(err, unix.ESHUTDOWN) || errors.Is(err, unix.EAGAIN):
			if state, stateErr := g.state(); stateErr == nil && state != "configured" {
				return notReady(state)
			}
			return notReady("not attached")
		}
		return fmt.Errorf("the device does not take it: %w", err)
	}
}

// writable waits until the device has taken what was written.
func (g *Gadget) writable(ctx context.Context, fd int) error {
	for began := time.Now(); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(p, 50) // milliseconds: so long may the end of ctx go unnoticed
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n > 0 && p[0].Revents&unix.POLLOUT != 0:
			return nil
		case n > 0:
			return errors.New("the USB devices are gone")
		}
		if state, err := g.state(); err == nil && state != "configured" {
			return notReady(state)
		}
		if time.Since(began) > sendLimit {
			return fmt.Errorf("the device has not fetched the report for %v", sendLimit)
		}
	}
}

// CapsLock is what the device set the keyboard's lights to last.
func (g *Gadget) CapsLock(context.Context) (on, known bool) {
	fd, ok := g.files["keyboard"]
	if !ok {
		return false, false
	}
	var b [hid.KeyboardBytes]byte
	for range 100 { // the newest of what has come
		n, err := unix.Read(fd, b[:])
		if err != nil || n < 1 {
			break
		}
		g.caps, g.told = b[0]&2 != 0, true
	}
	return g.caps, g.told
}

// Close unplugs the input devices and takes them away.
func (g *Gadget) Close() error {
	for name, fd := range g.files {
		_ = unix.Close(fd)
		delete(g.files, name)
	}
	if _, err := os.Stat(g.dir); err != nil || g.lent {
		return nil // it was never made, or is not ours
	}
	return g.remove()
}
