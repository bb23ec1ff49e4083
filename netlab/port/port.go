// Package port makes a network port of the box the whole network of the
// device that is plugged into it.
//
// In go an interface and the addresses to give out; out come a Network (package
// netlab) that answers the device at lab0 behind a packet-level link, leases
// (DHCP), router advertisements, the time, and a record of all that makes a trial
// invalid. Everything is in the box's own network namespace:
//
//	device ──▶ enp2s0 ══ link ══ lab0p ── lab0 192.168.77.1, fd00:77::1
//	             │                          │
//	             the kernel neither         every packet is delivered here, whatever its
//	             receives nor sends         destination (policy route), or filtered (nft inet)
//	             here (nft netdev)
//
// Nothing is forwarded: a device reaches what listens on lab0 and nothing else,
// neither the box's uplink nor another port's device. While recording, the box
// connects to origins by sockets of its own. CAP_NET_ADMIN, CAP_NET_RAW and
// CAP_NET_BIND_SERVICE suffice; a namespace for each port would need
// CAP_SYS_ADMIN in a process that reads untrusted packets.
package port

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/dhcp"
	"eidetic/netlab/dns"
	"eidetic/netlab/link"
	"eidetic/netlab/proxy"
	"eidetic/netlab/ra"
	"eidetic/netlab/sntp"
)

// Config of a Port. Interface, CA, Clock and Wall are required; every other field
// has a useful zero value.
type Config struct {
	// Interface is the port: "enp2s0". It may be missing at first and appear later.
	Interface string
	// Gateway is the box's address towards the device, default 192.168.77.1/24.
	// Ports of one box have different ones of 192.168.0.0/16. The third byte
	// determines the name of the lab interface: 77 is lab0, 78 is lab1.
	Gateway netip.Prefix
	// IPv4Only leaves router advertisements and AAAA records out.
	IPv4Only bool
	// NoHTTP3 leaves QUIC out, for devices that have problems with it.
	NoHTTP3 bool
	CA      *ca.Authority
	// Upstream says how origins are reached while recording. With nil no origin is
	// ever contacted, and Record returns an error.
	Upstream *proxy.UpstreamConfig
	// Link is the first profile.
	Link link.Profile
	// Forwarder is the command of a process that calls packet.Serve and forwards.
	// Without it a thread of this process forwards.
	Forwarder []string
	// Direct are TCP ports of the device, such as its screen's, to which connections
	// of the box bypass the link.
	Direct []uint16
	// StateDir keeps the leases, in leases-INTERFACE.json; empty keeps them in memory.
	StateDir string
	// Reserved maps MAC addresses of devices to addresses of their own.
	Reserved map[string]netip.Addr
	// Box answers for box.test; default netlab.NewBox.
	Box http.Handler
	// OnQuery and OnEvent are called for DNS queries and for events of the port.
	// They must not block.
	OnQuery func(dns.Query)
	OnEvent func(Event)

	Clock lab.Clock
	Wall  func() time.Time
	Log   *slog.Logger // nil discards
}

// ProxyPort is the TCP port of the explicit proxy.
const ProxyPort = 3128

// withDefaults sets defaults and checks the configuration.
func (c Config) withDefaults() (Config, names, error) {
	if !c.Gateway.IsValid() {
		c.Gateway = netip.MustParsePrefix("192.168.77.1/24")
	}
	n, err := namesOf(c.Interface, c.Gateway, c.IPv4Only)
	if err != nil {
		return c, n, err
	}
	if c.CA == nil || c.Clock == nil || c.Wall == nil {
		return c, n, errors.New("a certificate authority and both clocks are required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With("port", c.Interface)
	return c, n, nil
}

// Port is one device's network. End it with Close.
type Port struct {
	c       Config
	names   names
	network *netlab.Network
	dhcp    *dhcp.Server
	ra      *ra.Server // nil without IPv6
	time    *sntp.Server
	filter  *filter
	undo    []func() error // what Close does for Start's steps, the last one first
	watcher *watcher
	plug    *plugged // nil while the interface is missing; only the watcher uses it
	closing sync.Once

	mu     sync.Mutex
	status Status
	counts counts
}

// Start makes the network. The context bounds starting only.
func Start(ctx context.Context, c Config) (*Port, error) {
	c, n, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start port %s: %w", c.Interface, err)
	}
	p := &Port{c: c, names: n, status: Status{Interface: c.Interface, Gateway: c.Gateway, Gateway6: n.gateway6, Lab: n.lab}}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start port %s: %w", c.Interface, err), p.Close())
	}
	return p, nil
}

// start builds the network before it takes the interface, so that a device never
// uses half of it.
func (p *Port) start(ctx context.Context) error {
	for _, step := range []func() (func() error, error){
		p.claim, p.checkInterface, p.sweep, p.sweepOthers, p.makeLab, p.route, p.routeBack, p.makeFilter,
	} {
		undo, err := step()
		if undo != nil {
			p.undo = append(p.undo, undo)
		}
		if err != nil {
			return err
		}
	}
	if err := p.serve(ctx); err != nil {
		return err
	}
	w, err := p.watch()
	if err != nil {
		return err
	}
	p.watcher = w
	return nil
}

// serve starts all servers on the lab interface.
func (p *Port) serve(ctx context.Context) (err error) {
	c, control := p.c, p.names.control()
	nc := netlab.Config{
		Gateway: c.Gateway.Addr(), Gateway6: p.names.gateway6.Addr(),
		HTTPAddr: ":80", HTTPSAddr: ":443", DNSAddr: ":53", ProxyAddr: fmt.Sprintf(":%d", ProxyPort), OtherAddr: fmt.Sprintf(":%d", otherPort),
		Control: control, OnPorts: p.filter.setPorts,
		CA: c.CA, Upstream: c.Upstream, Link: c.Link, Port: &netlab.Port{Lab: p.names.inner, Forwarder: c.Forwarder,
			Direct: c.Direct}, HTTP3: !c.NoHTTP3,
		Box: c.Box, OnQuery: c.OnQuery, Clock: c.Clock, Log: c.Log,
	}
	if !c.IPv4Only {
		nc.Synthetic6 = netip.MustParsePrefix("fd00:198:18::/48")
	}
	if p.network, err = netlab.Start(ctx, nc); err != nil {
		return err
	}
	dc := dhcp.Config{
		Interface: p.names.lab, Gateway: c.Gateway.Addr(), Prefix: c.Gateway.Masked(), Reserved: c.Reserved,
		CaptivePortal: dhcp.Unrestricted, OnLease: p.leased, OnDoubt: p.doubted, Now: c.Wall, Log: c.Log,
	}
	if c.StateDir != "" {
		dc.File = filepath.Join(c.StateDir, "leases-"+c.Interface+".json")
	}
	if p.dhcp, err = dhcp.Serve(dc); err != nil {
		return err
	}
	p.time, err = sntp.Serve(sntp.Config{Addr: ":123", Control: control, Floor: c.CA.Certificate().NotBefore, Now: c.Wall, Log: c.Log})
	if err != nil || c.IPv4Only {
		return err
	}
	p.ra, err = ra.Serve(ra.Config{
		Interface: p.names.lab, Router: linkLocal.Addr(), Prefix: p.names.gateway6.Masked(), DNS: p.names.gateway6.Addr(),
		MTU: mtu, Portal: dhcp.Unrestricted, Log: c.Log,
	})
	return err
}

// Network returns the device's network. Arm it with Record or Replay.
func (p *Port) Network() *netlab.Network { return p.network }

// Close ends everything and restores the machine's network.
func (p *Port) Close() (err error) {
	p.closing.Do(func() { err = p.close() })
	return err
}

func (p *Port) close() error {
	var errs []error
	if p.watcher != nil {
		errs = append(errs, p.watcher.close()) // from here on no interface is taken
	}
	if p.ra != nil {
		errs = append(errs, p.ra.Close())
	}
	if p.time != nil {
		errs = append(errs, p.time.Close())
	}
	if p.dhcp != nil {
		errs = append(errs, p.dhcp.Close())
	}
	if p.network != nil {
		errs = append(errs, p.network.Close())
	}
	if p.plug != nil {
		errs = append(errs, p.plug.restore())
	}
	for i := len(p.undo) - 1; i >= 0; i-- {
		errs = append(errs, p.undo[i]())
	}
	return errors.Join(errs...)
}
