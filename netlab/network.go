// Package netlab is the device's whole network in one process: a name server,
// listeners for what the device sends to ports 80 and 443, an explicit proxy,
// an emulated link, and the core behind them that records or replays.
//
// In flow packets of one device; out flow answers, and a log line for each
// question and each request. Start makes the listeners; Record or Replay puts
// a core behind them; Disarm takes it away, and then only the box itself
// answers. Nothing is ever sent to an origin unless Config.Upstream is set and
// Record was called.
//
// The process is expected in a network namespace of its own (root there, or in
// a user namespace). Recorded addresses are given out as synthetic ones, by
// default from 198.18.0.0/15 (RFC 2544), one for each, so that connections
// coalesce as they did; the namespace takes them all in by a local route
// (AnyIP), so listeners on 0.0.0.0 see the synthetic destination.
package netlab

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/dns"
	"eidetic/netlab/link"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
)

// Config of a Network. Gateway, CA and Clock are required; the zero value of
// everything else is a sensible default.
type Config struct {
	// Gateway is the box's address on the device's side: 192.168.77.1. It is
	// what box.test resolves to.
	Gateway netip.Addr
	// Synthetic holds the addresses that stand for origins, default
	// 198.18.0.0/15. Synthetic6 does so for IPv6 (fd00:198:18::/48 is ours by
	// habit); the zero Prefix answers AAAA with no data.
	Synthetic, Synthetic6 netip.Prefix
	// Routes says whether Start routes the synthetic prefixes to this host
	// (needs CAP_NET_ADMIN in this network namespace). Close removes the routes.
	Routes bool

	// Addresses to listen on, "0.0.0.0:80". Empty means not at all, port 0 a
	// free port (see Network.Addrs). DNSAddr is both UDP and TCP.
	HTTPAddr, HTTPSAddr, DNSAddr, ProxyAddr string

	// CA signs for every name.
	CA *ca.Authority
	// Upstream says how origins are reached while recording. Nil: nobody is
	// ever contacted, and Record is an error.
	Upstream *proxy.UpstreamConfig
	// Link is the profile to begin with, by the connection-level back end. A
	// packet-level link stands in front of the listeners and leaves this zero.
	Link link.Profile
	// CongestionControl of the listeners' sockets, default "cubic". The
	// machine's own default (bbr, on some) would change what a link shows.
	CongestionControl string

	// Box answers for box.test and for the gateway's address; default NewBox.
	Box http.Handler
	// OnQuery is told of every DNS question. It must not block.
	OnQuery func(dns.Query)

	Clock lab.Clock
	Log   *slog.Logger // nil discards
}

// Addrs are the addresses that a Network listens on; those not asked for are zero.
type Addrs struct {
	HTTP, HTTPS, DNS, Proxy netip.AddrPort
}

// Network is one device's network.
type Network struct{}

// Start listens. The context bounds starting only; Close ends the Network.
func Start(ctx context.Context, c Config) (*Network, error) { return nil, errors.ErrUnsupported }

// Addrs returns where the Network listens.
func (n *Network) Addrs() Addrs { return Addrs{} }

// Record puts a recorder behind the listeners: every request goes to its
// origin and into w, and so do DNS answers. o.Protocols and o.Clock have
// defaults here. Connections of before are closed.
func (n *Network) Record(ctx context.Context, w *archive.Writer, o replay.RecordOptions) (*replay.Recorder, error) {
	return nil, errors.ErrUnsupported
}

// Replay puts a fresh session of a behind the listeners and fills the name
// server's table from it. Connections and session tickets of before are no
// longer good.
func (n *Network) Replay(ctx context.Context, a *archive.Archive, o replay.Options) (*replay.Session, error) {
	return nil, errors.ErrUnsupported
}

// SetLink changes the profile at once, for connections that are open as well.
func (n *Network) SetLink(p link.Profile) error { return errors.ErrUnsupported }

// LinkReport returns what the link did since SetLink or Start.
func (n *Network) LinkReport() link.Report { return link.Report{} }

// Disarm takes the core away and closes the device's connections. Only the box
// itself answers until the next Record or Replay.
func (n *Network) Disarm() {}

// Environment describes what could explain a difference between two runs:
// congestion control, link back end and profile, kernel settings, counters.
func (n *Network) Environment() map[string]any { return nil }

// Close ends every listener and connection, waits for their goroutines, and
// removes the routes.
func (n *Network) Close() error { return nil }

// NewBox returns the pages of http://box.test/: / (how to install the
// certificate), /ca.crt (DER), /ca.pem, /ca.mobileconfig, /sync?next=URL (pure
// green #00ff00 without a cursor; Enter goes on to the URL), /red (#ff0000),
// and the answers that devices probe the internet with.
func NewBox(authority *ca.Authority) http.Handler { return nil }
