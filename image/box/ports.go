package box

import (
	"net/netip"
	"slices"
	"strings"
)

// Link is one Ethernet port as the kernel has it.
type Link struct {
	Name string
	// Address is the one that a lease gave it; invalid without a lease.
	Address netip.Addr
	// Wireless says that it is a radio: a port only where the configuration
	// names it, because it leads nowhere by itself.
	Wireless bool
}

// Roles say what the ports are for.
type Roles struct {
	Uplink  string       `json:"uplink,omitempty"`
	Address netip.Addr   `json:"address"` // of the uplink; invalid without a lease
	Devices []DevicePort `json:"devices,omitempty"`
	// Waiting are the ports that are neither yet.
	Waiting []string `json:"waiting,omitempty"`
}

// DevicePort is a port that leads to a device, with the box's address there.
type DevicePort struct {
	Name    string       `json:"name"`
	Address netip.Prefix `json:"address"`
}

// Equal compares roles.
func (r Roles) Equal(o Roles) bool {
	return r.Uplink == o.Uplink && r.Address == o.Address && slices.Equal(r.Devices, o.Devices) && slices.Equal(r.Waiting, o.Waiting)
}

// Decide tells the ports apart. Radios count where they are configured. The uplink is the configured one, or the first
// by name that has a lease, and stays it when the lease goes. Device ports are
// the configured ones; without any they are, once there is an uplink and
// settled says that all had time to get a lease, those that have none. What
// has become a device port stays one until the box starts again, because it no
// longer asks for a lease.
func Decide(before Roles, links []Link, cfg Config, settled bool) Roles {
	links = slices.Clone(links)
	slices.SortFunc(links, func(a, b Link) int { return strings.Compare(a.Name, b.Name) })
	configured := func(name string) bool { return slices.Contains(cfg.DevicePorts, name) }
	links = slices.DeleteFunc(links, func(l Link) bool { return l.Wireless && l.Name != cfg.Uplink && !configured(l.Name) })
	isDevice := func(name string) bool {
		if name == cfg.Uplink {
			return false
		}
		return configured(name) ||
			slices.ContainsFunc(before.Devices, func(d DevicePort) bool { return d.Name == name })
	}
	now := Roles{Uplink: before.Uplink}
	if cfg.Uplink != "" {
		now.Uplink = cfg.Uplink
	}
	for _, l := range links {
		if now.Uplink == "" && l.Address.IsValid() && !isDevice(l.Name) {
			now.Uplink = l.Name
		}
	}
	now.Devices = slices.Clone(before.Devices)
	for _, l := range links {
		known := slices.ContainsFunc(now.Devices, func(d DevicePort) bool { return d.Name == l.Name })
		switch {
		case l.Name == now.Uplink:
			now.Address = l.Address
		case known:
		case len(now.Devices) < maxDevicePorts && (isDevice(l.Name) ||
			len(cfg.DevicePorts) == 0 && now.Uplink != "" && settled && !l.Address.IsValid()):
			now.Devices = append(now.Devices, DevicePort{l.Name, devicePrefix(len(now.Devices))})
		default:
			now.Waiting = append(now.Waiting, l.Name)
		}
	}
	return now
}

// NetworkFile is networkd's configuration of a device port: none, because the
// service takes the port and gives the address to an interface of its own
// behind it; and nothing that the device could talk the kernel into.
func (d DevicePort) NetworkFile() (name, text string) {
	return "run/systemd/network/10-device-" + d.Name + ".network", `# By appliance-ports.service: this port leads to a device.
[Match]
Name=` + d.Name + `

[Link]
RequiredForOnline=no

[Network]
ConfigureWithoutCarrier=yes
LinkLocalAddressing=no
IPv6AcceptRA=no
MulticastDNS=no
LLMNR=no
`
}
