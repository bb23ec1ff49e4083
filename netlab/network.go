// Package netlab is the device's whole network in one process: a name server,
// listeners for what the device sends to ports 80 and 443, an explicit proxy,
// an emulated link, and the core behind them that records or replays.
//
// In go packets of one device; out come answers, and a log line for each query and
// each request. Start makes the listeners, Record or Replay puts a core behind them,
// and Disarm removes it, after which only the box itself answers. Nothing is sent to
// an origin unless Config.Upstream is set and Record was called.
//
// The process should be in a network namespace of its own (as root there, or in a
// user namespace). The device gets a synthetic address for each recorded one, by
// default from 198.18.0.0/15 (RFC 2544), so that connections coalesce as they did.
// The namespace accepts packets to all of them by a local route (AnyIP), so that
// listeners on 0.0.0.0 see the synthetic destination.
package netlab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"eidetic/internal/lab"
	"eidetic/netlab/ca"
	"eidetic/netlab/dns"
	"eidetic/netlab/link"
	"eidetic/netlab/link/conn"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
)

// Config of a Network. Gateway, CA and Clock are required; every other field has a
// useful zero value.
type Config struct {
	// Gateway is the box's address on the device's side: 192.168.77.1. box.test
	// resolves to it, and to Gateway6 when that is valid.
	Gateway, Gateway6 netip.Addr
	// Synthetic contains the addresses that stand for origins, default
	// 198.18.0.0/15. Synthetic6 does so for IPv6 (usually fd00:198:18::/48); with the
	// zero Prefix the answer to AAAA has no data.
	Synthetic, Synthetic6 netip.Prefix
	// Routes makes Start route the synthetic prefixes to this host (it needs
	// CAP_NET_ADMIN in this network namespace). Close removes the routes.
	Routes bool

	// Addresses to listen on, "0.0.0.0:80". An empty one has no listener, port 0
	// chooses a free port (see Network.Addrs). DNSAddr is for UDP and TCP.
	HTTPAddr, HTTPSAddr, DNSAddr, ProxyAddr string
	// HTTP3 opens HTTPSAddr's port for QUIC too, for the hosts that were recorded
	// over HTTP/3. Only a packet-level link (Port) shapes it; a connection-level one
	// must be native.
	HTTP3 bool
	// OtherAddr takes connections to all other ports, which are redirected here with
	// their destination kept (TPROXY). The proxy recognises TLS and plain HTTP.
	OtherAddr string
	// Loopback is the address at which the device finds its own 127.0.0.1, if the box
	// answers for that.
	Loopback netip.Addr
	// Control, when set, prepares every listening socket before it is bound.
	Control func(network, address string, c syscall.RawConn) error
	// Waits leaves connections of the device waiting until Record or Replay has been called: what it asks before would be
	// answered by the box, that there is nothing.
	Waits bool
	// OnPorts is called with the TCP ports other than 80 and 443 that are served from
	// now on, before the core that serves them is in place.
	OnPorts func(Ports) error

	// CA signs certificates for every name.
	CA *ca.Authority
	// Upstream says how origins are reached while recording. With nil no origin is
	// ever contacted, and Record returns an error.
	Upstream *proxy.UpstreamConfig
	// Link is the first profile.
	Link link.Profile
	// Port, when set, is where the device is plugged in; the link is then a
	// packet-level one between it and lab0. Without it the link delays and paces
	// connections in this process, which promises less; see package conn.
	Port *Port
	// ShapeConnections shapes connections although there is a Port, whose packets
	// then pass unshaped. It is only for comparing the two back ends.
	ShapeConnections bool
	// CongestionControl of the listeners' sockets, default "cubic". With the
	// machine's own default results would differ between machines.
	CongestionControl string

	// Box answers for box.test and for the gateway's address; default NewBox.
	Box http.Handler
	// OnQuery is called for every DNS query. It must not block.
	OnQuery func(dns.Query)

	Clock lab.Clock
	Log   *slog.Logger // nil discards
}

// Port names two interfaces of this network namespace. Frames are forwarded
// between them; the interface with the gateway's address is the other end of
// Lab's veth pair.
type Port struct {
	// Device is a network port, or the inner end ("dev0p") of a veth pair whose
	// other end is the device's; when it is empty, Network.Plug sets it later. Lab is
	// the inner end ("lab0p") of the pair whose other end ("lab0") has Config.Gateway.
	Device, Lab string
	// Forwarder is the command of a process that calls packet.Serve and forwards,
	// undisturbed by this process. Without it a thread of this process forwards.
	Forwarder []string
	// Direct are TCP ports of the device whose connections bypass the link.
	Direct []uint16
}

// Ports are TCP ports other than 80 and 443: all, or those of a list.
type Ports struct {
	All  bool
	List []uint16
}

// Addrs are the addresses on which a Network listens; those without a listener are
// zero.
type Addrs struct {
	HTTP, HTTPS, DNS, Proxy, Other netip.AddrPort
}

// Network is one device's network.
type Network struct {
	c          Config
	pool       *dns.Pool
	dns        *dns.Server // nil when not asked for
	proxy      *proxy.Server
	link       *conn.Link // native when packets are shaped
	cable      *cable     // nil without a Port
	shaper     shaper     // link or cable, whichever shapes
	addrs      Addrs
	congestion string // as read back from a listener
	undo       []func() error

	// knows reports for which names there are certificates now; nil means for all.
	knows atomic.Pointer[func(host string) bool]
	// meter is what the synchronisation page told of its layout since the network was armed, in ms; nil for nothing.
	meter atomic.Pointer[float64]
	// quicFor reports which hosts are served over HTTP/3 now; nil means none.
	quicFor atomic.Pointer[func(host string) bool]

	arming    sync.Mutex // one Record, Replay, Disarm or Close at a time
	quicHosts []string   // see HTTP3Hosts
	up        *proxy.Upstream
	armed     string // "record", "replay", ""
	// recorder is the current one, for which Disarm waits.
	recorder *replay.Recorder
	ready    chan struct{} // nil unless Config.Waits; closed once the network has been armed
	prepared prepared      // the archive of the last Replay

	mu     sync.Mutex // guards what follows
	extras extras
}

// withDefaults sets defaults and checks the configuration.
func (c Config) withDefaults() (Config, error) {
	if !c.Gateway.Is4() {
		return c, fmt.Errorf("the gateway's address %v is not IPv4", c.Gateway)
	}
	if c.CA == nil || c.Clock == nil {
		return c, errors.New("a certificate authority and a clock are required")
	}
	if !c.Synthetic.IsValid() {
		c.Synthetic = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18}), 15)
	}
	if c.CongestionControl == "" {
		c.CongestionControl = "cubic"
	}
	if c.Link.Name == "" {
		c.Link.Name = "native"
	}
	if c.HTTP3 && c.Port == nil && c.Link.Name != "native" {
		return c,
			fmt.Errorf(
				"HTTP/3 would bypass the link %s, which shapes connections: give the network a port, or leave HTTP/3 out",
				c.Link.Name,
			)
	}
	if c.Box == nil {
		c.Box = NewBox(c.CA)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Start starts to listen. The context bounds starting only; Close ends the Network.
func Start(ctx context.Context, c Config) (*Network, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start the network: %w", err)
	}
	n := &Network{c: c}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the network: %w", err), n.Close())
	}
	return n, nil
}

func (n *Network) start(ctx context.Context) error {
	var err error
	if n.pool, err = dns.NewPool(n.c.Synthetic, n.c.Synthetic6); err != nil {
		return err
	}
	if n.c.Routes {
		n.undo, err = prepareNamespace(n.c.Synthetic, n.c.Synthetic6)
		if err != nil {
			return err
		}
	}
	if err := n.startLink(); err != nil {
		return err
	}
	if n.c.Waits {
		n.ready = make(chan struct{})
	}
	pc := proxy.Config{
		Ready:        n.ready,
		Certificates: certificates{n}, Core: n.core(nil, nil, nil), Loopback: n.c.Loopback, HostsAt: n.pool.Names, Log: n.c.Log,
	}
	for _, l := range []struct {
		addr string
		to   *net.Listener
		at   *netip.AddrPort
	}{
		{n.c.HTTPAddr, &pc.HTTP, &n.addrs.HTTP}, {n.c.HTTPSAddr, &pc.HTTPS, &n.addrs.HTTPS},
		{n.c.ProxyAddr, &pc.Explicit, &n.addrs.Proxy}, {n.c.OtherAddr, &pc.Other, &n.addrs.Other},
	} {
		if l.addr == "" {
			continue
		}
		raw, err := proxy.Listen(ctx, l.addr, n.c.CongestionControl, n.c.Control)
		if err != nil {
			return err
		}
		n.undo = append(n.undo, func() error { return ignoreClosed(raw.Close()) })
		if n.congestion, err = proxy.Congestion(raw); err != nil {
			return err
		}
		*l.at = raw.Addr().(*net.TCPAddr).AddrPort()
		*l.to = n.link.Listener(raw)
	}
	if n.c.HTTP3 && n.addrs.HTTPS.IsValid() {
		if pc.QUIC, err = proxy.ListenQUIC(ctx, n.addrs.HTTPS.String(), n.c.Control); err != nil {
			return err
		}
		n.undo = append(n.undo, func() error { return ignoreClosed(pc.QUIC.Close()) })
	}
	if n.c.DNSAddr != "" {
		box, fallback := boxNames(n.c.Gateway, n.c.Gateway6)
		n.dns, err = dns.Listen(dns.Config{
			Addr: n.c.DNSAddr, Pool: n.pool, Box: box, Fallback: fallback, BoxLabel: syncLabel, BoxName: BoxHost, Clock: n.c.Clock, Log: n.c.Log,
			Delay: n.link.Delay, OnQuery: n.onQuery, HTTP3: n.http3, Control: n.c.Control,
		})
		if err != nil {
			return err
		}
		n.addrs.DNS = n.dns.Addr()
	}
	if n.proxy, err = proxy.Serve(pc); err != nil {
		return err
	}
	n.proxy.SetFlight(n.c.Link.Flight())
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Addrs returns where the Network listens.
func (n *Network) Addrs() Addrs { return n.addrs }

// Close ends all listeners and connections, waits for their goroutines, and removes
// the routes.
func (n *Network) Close() error {
	n.arming.Lock()
	defer n.arming.Unlock()
	var errs []error
	if n.proxy != nil {
		errs = append(errs, n.proxy.Close())
	}
	if n.dns != nil {
		errs = append(errs, n.dns.Close())
	}
	if n.link != nil {
		errs = append(errs, n.link.Close())
	}
	if n.cable != nil {
		errs = append(errs, n.cable.unplug())
	}
	if n.recorder != nil {
		errs = append(errs, n.recorder.Wait())
		n.recorder = nil
	}
	if n.up != nil {
		n.up.Close()
		n.up = nil
	}
	for i := len(n.undo) - 1; i >= 0; i-- {
		errs = append(errs, n.undo[i]())
	}
	n.undo = nil
	return errors.Join(errs...)
}
