package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/errand"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/inspect"
	"eidetic/internal/run/seat"
	"eidetic/internal/web/panel"
	"eidetic/netlab/port"
	"eidetic/netlab/wifi"
)

// measurable is a device that the service can measure.
type measurable interface {
	// describe returns what the panel shows of the device, and whether it is ready.
	describe(ctx context.Context) panel.Device
	// carryOut carries a plan out on the device, as the run with the ID, and returns
	// why that failed. Runs of one device follow one another.
	carryOut(ctx context.Context, id string, p plan.Checked, news execute.News) error
	// refuses returns why a plan cannot be carried out on the device, whatever its state.
	refuses(p plan.Checked) error
	// place is where people look at it and drive it between runs.
	place() *seat.Seat
	// forErrands is what people may ask of it between runs.
	forErrands() errand.Device
}

// deviceList holds the devices by name; more come as ports get their roles.
type deviceList struct {
	mu    sync.Mutex
	names []string // in the order in which they came
	all   map[string]measurable
	runs  atomic.Int32 // in progress
}

func (d *deviceList) add(name string, device measurable) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[string]measurable{}
	}
	if d.all[name] == nil {
		d.names = append(d.names, name)
	}
	d.all[name] = device
}

func (d *deviceList) get(name string) measurable {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[name]
}

func (d *deviceList) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.names)
}

// describe lists the devices for the panel: ready ones first, and plugged-in ones
// before the virtual one.
func (d *deviceList) describe(ctx context.Context) []panel.Device {
	var all []panel.Device
	for _, name := range d.list() {
		all = append(all, d.get(name).describe(ctx))
	}
	rank := func(p panel.Device) (n int) {
		if !p.Ready {
			n += 2
		}
		if p.Kind == "virtual" {
			n++
		}
		return n
	}
	slices.SortStableFunc(all, func(a, b panel.Device) int { return rank(a) - rank(b) })
	return all
}

// portDevice is the device that is plugged into a port of the box.
type portDevice struct {
	config   deviceConfig // its Gateway is not used: see gateway
	data     string       // the store
	software string
	log      *slog.Logger
	checker  inspect.Checker // of recordings
	seat     seat.Seat
	pictures errand.Pictures
	inPlace  *partList // what is plugged into the box; nil is nothing

	point *wifi.AccessPoint // nil without Wi-Fi; set by the goroutine that watches the ports

	mu      sync.Mutex
	gateway string // the box's address at the port; empty before it is known
	running *port.Port
	start   *execute.StartPage
	busy    bool        // a run is in progress
	wifi    *panel.WiFi // what a person needs to join
	err     error       // why the network is not up
	hung    error       // why no run may use it until a person has looked after it; nil is no reason
	hungAt  time.Time
}

// set notes how the start of the device's network went.
func (d *portDevice) set(gateway string, running *port.Port, start *execute.StartPage, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gateway, d.running, d.start, d.err = gateway, running, start, err
}

// release takes the network away from the device and returns it, unless a run is
// in progress.
func (d *portDevice) release(why error) *port.Port {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy {
		return nil
	}
	running := d.running
	d.running, d.start, d.err = nil, nil, why
	return running
}

// occupy keeps the network as it is, for a run, until the returned function is called.
func (d *portDevice) occupy() (*port.Port, *execute.StartPage, func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy = d.running != nil
	return d.running, d.start, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.busy = false
	}
}

// network returns the device's network, or nil while it is not up.
func (d *portDevice) network() *port.Port {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running
}

// address returns the box's address at the port.
func (d *portDevice) address() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gateway
}

func (d *portDevice) describe(ctx context.Context) panel.Device {
	out := d.describeNetwork()
	out.Parts = d.inPlace.partsOf(ctx, d.config) // the screen, and the controls
	for i, rfb := range []string{d.config.Screen.RFB, d.config.Controls.RFB} {
		if _, err := strconv.Atoi(rfb); err == nil && out.Address == "" {
			out.Parts[i].Ready, out.Parts[i].Problem = false, "it is reached when the device is in the network"
		}
	}
	for _, p := range out.Parts {
		if out.Ready && !p.Ready {
			out.Ready, out.Problem = false, p.Part+": "+p.Problem
		}
	}
	return out
}

// describeNetwork is describe without what sees the screen and what gives input.
func (d *portDevice) describeNetwork() panel.Device {
	c := d.config
	out := panel.Device{
		Name: c.Name, Kind: "port", Port: c.Port, Screen: screenWords(*c.Screen),
		Errands: []string{errand.Film, errand.Record, errand.Qualify, errand.Noise},
	}
	d.mu.Lock()
	running, point, start, err := d.running, d.point, d.start, d.err
	out.WiFi, out.Gateway = d.wifi, d.gateway
	d.mu.Unlock()
	if running == nil {
		out.Problem = "the port is being set up"
		if err != nil {
			out.Problem = err.Error()
		}
		return out
	}
	s, err := running.Status()
	switch {
	case err != nil:
		out.Problem = err.Error()
	case s.Problem != "":
		out.Problem = s.Problem
	case !s.Present:
		out.Problem = "there is no interface of this name"
	case point != nil && !point.Up():
		out.Problem = "the access point is down; hostapd is started again, and the journal has what it says"
	case !s.Carrier:
		out.Problem = "nothing is plugged in, or it is off"
	case len(s.Leases) == 0:
		out.Problem = "what is plugged in has asked for no address yet (DHCP)"
	default:
		lease := s.Leases[0]
		for _, l := range s.Leases {
			if l.Until.After(lease.Until) {
				lease = l // the newest lease; the others are of devices that were plugged in before
			}
		}
		out.Ready, out.Address, out.MAC, out.Host = true, lease.Addr.String(), lease.MAC, lease.Name
		if start != nil {
			seen := start.SetUp(lease.MAC)
			out.SetUp = setUpOf(seen)
			if why := d.quarantine(seen.Opened); why != nil {
				out.Ready, out.Problem = false, why.Error()
			}
		}
	}
	return out
}

func (d *portDevice) place() *seat.Seat { return &d.seat }

// quarantine returns why no run may use the device. It ends when somebody opens the box's page on it.
func (d *portDevice) quarantine(opened time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hung == nil || opened.After(d.hungAt) {
		d.hung = nil
		return nil
	}
	return fmt.Errorf("it hung at %s, and nothing brought it back (%w): look after it, and open http://box.test/ on it; runs may use it then",
		d.hungAt.UTC().Format("2006-01-02 15:04 UTC"), d.hung)
}

func (d *portDevice) plugged(p lab.Plan) (c execute.PluggedConfig, err error) {
	config := d.config.forPlan(p)
	c = execute.PluggedConfig{
		Screen: *config.Screen, Controls: *config.Controls, Password: config.Password, Recipe: config.Recipe, Clear: config.Clear,
	}
	c.Fresh, err = config.fresh()
	return c, err
}

func (d *portDevice) refuses(p plan.Checked) error {
	c, err := d.plugged(p.Plan)
	if err != nil {
		return err
	}
	return execute.CheckPlugged(p, c)
}

func (d *portDevice) carryOut(ctx context.Context, id string, p plan.Checked, news execute.News) error {
	back, err := d.seat.Take(ctx, news.Waits)
	if err != nil {
		return fmt.Errorf("device %s: %w", d.config.Name, err)
	}
	defer back()
	running, start, done := d.occupy()
	defer done()
	now := d.describeNetwork()
	address, err := netip.ParseAddr(now.Address)
	if err != nil {
		return fmt.Errorf("device %s: %s", d.config.Name, now.Problem)
	}
	c, err := d.plugged(p.Plan)
	if err != nil {
		return err
	}
	c.Port, c.Start, c.Address, c.Say = running, start, address, news.Say
	c.Power, c.Broadcast = d.config.Power, broadcast(d.address())
	if d.config.WiFi != nil {
		c.Air = d.config.Port
	}
	rig, keys, err := execute.NewPlugged(ctx, c)
	if err != nil {
		return err
	}
	defer keys.Close()
	x := execute.Execution{
		ID: id, Plan: p, Rig: rig, Root: d.data, Live: d.seat.Live, News: news, Log: d.log, Software: d.software, Check: d.checker,
	}
	err = x.Run(ctx)
	if hung := new(execute.HungError); errors.As(err, &hung) {
		d.mu.Lock()
		d.hung, d.hungAt = hung.Err, time.Now()
		d.mu.Unlock()
	}
	return err
}

// broadcast is the address of all of the box's network at a port; that of no network if the port has none.
func broadcast(gateway string) netip.Addr {
	p, err := netip.ParsePrefix(gateway)
	if err != nil || !p.Addr().Is4() {
		return netip.AddrFrom4([4]byte{255, 255, 255, 255})
	}
	a := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		a[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(a)
}

// setUpOf is what the panel shows of a device's set-up.
func setUpOf(s execute.SetUp) *panel.SetUp {
	when := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		t = t.UTC()
		return &t
	}
	return &panel.SetUp{Opened: when(s.Opened), Trusted: when(s.Trusted)}
}
