package adb

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// Conditions asks the phone how it is. What a phone does not tell is left out.
func (p Phone) Conditions(ctx context.Context) (lab.Conditions, error) {
	const mark = "eidetic-next"
	out, err := p.run(ctx, "dumpsys battery; echo", mark, "; dumpsys thermalservice; echo", mark,
		"; settings get system screen_brightness; settings get system screen_brightness_mode; echo", mark, "; dumpsys display")
	if err != nil {
		return lab.Conditions{}, err
	}
	parts := strings.Split(out, mark)
	if len(parts) != 4 {
		return lab.Conditions{}, fmt.Errorf("adb: the phone's answer of %d bytes about its conditions is cut off", len(out))
	}
	return ParseConditions(parts[0], parts[1], parts[2], parts[3]), nil
}

// ParseConditions reads what a phone prints of its battery, its heat, its brightness (of 255, and whether the phone
// sets it by itself) and its display.
func ParseConditions(battery, thermal, brightness, display string) lab.Conditions {
	c := parseBattery(battery)
	c.Thermal = parseThermal(thermal)
	if words := strings.Fields(brightness); len(words) == 2 {
		if v, ok := number(words[0], 0, 255); ok {
			percent := math.Round(v / 255 * 100)
			c.Brightness = &percent
		}
		automatic := words[1] == "1"
		c.AutoBrightness = &automatic
	}
	c.RefreshHz = parseRefresh(display)
	return c
}

// fields are the lines "name: value" of a service's report. Of several of one name the first counts.
func fields(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if _, known := all[name]; ok && !known {
			all[name] = strings.TrimSpace(value)
		}
	}
	return all
}

// parseBattery reads what dumpsys battery prints: percent, tenths of a degree, and what the phone is powered by.
func parseBattery(text string) (c lab.Conditions) {
	all := fields(text)
	if v, ok := number(all["level"], 0, 1000); ok {
		scale, known := number(all["scale"], 1, 1000)
		if !known {
			scale = 100
		}
		percent := math.Round(100 * v / scale)
		c.BatteryPercent = &percent
	}
	if v, ok := number(all["temperature"], -500, 2000); ok {
		degrees := v / 10
		c.BatteryC = &degrees
	}
	for _, source := range []struct{ field, name string }{
		{"AC powered", "ac"}, {"USB powered", "usb"}, {"Wireless powered", "wireless"}, {"Dock powered", "dock"},
	} {
		switch {
		case all[source.field] == "true":
			c.Power = source.name
			return c
		case all[source.field] == "false":
			c.Power = "battery"
		}
	}
	return c
}

func parseThermal(text string) string {
	v, ok := number(fields(text)["Thermal Status"], 0, float64(len(lab.ThermalStates)-1))
	if !ok {
		return ""
	}
	return lab.ThermalStates[int(v)]
}

// parseRefresh reads the rate at which the screen is drawn now.
func parseRefresh(text string) *float64 {
	for _, name := range []string{"renderFrameRate", "refreshRate", "fps"} {
		for _, sign := range []string{"=", " "} {
			_, rest, ok := strings.Cut(text, name+sign)
			if !ok {
				continue
			}
			end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
			if end < 0 {
				end = len(rest)
			}
			if v, ok := number(rest[:end], 1, 1000); ok {
				v = math.Round(v*100) / 100
				return &v
			}
		}
	}
	return nil
}

func number(text string, least, most float64) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && v >= least && v <= most
}
