package lab

import (
	"fmt"
	"slices"
	"strings"
)

// Conditions are what a device says of itself beside a trial: what decides how fast it can be. What a device does not
// tell is nil or empty.
type Conditions struct {
	BatteryPercent *float64 `json:"battery_percent,omitempty"`
	BatteryC       *float64 `json:"battery_c,omitempty"` // degrees Celsius
	Power          string   `json:"power,omitempty"`     // battery, usb, ac, wireless, dock
	// Thermal is Android's word for how far the device slows itself down because of its heat.
	Thermal        string   `json:"thermal,omitempty"`
	Brightness     *float64 `json:"brightness_percent,omitempty"`
	AutoBrightness *bool    `json:"auto_brightness,omitempty"`
	RefreshHz      *float64 `json:"refresh_hz,omitempty"`
	ProcessorC     *float64 `json:"processor_c,omitempty"` // the hottest sensor of the processors
	// Throttled is how often the processors have slowed down because of their heat since they were switched on.
	Throttled *int64 `json:"throttled,omitempty"`
	// Air is that between the device and the box's access point.
	Air *Air `json:"air,omitempty"`
}

// ThermalStates are those of Conditions.Thermal, the coolest first.
var ThermalStates = []string{"none", "light", "moderate", "severe", "critical", "emergency", "shutdown"} // constant

// Limits are what a plan asks of a device's conditions.
type Limits struct {
	BatteryMin   float64 `json:"battery_min_percent,omitempty" minimum:"0" maximum:"100" doc:"Least charge of the battery, in percent" example:"30"`
	BatteryMaxC  float64 `json:"battery_max_c,omitempty" minimum:"0" maximum:"100" doc:"Highest temperature of the battery, in degrees Celsius" example:"35"`
	Thermal      string  `json:"thermal,omitempty" enum:"none,light,moderate,severe" doc:"How far the device may slow itself down because of its heat, in Android's words. On the virtual device none: its processors may not slow down in a trial" example:"none"`
	Power        string  `json:"power,omitempty" enum:"battery,usb,ac,wireless,dock" doc:"What the device is powered by" example:"usb"`
	RefreshHz    float64 `json:"refresh_hz,omitempty" minimum:"0" maximum:"1000" doc:"How often a second the device's screen is drawn, within 1 Hz" example:"60"`
	ProcessorMax float64 `json:"processor_max_c,omitempty" minimum:"0" maximum:"150" doc:"Highest temperature of the processors, in degrees Celsius" example:"80"`
	SignalMin    float64 `json:"signal_min_dbm,omitempty" minimum:"-100" maximum:"0" doc:"Of a device on the box's Wi-Fi: how strongly the box hears it at least, in dBm" example:"-60"`
	AirBusyMax   float64 `json:"air_busy_max_percent,omitempty" minimum:"0" maximum:"100" doc:"Of a device on the box's Wi-Fi: for how much of a trial its channel may be busy at most, in percent" example:"40"`
	Wait         float64 `json:"wait_s,omitempty" minimum:"0" maximum:"7200" doc:"How long a trial waits for these conditions; without it 600" example:"600"`
}

// Missing returns the limits, by their names in a plan, about which a device tells nothing.
func (l Limits) Missing(c Conditions) (names []string) {
	for _, f := range []struct {
		name       string
		set, known bool
	}{
		{"battery_min_percent", l.BatteryMin > 0, c.BatteryPercent != nil}, {"battery_max_c", l.BatteryMaxC > 0, c.BatteryC != nil},
		{"thermal", l.Thermal != "", c.Thermal != "" || c.Throttled != nil && l.Thermal == ThermalStates[0]},
		{"power", l.Power != "", c.Power != ""},
		{"refresh_hz", l.RefreshHz > 0, c.RefreshHz != nil}, {"processor_max_c", l.ProcessorMax > 0, c.ProcessorC != nil},
		{"signal_min_dbm", l.SignalMin < 0, c.Air != nil}, {"air_busy_max_percent", l.AirBusyMax > 0, c.Air != nil && c.Air.OnMS > 0},
	} {
		if f.set && !f.known {
			names = append(names, f.name)
		}
	}
	return names
}

// Broken says which limits a device does not keep. What it does not tell keeps all.
func (l Limits) Broken(c Conditions) (reasons []string) {
	say := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	if v := c.BatteryPercent; v != nil && *v < l.BatteryMin {
		say("the battery has %.0f %%, and at least %.0f %% are asked for", *v, l.BatteryMin)
	}
	if v := c.BatteryC; v != nil && l.BatteryMaxC > 0 && *v > l.BatteryMaxC {
		say("the battery has %.1f °C, and at most %.4g °C are asked for", *v, l.BatteryMaxC)
	}
	if l.Thermal != "" && slices.Index(ThermalStates, c.Thermal) > slices.Index(ThermalStates, l.Thermal) {
		say("the device slows itself down because of its heat (thermal: %s), and at most %s is asked for", c.Thermal, l.Thermal)
	}
	if c.Power != "" && l.Power != "" && c.Power != l.Power {
		say("the device is powered by %s, and %s is asked for", c.Power, l.Power)
	}
	if v := c.RefreshHz; v != nil && l.RefreshHz > 0 && (*v < l.RefreshHz-1 || *v > l.RefreshHz+1) {
		say("the screen is drawn %.4g times a second, and %.4g are asked for", *v, l.RefreshHz)
	}
	if v := c.ProcessorC; v != nil && l.ProcessorMax > 0 && *v > l.ProcessorMax {
		say("the processors have %.0f °C, and at most %.4g °C are asked for", *v, l.ProcessorMax)
	}
	if l.SignalMin < 0 && c.Air != nil {
		if v := c.Air.signal(); v == nil {
			say("no device has joined the box's Wi-Fi, and a signal of %.4g dBm is asked for", l.SignalMin)
		} else if float64(*v) < l.SignalMin {
			say("the box hears the device at %d dBm, and at least %.4g dBm are asked for", *v, l.SignalMin)
		}
	}
	return reasons
}

// BrokenBetween says which limits a device has not kept between two readings.
func (l Limits) BrokenBetween(before, after *Conditions) (reasons []string) {
	if percent, _, ok := AirBusy(before, after); ok && l.AirBusyMax > 0 && percent > l.AirBusyMax {
		reasons = append(reasons, fmt.Sprintf("the Wi-Fi channel was busy for %.0f %% of the trial, and at most %.4g %% are asked for", percent, l.AirBusyMax))
	}
	return reasons
}

// Slowed says how the device slowed itself down because of its heat between two readings, or "".
func Slowed(before, after *Conditions) string {
	if before == nil || after == nil {
		return ""
	}
	hot := before.Thermal
	if slices.Index(ThermalStates, after.Thermal) > slices.Index(ThermalStates, hot) {
		hot = after.Thermal
	}
	if hot != "" && hot != ThermalStates[0] {
		return "thermal: " + hot
	}
	if before.Throttled != nil && after.Throttled != nil && *after.Throttled > *before.Throttled {
		return fmt.Sprintf("the processors slowed down %d times", *after.Throttled-*before.Throttled)
	}
	return ""
}

// String tells the conditions in a line.
func (c Conditions) String() string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if c.BatteryPercent != nil {
		say("battery %.0f %%", *c.BatteryPercent)
	}
	if c.BatteryC != nil {
		say("battery %.1f °C", *c.BatteryC)
	}
	if c.Power != "" {
		say("power %s", c.Power)
	}
	if c.Thermal != "" {
		say("thermal %s", c.Thermal)
	}
	if c.Brightness != nil {
		say("brightness %.0f %%", *c.Brightness)
	}
	if c.AutoBrightness != nil && *c.AutoBrightness {
		say("brightness set by the device")
	}
	if c.RefreshHz != nil {
		say("screen %.4g Hz", *c.RefreshHz)
	}
	if c.ProcessorC != nil {
		say("processors %.0f °C", *c.ProcessorC)
	}
	if c.Throttled != nil && *c.Throttled > 0 {
		say("throttled %d times so far", *c.Throttled)
	}
	return strings.Join(words, ", ")
}
