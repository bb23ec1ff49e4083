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
	"strings"
	"time"

	"github.com/vishvananda/netlink"
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
		settled := !since.IsZero() && time.Since(since) >= cmp.Or(p.Settle, settleTime)
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

// KernelLinks lists the machine's physical Ethernet ports, with the IPv4
// addresses that were leased.
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
		addresses, err := netlink.AddrList(l, netlink.FAMILY_V4)
		if err != nil {
			return nil, err
		}
		for _, address := range addresses {
			ip, ok := netip.AddrFromSlice(address.IP)
			if ok && uint32(address.ValidLft) != forever && address.ValidLft != 0 && !link.Address.IsValid() {
				link.Address = ip.Unmap()
			}
		}
		links = append(links, link)
	}
	return links, nil
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
