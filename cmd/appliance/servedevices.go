package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"eidetic/image/box"
	"eidetic/internal/job"
	"eidetic/internal/lab"
	"eidetic/internal/panel"
	"eidetic/netlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/port"
	"eidetic/netlab/proxy"
	"eidetic/netlab/wifi"
)

// boxDevice is something that the box can measure.
type boxDevice interface {
	// describe says what it is, and whether and why not it can be measured now.
	describe(ctx context.Context) panel.Device
	// carryOut does an order on it, and returns why it was not done. Runs of one
	// device follow one another.
	carryOut(ctx context.Context, o job.Order, news job.News) error
}

// deviceList holds those that there are, by name; more come as ports find their roles.
type deviceList struct {
	mu    sync.Mutex
	names []string // in the order of the list
	all   map[string]boxDevice
}

func (d *deviceList) add(name string, device boxDevice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[string]boxDevice{}
	}
	if d.all[name] == nil {
		d.names = append(d.names, name)
	}
	d.all[name] = device
}

func (d *deviceList) get(name string) boxDevice {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[name]
}

func (d *deviceList) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.names)
}

// describe lists the devices for the panel: those that are ready first, and
// what is plugged in before the virtual one.
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

// ports brings up the network of each port that leads to a device.
type ports struct {
	config    []deviceConfig
	data      string
	authority *ca.Authority
	upstream  *proxy.UpstreamConfig
	devices   *deviceList
	log       *slog.Logger
	root      string // of the file system, where a box says what its ports are for

	up map[string]*portDevice // by interface
}

// isBox says whether somebody here tells the ports apart.
func (p *ports) isBox() bool {
	_, err := os.Stat(filepath.Join(p.root, "run/appliance-box"))
	return err == nil
}

// wanted are the ports that lead to devices, with the box's address at each.
func (p *ports) wanted() []deviceConfig {
	var roles box.Roles
	text, err := os.ReadFile(filepath.Join(p.root, box.PortsFile))
	if err == nil {
		err = json.Unmarshal(text, &roles)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Error("the roles of the ports cannot be read", "error", err)
	}
	all := slices.Clone(p.config)
	for i := range all {
		all[i] = all[i].withDefaults(i)
	}
	for _, role := range roles.Devices {
		i := slices.IndexFunc(all, func(c deviceConfig) bool { return c.Port == role.Name })
		if i < 0 {
			i = len(all)
			all = append(all, deviceConfig{Port: role.Name}.withDefaults(i))
		}
		all[i].Gateway = role.Address.String()
	}
	return all
}

// look starts what is wanted and not there yet.
func (p *ports) look(ctx context.Context) {
	for _, c := range p.wanted() {
		d := p.up[c.Port]
		if d == nil {
			d = &portDevice{config: c, data: p.data, log: p.log}
			p.up[c.Port] = d
			p.devices.add(c.Name, d)
		}
		if d.started() != nil {
			continue
		}
		if err := p.radiate(ctx, d); err != nil {
			d.set(nil, nil, err)
			p.log.Error("an access point does not start; trying again", "port", c.Port, "error", err)
			continue
		}
		start := job.NewStartPage(netlab.NewBox(p.authority))
		running, err := port.Start(ctx, port.Config{
			Interface: c.Port, Gateway: c.gateway(), CA: p.authority, Upstream: p.upstream, Forwarder: linkForwarder(),
			StateDir: p.data, Direct: []uint16{c.VNC}, Box: start, Clock: lab.Monotonic, Wall: time.Now, Log: p.log,
		})
		d.set(running, start, err)
		if err != nil {
			p.log.Error("a port of a device cannot be used; trying again", "port", c.Port, "error", err)
		}
	}
}

// lookEvery is how often the roles of ports are looked at, and a port that
// failed is tried again.
const lookEvery = 3 * time.Second

// watch keeps the ports up until ctx is done, then takes them down. It calls
// alive for as long as all of them answer.
func (p *ports) watch(ctx context.Context, alive func()) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		p.look(ctx)
		for _, d := range p.up {
			d.describe(ctx) // takes every lock of the port, and asks the kernel
		}
		alive()
		select {
		case <-ctx.Done():
			for _, d := range p.up {
				if running := d.started(); running != nil {
					if err := running.Close(); err != nil {
						p.log.Warn("a port was not put back as it was", "port", d.config.Port, "error", err)
					}
				}
				if d.point != nil {
					if err := d.point.Close(); err != nil {
						p.log.Warn("an access point did not end well", "port", d.config.Port, "error", err)
					}
				}
			}
			return
		case <-ticker.C:
		}
	}
}

// portDevice is what is plugged into a port of the box.
type portDevice struct {
	config deviceConfig
	data   string // the store
	log    *slog.Logger

	point *wifi.AccessPoint // the watch's; nil without Wi-Fi

	mu      sync.Mutex
	running *port.Port
	start   *job.StartPage
	wifi    *panel.WiFi // what a person needs to join
	err     error       // why it is not running
}

func (d *portDevice) set(running *port.Port, start *job.StartPage, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running, d.start, d.err = running, start, err
}

func (d *portDevice) started() *port.Port {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running
}

func (d *portDevice) describe(context.Context) panel.Device {
	c := d.config
	out := panel.Device{Name: c.Name, Kind: "port", Port: c.Port, Gateway: c.Gateway, Screen: fmt.Sprintf("VNC at its port %d", c.VNC)}
	d.mu.Lock()
	running, err := d.running, d.err
	out.WiFi = d.wifi
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
	case !s.Present:
		out.Problem = "there is no interface of this name"
	case !s.Carrier:
		out.Problem = "nothing is plugged in, or it is off"
	case len(s.Leases) == 0:
		out.Problem = "what is plugged in has asked for no address yet (DHCP)"
	default:
		lease := s.Leases[0]
		for _, l := range s.Leases {
			if l.Until.After(lease.Until) {
				lease = l // the newest: the others are of devices that were here before
			}
		}
		out.Ready, out.Address, out.MAC, out.Host = true, lease.Addr.String(), lease.MAC, lease.Name
	}
	return out
}

func (d *portDevice) carryOut(ctx context.Context, o job.Order, news job.News) error {
	now := d.describe(ctx)
	address, err := netip.ParseAddr(now.Address)
	if err != nil {
		return fmt.Errorf("device %s: %s", d.config.Name, now.Problem)
	}
	fresh, err := job.ParseFresh(d.config.Fresh)
	if err != nil {
		return err
	}
	d.mu.Lock()
	c := job.PluggedConfig{
		Port: d.running, Start: d.start, Fresh: fresh, Address: address,
		VNC: d.config.VNC, Password: d.config.Password, Rate: d.config.Rate,
	}
	d.mu.Unlock()
	rig, keys, err := job.NewPlugged(ctx, c)
	if err != nil {
		return err
	}
	defer keys.Close()
	j := job.Job{Order: o, Rig: rig, Root: d.data, News: news, Log: d.log, Software: versionLine()}
	return j.Run(ctx)
}
