package box

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pinnedUplink returns the port that earlier boots used, or "".
func (p Ports) pinnedUplink() string {
	name, err := readPortName(filepath.Join(p.Root, UplinkFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Log.Warn("the uplink of earlier boots cannot be read; it is found anew", "error", err)
	}
	return name
}

// pin keeps the uplink for later boots. Without a disk every boot is the first one.
func (p Ports) pin(name string) {
	if err := writeFile(filepath.Join(p.Root, UplinkFile), []byte(name+"\n"), 0o644); err != nil {
		p.Log.Warn("the uplink is not kept for the next boot", "uplink", name, "error", err)
		return
	}
	p.Log.Info("the uplink is kept for later boots", "uplink", name)
}

// takeRequest keeps an uplink that a person chose at the console, and restarts the box: its
// ports may have other roles already, which they keep until then.
func (p Ports) takeRequest(ctx context.Context) error {
	file := filepath.Join(p.Root, UplinkRequest)
	name, err := readPortName(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err = errors.Join(err, os.Remove(file))
	if err != nil {
		return err
	}
	p.Log.Warn("the uplink was changed at the console; the box restarts", "uplink", name)
	p.pin(name)
	if out, err := p.Run(ctx, "systemctl", "--no-block", "reboot"); err != nil {
		return fmt.Errorf("restart: %w: %s", err, oneLine(out))
	}
	return nil
}

// readPortName reads a file that holds the name of a port.
func readPortName(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	name := strings.TrimSpace(string(text))
	if !isPort(name) {
		return "", fmt.Errorf("%s: %.40q is not a name of a network port", file, name)
	}
	return name, nil
}

// ports are the names of all ports that have a role or wait for one.
func (r Roles) ports() []string {
	all := slices.Clone(r.Waiting)
	for _, d := range r.Devices {
		all = append(all, d.Name)
	}
	if r.Uplink != "" && !slices.Contains(all, r.Uplink) {
		all = append(all, r.Uplink)
	}
	slices.Sort(all)
	return all
}

// Warning says what a person should know about the ports, or "".
func (r Roles) Warning() string {
	if len(r.Leased) == 0 {
		return ""
	}
	return fmt.Sprintf("port %s has a lease beside the uplink %s: it leads to another network, or its device runs a DHCP server; "+
		"nothing is served there", strings.Join(r.Leased, ", "), r.Uplink)
}
