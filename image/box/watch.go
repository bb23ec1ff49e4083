package box

import (
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
	// PortsFile holds the present Roles as JSON.
	PortsFile = "run/appliance-box/ports.json"
	// settleTime is how long ports get a lease in, counted from the uplink's.
	settleTime = 10 * time.Second
	lookEvery  = time.Second
)

// Ports tells the ports apart for as long as the box runs.
type Ports struct {
	Root   string // the file system, / on a box
	Config Config
	Run    Runner
	Log    *slog.Logger
	Links  func() ([]Link, error) // KernelLinks on a box
}

// Watch looks at the ports once a second, and puts each change into effect.
func (p Ports) Watch(ctx context.Context) error {
	roles := p.kept()
	var since time.Time // when the uplink was first known
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
		settled := !since.IsZero() && time.Since(since) >= settleTime
		now := Decide(roles, links, p.Config, settled)
		if first || !now.Equal(roles) {
			p.Log.Info("ports", "uplink", now.Uplink, "address", now.Address, "devices", len(now.Devices), "waiting", len(now.Waiting))
			done := roles.Devices
			if first {
				done = nil // whatever a process before this one did
			}
			if err := p.apply(ctx, done, now); err != nil {
				return err
			}
			roles = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// kept are the roles that the process before this one gave, since the box
// started: a device port stays one, with its address, although it has no lease
// to tell it by. Without any, or when they cannot be read, all begins anew.
func (p Ports) kept() (roles Roles) {
	text, err := os.ReadFile(filepath.Join(p.Root, PortsFile))
	if err == nil {
		err = json.Unmarshal(text, &roles)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.Log.Warn("the roles of the ports begin anew", "error", err)
		}
		return Roles{}
	}
	return Roles{Uplink: roles.Uplink, Devices: roles.Devices}
}

// apply configures new device ports, those after done, and writes down the roles.
func (p Ports) apply(ctx context.Context, done []DevicePort, now Roles) error {
	for _, d := range now.Devices[len(done):] {
		// The wall first, then the address.
		if out, err := p.Run(ctx, "nft", "add", "element", "inet", "box", "device_ports", "{", `"`+d.Name+`"`, "}"); err != nil {
			return fmt.Errorf("nft: %w: %s", err, oneLine(out))
		}
		name, text := d.NetworkFile()
		if err := writeFile(filepath.Join(p.Root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if len(now.Devices) > len(done) {
		if out, err := p.Run(ctx, "networkctl", "reload"); err != nil {
			return fmt.Errorf("networkctl: %w: %s", err, oneLine(out))
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
		// Only hardware has the type "device"; loopback and tunnels have other encapsulations.
		if l.Type() != "device" || a.EncapType != "ether" || !isPort(a.Name) {
			continue
		}
		wireless, err := wireless("/", a.Name)
		if err != nil {
			continue // it is gone
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

// Wireless says whether the port is there and a radio; root is / on a box.
func Wireless(root, name string) bool {
	yes, err := wireless(root, name)
	return err == nil && yes
}

// wireless looks at the device's kind, which unlike other signs of a radio is
// there from its first moment to its last.
func wireless(root, name string) (bool, error) {
	kind, err := os.ReadFile(filepath.Join(root, "sys/class/net", name, "uevent"))
	return strings.Contains(string(kind), "DEVTYPE=wlan\n"), err
}
