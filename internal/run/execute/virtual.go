package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"eidetic/capture"
	"eidetic/capture/source"
	"eidetic/capture/steady"
	"eidetic/capture/x11"
	x11control "eidetic/control/x11"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/counters"
	"eidetic/internal/run/device"
	"eidetic/internal/run/experiment"
	"eidetic/internal/run/isolate"
	"eidetic/internal/run/meter"
	"eidetic/netlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/port"
	"eidetic/netlab/proxy"
)

// frameRate is how often a second the virtual device's screen is filmed, unless a plan says.
const frameRate = 60

// screenSize is the size of the virtual device's screen.
var screenSize = device.Screen{Width: 1280, Height: 720}

// VirtualConfig configures a virtual rig, which must run in namespaces of its own (package
// isolate) with a RAM file system at /tmp.
type VirtualConfig struct {
	// Upstream is called once the device's network exists, and returns how origins are
	// reached. If it is nil, no origin can be reached and nothing can be recorded.
	Upstream func(context.Context) (*proxy.UpstreamConfig, error)
	// Sealed is that of Rig.
	Sealed func()
	// Forwarder is the command line of the link's process.
	Forwarder []string
	// Meter is the command line of the process that measures how fast this machine is.
	Meter []string
	// ShapeConnections is that of netlab.Config.
	ShapeConnections bool
	Log              *slog.Logger
	// Through is a rehearsed grabber (package through); "": the screen is read exactly.
	Through string
	// Rate is how often a second the screen is filmed; 0 is the usual.
	Rate float64
	// Browser is the first that is used; nil is Chromium.
	Browser *lab.Browser
	// NoSandbox lets browsers work without the sandbox of their own, and, where the machine allows
	// no user namespaces, without any.
	NoSandbox bool
	// Protocol lets browsers be asked by their debugging protocol.
	Protocol bool
	// Again lets their programs be started again.
	Again bool
	// Touch gives the device a touch screen.
	Touch bool
	// Chosen are the files that steps choose in file dialogues.
	Chosen map[string][]byte
	// Count has events of the browser, and the machine's energy, counted while processes are read.
	Count bool
}

// Virtual is a rig whose device is a browser in a network namespace of its own, on a virtual
// screen.
type Virtual struct {
	Rig
	device   *device.Virtual
	seats    *seats
	redirect *port.Redirect // nil if the kernel cannot redirect
	portsErr error          // why it cannot
	browsers *browsers
	energy   *counters.Energy // nil where it is not read
	rate     float64          // how often a second the screen is filmed
}

// NewVirtual brings up the rig in the order of a packet's way: origins, box, device.
func NewVirtual(ctx context.Context, c VirtualConfig) (_ *Virtual, err error) {
	v := &Virtual{rate: cmp.Or(c.Rate, frameRate)}
	defer func() {
		if err != nil {
			v.Close()
		}
	}()
	if v.device, err = device.NewVirtual(ctx, screenSize, c.NoSandbox, c.Touch); err != nil {
		return nil, err
	}
	var upstream *proxy.UpstreamConfig
	if c.Upstream != nil {
		if upstream, err = c.Upstream(ctx); err != nil {
			return nil, err
		}
	}
	authority, err := ca.New(time.Now)
	if err != nil {
		return nil, err
	}
	const pem = "/tmp/box-ca.pem"
	if err := os.WriteFile(pem, authority.PEM(), 0o644); err != nil {
		return nil, err
	}
	v.browsers = &browsers{virtual: v.device, dir: "/tmp", authority: pem, open: map[string]device.Program{}, warm: map[string]string{}}
	if err := v.browsers.choose(ctx, c.Browser); err != nil {
		return nil, err
	}
	nc := netlab.Config{
		Gateway: device.Gateway(), Synthetic: device.Synthetic(), Routes: true, HTTP3: !c.ShapeConnections,
		HTTPAddr: "0.0.0.0:80", HTTPSAddr: "0.0.0.0:443", Loopback: device.Loopback(),
		DNSAddr:   netip.AddrPortFrom(device.Gateway(), 53).String(),
		ProxyAddr: netip.AddrPortFrom(device.Gateway(), 3128).String(),
		Port: &netlab.Port{
			Device:    device.DevicePort,
			Lab:       device.InnerPort,
			Forwarder: c.Forwarder,
		}, ShapeConnections: c.ShapeConnections,
		CA: authority, Upstream: upstream, Clock: clock, Log: c.Log,
	}
	if v.redirect, v.portsErr = port.NewRedirect(device.GatewayPrefix()); v.redirect != nil {
		nc.OtherAddr, nc.Control, nc.OnPorts = v.redirect.Addr(), v.redirect.Control, v.redirect.SetPorts
	}
	if v.Network, err = netlab.Start(ctx, nc); err != nil {
		return nil, err
	}
	if v.seats, err = newSeats(ctx, v.device); err != nil {
		return nil, err
	}
	v.browsers.seats = v.seats
	v.Device, v.Control = births{v.device, v.Network, v.browsers}, v.seats
	v.Hands = &Hands{
		Controller: v.seats,
		File:       func(name string) (string, error) { return device.ChosenPath(name), nil },
		Where: func(ctx context.Context, life experiment.Life, selector string, content image.Rectangle) (image.Rectangle, error) {
			if b := device.Running(life); b != nil {
				return b.Where(ctx, selector, content)
			}
			return image.Rectangle{}, lab.ErrNoProtocol
		},
		Open: func(ctx context.Context, life experiment.Life, url string) (lab.Event, error) {
			if b := device.Running(life); b != nil {
				return b.Open(ctx, url)
			}
			return lab.Event{}, lab.ErrCannotOpen
		},
		Launch: func(ctx context.Context, life experiment.Life, url string) (lab.Event, error) {
			if b := device.Running(life); b != nil {
				return b.Launch(ctx, url)
			}
			return lab.Event{}, errNotRunning
		},
		Used: func(_ context.Context, memory bool) (lab.ProgramUse, error) { return device.Used(memory), nil },
	}
	v.device.Protocol, v.device.Again, v.device.Chosen = c.Protocol, c.Again, c.Chosen
	v.Prepare, v.States = v.browsers.prepare, VirtualStates
	v.Ways = VirtualWays
	if c.Touch {
		v.Fingers = x11control.Fingers
	}
	v.Conditions = device.Host{}.Conditions
	v.Locale = func(l lab.Locale) { v.device.Locale = l }
	v.Warm = func(ctx context.Context, a plan.Arm, loaded func(experiment.Life) error) error {
		return v.browsers.warmUp(ctx, a, func(url string) (experiment.Life, error) { return v.Device.Birth(ctx, url) }, loaded)
	}
	v.Seed = func(ctx context.Context, a plan.Arm, visits Visits) error {
		return v.browsers.seed(ctx, a, visits, func(url string) (experiment.Life, error) { return v.Device.Birth(ctx, url) })
	}
	screen := Screen{Name: "x11:" + v.device.X.Display}
	if c.Through != "" {
		screen.Noise = &steady.Memory{}
	}
	screen.Open = func(context.Context) (capture.Source, error) {
		// A viewport of a plan has a display of its own, which the device knows.
		src, err := x11.Open(x11.Options{Display: v.device.X.Display, Rate: v.rate})
		if err != nil {
			return nil, err
		}
		return source.Worn(src, c.Through, screen.Noise)
	}
	v.Screen = screen
	v.Describe, v.Sealed, v.Finish, v.Usage = v.describe, c.Sealed, v.isolation, device.NewUsage().Total
	v.MainThreads, v.Memory = device.MainThreads, device.NewMemory().Read
	if c.Count {
		v.device.Counters, v.energy = counters.New(), counters.NewEnergy("/sys")
	}
	v.Sample = func(hz float64, threads bool) func() (lab.Sampled, []lab.ProcessSample) {
		return device.Sample(hz, threads, v.device.Counters.Total, v.energy.Total)
	}
	if len(c.Meter) > 0 {
		v.Meter = func(ctx context.Context) (lab.MeterReading, error) { return meter.Read(ctx, c.Meter) }
	}
	return v, nil
}

// Close takes the rig down.
func (v *Virtual) Close() error {
	var errs []error
	v.energy.Close()
	if v.seats != nil {
		errs = append(errs, v.seats.Close())
	}
	if v.Network != nil {
		errs = append(errs, v.Network.Close())
	}
	if v.redirect != nil {
		errs = append(errs, v.redirect.Close())
	}
	if v.device != nil {
		errs = append(errs, v.device.Close())
	}
	return errors.Join(errs...)
}

// Reach prepares the rig for a page, and returns an error if the page cannot be loaded here
// in this browser.
func (v *Virtual) Reach(page string, browser *lab.Browser) error {
	u := lab.ParseURL(page)
	if p := u.Port(); p != "" && p != "80" && p != "443" && v.portsErr != nil {
		return fmt.Errorf("%s: only the ports 80 and 443 can be used on this machine: %w", page, v.portsErr)
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && a == netip.IPv6Loopback() && browser.Family() != lab.Chromium {
		return fmt.Errorf("%s: only Chromium is led to the box from ::1; write localhost instead: the box finds a server on ::1 by itself", page)
	}
	return v.device.Reach(page)
}

// births adapts the virtual device to experiment.Device.
type births struct {
	*device.Virtual
	network  *netlab.Network
	browsers *browsers
}

// sleep is the birth of a device whose trial starts the browser.
func (b births) sleep() (experiment.Life, error) {
	if err := b.browsers.evict(); err != nil {
		return nil, err
	}
	return b.Virtual.Sleep()
}

func (b births) Birth(_ context.Context, url string) (experiment.Life, error) {
	b.HTTP3 = b.network.HTTP3Hosts()
	if b.browsers.asleep {
		return b.sleep()
	}
	return b.Virtual.Birth(url)
}

// BirthTraced implements [experiment.TracedDevice].
func (b births) BirthTraced(_ context.Context, url string) (experiment.Life, error) {
	b.HTTP3 = b.network.HTTP3Hosts()
	return b.Virtual.BirthTraced(url)
}

// describe implements Rig.Describe.
func (v *Virtual) describe(e *lab.Environment) {
	e.Browser = v.browsers.describe()
	e.Screen = fmt.Sprintf("%s at %g Hz, %s, read by MIT-SHM", v.seats.describe(), v.rate, v.device.X.Program())
	e.Network = v.Network.Environment()
	e.Counters, e.Energy = v.device.Counters.Describe(), v.energy.Describe()
	e.Sandbox = v.device.Sandbox.String() + "; " + isolate.MemoryBounds()
}

// isolation records the evidence that nobody outside the lab was contacted.
func (v *Virtual) isolation(run *lab.Run) error {
	ways, err := device.Ways()
	if err != nil {
		return err
	}
	strays, err := v.device.Strays()
	if err != nil {
		return err
	}
	run.Environment.Isolation = &lab.Isolation{
		Interfaces: ways, OutsidePackets: &strays,
		How: "own network namespaces without an uplink; default-deny rule that counts on device and box",
	}
	if left := v.browsers.evicted; left.Bytes > 0 && (left.Share() > 0.01 || !left.Known) {
		run.Warnings = append(run.Warnings, fmt.Sprintf("%s: up to %.0f of the browser's %.0f MB stayed in memory, as other programs use them: "+
			"these starts are warmer than the first one after a boot", lab.StateAppCold, float64(left.Left)/1e6, float64(left.Bytes)/1e6))
	}
	if strays > 0 {
		run.Warnings = append(run.Warnings, fmt.Sprintf("%d packets were meant for somebody outside the lab and were dropped", strays))
	}
	return nil
}
