package service

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"

	"eidetic/internal/fleet"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/execute"
	"eidetic/netlab/port"
)

// deviceConfig is a device at a network port: what its screen is seen by, what gives it input,
// and what is known of its browser. Without screen and controls it shares its screen by VNC.
type deviceConfig struct {
	// Name is what runs call it; the default is the name of the port.
	Name string `yaml:"name"`
	// Port is the network port that it is plugged into.
	Port string `yaml:"port"`
	// Gateway is the box's address at the port, with the prefix length; the default
	// is 192.168.77.1/24 at the first port, 192.168.78.1/24 at the second.
	Gateway string `yaml:"gateway"`
	// WiFi makes the port, a radio, an access point.
	WiFi *wifiConfig `yaml:"wifi"`
	// Screen and Controls are its parts; Recipe is what is known of its browser.
	Screen   *lab.ScreenPart   `yaml:"screen"`
	Controls *lab.ControlsPart `yaml:"controls"`
	Recipe   string            `yaml:"recipe"`
	// VNC is the TCP port of its VNC server.
	VNC      uint16     `yaml:"vnc"`
	Password lab.Secret `yaml:"password"`
	// HTTP3 lets the device speak HTTP/3 with hosts whose origins do; the default is true.
	HTTP3 *bool `yaml:"http3"`
	// Rate is how many times a second its screen is sampled.
	Rate float64 `yaml:"rate"`
	// Fresh are the keys that make it fresh before each trial: "key Ctrl+W"
	// presses, "text WORDS" types. Its browser must open http://box.test/start after them.
	Fresh []string `yaml:"fresh"`
	// Clear lets what its browser has stored, bookmarks and log-ins too, be removed before each trial: see
	// docs/devices/android.md.
	Clear bool `yaml:"clear"`
	// Display is the X display of this machine, such as ":0", on a screen that the grabber sees while it is qualified.
	Display string `yaml:"display"`
	// Power switches it off and on when it hangs.
	Power *lab.PowerPart `yaml:"power"`
	// Labels are what plans of a fleet may ask for, such as model: Pixel 8.
	Labels map[string]string `yaml:"labels"`
}

// withDefaults fills in what the n-th device, from 0, leaves out.
func (c deviceConfig) withDefaults(n int) deviceConfig {
	c.Name = cmp.Or(c.Name, c.Port)
	c.Gateway = cmp.Or(c.Gateway, fmt.Sprintf("192.168.%d.1/24", 77+n))
	c.VNC = cmp.Or(c.VNC, 5900)
	c.Rate = cmp.Or(c.Rate, 60)
	if c.Screen == nil {
		c.Screen = &lab.ScreenPart{RFB: strconv.Itoa(int(c.VNC)), Rate: c.Rate}
	}
	if c.Controls == nil {
		c.Controls = &lab.ControlsPart{RFB: strconv.Itoa(int(c.VNC))}
	}
	if len(c.Fresh) == 0 && c.Recipe == "" {
		c.Fresh = []string{"key Ctrl+W"}
	}
	return c
}

// forPlan returns the device with the parts that a plan names in place of its own.
func (c deviceConfig) forPlan(p lab.Plan) deviceConfig {
	if p.Screen != nil {
		c.Screen = p.Screen
	}
	if p.Controls != nil {
		c.Controls = p.Controls
	}
	if p.Recipe != "" {
		c.Recipe, c.Fresh = p.Recipe, nil
	}
	return c
}

func (c deviceConfig) http3() bool { return c.HTTP3 == nil || *c.HTTP3 }

// fresh are the steps of Fresh; none where a recipe says how.
func (c deviceConfig) fresh() (execute.Fresh, error) {
	if len(c.Fresh) == 0 {
		return nil, nil
	}
	return execute.ParseFresh(c.Fresh)
}

// gateway parses Gateway, which was checked.
func (c deviceConfig) gateway() netip.Prefix {
	p, _ := netip.ParsePrefix(c.Gateway)
	return p
}

// fieldError says which field of a device is wrong.
type fieldError struct {
	field string
	err   error
}

// maxRate bounds how many times a second a screen is sampled.
const maxRate = 240

// displayPattern is of X displays of this machine.
func displayPattern() *regexp.Regexp { return regexp.MustCompile(`^:[0-9]{1,5}(\.0)?$`) }

// maxDevices bounds how many networks a configuration makes.
const maxDevices = 64

// validateDevices returns the first field that cannot be used. uplink is the port
// that leads to the network, if the configuration names it.
func validateDevices(all []deviceConfig, uplink string) *fieldError {
	names, at, gateways := map[string]bool{"virtual": true}, map[string]bool{}, map[string]string{}
	if len(all) > maxDevices {
		return &fieldError{fmt.Sprintf("[%d]", maxDevices), fmt.Errorf("%d devices: at most %d", len(all), maxDevices)}
	}
	for i, given := range all {
		c := given.withDefaults(i)
		wrong := func(field, format string, args ...any) *fieldError {
			return &fieldError{fmt.Sprintf("[%d].%s", i, field), fmt.Errorf(format, args...)}
		}
		if err := port.CheckInterface(c.Port); err != nil {
			return wrong("port", "%w", err)
		}
		if c.Port == uplink {
			return wrong("port", "%s is box.uplink, which leads to the network and to no device", c.Port)
		}
		if at[c.Port] {
			return wrong("port", "two devices are at %s", c.Port)
		}
		if names[c.Name] || len(c.Name) > 100 {
			return wrong("name", "%q is taken, or too long", c.Name)
		}
		names[c.Name], at[c.Port] = true, true
		gateway, err := netip.ParsePrefix(c.Gateway)
		if err != nil {
			return wrong("gateway", "%q is not an IPv4 address with a prefix length, such as 192.168.77.1/24", c.Gateway)
		}
		if err := port.CheckGateway(gateway); err != nil {
			return wrong("gateway", "%w", err)
		}
		if other := gateways[c.Gateway]; other != "" {
			return wrong("gateway", "%s is the box's address at %s already; give each port one of its own, such as 192.168.%d.1/24",
				c.Gateway, other, 77+len(all))
		}
		gateways[c.Gateway] = c.Port
		if !(c.Rate >= 1 && c.Rate <= maxRate) {
			return wrong("rate", "%g a second: at least 1 and at most %d", c.Rate, maxRate)
		}
		if c.WiFi != nil {
			if err := c.WiFi.validate(); err != nil {
				return wrong("wifi", "%w", err)
			}
		}
		var part *lab.FieldError
		if err := cmp.Or(plan.CheckParts(c.Screen, c.Controls, c.Recipe), plan.CheckPower(c.Power)); errors.As(err, &part) {
			return wrong(part.Path, "%w", part.Err)
		}
		if c.Clear && c.Controls.ADB == "" {
			return wrong("clear", "only what is stored on a phone that adb drives can be removed: write controls: {adb: auto}")
		}
		if _, err := c.fresh(); err != nil {
			return wrong("fresh", "%w", err)
		}
		if c.Display != "" && !displayPattern().MatchString(c.Display) {
			return wrong("display", "%q is no X display of this machine; write :0", c.Display)
		}
		if err := fleet.CheckLabels(c.Labels); err != nil {
			return wrong("labels", "%w", err)
		}
	}
	return nil
}
