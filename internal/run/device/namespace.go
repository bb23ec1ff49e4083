package device

import (
	"fmt"
	"net/netip"

	"eidetic/netlab/netspace"
)

// Namespace is a network namespace in which programs can be started.
type Namespace struct{ *netspace.Namespace }

// NewNamespace makes a network namespace whose loopback is up and whose IPv6 addresses need
// no duplicate address detection.
func NewNamespace() (*Namespace, error) {
	ns, err := netspace.New()
	if err != nil {
		return nil, err
	}
	if err := ns.DisableDAD(); err != nil {
		ns.Close()
		return nil, err
	}
	return &Namespace{ns}, nil
}

// cable connects this process's namespace to n by a veth pair. here is the name of the end on
// this side, which gets address; there is the name of the other end.
func (n *Namespace) cable(here, there string, address netip.Prefix) error {
	box, err := netspace.Here()
	if err != nil {
		return err
	}
	defer box.Close()
	if err := netspace.Veth(box, here, n.Namespace, there); err != nil {
		return err
	}
	if !address.IsValid() {
		return nil
	}
	return box.Address(here, address.String())
}

// Unplug removes the cable whose end in this process's namespace has the name here.
func Unplug(here string) error {
	box, err := netspace.Here()
	if err != nil {
		return fmt.Errorf("unplug %s: %w", here, err)
	}
	defer box.Close()
	return box.Remove(here)
}
