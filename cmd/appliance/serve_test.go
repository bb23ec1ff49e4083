package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/image/box"
	"eidetic/internal/box/service"
)

// Two services on one folder would take each other's runs for interrupted ones.
func TestServeHoldsItsFolder(t *testing.T) {
	dir := t.TempDir()
	held, err := service.HoldFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	var out, log bytes.Buffer
	second := ServeCmd{Config: filepath.Join(dir, "box.yaml"), Data: dir}
	if err := os.WriteFile(second.Config, []byte("panel: {listen: '127.0.0.1:0'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context(), &streams{out: &out, err: &log}); err == nil ||
		!strings.Contains(err.Error(), "another appliance serve uses "+dir) {
		t.Errorf("a second service: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := service.HoldFolder(dir)
	if err != nil {
		t.Fatal("after the first has ended:", err)
	}
	again.Close()
}

// A service that is told to stop while it starts has not failed.
func TestServicesStopWhileTheyStart(t *testing.T) {
	for _, command := range []string{"serve", "head"} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out bytes.Buffer
		status := run(ctx, []string{command, "--listen", "127.0.0.1:0", "--data", t.TempDir()}, &streams{strings.NewReader(""), &out, &out})
		if status != exitGood || strings.Contains(out.String(), "context canceled") {
			t.Errorf("%s, told to stop: status %d, want %d; said %q", command, status, exitGood, out.String())
		}
	}
}

func TestServeRefusesWhatItCannotUse(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("colour: blue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, bytes.Repeat([]byte("#\n"), box.MaxConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := filepath.Join(dir, "busy.yaml")
	if err := os.WriteFile(busy, []byte("panel: {listen: '"+taken.Addr().String()+"'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		flag, value, want string
		status            int
	}{
		{"--config", bad, `unknown field "colour"`, exitUsage},
		{"--config", large, "too many for a configuration", exitUsage},
		{"--config", filepath.Join(dir, "none.yaml"), "leave out --config", exitUsage},
		{"--config", busy, "choose another with --listen", exitCannot},
		{"--listen", taken.Addr().String(), "is taken by another program", exitCannot},
		{"--listen", "8081", "give HOST:PORT, such as 127.0.0.1:8081", exitUsage},
	}
	for _, c := range cases {
		var out bytes.Buffer
		status := run(t.Context(), []string{"serve", c.flag, c.value}, &streams{strings.NewReader(""), &out, &out})
		if status != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s %s: status %d, want %d; said %q, want %q", c.flag, filepath.Base(c.value), status, c.status, out.String(), c.want)
		}
	}
}

// A box whose configuration cannot be used (an authority's file went away, an
// update knows a field no more) starts all the same, and says what it does
// without: its panel is the way to mend it.
func TestBoxStartsWithABadConfiguration(t *testing.T) {
	root := t.TempDir() // of a box that has not found out anything yet
	if err := os.MkdirAll(filepath.Join(root, "usr/lib/appliance/repart.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	const devices = "devices: [{port: enp2s0, name: laptop}]\n"
	for _, c := range []struct{ text, instead, problem string }{
		{devices, "", ""},
		{devices + "network: {trust: gone.pem, resolver: '192.0.2.53:53'}\n", "network.trust", "gone.pem"},
		{devices + "colour: blue\n", "the defaults are used", "colour"},
		{devices + "network: {trust: gone.pem}\ncolour: blue\n", "the defaults are used", "colour"},
	} {
		file := filepath.Join(t.TempDir(), "box.yaml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, instead, problem := ServeCmd{Config: file}.config(root)
		if (problem == nil) != (c.problem == "") || problem != nil && !strings.Contains(problem.Error(), c.problem) ||
			!strings.Contains(instead, c.instead) ||
			(instead == "") != (c.instead == "") {
			t.Errorf("%q: %q instead, because %v", c.text, instead, problem)
		}
		if strings.Contains(instead, "gone.pem") || strings.Contains(instead, "laptop") {
			t.Errorf("a stranger would read %q", instead)
		}
		if used := len(cfg.Devices) == 1; used != !strings.Contains(c.instead, "defaults") || cfg.Network.Trust != "" {
			t.Errorf("%q: used is %+v", c.text, cfg)
		}
		if _, instead, problem := (ServeCmd{Config: file}).config(t.TempDir()); instead != "" || (problem == nil) != (c.problem == "") {
			t.Errorf("%q on a machine of one's own: %q instead, because %v", c.text, instead, problem)
		}
	}
	cfg, instead, problem := ServeCmd{Config: filepath.Join(root, "none.yaml")}.config(root)
	if problem == nil || instead == "" || cfg.Log != "info" {
		t.Errorf("without a file: %+v, %q, %v", cfg, instead, problem)
	}
}
