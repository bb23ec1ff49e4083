package gadget

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Port is a USB device port of this machine: what the kernel calls a USB device controller.
type Port struct {
	Name  string `json:"name"`  // "fe980000.usb"
	State string `json:"state"` // "not attached", "configured", "suspended" …
	// Emulated says that it is dummy_hcd's: its other end is this machine itself.
	Emulated bool `json:"emulated,omitempty"`
}

// Ports lists the ports; root is the root of the file system.
func Ports(root fs.FS) ([]Port, error) {
	entries, err := fs.ReadDir(root, "sys/class/udc")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("gadget: %w", err)
	}
	var ports []Port
	for _, e := range entries {
		p := Port{Name: e.Name(), Emulated: strings.HasPrefix(e.Name(), "dummy_udc.")}
		state, err := fs.ReadFile(root, "sys/class/udc/"+e.Name()+"/state")
		if err != nil {
			continue // it was unplugged meanwhile
		}
		p.State = strings.TrimSpace(string(state))
		ports = append(ports, p)
	}
	return ports, nil
}

// ErrNoPort says that the machine has no USB device port, and what to use instead.
var ErrNoPort = errors.New("this machine has no USB device port, as no x86 machine has: use a CH9329 serial chip instead") // constant

// choose returns the port of that name, or the only one.
func choose(ports []Port, name string) (Port, error) {
	if len(ports) == 0 {
		return Port{}, ErrNoPort
	}
	var names []string
	for _, p := range ports {
		if p.Name == name || name == "" && len(ports) == 1 {
			return p, nil
		}
		names = append(names, p.Name)
	}
	if name == "" {
		return Port{}, fmt.Errorf("this machine has %d USB device ports: name one of %s", len(ports), strings.Join(names, ", "))
	}
	return Port{}, fmt.Errorf("there is no USB device port %.60q: there are %s", name, strings.Join(names, ", "))
}
