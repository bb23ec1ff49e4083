package sandbox

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/dns"
	"eidetic/netlab/proxy"
	"eidetic/netlab/reach"
)

// Reach says how origins outside are reached while pages are recorded.
type Reach struct {
	// Resolver is the name server to ask; the zero value is this machine's.
	Resolver netip.AddrPort `json:",omitzero"`
	// Roots are PEM certificates to trust besides the system's.
	Roots string `json:",omitempty"`
	// AnyCertificate leaves certificates unverified.
	AnyCertificate bool `json:",omitempty"`
	// Private lets a page reach this machine and private networks, beside the public one.
	Private bool `json:",omitempty"`
	// Pages are hosts that are reached besides public ones, each at its addresses; see Open.
	Pages map[string][]netip.Addr `json:",omitempty"`
	// Own are the addresses at which the box itself listens, which no page reaches.
	Own []netip.AddrPort `json:",omitempty"`

	// Send are fields that are added to requests, and kept out of recordings.
	Send proxy.Session `json:",omitempty"`

	// NoIPv4 says, in the inner half, that this machine reaches nobody over IPv4.
	NoIPv4 bool `json:",omitempty"`

	hosts dns.Hosts // of the outside
	// dial, in the inner half, has the outer half connect, which judges each address.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// The time limits of Check, which together are under three seconds in nearly all cases.
const (
	resolveLimit = 2 * time.Second
	connectLimit = 2500 * time.Millisecond
)

// ownHosts reads the names of this machine, and how it reaches others. A file that cannot be read has none.
func (r *Reach) ownHosts() {
	r.NoIPv4 = !reach.HasIPv4()
	if hosts, err := dns.ReadHosts(dns.HostsFile); err == nil {
		r.hosts = hosts
	}
	if !r.Resolver.IsValid() {
		r.Resolver, _ = dns.SystemResolver(dns.ResolvConf) // without one, queries are answered with an error that says so
	}
}

// Upstream reaches origins through connections of this process.
func (r Reach) Upstream() (*proxy.UpstreamConfig, error) {
	r.ownHosts()
	return r.upstream()
}

// upstream does not look at files, which the inner half no longer sees.
func (r Reach) upstream() (*proxy.UpstreamConfig, error) {
	roots, err := TrustedRoots(r.Roots)
	if err != nil {
		return nil, err
	}
	return &proxy.UpstreamConfig{
		Resolver: r.Resolver, Roots: roots, Hosts: r.hosts, AnyCertificate: r.AnyCertificate, Reach: r.rule(), Send: r.Send,
		IPv6First: r.ipv6First,
	}, nil
}

// ipv6First says whether nobody is reached over IPv4. A box's uplink may get its address after the service has started.
func (r Reach) ipv6First() bool {
	if r.dial != nil {
		return r.NoIPv4
	}
	return !reach.HasIPv4()
}

// rule is nil in the inner half.
func (r Reach) rule() *reach.Rule {
	if r.dial != nil {
		return nil
	}
	return &reach.Rule{
		Private: r.Private, Pages: r.Pages, Own: r.Own,
		Remedy: "this machine and private networks are reached with --allow-private (on a box, network.allow_private)",
	}
}

// through reaches origins by connections that the outer half makes.
func (r Reach) through(dialer *isolate.Dialer) (*proxy.UpstreamConfig, error) {
	r.dial = outsideDial(dialer)
	c, err := r.upstream()
	if err != nil {
		return nil, err
	}
	c.DialContext = r.dial
	c.DialPacket = func(ctx context.Context, addr string) (net.Conn, error) { return r.dial(ctx, "udp", addr) }
	return c, nil
}

// outsideDial has the outer half connect.
func outsideDial(dialer *isolate.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialer.Dial(ctx, network, reach.HostOf(ctx), address)
	}
}

// forInside connects for the inner half: to the name server, and for a host where the rule lets it.
func (r Reach) forInside(ctx context.Context, network, host, address string) (net.Conn, error) {
	if host == "" && address != r.Resolver.String() {
		return nil, fmt.Errorf("%s is not the name server: %w", address, reach.ErrRefused)
	} else if host == "" {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return (&reach.Dialer{Rule: r.rule()}).Connect(ctx, network, host, address)
}

// Check returns an error if the origin of a page cannot be reached: the name, the
// connection or the certificate is wrong, and the error says what to do. Nothing is asked
// of the origin.
func (r Reach) Check(ctx context.Context, page string) error {
	u := lab.NetURL(page)
	r.ownHosts()
	if err := r.check(ctx, u); err != nil {
		return fmt.Errorf("%s cannot be recorded: %w", page, err)
	}
	return nil
}

func (r Reach) check(ctx context.Context, u *url.URL) error {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	addrs, err := r.resolve(ctx, u.Hostname())
	if err != nil {
		return err
	}
	conn, err := r.connect(ctx, addrs, u, port)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := checkPort(port); err != nil {
		return err
	}
	if u.Scheme == "http" {
		return nil
	}
	return r.handshake(ctx, conn, u)
}

// resolve asks the name server, with an answer that says what is wrong.
func (r Reach) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	f := dns.NewForwarder(r.Resolver, r.dial, nil)
	f.Hosts, f.IPv6First = r.hosts, r.ipv6First
	addrs, err := f.Addrs(ctx, host)
	var absent *dns.NoAddressError
	var timeout net.Error
	switch {
	case err == nil:
		return addrs, nil
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return nil, fmt.Errorf("the name server %v did not answer within %v; name one that does with --resolver IP:PORT, or write %s into %s",
			r.Resolver, resolveLimit, host, dns.HostsFile)
	case errors.As(err, &absent):
		return nil, fmt.Errorf("the name %s does not resolve (%w); check the spelling, write it into %s, or name another server with --resolver IP:PORT",
			host, err, dns.HostsFile)
	case !r.Resolver.IsValid():
		return nil, fmt.Errorf("the name %s does not resolve, and %s names no name server; name one with --resolver IP:PORT, or write %s into %s",
			host, dns.ResolvConf, host, dns.HostsFile)
	}
	return nil, fmt.Errorf("the name server %v gives no answer for %s; name another one with --resolver IP:PORT, or write %s into %s: %w",
		r.Resolver, host, host, dns.HostsFile, err)
}

// connect connects to the first address that answers.
func (r Reach) connect(ctx context.Context, addrs []netip.Addr, u *url.URL, port string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	d := reach.Dialer{
		Rule: r.rule(), Dial: r.dial, Lookup: func(context.Context, string) ([]netip.Addr, error) { return addrs, nil },
	}
	at := net.JoinHostPort(u.Hostname(), port)
	open, err := d.Addresses(ctx, at)
	if err != nil {
		return nil, err
	}
	conn, last := d.DialContext(ctx, "tcp", at)
	if last == nil {
		return conn, nil
	}
	var tried []string
	for _, a := range open {
		tried = append(tried, a.String())
	}
	where := strings.Join(tried, " and ")
	var timeout net.Error
	switch {
	case errors.Is(last, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("nothing listens on %s (connection refused); start the server, or check the port", where)
	case errors.Is(last, syscall.ENETUNREACH) && r.ipv6First() && !slices.ContainsFunc(open, isIPv6):
		return nil, fmt.Errorf("%s is an address of IPv4, and this machine's network has only IPv6; "+
			"a name server with DNS64, for a network with NAT64, would lead there", where)
	case errors.Is(last, syscall.EHOSTUNREACH), errors.Is(last, syscall.ENETUNREACH):
		return nil, fmt.Errorf("%s cannot be reached from this machine (%w)", where, last)
	case errors.As(last, &timeout) && timeout.Timeout():
		return nil, fmt.Errorf("%s did not answer within %v; the server is off, or a firewall drops the connection", where, connectLimit)
	}
	return nil, last
}

func isIPv6(a netip.AddrPort) bool { return a.Addr().Is6() }

// handshake checks the certificate.
func (r Reach) handshake(ctx context.Context, conn net.Conn, u *url.URL) error {
	roots, err := TrustedRoots(r.Roots)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	origin := proxy.OriginTLS{
		Host: u.Hostname(), Roots: roots, Protocols: []string{"h2", "http/1.1"}, Any: r.AnyCertificate,
		Dial: (&reach.Dialer{Rule: r.rule(), Lookup: reach.AskServer(r.Resolver, r.dial), Dial: r.dial}).DialContext,
	}
	_, err = origin.Handshake(ctx, conn)
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &record):
		plain := *u
		plain.Scheme = "http"
		return fmt.Errorf("%s does not speak TLS; try %s", u.Host, plain.String())
	case errors.As(err, &certificate):
		return fmt.Errorf("the certificate of %s is not trusted: %s; trust its authority with --trust FILE (PEM or DER), "+
			"or record it unverified with --insecure-origin", u.Host, explain(certificate))
	case ctx.Err() != nil:
		return fmt.Errorf("%s accepted the connection and did not answer the TLS handshake within %v", u.Host, connectLimit)
	}
	return fmt.Errorf("TLS with %s: %w", u.Host, err)
}

// explain says what is wrong with a certificate.
func explain(e *tls.CertificateVerificationError) string {
	leaf := e.UnverifiedCertificates[0] // an error of verification has at least one
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(e.Err, &unknown) && slices.Equal(leaf.RawIssuer, leaf.RawSubject):
		return "it is self-signed"
	case errors.As(e.Err, &unknown):
		return fmt.Sprintf("its authority %q is unknown to this machine", cmp.Or(leaf.Issuer.CommonName, leaf.Issuer.String()))
	case errors.As(e.Err, &name):
		return e.Err.Error()
	case errors.As(e.Err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("it is valid from %s to %s", leaf.NotBefore.Format(time.DateOnly), leaf.NotAfter.Format(time.DateOnly))
	}
	return e.Err.Error()
}

// hint adds to the error of a page of http:// what to do if its port speaks TLS.
func (r Reach) hint(ctx context.Context, page string, problem error) error {
	u := lab.NetURL(page)
	if problem == nil || u.Scheme != "http" {
		return problem
	}
	u.Scheme = "https"
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), "80")
	}
	r.AnyCertificate = true
	if r.check(ctx, u) != nil {
		return problem
	}
	return fmt.Errorf("%w; the port speaks TLS: try %s", problem, u)
}

// Open opens the hosts of pages that a person named at addresses of this machine or of private networks, each at the
// addresses that it has now. A name server's word alone opens a host only if all of its addresses are such, and none is
// link-local: whoever owns the name of a public page can add any address to it.
func (r *Reach) Open(ctx context.Context, pages []string) {
	var hosts []string
	for _, page := range pages {
		hosts = append(hosts, lab.NetURL(page).Hostname())
	}
	r.OpenHosts(ctx, hosts)
}

// OpenHosts is Open, for hosts without their pages.
func (r *Reach) OpenHosts(ctx context.Context, hosts []string) {
	r.ownHosts()
	rule := r.rule()
	r.Pages = maps.Clone(r.Pages) // a copy of r has the same map
	for _, host := range hosts {
		host := dns.Canonical(host)
		addrs, _ := r.resolve(ctx, host) // an error is Check's to tell
		_, err := netip.ParseAddr(host)
		_, isListed := r.hosts[host]
		isSaid := err == nil || isListed || reach.IsLocal(host)
		isOpen := func(a netip.Addr) bool {
			return !rule.IsPublic(a) && (isSaid || !a.IsLinkLocalUnicast())
		}
		if !slices.ContainsFunc(addrs, isOpen) || !isSaid && slices.ContainsFunc(addrs, func(a netip.Addr) bool { return !isOpen(a) }) {
			continue
		}
		if r.Pages == nil {
			r.Pages = map[string][]netip.Addr{}
		}
		r.Pages[host] = addrs
	}
}
