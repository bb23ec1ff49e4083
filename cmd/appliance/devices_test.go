package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/capture/v4l2"
)

func TestDevices(t *testing.T) {
	dir := t.TempDir()
	got := finishCmd(t, appliance(t, "devices", "--pattern", filepath.Join(dir, "video*")))
	if got.status != exitGood || !strings.Contains(got.out, "No grabber is plugged in") {
		t.Errorf("status %d, said %q", got.status, got.out)
	}
	if err := os.WriteFile(filepath.Join(dir, "video7"), []byte("not a device"), 0o644); err != nil {
		t.Fatal(err)
	}
	got = finishCmd(t, appliance(t, "devices", "--json", "--pattern", filepath.Join(dir, "video*")))
	var list struct{ Grabbers []v4l2.Grabber }
	if err := json.Unmarshal([]byte(got.out), &list); err != nil {
		t.Fatalf("%v: %q %q", err, got.out, got.err)
	}
	if len(list.Grabbers) != 1 || !strings.Contains(list.Grabbers[0].Problem, "no video capture device") {
		t.Errorf("a file that is no device is listed as %+v", list.Grabbers)
	}
	got = finishCmd(t, appliance(t, "devices", "--pattern", "[", "--json"))
	if got.status != exitUsage {
		t.Errorf("a bad pattern: status %d, said %q", got.status, got.err)
	}
}
