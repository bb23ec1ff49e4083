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
	firstByte   = 77 // of the first port's network, 192.168.77.0/24
	alias       = "eidetic device port"
	firstRoutes = 7700 // routing table of 192.168.0.0/24's port, and its rules' priority
)

// names are what one port's parts are called in the kernel, all by the third
// byte of its address: what a killed run left is found by them.
type names struct {
	device   string       // the port: "enp2s0"
	lab      string       // "lab0", which has the addresses
	inner    string       // "lab0p", the other end of lab's veth pair
	table    string       // of nftables, in the families inet and netdev
	routes   int          // routing table, and priority of the rules that lead to it
	gateway  netip.Prefix // 192.168.77.1/24
	gateway6 netip.Prefix // fd00:77::1/64; zero without IPv6
}

// CheckInterface says what is wrong with a Config's Interface.
func CheckInterface(name string) error {
	if len(name) > 15 || !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`).MatchString(name) {
		return fmt.Errorf("%q is not the name of a network interface, such as enp2s0", name)
	}
	return nil
}

// CheckGateway says what is wrong with a Config's Gateway.
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
	n := names{device: device, lab: "lab" + strconv.Itoa(b-firstByte), routes: firstRoutes + b, gateway: gateway}
	if b < firstByte {
		n.lab = "labx" + strconv.Itoa(b)
	}
	n.inner, n.table = n.lab+"p", "eidetic-"+n.lab
	if !ipv4Only {
		n.gateway6 = netip.MustParsePrefix(fmt.Sprintf("fd00:%d::1/64", b))
	}
	return n, nil
}

// control keeps a listening socket to the lab interface, so that it hears no
// one else, and lets it answer from any address that the device has called.
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
		return fmt.Errorf("keep a socket to %s (needs CAP_NET_RAW): %w", n.lab, err)
	}
	// A socket of either family holds one flag; one that is dual takes it by
	// its own family's option.
	err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TRANSPARENT, 1)
	if errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.EOPNOTSUPP) {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1)
	}
	if err != nil {
		return fmt.Errorf("let a %s socket answer for all addresses (needs CAP_NET_ADMIN): %w", network, err)
	}
	return nil
}
