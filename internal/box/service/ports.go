package service

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"eidetic/image/box"
	"eidetic/internal/lab"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/inspect"
	"eidetic/netlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/port"
	"eidetic/netlab/proxy"
)

// ports brings up the network of each port that leads to a device.
type ports struct {
	config    []deviceConfig
	data      string
	software  string // what runs name as the software that made them
	authority *ca.Authority
	upstream  *proxy.UpstreamConfig
	forwarder []string // the command line of the link's process
	devices   *deviceList
	log       *slog.Logger
	checker   inspect.Checker
	plugged   *partList
	root      string // of the file system, where a box says what its ports are for

	known map[string]*portDevice // by interface
}

// wantedPort is a port that leads to a device, with the box's address there.
type wantedPort struct {
	deviceConfig
	why error // why the port is not used, or not yet; it has no address then
}

// Why a port of a box is not used.
var (
	errNoRoles = errors.New("the box has not told its ports apart yet: it waits for a lease at its uplink")
	errUplink  = errors.New("this port leads to the network: plug the device into another one, and name that in the configuration")
	errNoRole  = errors.New("the box has no device port of this name (yet): " +
		"the port is missing, or has a lease, or box.device_ports leaves it out")
	errNoRadio = errors.New("there is no radio of this name")
	errMoves   = errors.New("the port gets another address")
)

// wanted lists the ports that lead to devices. A box finds out itself what its
// ports lead to: there the configuration only adds to what is known of a port,
// because a port that it names may be the uplink, and the box chooses the addresses.
func (p *ports) wanted() (all []wantedPort) {
	for i, c := range p.config {
		all = append(all, wantedPort{deviceConfig: c.withDefaults(i)})
	}
	if !box.Is(p.root) {
		return all
	}
	roles, err := p.roles()
	radios := 0
	for i := range all {
		w := &all[i]
		w.Gateway = ""
		role := slices.IndexFunc(roles.Devices, func(d box.DevicePort) bool { return d.Name == w.Port })
		switch {
		case err != nil:
			w.why = errNoRoles
		case w.Port == roles.Uplink:
			w.why = errUplink
		case role >= 0:
			w.Gateway = roles.Devices[role].Address.String()
		case w.WiFi == nil:
			w.why = errNoRole
		case !box.Wireless(p.root, w.Port):
			w.why = errNoRadio
		default:
			w.Gateway = box.RadioPrefix(radios).String()
		}
		if w.WiFi != nil {
			radios++ // also of a radio without an address, so that addresses are the same at every start
		}
	}
	for _, role := range roles.Devices {
		if slices.ContainsFunc(all, func(w wantedPort) bool { return w.Port == role.Name }) {
			continue
		}
		c := deviceConfig{Port: role.Name, Gateway: role.Address.String()}.withDefaults(0)
		for slices.ContainsFunc(all, func(w wantedPort) bool { return w.Name == c.Name }) {
			c.Name = "port " + c.Name // another device has this name
		}
		all = append(all, wantedPort{deviceConfig: c})
	}
	return all
}

// roles are what the box found out about its ports.
func (p *ports) roles() (roles box.Roles, err error) {
	text, err := os.ReadFile(filepath.Join(p.root, box.PortsFile))
	if err == nil {
		err = json.Unmarshal(text, &roles)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Error("the roles of the ports cannot be read", "error", err)
	}
	if err != nil {
		return box.Roles{}, err // without what was decoded before the error
	}
	return roles, nil
}

// update starts the wanted ports that are not up, and stops those that are not
// wanted so any more. It calls tick after each port, because each may take long.
func (p *ports) update(ctx context.Context, tick func()) {
	wanted := p.wanted()
	for _, w := range wanted {
		if p.known[w.Port] == nil {
			d := &portDevice{config: w.deviceConfig, data: p.data, software: p.software, log: p.log, checker: p.checker, inPlace: p.plugged}
			d.seat.Open, d.seat.Live, d.seat.Runs = d.parts, liveFolder(p.data, w.Name), &p.devices.runs
			p.known[w.Port] = d
			p.devices.add(w.Name, d)
		}
	}
	// Release first: a starting port may need an address that another frees.
	for name, d := range p.known {
		if outdated(name, d, wanted) {
			p.close(d.release(errMoves), name)
		}
	}
	for _, w := range wanted {
		if d := p.known[w.Port]; d.network() == nil {
			p.start(ctx, d, w)
		}
		tick()
	}
}

// outdated says whether a port is up and should not be, or has an address that it
// should not have. A port that has lost its role stays up, because the box may be
// finding out the roles again.
func outdated(name string, d *portDevice, wanted []wantedPort) bool {
	if d.network() == nil {
		return false
	}
	has := d.address()
	return slices.ContainsFunc(wanted, func(w wantedPort) bool {
		if w.Port == name {
			return w.why == errUplink || w.Gateway != "" && w.Gateway != has
		}
		return w.Gateway == has
	})
}

// start brings up one port.
func (p *ports) start(ctx context.Context, d *portDevice, w wantedPort) {
	if w.why != nil {
		d.set("", nil, nil, w.why)
		return
	}
	if err := p.startAccessPoint(ctx, d); err != nil {
		d.set(w.Gateway, nil, nil, err)
		p.log.Error("an access point does not start; trying again", "port", w.Port, "error", err)
		return
	}
	start := execute.NewStartPage(d.pictures.Before(netlab.NewBox(p.authority)))
	running, err := port.Start(ctx, port.Config{
		Interface: w.Port, Gateway: w.gateway(), CA: p.authority, Upstream: p.upstream, Forwarder: p.forwarder, NoHTTP3: !w.http3(),
		StateDir: p.data, Direct: []uint16{w.VNC}, Box: start, Clock: lab.Monotonic, Wall: time.Now, Log: p.log,
	})
	d.set(w.Gateway, running, start, err)
	if err != nil {
		p.log.Error("a device's port cannot be used; trying again", "port", w.Port, "error", err)
	}
}

// close puts a port back as it was; running may be nil.
func (p *ports) close(running *port.Port, name string) {
	if running == nil {
		return
	}
	if err := running.Close(); err != nil {
		p.log.Warn("a port was not put back as it was", "port", name, "error", err)
	}
}

// updatePeriod is how often the roles of the ports are read, and a port that failed
// is tried again.
const updatePeriod = 3 * time.Second

// watch keeps the ports up until ctx is done, then takes them down. It calls tick
// for as long as all of them answer.
func (p *ports) watch(ctx context.Context, tick func()) {
	ticker := time.NewTicker(updatePeriod)
	defer ticker.Stop()
	for {
		p.update(ctx, tick)
		for _, d := range p.known {
			d.describeNetwork() // takes every lock of the port, and asks the kernel
		}
		tick()
		select {
		case <-ctx.Done():
			for name, d := range p.known {
				p.close(d.network(), name)
				if d.point != nil {
					if err := d.point.Close(); err != nil {
						p.log.Warn("an access point did not end well", "port", name, "error", err)
					}
				}
			}
			return
		case <-ticker.C:
		}
	}
}
