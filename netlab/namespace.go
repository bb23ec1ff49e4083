package netlab

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// prepareNamespace makes this network namespace accept packets to all addresses of
// the prefixes (AnyIP: a local route), and sets tcp_no_metrics_save, so that no trial
// starts with the slow-start threshold of the one before. It returns what undoes each
// step.
func prepareNamespace(prefixes ...netip.Prefix) (undo []func() error, err error) {
	fail := func(err error) ([]func() error, error) {
		for i := len(undo) - 1; i >= 0; i-- {
			err = errors.Join(err, undo[i]())
		}
		return nil, err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fail(fmt.Errorf("find the loopback interface: %w", err))
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fail(fmt.Errorf("bring lo up (needs CAP_NET_ADMIN in a network namespace of one's own): %w", err))
	}
	for _, p := range prefixes {
		if !p.IsValid() {
			continue
		}
		route := &netlink.Route{
			LinkIndex: lo.Attrs().Index, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
			Dst: &net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())},
		}
		// It is replaced, because a killed run may have left one.
		if err := netlink.RouteReplace(route); err != nil {
			return fail(fmt.Errorf("route %v to this host: %w", p, err))
		}
		undo = append(undo, func() error {
			if err := netlink.RouteDel(route); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("remove the route of %v: %w", p, err)
			}
			return nil
		})
	}
	restore, err := sysctl("net.ipv4.tcp_no_metrics_save", "1")
	if err != nil {
		return fail(err)
	}
	return append(undo, restore), nil
}

// sysctlPath returns the file of a kernel setting of this namespace.
func sysctlPath(name string) string {
	return "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
}

func readSysctl(name string) (string, error) {
	b, err := os.ReadFile(sysctlPath(name))
	return strings.TrimSpace(string(b)), err
}

// sysctl sets a value and returns what restores the old one. A setting that is
// read-only (in some containers) stays; the environment record has its value.
func sysctl(name, value string) (restore func() error, err error) {
	nothing := func() error { return nil }
	old, err := readSysctl(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if old == value {
		return nothing, nil
	}
	set := func(v string) error {
		if err := os.WriteFile(sysctlPath(name), []byte(v), 0); err != nil {
			return fmt.Errorf("set %s to %s: %w", name, v, err)
		}
		return nil
	}
	if err := set(value); err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
			return nothing, nil
		}
		return nil, err
	}
	return func() error { return set(old) }, nil
}
