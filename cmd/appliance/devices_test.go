package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/capture/v4l2"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/run/device"
)

func TestDevices(t *testing.T) {
	dir := t.TempDir()
	got := finishCmd(t, appliance(t, "devices", "--adb", "none", "--pattern", filepath.Join(dir, "video*")))
	if got.status != exitGood || !strings.Contains(got.out, "No grabber is plugged in") {
		t.Errorf("status %d, said %q", got.status, got.out)
	}
	if err := os.WriteFile(filepath.Join(dir, "video7"), []byte("not a device"), 0o644); err != nil {
		t.Fatal(err)
	}
	got = finishCmd(t, appliance(t, "devices", "--adb", "none", "--json", "--pattern", filepath.Join(dir, "video*")))
	var list struct{ Grabbers []v4l2.Grabber }
	if err := json.Unmarshal([]byte(got.out), &list); err != nil {
		t.Fatalf("%v: %q %q", err, got.out, got.err)
	}
	if len(list.Grabbers) != 1 || !strings.Contains(list.Grabbers[0].Problem, "no video capture device") {
		t.Errorf("a file that is no device is listed as %+v", list.Grabbers)
	}
	got = finishCmd(t, appliance(t, "devices", "--adb", "none", "--pattern", "[", "--json"))
	if got.status != exitUsage {
		t.Errorf("a bad pattern: status %d, said %q", got.status, got.err)
	}
}

// The phones are those of a real adb server, with what to do about one that trusts nobody.
func TestDevicesPhones(t *testing.T) {
	client, phone := adbtest.NewServer(t), adbtest.NewPhone(t)
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "unauthorized")
	got := finishCmd(t, appliance(t, "devices", "--adb", client.Address, "--pattern", filepath.Join(t.TempDir(), "video*")))
	if got.status != exitGood || !strings.Contains(got.out, "adb:"+phone.Serial) || !strings.Contains(got.out, "accept the key") {
		t.Errorf("status %d, said %q", got.status, got.out)
	}
	got = finishCmd(t, appliance(t, "devices", "--adb", "127.0.0.1:1"))
	if got.status != exitGood || !strings.Contains(got.out, "no adb server answers at 127.0.0.1:1") {
		t.Errorf("without a server: status %d, said %q", got.status, got.out)
	}
}

// Whoever makes a thing that is plugged in chooses its names: a terminal gets no orders of them.
func TestDevicesNamesAreNoOrders(t *testing.T) {
	const order = "a \x1b]0;owned\x07\u009b2J\u202e\nb"
	var out strings.Builder
	grabbers := []v4l2.Grabber{
		{Path: "/dev/video0", Card: order, Signal: order, NeedsEDID: true, Modes: []v4l2.Mode{{Rates: []string{order}}}},
		{Path: "/dev/video1", Problem: order},
	}
	err := errors.Join((&DevicesCmd{}).printGrabbers(&out, grabbers),
		printControls(&out, []device.Part{{Use: order, Kind: order, Name: order, State: order}}, []error{errors.New(order)}))
	if err != nil || strings.ContainsAny(out.String(), "\x1b\x07\u009b\u202e") || strings.Count(out.String(), "\n") != 8 {
		t.Errorf("the terminal gets %q, %v; want eight lines without its orders", out.String(), err)
	}
}
