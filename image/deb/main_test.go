package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

func TestBuild(t *testing.T) {
	testlab.NeedProgram(t, "dpkg-deb")
	binary := filepath.Join(t.TempDir(), "appliance")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var files [2]string
	var texts [2][]byte
	for i := range files {
		file, err := build(options{binary: binary, version: "0.1.7", source: "../..", out: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if texts[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		files[i] = file
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("two builds of the same files have different bytes")
	}
	out, err := exec.Command("dpkg-deb", "--contents", files[0]).CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	for _, want := range []string{
		"-rwxr-xr-x root/root        20 2026-01-01 00:00 ./usr/bin/appliance",
		" ./usr/lib/systemd/system/appliance.service", " ./usr/lib/systemd/system/appliance-panel.socket.d/50-local.conf",
		" ./usr/lib/sysusers.d/appliance.conf", " ./usr/lib/tmpfiles.d/appliance.conf", " ./etc/appliance/appliance.yaml",
		" ./usr/share/doc/appliance/copyright", " ./usr/share/doc/appliance/virtual-device.conf",
		" ./usr/share/man/man1/appliance.1", " ./usr/share/bash-completion/completions/appliance",
	} {
		if !strings.Contains(string(out), want+"\n") {
			t.Errorf("the package has no %q", want)
		}
	}
	for _, box := range []string{"appliance-setup", "appliance-update", "repart"} {
		if strings.Contains(string(out), box) {
			t.Errorf("the package has %s, which is only for boxes", box)
		}
	}
	version, err := exec.Command("dpkg-deb", "--field", files[0], "Version").Output()
	if err != nil || string(version) != "0.1.7\n" {
		t.Errorf("version %q, %v", version, err)
	}
}
