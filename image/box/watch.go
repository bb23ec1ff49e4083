package box

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// PortsFile holds the current Roles as JSON.
	PortsFile = "run/appliance-box/ports.json"
	// UplinkFile holds the name of the port that is the uplink from the first boot on. It
	// is on the data partition, so that a device with a DHCP server that is plugged in
	// later does not become the uplink.
	UplinkFile = dataDir + "/uplink"
	// UplinkRequest is the file with the name of a new uplink, which a person at the
	// console chose; the box restarts with it.
	UplinkRequest = "run/appliance-box/uplink"
	// settleTime is the time for other ports to get a lease after the uplink got one.
	settleTime = 10 * time.Second
	lookEvery  = time.Second
)

// Ports assigns roles to the ports for as long as the box runs.
type Ports struct {
	Root   string // the file system, / on a box
	Config Config
	Run    Runner
	Log    *slog.Logger
	Links  func() ([]Link, error) // KernelLinks on a box
	Settle time.Duration          // how long other ports get a lease after the uplink did; 0 is settleTime
}

// Watch looks at the ports once a second and applies each change of roles.
func (p Ports) Watch(ctx context.Context) error {
	roles := p.savedRoles()
	pinned := p.pinnedUplink()
	if p.Config.Uplink == "" && pinned != "" {
		p.Config.Uplink = pinned
	}
	began, settle := time.Now(), cmp.Or(p.Settle, settleTime)
	var since time.Time // the time at which the uplink was found
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for first := true; ; first = false {
		links, err := p.Links()
		if err != nil {
			return fmt.Errorf("read the network ports: %w", err)
		}
		if roles.Uplink != "" && since.IsZero() {
			since = time.Now()
		}
		settled := !since.IsZero() && time.Since(since) >= settle
		links = countable(links, cmp.Or(p.Config.Uplink, roles.Uplink), time.Since(began) >= settle)
		now := Decide(roles, links, p.Config, settled)
		if first || !now.Equal(roles) {
			p.Log.Info("ports", "uplink", now.Uplink, "address", now.Address, "devices", len(now.Devices), "waiting", len(now.Waiting))
			done := roles.Devices
			if first {
				done = nil // configure all ports again, even if a previous process did
			}
			if first && p.Config.Uplink != "" { // later, a port with a lease would ask anew, and look like one without
				if err := p.confine(ctx, p.Config.Uplink); err != nil {
					return err
				}
			}
			if err := p.apply(ctx, done, now, first || now.Uplink != roles.Uplink); err != nil {
				return err
			}
			roles = now
		}
		// With two leases it is not known which port leads to the network that a person
		// meant: the console and the health ask.
		if now.Uplink != pinned && (p.Config.Uplink != "" || settled && now.Address.IsValid() && len(now.Leased) == 0) {
			p.pin(now.Uplink)
			pinned = now.Uplink
			if p.Config.Uplink == "" { // no port that waits has a lease
				if err := p.confine(ctx, pinned); err != nil {
					return err
				}
			}
		}
		if err := p.takeRequest(ctx); err != nil {
			p.Log.Error("the uplink was not changed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// savedRoles returns the roles that a previous process assigned since the box
// started. A device port has no lease any more by which to recognise it, and must keep its
// role and address. Without saved roles, or if they cannot be read, all roles are decided anew.
func (p Ports) savedRoles() (roles Roles) {
	text, err := os.ReadFile(filepath.Join(p.Root, PortsFile))
	if err == nil {
		err = json.Unmarshal(text, &roles)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.Log.Warn("saved roles of the ports cannot be read; roles are decided anew", "error", err)
		}
		return Roles{}
	}
	return Roles{Uplink: roles.Uplink, Devices: roles.Devices}
}

// confine has the ports that wait take no route, now that the uplink is known.
func (p Ports) confine(ctx context.Context, uplink string) error {
	name, text := waitingFile(uplink)
	if err := writeFile(filepath.Join(p.Root, name), []byte(text), 0o644); err != nil {
		return err
	}
	return p.reload(ctx)
}

func (p Ports) reload(ctx context.Context) error {
	if out, err := p.Run(ctx, "networkctl", "reload"); err != nil {
		return fmt.Errorf("networkctl: %w: %s", err, oneLine(out))
	}
	return nil
}

// apply opens the firewall for a new uplink, configures the device ports that are not in
// done, and saves the roles.
func (p Ports) apply(ctx context.Context, done []DevicePort, now Roles, newUplink bool) error {
	if newUplink && now.Uplink != "" {
		for _, args := range [][]string{
			{"flush", "set", "inet", "box", "uplink"},
			{"add", "element", "inet", "box", "uplink", "{", `"` + now.Uplink + `"`, "}"},
		} {
			if out, err := p.Run(ctx, "nft", args...); err != nil {
				return fmt.Errorf("nft: %w: %s", err, oneLine(out))
			}
		}
	}
	for _, d := range now.Devices[len(done):] {
		// Install the firewall before the address.
		if out, err := p.Run(ctx, "nft", "add", "element", "inet", "box", "device_ports", "{", `"`+d.Name+`"`, "}"); err != nil {
			return fmt.Errorf("nft: %w: %s", err, oneLine(out))
		}
		name, text := d.NetworkFile()
		if err := writeFile(filepath.Join(p.Root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if len(now.Devices) > len(done) {
		if err := p.reload(ctx); err != nil {
			return err
		}
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(p.Root, PortsFile), append(text, '\n'), 0o644)
}

// forever is the lifetime of an address that was not leased.
const forever = 1<<32 - 1

// KernelLinks lists the machine's physical Ethernet ports, with the addresses that were leased.
func KernelLinks() ([]Link, error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	var links []Link
	for _, l := range all {
		a := l.Attrs()
		// Only hardware has the link type "device"; tunnels have another type, loopback another encapsulation.
		if l.Type() != "device" || a.EncapType != "ether" || !isPort(a.Name) {
			continue
		}
		wireless, err := wireless("/", a.Name)
		if err != nil {
			continue // it was removed meanwhile
		}
		link := Link{Name: a.Name, Wireless: wireless}
		addresses, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			return nil, err
		}
		link.Address = leased(addresses)
		links = append(links, link)
	}
	return links, nil
}

// unusable are the flags of an address that is not checked yet, is about to go, or is only for a while.
const unusable = unix.IFA_F_TENTATIVE | unix.IFA_F_DEPRECATED | unix.IFA_F_TEMPORARY

// leased returns the address of a lease (DHCP): one that does not last forever. Without one it is an address of IPv6 that
// a router or a lease of DHCPv6 gave.
func leased(all []netlink.Addr) (found netip.Addr) {
	for _, one := range all {
		ip, ok := netip.AddrFromSlice(one.IP)
		ip = ip.Unmap()
		switch {
		case !ok || one.ValidLft == 0 || ip.IsLinkLocalUnicast() || one.Flags&unusable != 0:
		case ip.Is4() && uint32(one.ValidLft) != forever && !found.Is4():
			found = ip
		case ip.Is6() && !found.IsValid():
			found = ip
		}
	}
	return found
}

// countable leaves out addresses of IPv6 that make no port an uplink: of the ports beside the uplink, and of all for so
// long as a lease of IPv4 may still come. Many devices announce themselves as routers of IPv6.
func countable(links []Link, uplink string, waited bool) []Link {
	links = slices.Clone(links)
	isFour := func(l Link) bool { return l.Address.Is4() }
	open := uplink == "" && waited && !slices.ContainsFunc(links, isFour)
	for i, l := range links {
		if l.Address.Is6() && l.Name != uplink && !open {
			links[i].Address = netip.Addr{}
		}
	}
	return links
}

// Wireless reports whether the port exists and is a radio; root is / on a box.
func Wireless(root, name string) bool {
	yes, err := wireless(root, name)
	return err == nil && yes
}

// wireless reads the device's kind, which exists for as long as the interface does,
// unlike other signs of a radio.
func wireless(root, name string) (bool, error) {
	kind, err := os.ReadFile(filepath.Join(root, "sys/class/net", name, "uevent"))
	return strings.Contains(string(kind), "DEVTYPE=wlan\n"), err
}
