package device

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"eidetic/internal/lab"
	"eidetic/internal/run/counters"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/link/packet"
	"eidetic/netlab/netspace"
)

// The names of the lab's interfaces, which are those of a box with a device port:
//
//	device eth0 ── DevicePort ══ link ══ InnerPort ── BoxPort, the gateway's
//
// Packets pass between DevicePort and InnerPort only through the link.
const (
	DevicePort = "dev0p" // the box's end of the device's cable
	InnerPort  = "lab0p" // the link's end of the pair whose other end is BoxPort
	BoxPort    = "lab0"  // interface with the gateway's address
	UplinkPort = "up0"   // the box's end of the cable to the origins
	inner      = "eth0"  // the ends in the other namespaces
)

var (
	gateway      = netip.MustParsePrefix("192.168.77.1/24")
	deviceAddr   = netip.MustParsePrefix("192.168.77.2/24")
	uplinkAddr   = netip.MustParsePrefix("203.0.113.1/24") // RFC 5737, documentation
	originPrefix = 24
	synthetic    = netip.MustParsePrefix("198.18.0.0/15") // RFC 2544, stands for origins
)

// Gateway is the box's address in the device's network.
func Gateway() netip.Addr { return gateway.Addr() }

// GatewayPrefix is the box's address with the device's network.
func GatewayPrefix() netip.Prefix { return gateway }

// Synthetic is the range of addresses that stand for origins in the device's network.
func Synthetic() netip.Prefix { return synthetic }

// Virtual is a device made of processes: a network namespace with one cable to the box, a
// screen, and browsers.
type Virtual struct {
	Namespace *Namespace
	X         *XServer
	Browser   Program
	Size      Screen
	// Niceness, Proxy, HTTP3, Extra, Files and Home are those of Options.
	Niceness int
	Proxy    string
	HTTP3    []string
	Extra    []string
	Files    []*os.File
	Home     string
	// Sandbox is that of Options: the most that the machine allows, and less only if the caller says so.
	Sandbox isolate.Sandbox
	// Locale is what browsers tell pages.
	Locale lab.Locale
	// Protocol lets browsers that can be asked by their debugging protocol be asked.
	Protocol bool
	// Again, Chosen and Counters are those of Options.
	Again    bool
	Chosen   map[string][]byte
	Counters *counters.Counters

	box      *netspace.Namespace // for its guard
	guards   []*Guard            // of the device and of the box
	loopback error               // why the device's loopback does not lead to the box
	profiled bool                // the next browser is a Firefox that samples itself
}

// NewVirtual makes the device's network and screen, and brings up the box's loopback.
// NewChromium prepares the browser. Where the machine allows no SandboxFull, NewVirtual fails unless
// the caller says noSandbox; that also switches the browser's own sandbox off where it would work. touch gives the
// screen a touch screen.
func NewVirtual(ctx context.Context, size Screen, noSandbox, touch bool) (*Virtual, error) {
	box, err := netspace.Here()
	if err != nil {
		return nil, err
	}
	defer box.Close()
	if err := box.Up("lo"); err != nil {
		return nil, err
	}
	ns, err := NewNamespace()
	if err != nil {
		return nil, err
	}
	v := &Virtual{Namespace: ns, Size: size}
	protect := func() error { return v.protect(ctx, noSandbox) }
	for _, step := range []func() error{v.plug, NoForwarding, v.guard, protect} {
		if err := step(); err != nil {
			v.Close()
			return nil, err
		}
	}
	v.loopback = leadLoopback(ns.Namespace)
	if v.X, err = StartX(ctx, size, touch); err != nil {
		v.Close()
		return nil, err
	}
	if !v.X.Preferred {
		v.Niceness = browserNiceness
	}
	return v, nil
}

// protect chooses the browser's sandbox.
func (v *Virtual) protect(ctx context.Context, noSandbox bool) error {
	works, err := isolate.ProbeSandbox(ctx, v.Namespace.Do)
	if noSandbox {
		v.Sandbox = min(works, isolate.SandboxOurs)
		return nil
	}
	v.Sandbox = works
	return err
}

// plug makes the device's cable and the box's inner one, and gives their outer ends
// addresses. Packets between the cables need the link (netlab.Port).
func (v *Virtual) plug() error {
	if err := v.Namespace.cable(DevicePort, inner, netip.Prefix{}); err != nil {
		return err
	}
	box, err := netspace.Here()
	if err != nil {
		return err
	}
	defer box.Close()
	if err := netspace.Veth(box, BoxPort, box, InnerPort); err != nil {
		return err
	}
	if err := box.Address(BoxPort, gateway.String()); err != nil {
		return err
	}
	// Segments merged by the device would pass the link as one packet.
	if err := v.Namespace.Do(func() error { return packet.DisableOffloads(inner) }); err != nil {
		return err
	}
	if err := v.Namespace.Address(inner, deviceAddr.String()); err != nil {
		return err
	}
	return v.Namespace.Default(gateway.Addr().String())
}

// guard installs a default-deny rule on all packets that device and box send.
func (v *Virtual) guard() error {
	box, err := netspace.Here()
	if err != nil {
		return err
	}
	v.box = box
	for _, side := range []struct {
		ns      *netspace.Namespace
		allowed []netip.Prefix
	}{
		{v.Namespace.Namespace, append([]netip.Prefix{gateway.Masked(), synthetic}, private()...)},
		{box, []netip.Prefix{gateway.Masked(), synthetic, uplinkAddr.Masked()}},
	} {
		g, err := NewGuard(side.ns, side.allowed...)
		if err != nil {
			return err
		}
		v.guards = append(v.guards, g)
	}
	return nil
}

// private lists the ranges in which own servers have addresses. The device sends packets
// to them to the box, as all others, and the box sends none of them on.
func private() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), // RFC 1918
		netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("169.254.0.0/16"), // RFC 6598, RFC 3927
	}
}

// Reach prepares the device for a page whose URL names an address instead of a host. It
// returns an error if this device cannot load it.
func (v *Virtual) Reach(page string) error {
	u := lab.ParseURL(page)
	host := u.Hostname()
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return v.loopback
	}
	a, err := netip.ParseAddr(host)
	switch {
	case err != nil: // a name, for which the box has an address of its own
		return nil
	case a.Unmap().IsLoopback():
		return v.loopback
	case a.Is6() && !a.Is4In6():
		return fmt.Errorf("%s: the virtual device has IPv4 alone; give the page a name, or use its IPv4 address", page)
	}
	return v.guards[0].Allow(netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
}

// Strays is the number of packets that device or box sent to addresses outside the lab; all
// of them were dropped.
func (v *Virtual) Strays() (sum uint64, err error) {
	for _, g := range v.guards {
		n, err := g.Strays()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// Birth starts a fresh browser at url.
func (v *Virtual) Birth(url string) (*Browser, error) {
	if v.Browser == nil {
		return nil, errors.New("starting a device: it has no browser")
	}
	o := Options{
		Namespace: v.Namespace, Display: v.X.Display, Screen: v.Size, Touch: v.X.Touch != "", URL: url,
		Proxy: v.Proxy, HTTP3: v.HTTP3, Niceness: v.Niceness, Extra: v.Extra, Files: v.Files, Home: v.Home, Locale: v.Locale,
		Sandbox: v.Sandbox, Again: v.Again, Chosen: v.Chosen, Counters: v.Counters, profiled: v.profiled,
	}
	if !v.Protocol || !protocolOf(v.Browser) {
		return v.Browser.Start(o)
	}
	return startAsked(v.Browser, o)
}

// Close ends the screen and releases the network.
func (v *Virtual) Close() error {
	if v.X != nil {
		v.X.Stop()
	}
	if v.box != nil {
		v.box.Close()
	}
	v.Namespace.Close()
	return nil
}

// NewOrigins makes a namespace for origin servers behind the box's uplink, with the given
// addresses of 203.0.113.0/24.
func NewOrigins(addresses ...netip.Addr) (*Namespace, error) {
	ns, err := NewNamespace()
	if err != nil {
		return nil, err
	}
	if err := plugOrigins(ns, addresses); err != nil {
		ns.Close()
		return nil, err
	}
	return ns, nil
}

func plugOrigins(ns *Namespace, addresses []netip.Addr) error {
	if err := ns.cable(UplinkPort, inner, uplinkAddr); err != nil {
		return err
	}
	for _, a := range addresses {
		if !uplinkAddr.Contains(a) {
			return fmt.Errorf("origin address %s is outside %s", a, uplinkAddr.Masked())
		}
		if err := ns.Address(inner, netip.PrefixFrom(a, originPrefix).String()); err != nil {
			return err
		}
	}
	return nil
}

// Ways lists the interfaces of the current namespace except the loopback, and so all ways
// out of it. A replaying lab has DevicePort, InnerPort and BoxPort, and no other.
func Ways() ([]string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("listing interfaces: %w", err)
	}
	var names []string
	for _, l := range links {
		if name := l.Attrs().Name; name != "lo" {
			names = append(names, name)
		}
	}
	slices.Sort(names) // the kernel lists them by age
	return names, nil
}
