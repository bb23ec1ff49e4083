package main

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
	"eidetic/internal/job"
	"eidetic/internal/lab"
	"eidetic/netlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/port"
	"eidetic/netlab/proxy"
)

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

// wantedPort is a port that leads to a device, with the box's address there.
type wantedPort struct {
	deviceConfig
	why error // why it is not used, or not yet; there is no address then
}

// Why a port is not used; a box's alone.
var (
	errNoRoles = errors.New("the box has not told its ports apart yet: it waits for a lease at its uplink")
	errUplink  = errors.New("this port leads to the network: plug the device into another one, and name that in the configuration")
	errNoRole  = errors.New("the box has no device port of this name (yet): it is not there, or has a lease, or box.device_ports leaves it out")
	errNoRadio = errors.New("there is no radio of this name")
	errMoves   = errors.New("the port gets another address")
)

// wanted are the ports that lead to devices. On a box, which tells its ports
// apart, the configuration adds what it knows of a port, and nothing else: a
// port that it names may be the uplink, and addresses are the box's choice.
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
			radios++ // counted always: an address is the same at every start
		}
	}
	for _, role := range roles.Devices {
		if slices.ContainsFunc(all, func(w wantedPort) bool { return w.Port == role.Name }) {
			continue
		}
		c := deviceConfig{Port: role.Name, Gateway: role.Address.String()}.withDefaults(0)
		for slices.ContainsFunc(all, func(w wantedPort) bool { return w.Name == c.Name }) {
			c.Name = "port " + c.Name // somebody called another device so
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
		return box.Roles{}, err // not the half that was understood
	}
	return roles, nil
}

// look starts what is wanted and not there yet, and alive after each, since
// each may take its time.
func (p *ports) look(ctx context.Context, alive func()) {
	wanted := p.wanted()
	for _, w := range wanted {
		if p.up[w.Port] == nil {
			d := &portDevice{config: w.deviceConfig, data: p.data, log: p.log}
			p.up[w.Port] = d
			p.devices.add(w.Name, d)
		}
	}
	// Before others start: an address that one gives up another may be to have.
	for name, d := range p.up {
		if outdated(name, d, wanted) {
			p.close(d.release(errMoves), name)
		}
	}
	for _, w := range wanted {
		if d := p.up[w.Port]; d.started() == nil {
			p.start(ctx, d, w)
		}
		alive()
	}
}

// outdated says whether a port runs and should not any more, or not so. One
// without a role for the moment goes on: the box may be looking again.
func outdated(name string, d *portDevice, wanted []wantedPort) bool {
	if d.started() == nil {
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
	if err := p.radiate(ctx, d); err != nil {
		d.set(w.Gateway, nil, nil, err)
		p.log.Error("an access point does not start; trying again", "port", w.Port, "error", err)
		return
	}
	start := job.NewStartPage(netlab.NewBox(p.authority))
	running, err := port.Start(ctx, port.Config{
		Interface: w.Port, Gateway: w.gateway(), CA: p.authority, Upstream: p.upstream, Forwarder: linkForwarder(), NoHTTP3: !w.http3(),
		StateDir: p.data, Direct: []uint16{w.VNC}, Box: start, Clock: lab.Monotonic, Wall: time.Now, Log: p.log,
	})
	d.set(w.Gateway, running, start, err)
	if err != nil {
		p.log.Error("a port of a device cannot be used; trying again", "port", w.Port, "error", err)
	}
}

// close puts a port back as it was; nil is none.
func (p *ports) close(running *port.Port, name string) {
	if running == nil {
		return
	}
	if err := running.Close(); err != nil {
		p.log.Warn("a port was not put back as it was", "port", name, "error", err)
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
		p.look(ctx, alive)
		for _, d := range p.up {
			d.describe(ctx) // takes every lock of the port, and asks the kernel
		}
		alive()
		select {
		case <-ctx.Done():
			for name, d := range p.up {
				p.close(d.started(), name)
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
