package netlab

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"eidetic/netlab/archive"
	"eidetic/netlab/dns"
	"eidetic/netlab/inject"
	"eidetic/netlab/proxy"
	"eidetic/netlab/reach"
	"eidetic/netlab/replay"
)

// disarmTimeout bounds the wait for the requests of closed connections.
const disarmTimeout = 30 * time.Second

// Record puts a recorder behind the listeners: every request goes to its origin, and
// w gets the exchange and the answers of DNS. o.Protocols and o.Clock have defaults.
// Earlier connections are closed. Call Disarm before w.Close.
func (n *Network) Record(ctx context.Context, w *archive.Writer, o replay.RecordOptions) (*replay.Recorder, error) {
	n.arming.Lock()
	defer n.arming.Unlock()
	if n.c.Upstream == nil {
		return nil, errors.New("record: this network was started without Config.Upstream, so it cannot reach origins")
	}
	if err := n.disarm(ctx); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if o.Clock == nil {
		o.Clock = n.c.Clock
	}
	if o.Wall == nil {
		return nil, errors.New("record: RecordOptions.Wall is required")
	}
	forwarder := n.openUpstream(o.Wall, w.AddDNS)
	if o.Protocols == nil {
		o.Protocols = n.up.Protocols
	}
	if o.Plain == nil {
		o.Plain = n.up.Plain
	}
	recorder := replay.NewRecorder(w, n.up, o)
	if err := n.usePorts(Ports{All: true}); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if n.dns != nil {
		n.dns.Use(forwarder)
	}
	if err := n.proxy.SetCore(ctx, n.core(recorder, recorder.Protocols, n.up.HTTP3)); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	anyHost := func(string) bool { return true } // the proxy asks the origin in the handshake
	n.quicFor.Store(&anyHost)
	n.recorder = recorder
	n.arm("record")
	return recorder, nil
}

// openUpstream makes n.up, the way to origins, and returns the name server that it uses, whose
// answers go to keep.
func (n *Network) openUpstream(wall func() time.Time, keep func(archive.DNS) error) *dns.Forwarder {
	uc := *n.c.Upstream
	forwarder := dns.NewForwarder(resolverOf(uc), uc.DialContext, func(r dns.Recorded) {
		if err := keep(archive.DNS{
			Name: r.Name, Type: r.Type, RCode: r.RCode, Records: r.Records,
			Wall: wall(), Elapsed: r.Elapsed, Server: r.Server,
		}); err != nil {
			n.c.Log.Error("an answer of the resolver was not recorded", "name", r.Name, "error", err)
		}
	})
	forwarder.Hosts, forwarder.IPv6First = uc.Hosts, uc.IPv6First
	if uc.Lookup == nil {
		uc.Lookup = forwarder.Addrs
	}
	n.up = proxy.NewUpstream(n.withoutItself(uc))
	return forwarder
}

// withoutItself makes an upstream that dials from this namespace refuse the listeners of
// this network.
func (n *Network) withoutItself(uc proxy.UpstreamConfig) proxy.UpstreamConfig {
	if uc.DialContext == nil {
		uc.Reach = n.addrs.Closed(uc.Reach)
	}
	return uc
}

// Closed returns a rule that the listeners are closed to, too. Without one all else is open.
func (a Addrs) Closed(r *reach.Rule) *reach.Rule {
	closed := reach.Rule{Private: true}
	if r != nil {
		closed = *r
	}
	closed.Own = append(slices.Clone(closed.Own), a.HTTP, a.HTTPS, a.Proxy, a.Other)
	return &closed
}

// resolverOf returns the resolver that is configured, or the system's. Without either,
// names that need one are answered with an error that says so.
func resolverOf(c proxy.UpstreamConfig) netip.AddrPort {
	if c.Resolver.IsValid() {
		return c.Resolver
	}
	resolver, err := dns.SystemResolver(dns.ResolvConf)
	if err != nil {
		return netip.AddrPort{}
	}
	return resolver
}

// Replay puts a new session of a behind the listeners and fills the name server's
// table from it. An archive is prepared the first time, and again only after another
// archive or another script. Earlier connections are closed, and earlier session
// tickets become invalid. o.Clock has a default. Under replay.MissFill and replay.MissLive without
// o.Live, what the archive lacks is fetched through Config.Upstream.
func (n *Network) Replay(ctx context.Context, a *archive.Archive, o replay.Options) (*replay.Session, error) {
	n.arming.Lock()
	defer n.arming.Unlock()
	if err := n.disarm(ctx); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if o.Clock == nil {
		o.Clock = n.c.Clock
	}
	if err := n.prepared.ready(a, o); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	var names dns.Source = n.prepared.table
	ports, hosts := Ports{List: append([]uint16{SyncPort}, n.prepared.ports...)}, n.prepared.table
	if (o.Miss == replay.MissFill || o.Miss == replay.MissLive) && o.Live == nil {
		if n.c.Upstream == nil {
			return nil, errors.New("replay: to fetch what the recording lacks, the network needs Config.Upstream")
		}
		names, hosts = n.liveFrom(a, &o)
		ports = Ports{All: true}
	}
	if o.Device == nil && n.c.Port != nil {
		o.Device = deviceAt
	}
	session, err := n.prepared.replay.Session(o)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	quicFor := session.HTTP3
	for _, host := range a.Info().Hosts {
		if n.c.HTTP3 && !strings.Contains(host, ":") && quicFor(host) { // only the default port
			n.quicHosts = append(n.quicHosts, host)
		}
	}
	n.quicFor.Store(&quicFor)
	_, probed := boxNames(n.c.Gateway, n.c.Gateway6)
	knows := func(host string) bool { return probed[dns.Canonical(host)] != nil || session.Knows(host) }
	n.knows.Store(&knows)
	n.setHosts(hosts)
	if n.dns != nil {
		n.dns.Use(names)
	}
	if err := n.usePorts(ports); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := n.proxy.SetCore(ctx, n.core(session, session.Protocols, session.HTTP3)); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	n.arm("replay")
	return session, nil
}

// arm notes that the network is armed, and lets in who has waited for that.
func (n *Network) arm(as string) {
	n.armed = as
	if n.ready != nil {
		close(n.ready)
		n.ready = nil
	}
}

// Disarm removes the core, closes the device's connections and waits until their
// requests have ended and are recorded. Until the next Record or Replay only the box
// itself answers.
func (n *Network) Disarm() {
	n.arming.Lock()
	defer n.arming.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), disarmTimeout)
	defer cancel()
	if err := n.disarm(ctx); err != nil {
		n.c.Log.Error("disarm the network", "error", err)
	}
}

func (n *Network) disarm(ctx context.Context) error {
	if n.dns != nil {
		n.dns.Use(nil)
	}
	n.quicFor.Store(nil)
	n.meter.Store(nil)
	n.knows.Store(nil)
	n.quicHosts = nil
	n.link.Abort()
	err := errors.Join(n.usePorts(Ports{}), n.proxy.SetCore(ctx, n.core(nil, nil, nil)))
	if n.recorder != nil {
		if werr := n.recorder.Wait(); werr != nil {
			err = errors.Join(err, fmt.Errorf("write the recording: %w", werr))
		}
		n.recorder = nil
	}
	if n.up != nil {
		n.up.Close()
		n.up = nil
	}
	n.armed = ""
	return err
}

// core answers the listeners' requests: the box those for its own names, a recorder or
// a session all others, if there is one.
type core struct {
	n         *Network
	handler   http.Handler
	protocols func(host string) []string
	http3     func(host string) bool
}

func (n *Network) core(h http.Handler, protocols func(string) []string, http3 func(string) bool) proxy.Core {
	return &core{n, h, protocols, http3}
}

// ServeHTTP implements proxy.Core.
func (c *core) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch host := r.URL.Hostname(); {
	case (isSync(r.URL) || c.n.isBox(host)) && c.n.noteMeter(r.URL):
		w.WriteHeader(http.StatusNoContent)
	case isSync(r.URL):
		http.StripPrefix(strings.TrimSuffix(inject.BoxPath, "/"), c.n.c.Box).ServeHTTP(w, r)
	case c.n.isBox(host):
		c.n.c.Box.ServeHTTP(w, r)
	case answerProbe(w, r):
	case c.handler == nil:
		http.Error(
			w,
			"The box is not armed: no recording is being made or replayed. Its own pages are at http://"+BoxHost+"/",
			http.StatusServiceUnavailable,
		)
	default:
		c.handler.ServeHTTP(w, r)
	}
}

// Protocols implements proxy.Core.
func (c *core) Protocols(host string) []string {
	if c.protocols == nil || c.n.isBox(host) {
		return []string{"h2", "http/1.1"}
	}
	return c.protocols(host)
}

// AskHTTP3 asks the origins of hosts whether they support HTTP/3, while recording.
// HTTP3Hosts then includes those that do.
func (n *Network) AskHTTP3(hosts []string) {
	n.arming.Lock()
	defer n.arming.Unlock()
	for _, host := range hosts {
		if n.c.HTTP3 && n.up != nil && !slices.Contains(n.quicHosts, host) && n.up.HTTP3(host) {
			n.quicHosts = append(n.quicHosts, host)
		}
	}
}

// HTTP3Hosts returns the hosts with which a browser can be told to use HTTP/3, on port
// 443: in a replay those that were recorded so, while recording those that AskHTTP3
// found. A browser does not use HTTP/3 by itself with a certificate of an installed
// authority.
func (n *Network) HTTP3Hosts() []string {
	n.arming.Lock()
	defer n.arming.Unlock()
	return slices.Clone(n.quicHosts)
}

// http3 tells the name server whether a host's records may name HTTP/3.
func (n *Network) http3(host string) bool {
	f := n.quicFor.Load()
	return n.c.HTTP3 && f != nil && (*f)(host)
}

// HTTP3 implements proxy.Core.
func (c *core) HTTP3(host string) bool {
	return c.http3 != nil && !c.n.isBox(host) && c.http3(host)
}

// certificates are those of the box's authority; during a replay only for the box and for names of the recording. An
// address has one always: a device that connects to an address sends no name.
type certificates struct{ n *Network }

// Leaf implements proxy.Certificates.
func (c certificates) Leaf(host string, more ...string) (*tls.Certificate, error) {
	_, err := netip.ParseAddr(host)
	if knows := c.n.knows.Load(); knows != nil && err != nil && !c.n.isBox(host) && !(*knows)(host) {
		return nil, fmt.Errorf("no certificate for %.100q: the recording has nothing of it", host)
	}
	return c.n.c.CA.Leaf(host, more...)
}

// usePorts passes on which other TCP ports the device can use.
func (n *Network) usePorts(p Ports) error {
	if n.c.OnPorts == nil {
		return nil
	}
	return n.c.OnPorts(p)
}

// isBox reports whether a host is the box itself.
func (n *Network) isBox(host string) bool {
	if host == BoxHost || host == n.c.Gateway.String() || strings.HasPrefix(host, syncLabel+".") {
		return true
	}
	return n.c.Gateway6.IsValid() && host == n.c.Gateway6.String()
}
