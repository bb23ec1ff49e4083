package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"eidetic/internal/job"
)

// deviceConfig is a device at a network port that shares its screen by VNC.
type deviceConfig struct {
	// Name is what runs call it; without it, that of the port.
	Name string `yaml:"name"`
	// Port is the network port that it is plugged into.
	Port string `yaml:"port"`
	// Gateway is the box's address there, with the prefix length; without it
	// 192.168.77.1/24 on the first, 192.168.78.1/24 on the second.
	Gateway string `yaml:"gateway"`
	// WiFi makes the port, a radio, an access point.
	WiFi *wifiConfig `yaml:"wifi"`
	// VNC is the TCP port of its VNC server.
	VNC      uint16 `yaml:"vnc"`
	Password string `yaml:"password"`
	// Rate is how often a second its screen is looked at.
	Rate float64 `yaml:"rate"`
	// Fresh are the keys that make it fresh before each trial: "key Ctrl+W"
	// presses, "text WORDS" types. Its browser must open http://box.test/start after them.
	Fresh []string `yaml:"fresh"`
}

// withDefaults fills in what the n-th device, from 0, leaves out.
func (c deviceConfig) withDefaults(n int) deviceConfig {
	c.Name = cmp.Or(c.Name, c.Port)
	c.Gateway = cmp.Or(c.Gateway, fmt.Sprintf("192.168.%d.1/24", 77+n))
	c.VNC = cmp.Or(c.VNC, 5900)
	c.Rate = cmp.Or(c.Rate, 60)
	if len(c.Fresh) == 0 {
		c.Fresh = []string{"key Ctrl+W"}
	}
	return c
}

// gateway was checked.
func (c deviceConfig) gateway() netip.Prefix {
	p, _ := netip.ParsePrefix(c.Gateway)
	return p
}

// fieldError says which field of a device is wrong.
type fieldError struct {
	field string
	err   error
}

// maxRate bounds how often a screen is looked at.
const maxRate = 240

// validateDevices returns the first field that cannot be used.
func validateDevices(all []deviceConfig) *fieldError {
	names, at := map[string]bool{"virtual": true}, map[string]bool{}
	for i, given := range all {
		c := given.withDefaults(i)
		wrong := func(field, format string, args ...any) *fieldError {
			return &fieldError{fmt.Sprintf("[%d].%s", i, field), fmt.Errorf(format, args...)}
		}
		if c.Port == "" || len(c.Port) > 15 || strings.ContainsAny(c.Port, "/ \t") {
			return wrong("port", "%q is not a name of a network port, such as enp2s0", c.Port)
		}
		if at[c.Port] {
			return wrong("port", "two devices are at %s", c.Port)
		}
		if names[c.Name] || len(c.Name) > 100 {
			return wrong("name", "%q is taken, or too long", c.Name)
		}
		names[c.Name], at[c.Port] = true, true
		if p, err := netip.ParsePrefix(c.Gateway); err != nil || !p.Addr().Is4() || p.Bits() < 8 || p.Bits() > 30 {
			return wrong("gateway", "%q is not an IPv4 address with a prefix length, such as 192.168.77.1/24", c.Gateway)
		}
		if !(c.Rate >= 1 && c.Rate <= maxRate) {
			return wrong("rate", "%g looks a second; at least 1 and at most %d", c.Rate, maxRate)
		}
		if c.WiFi != nil {
			if err := c.WiFi.validate(); err != nil {
				return wrong("wifi", "%w", err)
			}
		}
		if _, err := job.ParseFresh(c.Fresh); err != nil {
			return wrong("fresh", "%w", err)
		}
	}
	return nil
}
