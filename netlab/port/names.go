package port

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	firstByte   = 77 // third byte of the first port's network, 192.168.77.0/24
	alias       = "eidetic device port"
	firstRoutes = 7700 // routing table and rules' priority of the port with 192.168.0.0/24
	firstBack   = 8000 // the same, for what goes to the device
)

// names are the names of one port's objects in the kernel. They derive from the
// third byte of its address, so that the next run finds what a killed run left.
type names struct {
	device   string       // the port: "enp2s0"
	lab      string       // "lab0", which has the addresses
	inner    string       // "lab0p", the other end of lab's veth pair
	table    string       // of nftables, in the families inet and netdev
	routes   int          // routing table for what comes from the device, and priority of the rules that lead to it
	back     int          // the same, for what goes to the device
	gateway  netip.Prefix // 192.168.77.1/24
	gateway6 netip.Prefix // fd00:77::1/64; zero without IPv6
}

// CheckInterface returns an error that says what is wrong with a Config's Interface,
// or nil.
func CheckInterface(name string) error {
	if len(name) > 15 || !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`).MatchString(name) {
		return fmt.Errorf("%q is not the name of a network interface, such as enp2s0", name)
	}
	return nil
}

// CheckGateway returns an error that says what is wrong with a Config's Gateway, or
// nil.
func CheckGateway(p netip.Prefix) error {
	a := p.Addr()
	if !a.Is4() || a.As4()[0] != 192 || a.As4()[1] != 168 || p.Bits() != 24 || a.As4()[3] != 1 {
		return fmt.Errorf("gateway %v is not of the form 192.168.N.1/24", p)
	}
	return nil
}

func namesOf(device string, gateway netip.Prefix, ipv4Only bool) (names, error) {
	if err := errors.Join(CheckInterface(device), CheckGateway(gateway)); err != nil {
		return names{}, err
	}
	b := int(gateway.Addr().As4()[2])
	n := names{device: device, lab: "lab" + strconv.Itoa(b-firstByte), routes: firstRoutes + b, back: firstBack + b, gateway: gateway}
	if b < firstByte {
		n.lab = "labx" + strconv.Itoa(b)
	}
	n.inner, n.table = n.lab+"p", "eidetic-"+n.lab
	if !ipv4Only {
		n.gateway6 = netip.MustParsePrefix(fmt.Sprintf("fd00:%d::1/64", b))
	}
	return n, nil
}

// control binds a listening socket to the lab interface, so that it receives from
// nobody else, and lets it answer from every address that the device connects to.
func (n names) control() func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) { err = n.bind(int(fd), network) }); cerr != nil {
			return cerr
		}
		return err
	}
}

func (n names) bind(fd int, network string) error {
	if err := unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, n.lab); err != nil {
		return fmt.Errorf("bind a socket to %s (needs CAP_NET_RAW): %w", n.lab, err)
	}
	// The flag is one for both families. A dual-stack socket takes it by the option
	// of IPv6, a socket of IPv4 by its own.
	err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TRANSPARENT, 1)
	if errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.EOPNOTSUPP) {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1)
	}
	if err != nil {
		return fmt.Errorf("let a %s socket answer for all addresses (needs CAP_NET_ADMIN): %w", network, err)
	}
	return nil
}
