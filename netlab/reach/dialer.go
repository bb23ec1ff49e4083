package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// Dialer makes connections that a Rule lets pass.
type Dialer struct {
	// Rule judges each address. Nil judges none: then Dial leads to a process that does, or to a namespace with
	// nothing else in it.
	Rule *Rule
	// Lookup returns the addresses of a host in the order to try; nil asks the machine's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address, which stands for the host HostOf(ctx); nil is the kernel's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// DialContext resolves a host, and connects to the first of its addresses that may be connected to and answers. Each
// gets its share of the time that is left.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	addrs, err := d.Addresses(ctx, addr)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(addr) // Addresses has split it
	ctx = For(ctx, host)
	var errs []error
	for i, a := range addrs {
		c, err := d.dial(ctx, network, a, len(addrs)-i)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("connect to %s: %w", addr, errors.Join(errs...))
}

// Connect connects to one address of a host, if the Rule lets it pass.
func (d *Dialer) Connect(ctx context.Context, network, host, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", host, err)
	}
	if err := d.check(host, to); err != nil {
		return nil, err
	}
	return d.dial(For(ctx, host), network, to, 1)
}

func (d *Dialer) check(host string, to netip.AddrPort) error {
	if d.Rule == nil {
		return nil
	}
	return d.Rule.Check(host, to)
}

// dial connects to one of so many addresses that are left.
func (d *Dialer) dial(ctx context.Context, network string, to netip.AddrPort, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	if d.Dial != nil {
		return d.Dial(ctx, network, to.String())
	}
	return new(net.Dialer).DialContext(ctx, network, to.String())
}

type hostKey struct{}

// For says for which host connections are made, to a Dial that judges them itself.
func For(ctx context.Context, host string) context.Context {
	return context.WithValue(ctx, hostKey{}, host)
}

// HostOf returns the host for which a Dialer connects. Without one the connection is a name server's.
func HostOf(ctx context.Context) string {
	host, _ := ctx.Value(hostKey{}).(string)
	return host
}

// Addresses resolves host:port, and returns the addresses that may be connected to, of which there is one at least.
func (d *Dialer) Addresses(ctx context.Context, addr string) ([]netip.AddrPort, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: the port is no number: %w", addr, err)
	}
	addrs, err := d.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var out []netip.AddrPort
	var errs []error
	for _, a := range addrs {
		to := netip.AddrPortFrom(a.Unmap(), uint16(port))
		if err := d.check(host, to); err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, to)
	}
	if len(out) == 0 && len(errs) > 0 {
		return nil, fmt.Errorf("connect to %s: %w", addr, errors.Join(errs...))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("resolve %s: no address", host)
	}
	return out, nil
}

func (d *Dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if d.Lookup != nil {
		return d.Lookup(ctx, host)
	}
	return AskServer(netip.AddrPort{}, nil)(ctx, host)
}

// AskServer returns a Dialer.Lookup that asks one name server, through dial, or the machine's own where at is zero. To
// connect to a name server needs no Rule: whoever owns the machine has chosen it.
func AskServer(
	at netip.AddrPort, dial func(ctx context.Context, network, address string) (net.Conn, error),
) func(context.Context, string) ([]netip.Addr, error) {
	r := &net.Resolver{PreferGo: true}
	if at.IsValid() {
		r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			if dial == nil {
				return new(net.Dialer).DialContext(ctx, network, at.String())
			}
			return dial(ctx, network, at.String())
		}
	}
	return func(ctx context.Context, host string) ([]netip.Addr, error) {
		addrs, err := r.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, fmt.Errorf("resolve %s: %w", host, err)
		}
		return addrs, nil
	}
}
