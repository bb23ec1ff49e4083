package wifi

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

func TestLoadOrCreate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "wifi.json")
	n, broken, err := LoadOrCreate(file)
	if err != nil || broken != nil || n.Check() != nil {
		t.Fatalf("LoadOrCreate() = %+v, %v, %v; want a valid network, nil, nil", n, broken, err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the passphrase's file has mode %v (%v), want 0600", st.Mode(), err)
	}
	if again, broken, err := LoadOrCreate(file); again != n || broken != nil || err != nil {
		t.Errorf("the second LoadOrCreate() = %+v, %v, %v; want %+v, nil, nil", again, broken, err, n)
	}
	for _, text := range []string{"", "{", `{"ssid":"x","passphrase":"short"}`, strings.Repeat(" ", 10_000)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, broken, err := LoadOrCreate(file)
		if err != nil || broken == nil || m == n || m.Check() != nil {
			t.Errorf("LoadOrCreate() of the file %.20q = %+v, %v, %v; want another network and what was broken", text, m, broken, err)
		}
	}
	seen := map[string]bool{}
	for range 100 {
		seen[NewNetwork().Passphrase.Reveal()] = true
	}
	if len(seen) != 100 {
		t.Errorf("100 networks have %d different passphrases, want 100", len(seen))
	}
}

func TestConfig(t *testing.T) {
	good := Config{Interface: "wlan0", Dir: "/run/x", Network: Network{"Büro; \"1\"", lab.NewSecret("secret-words")}}
	text, err := good.hostapd()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"interface=wlan0", "ssid2=42c3bc726f3b20223122", "channel=6", "hw_mode=g",
		"wpa_passphrase=secret-words", "wpa=2", "ap_isolate=1"} {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("the configuration lacks the line %s:\n%s", line, text)
		}
	}
	if qr := good.Network.QR(); qr != `WIFI:T:WPA;S:Büro\; \"1\";P:secret-words;;` {
		t.Errorf("QR() = %s", qr)
	}
	for says, change := range map[string]func(*Config){
		"interface": func(c *Config) { c.Interface = "wlan0\nbridge=br0" },
		"32":        func(c *Config) { c.Network.SSID = strings.Repeat("x", 33) },
		"8 to 63":   func(c *Config) { c.Network.Passphrase = lab.NewSecret("secret\nwpa=0") },
		"country":   func(c *Config) { c.Country = "de" },
		"channel":   func(c *Config) { c.Channel = 14 },
		"radar":     func(c *Config) { c.Channel = 52 },
		"folder":    func(c *Config) { c.Dir = "/x\ny" },
	} {
		c := good
		change(&c)
		if text, err := c.hostapd(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("hostapd() = %v, want an error that says %q\n%s", err, says, text)
		}
	}
}

// TestProcess runs a script in place of hostapd. A test of package port on the booted
// image runs hostapd itself.
func TestProcess(t *testing.T) {
	start := func(script string) (*AccessPoint, error) {
		dir := t.TempDir()
		program := filepath.Join(dir, "hostapd")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		return Start(ctx, Config{Interface: "wlan0", Network: NewNetwork(), Dir: filepath.Join(dir, "run"), Program: program})
	}
	a, err := start(`grep -q wpa_passphrase "$1" && echo "wlan0: AP-ENABLED" && exec sleep 1000`)
	if err != nil {
		t.Fatal(err)
	}
	if !a.Up() {
		t.Error("Up() = false after Start(), want true")
	}
	if err := a.Close(); err != nil || a.Up() {
		t.Errorf("after Close() = %v, Up() = %v; want nil and false", err, a.Up())
	}
	if _, err := os.Stat(a.file); err == nil {
		t.Error("after Close() the file with the passphrase still exists")
	}
	if _, err := start("echo nl80211: no AP mode; exit 1"); err == nil || !strings.Contains(err.Error(), "no AP mode") {
		t.Errorf("Start() with a radio that cannot be an access point = %v, want an error with hostapd's words", err)
	}
	// A process that ends is started again.
	a, err = start(`if [ -e "$1.died" ]; then touch "$1.again"; echo "wlan0: AP-ENABLED"; exec sleep 1000; fi
touch "$1.died"; echo "wlan0: AP-ENABLED"`)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(60 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		_, err := os.Stat(a.file + ".again")
		if err == nil && a.Up() {
			tick.Stop()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("hostapd was not started again after its end")
		}
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// The passphrase must not be written to a folder that others can write to or replace.
func TestFolderIsPrivate(t *testing.T) {
	root := t.TempDir()
	own, open, link := filepath.Join(root, "a", "own"), filepath.Join(root, "open"), filepath.Join(root, "link")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call finds the folder
		if err := private(own); err != nil {
			t.Error(err)
		}
	}
	if err := os.Symlink(own, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{open, link} {
		if err := private(dir); err == nil || !strings.Contains(err.Error(), "only this user") {
			t.Errorf("private(%s) = %v, want an error that says why", dir, err)
		}
	}
}

// FuzzNetwork: what names and passphrases a network has, hostapd reads the lines that were meant and no others; a file
// with any bytes is read, or replaced.
func FuzzNetwork(f *testing.F) {
	f.Add("lab", "secret-words", `{"ssid":"lab","passphrase":"secret-words"}`)
	f.Add("a\nssid=b", "x y z ~ 12345", `{"ssid":[[[[`)
	f.Fuzz(func(t *testing.T, name, passphrase, kept string) {
		const lines = 15 // as TestHostapd has them, at most
		testlab.Bounded(t, 4<<20, func() {
			c := Config{Interface: "wlan0", Network: Network{name, lab.NewSecret(passphrase)}, Dir: "/run/x"}
			text, err := c.hostapd()
			if err == nil && (strings.Count(text, "\nssid2=") != 1 || strings.Contains(text, "\nssid=") || strings.Count(text, "\nwpa_passphrase=") > 1 ||
				strings.ContainsRune(text, '\r') || strings.Count(text, "\n") > 2*lines) {
				t.Errorf("%q and %q become %q", name, passphrase, text)
			}
			file := filepath.Join(t.TempDir(), "wifi.json")
			if err := os.WriteFile(file, []byte(kept), 0o600); err != nil {
				t.Fatal(err)
			}
			if n, _, err := LoadOrCreate(file); err != nil || n.Check() != nil {
				t.Errorf("LoadOrCreate() of %q = %+v, %v; want a network that can be used", kept, n, err)
			}
		})
	})
}
