package device

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// Conditions reads how hot this machine's processors are, what powers it and how full its battery is, as far as its
// kernel tells: a virtual machine tells nothing.
func (h Host) Conditions(context.Context) (lab.Conditions, error) {
	root := h.System
	if root == "" {
		root = "/sys"
	}
	var c lab.Conditions
	zones, _ := filepath.Glob(filepath.Join(root, "class/thermal/thermal_zone*"))
	for _, zone := range zones {
		kind, degrees := first(filepath.Join(zone, "type")), reading(filepath.Join(zone, "temp"))
		isProcessor := strings.Contains(kind, "pkg") || strings.HasPrefix(kind, "cpu") || strings.HasPrefix(kind, "soc")
		if degrees != nil && isProcessor && (c.ProcessorC == nil || *degrees/1000 > *c.ProcessorC) {
			value := *degrees / 1000
			c.ProcessorC = &value
		}
	}
	counters, _ := filepath.Glob(filepath.Join(root, "devices/system/cpu/cpu*/thermal_throttle/core_throttle_count"))
	for _, name := range counters {
		if n := reading(name); n != nil {
			if c.Throttled == nil {
				c.Throttled = new(int64)
			}
			*c.Throttled += int64(*n)
		}
	}
	supplies, _ := filepath.Glob(filepath.Join(root, "class/power_supply/*"))
	for _, s := range supplies {
		online := first(filepath.Join(s, "online"))
		switch kind := first(filepath.Join(s, "type")); {
		case kind == "Battery" && first(filepath.Join(s, "scope")) != "Device": // that of a mouse says Device
			c.BatteryPercent = reading(filepath.Join(s, "capacity"))
			if c.Power == "" {
				c.Power = "battery"
			}
		case kind == "Mains" && online == "1":
			c.Power = "ac"
		case kind == "USB" && online == "1" && c.Power != "ac":
			c.Power = "usb"
		}
	}
	return c, nil
}

// reading is the number in a file; nil if there is none.
func reading(name string) *float64 {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil {
		return nil
	}
	return &v
}
