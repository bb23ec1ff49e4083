package box

import (
	"net/netip"
	"slices"
	"strings"
)

// Link is the kernel's state of one Ethernet port.
type Link struct {
	Name string
	// Address is the leased address, or one of IPv6 that a router gave; invalid without a lease.
	Address netip.Addr
	// Wireless is set for a radio. A radio becomes a port only if the
	// configuration names it, because by itself it leads nowhere.
	Wireless bool
}

// Roles says which port is the uplink and which lead to devices.
type Roles struct {
	Uplink  string       `json:"uplink,omitempty"`
	Address netip.Addr   `json:"address"` // of the uplink; invalid without a lease
	Devices []DevicePort `json:"devices,omitempty"`
	// Waiting are the ports that have no role yet.
	Waiting []string `json:"waiting,omitempty"`
	// Leased are the ports among Waiting that have a lease although there is an uplink:
	// each leads to another network, or its device runs a DHCP server.
	Leased []string `json:"leased,omitempty"`
}

// DevicePort is a port that leads to a device, with the box's address there.
type DevicePort struct {
	Name    string       `json:"name"`
	Address netip.Prefix `json:"address"`
}

// Equal compares roles.
func (r Roles) Equal(o Roles) bool {
	return r.Uplink == o.Uplink && r.Address == o.Address && slices.Equal(r.Devices, o.Devices) && slices.Equal(r.Waiting, o.Waiting) &&
		slices.Equal(r.Leased, o.Leased)
}

// Decide gives each port its role. A radio takes part only if cfg names it. The uplink
// is the configured port, or otherwise the first port by name that has a lease; it stays
// the uplink when it loses the lease. The device ports are the configured ones. If none
// are configured, they are the ports without a lease, as soon as there is an uplink and
// settled says that all ports had time to get one. A port that has become a device
// port stays one until the box restarts, because it no longer asks for a lease.
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
			if now.Uplink != "" && l.Address.IsValid() {
				now.Leased = append(now.Leased, l.Name)
			}
		}
	}
	return now
}

// NetworkFile is networkd's configuration of a device port. It assigns no address,
// because the service takes the port over and gives the address to an interface of its
// own behind it, and it switches off everything by which a device could configure the kernel.
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

// waitingFile is networkd's configuration of the ports that wait while the uplink is known, of those that are plugged in
// later, too. They ask for a lease, by which the box tells that something is wrong, and take nothing else of it: the routes
// and the name servers of a device that has a DHCP server would take the place of the uplink's. The lease's own network
// may be half of all addresses, so its route is in a table that nothing leads to.
func waitingFile(uplink string) (name, text string) {
	return "run/systemd/network/20-waiting.network", `# By appliance-ports.service: the uplink is known, and is none of these.
[Match]
Type=ether
Kind=!veth bridge dummy tun
Name=!` + uplink + `

[Link]
RequiredForOnline=no

[Network]
DHCP=ipv4
IPv6AcceptRA=no
MulticastDNS=no
LLMNR=no

[DHCPv4]
ClientIdentifier=mac
UseDomains=no
UseDNS=no
UseNTP=no
UseGateway=no
UseRoutes=no
RouteTable=7999
`
}
