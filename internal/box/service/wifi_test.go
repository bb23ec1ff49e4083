package service

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWiFiConfig(t *testing.T) {
	for text, says := range map[string]string{
		"{country: DE, channel: 36}": "",
		"{}":                         "",
		"{country: de}":              "capital",
		"{channel: 14}":              "channel 14",
		"{channel: 37}":              "36, 40, 44, 48",
		"{channel: 100}":             "radar",
		"{channel: -1}":              "channel -1",
		"{channel: 149}":             "",
		"{chanel: 1}":                "chanel",
	} {
		cfg := DefaultConfig()
		err := ParseConfig("a.yaml", []byte("devices:\n  - port: wlan0\n    wifi: "+text+"\n"), &cfg)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("ParseConfig(%s) = %v; want %q", text, err, says)
		}
	}
}

// TestAccessPoint starts the access point of a port, with a script in hostapd's
// place, and looks at what the panel says.
func TestAccessPoint(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "hostapd"), []byte("#!/bin/sh\necho wlan0: AP-ENABLED\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", t.TempDir())
	p := &ports{data: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	d := &portDevice{config: deviceConfig{Port: "wlan0", WiFi: &wifiConfig{Country: "DE"}}.withDefaults(0)}
	if err := p.startAccessPoint(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.point.Close(); err != nil {
			t.Error(err)
		}
	})
	said := d.describe(t.Context()).WiFi
	if said == nil || !strings.Contains(said.QR, said.Passphrase) || len(said.Passphrase) < 16 {
		t.Errorf("describe().WiFi = %+v; want a passphrase, also in the QR code", said)
	}
	first := d.point
	if err := p.startAccessPoint(t.Context(), d); err != nil || d.point != first {
		t.Errorf("started twice (%v)", err)
	}
	if d.describe(t.Context()).Ready {
		t.Error("describe() of a port that is not up is ready; want it not to be")
	}
}
