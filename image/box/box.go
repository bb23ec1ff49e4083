// Package box sets up a machine that runs our image as a box: its disk, its
// configuration, its ports and its console.
//
// In flow the firmware's variables, the EFI partition, sysfs and the kernel's
// view of the network; out flow a mounted data partition, files below /etc and
// /run that the service reads, networkd's configuration of the ports, and the
// text on the console. A step that fails is logged and skipped: a box with a
// broken disk still boots, and measures.
//
// It follows the boot loader interface (systemd.io/BOOT_LOADER_INTERFACE) and
// the discoverable partitions specification.
package box

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// Config is the box's part of the configuration file.
type Config struct {
	// Hostname is the name on the network: box is found as box.local.
	Hostname string `yaml:"hostname"`
	// Uplink is the port that leads to the network; empty for the first port
	// that gets a lease.
	Uplink string `yaml:"uplink"`
	// DevicePorts are the ports that lead to devices; empty for all other ports.
	DevicePorts []string `yaml:"device_ports"`
}

// DefaultConfig is the configuration of a box that was never configured.
func DefaultConfig() Config { return Config{Hostname: "box"} }

// FieldError says which field is wrong.
type FieldError struct {
	Field string // below box, for example "hostname"
	Err   error
}

func (e *FieldError) Error() string { return "box." + e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong with the field.
func (e *FieldError) Unwrap() error { return e.Err }

// Validate returns a *FieldError for the first field that cannot be used.
func (c Config) Validate() error {
	if !regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(c.Hostname) {
		return &FieldError{"hostname", fmt.Errorf("%q is not a host name: use small letters, digits and dashes, at most 63", c.Hostname)}
	}
	if c.Uplink != "" && !isPort(c.Uplink) {
		return &FieldError{"uplink", fmt.Errorf("%q is not a name of a network port, such as enp1s0", c.Uplink)}
	}
	for i, name := range c.DevicePorts {
		if !isPort(name) {
			return &FieldError{fmt.Sprintf("device_ports[%d]", i), fmt.Errorf("%q is not a name of a network port, such as enp2s0", name)}
		}
		if name == c.Uplink {
			return &FieldError{fmt.Sprintf("device_ports[%d]", i), fmt.Errorf("%s is the uplink already", name)}
		}
	}
	return nil
}

// isPort reports whether name is a valid interface name for the kernel and cannot
// act as a path or a pattern in a configuration file.
func isPort(name string) bool {
	return len(name) <= 15 && regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`).MatchString(name)
}

// Runner runs a program of the system and returns what it printed.
type Runner func(ctx context.Context, name string, args ...string) ([]byte, error)

// devicePrefix is the network of the n-th device port (from 0), the box at .1.
func devicePrefix(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, byte(77 + n), 1}), 24)
}

// RadioPrefix is the network of the n-th radio (from 0) that is an access point but
// not a device port; these networks come after those of all device ports.
func RadioPrefix(n int) netip.Prefix { return devicePrefix(maxDevicePorts + n) }

// maxDevicePorts bounds the number of device networks.
const maxDevicePorts = 16

// oneLine joins a program's output into one line for the log.
func oneLine(out []byte) string {
	return strings.Join(strings.Fields(string(out)), " ")
}
