package port

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"eidetic/netlab"
)

// Redirect makes a lab interface that somebody else made answer for every address and
// port, as that of a Port does: packets to any address are delivered to this host, and
// TCP connections to ports without a listener of their own go to the one at Addr. It is
// for a virtual device, whose namespace holds nothing but the lab.
type Redirect struct {
	filter *filter
	names  names
	undo   []func() error
}

// NewRedirect sets up the interface lab0 (of gateway 192.168.77.1/24, and so on), with
// the routes and the table of nftables that Port uses. It needs CAP_NET_ADMIN, and
// nft_tproxy and nft_reject_inet in the kernel.
func NewRedirect(gateway netip.Prefix) (*Redirect, error) {
	n, err := namesOf("none", gateway, true)
	if err != nil {
		return nil, err
	}
	r := &Redirect{names: n, filter: &filter{names: n}}
	route := &Port{names: n}
	undo, err := route.route()
	if undo != nil {
		r.undo = append(r.undo, undo)
	}
	if err == nil {
		r.undo = append(r.undo, func() error { return deleteTables(n.table) })
		err = r.filter.build()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("answer for every address and port: %w", err), r.Close())
	}
	return r, nil
}

// Addr is for netlab.Config.OtherAddr.
func (r *Redirect) Addr() string { return fmt.Sprintf("0.0.0.0:%d", otherPort) }

// Control is for netlab.Config.Control: it lets listeners answer from every address.
func (r *Redirect) Control(network, address string, c syscall.RawConn) error {
	return r.names.control()(network, address, c)
}

// SetPorts is for netlab.Config.OnPorts.
func (r *Redirect) SetPorts(p netlab.Ports) error { return r.filter.setPorts(p) }

// Close removes what NewRedirect added.
func (r *Redirect) Close() error {
	var errs []error
	for i := len(r.undo) - 1; i >= 0; i-- {
		errs = append(errs, r.undo[i]())
	}
	r.undo = nil
	return errors.Join(errs...)
}
