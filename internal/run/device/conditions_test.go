package device

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHostConditions reads a laptop's files: the hottest zone of the processors counts, a mouse's battery does not.
func TestHostConditions(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"class/thermal/thermal_zone0/type": "acpitz", "class/thermal/thermal_zone0/temp": "99000",
		"class/thermal/thermal_zone1/type": "x86_pkg_temp", "class/thermal/thermal_zone1/temp": "61000",
		"class/thermal/thermal_zone2/type": "cpu-thermal", "class/thermal/thermal_zone2/temp": "63500",
		"devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "3",
		"devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "4",
		"class/power_supply/BAT0/type":                                 "Battery", "class/power_supply/BAT0/capacity": "57",
		"class/power_supply/mouse/type": "Battery", "class/power_supply/mouse/scope": "Device", "class/power_supply/mouse/capacity": "3",
		"class/power_supply/AC/type": "Mains", "class/power_supply/AC/online": "0",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Host{System: root}.Conditions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := "battery 57 %, power battery, processors 64 °C, throttled 7 times so far"; c.String() != want {
		t.Errorf("Conditions() = %s; want %s", c, want)
	}
	if c, err := (Host{System: t.TempDir()}).Conditions(t.Context()); err != nil || c.String() != "" {
		t.Errorf("Conditions() of a machine that tells nothing = %q, %v; want none", c, err)
	}
}
