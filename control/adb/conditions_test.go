package adb_test

import (
	"strings"
	"testing"

	"eidetic/control/adb"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// TestConditions reads a phone's battery, heat, brightness and refresh rate, and leaves out what it does not tell.
func TestConditions(t *testing.T) {
	client, phone := plugIn(t)
	p := adb.Phone{Client: client, Serial: phone.Serial}
	phone.Change(func(s *adbtest.State) { s.Thermal = 2 })
	c, err := p.Conditions(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := "battery 84 %, battery 32.6 °C, power usb, thermal moderate, brightness 40 %, screen 60 Hz"; c.String() != want {
		t.Errorf("Conditions() = %s; want %s", c, want)
	}
	phone.Change(func(s *adbtest.State) { s.Battery, s.Thermal = "Can't find service: battery\n", 99 })
	if c, err = p.Conditions(within(t)); err != nil || c.BatteryC != nil || c.Power != "" || c.Thermal != "" {
		t.Errorf("Conditions() of a phone that tells little = %s, %v; want neither battery nor heat", c, err)
	}
	if names := (lab.Limits{BatteryMaxC: 30, Thermal: "none", RefreshHz: 60}).Missing(c); strings.Join(names, " ") != "battery_max_c thermal" {
		t.Errorf("Missing() = %q; want battery_max_c and thermal", names)
	}
}

// TestPackages clears and configures a package, and names what the phone refuses.
func TestPackages(t *testing.T) {
	client, phone := plugIn(t)
	p := adb.Phone{Client: client, Serial: phone.Serial}
	ctx := within(t)
	settings := adb.Settings{File: "/data/local/tmp/chrome-command-line", Text: "_ --it's\n"}
	for _, err := range []error{
		p.Clear(ctx, "com.android.chrome"), p.Configure(ctx, "com.android.chrome", settings), p.Unconfigure(ctx, "com.android.chrome", settings),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if got := phone.State().Done[1]; got != `printf %s '_ --it'\''s`+"\n"+`' > '/data/local/tmp/chrome-command-line' && am set-debug-app --persistent com.android.chrome` {
		t.Errorf("Configure() ran %q", got)
	}
	for says, err := range map[string]error{
		"the phone says: Failed": p.Clear(ctx, "com.none.such"),
		"no package of Android":  p.Clear(ctx, "x; reboot"),
		"no package":             p.Grant(ctx, "com.android.chrome", "x; reboot"),
		"settings are a file in": p.Configure(ctx, "com.android.chrome", adb.Settings{File: "/sdcard/../etc/x"}),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v; want one that says %q", err, says)
		}
	}
}

// TestGuardedPhone: if the phone forbids adb something, the error says which setting allows it.
func TestGuardedPhone(t *testing.T) {
	client, phone := plugIn(t)
	phone.Change(func(s *adbtest.State) { s.Guarded = true })
	err := adb.Phone{Client: client, Serial: phone.Serial}.Grant(within(t), "com.android.chrome", "android.permission.CAMERA")
	if err == nil || !strings.Contains(err.Error(), "Security settings") || !strings.Contains(err.Error(), "SecurityException") {
		t.Errorf("Grant() = %v; want an error with the phone's words and where it is changed", err)
	}
}

// TestOldPhone: the error of a phone that is too old says so.
func TestOldPhone(t *testing.T) {
	client, phone := plugIn(t)
	phone.Change(func(s *adbtest.State) { s.Old = true })
	_, err := adb.Phone{Client: client, Serial: phone.Serial}.Size(within(t))
	if err == nil || !strings.Contains(err.Error(), "older than 7") {
		t.Errorf("Size() = %v; want an error with what may be wrong", err)
	}
}

// FuzzConditions: whatever a phone prints, what is read of it lies within bounds.
func FuzzConditions(f *testing.F) {
	f.Add("AC powered: true\nlevel: 84\nscale: 100\ntemperature: 326\n", "Thermal Status: 3\n", "renderFrameRate 60.000004\n")
	f.Add("level: -1\nscale: 0\ntemperature: 1e309\n", "Thermal Status: 7\n", "fps=0")
	f.Fuzz(func(t *testing.T, battery, thermal, display string) {
		defer testlab.Input(t)()
		c := adb.ParseConditions(battery, thermal, "102\n0\n", display)
		if c.BatteryPercent != nil && !(*c.BatteryPercent >= 0) || c.BatteryC != nil && !(*c.BatteryC > -60 && *c.BatteryC < 210) ||
			c.RefreshHz != nil && !(*c.RefreshHz >= 1 && *c.RefreshHz <= 1000) {
			t.Errorf("ParseConditions() = %s", c)
		}
	})
}
