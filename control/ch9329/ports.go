package ch9329

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Port is a USB serial port of this machine, at which a chip may be.
type Port struct {
	Path string `json:"path"` // a name that survives replugging
	Name string `json:"name"` // of the cable
	// Likely says that the cable is of the kind that is sold with the chip: WCH's CH340.
	Likely bool `json:"likely"`
}

// Ports lists the USB serial ports, by the names that udev gives them; root is the root of
// the file system. It opens none of them: a port may belong to something else.
func Ports(root fs.FS) ([]Port, error) {
	const dir = "dev/serial/by-id"
	entries, err := fs.ReadDir(root, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ch9329: %w", err)
	}
	var ports []Port
	for _, e := range entries {
		name, _, _ := strings.Cut(strings.TrimPrefix(e.Name(), "usb-"), "-if")
		ports = append(ports, Port{
			Path: "/" + dir + "/" + e.Name(), Name: strings.ReplaceAll(name, "_", " "),
			Likely: strings.HasPrefix(e.Name(), "usb-1a86_") || strings.HasPrefix(e.Name(), "usb-WCH"),
		})
	}
	return ports, nil
}
