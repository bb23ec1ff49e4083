package main

import (
	"bufio"
	"encoding/json"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/control"
	"eidetic/control/ch9329"
	"eidetic/control/ch9329/chiptest"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

// A device at a serial chip is driven from the command line, and the input profile has every
// event with its interval.
func TestControlSerial(t *testing.T) {
	sink := &hidtest.Sink{Can: control.Capabilities{Keyboard: true, Pointer: true}}
	chip := chiptest.New(t, ch9329.Slow, sink)
	profile := filepath.Join(t.TempDir(), "profile.jsonl")
	device := []string{"control", "--device", "ch9329:" + chip.Path, "--screen", "100x100"}
	got := finishCmd(t, appliance(t, append(device, "--record", profile, "--recipe", "macos-safari",
		`open https://a.b/; click 50%,50% right; wait 1ms; mark done`)...))
	if got.status != exitGood || !strings.Contains(got.out, "text https://a.b/") || !strings.Contains(got.out, "mark done") {
		t.Errorf("status %d, said %q %q", got.status, got.out, got.err)
	}
	f, err := os.Open(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var names []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e struct {
			Profile          int
			Name             string
			Earliest, Latest int64
			Step             int
			EarliestNs       int64 `json:"earliest_ns"`
			LatestNs         int64 `json:"latest_ns"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.LatestNs < e.EarliestNs {
			t.Errorf("line %q: %v", lines.Text(), err)
		}
		names = append(names, e.Name)
	}
	if want := []string{"", "key", "wait", "text", "key", "click", "wait", "mark"}; !slices.Equal(names, want) {
		t.Errorf("the profile has %q; want %q", names, want)
	}
	if got := finishCmd(t, appliance(t, device...)); got.status != exitGood || !strings.Contains(got.out, "keyboard, mouse, wheel") {
		t.Errorf("without steps: status %d, said %q %q", got.status, got.out, got.err)
	}
	chip.Unplug()
	if notes := strings.Join(sink.Notes, "; "); !strings.HasPrefix(notes, "keys 08 00; keys 08 0f; keys 00 00") ||
		!strings.Contains(notes, "mouse 2 16548,16548 0,0; mouse 0 16548,16548 0,0") {
		t.Errorf("the device got %s; want Cmd+L first, and a click of the right button", notes)
	}
	for args, says := range map[string]string{
		"nonsense|key x":                       "is no device's controls",
		"ch9329:" + chip.Path + "|key x":       "no such port",
		"ch9329:" + chip.Path + "|nonsense":    "step 1",
		"ch9329:" + chip.Path + "|key Hyper+x": "not a modifier",
	} {
		name, steps, _ := strings.Cut(args, "|")
		if got := finishCmd(t, appliance(t, "control", "--device", name, "--screen", "9x9", steps)); got.status == exitGood || !strings.Contains(got.err, says) {
			t.Errorf("%s: status %d, said %q; want %q", args, got.status, got.err, says)
		}
	}
}

// TestParseSize: a size with more behind it, such as a rate, is refused, and so is none.
func TestParseSize(t *testing.T) {
	if size, err := parseSize("--size", "1920x1080"); err != nil || size != image.Pt(1920, 1080) {
		t.Errorf("1920x1080: %v, %v", size, err)
	}
	for _, text := range []string{"1920x1080p60", "1920x1080@30", "1280x720x24", "0x0", "1920", "x", ""} {
		if size, err := parseSize("--size", text); err == nil || !strings.Contains(err.Error(), "WIDTHxHEIGHT") {
			t.Errorf("%q: %v, %v; want an error", text, size, err)
		}
	}
}

// A device's relative mouse is calibrated by its pictures.
func TestControlCalibrates(t *testing.T) {
	display := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "800x600x24").Display
	chip := chiptest.New(t, ch9329.Fast, hidtest.NewAccelerated(t, display))
	device := []string{"control", "--device", "ch9329:" + chip.Path, "--baud", "115200", "--screen", "800x600", "--calibrate"}
	got := finishCmd(t, appliance(t, append(device, "--relative", "--source", "x11:"+display)...))
	if got.status != exitGood || !strings.Contains(got.out, "controls: {relative: true, gain: 1.6") {
		t.Errorf("status %d, said %q %q", got.status, got.out, got.err)
	}
	for more, says := range map[string]string{
		"":                              "say --relative, too",
		"--relative":                    "name what films it with --source",
		"--relative --gain 2":           "stands alone",
		"--calibrate=false --gain 2":    "only a relative mouse has a gain",
		"--relative --source x11::9999": "x11",
	} {
		if got := finishCmd(t, appliance(t, append(device, strings.Fields(more)...)...)); got.status == exitGood || !strings.Contains(got.err, says) {
			t.Errorf("%q: status %d, said %q; want %q", more, got.status, got.err, says)
		}
	}
}

// A phone's browser is opened by an intent, and its screen tapped.
func TestControlPhone(t *testing.T) {
	client, phone := adbtest.NewServer(t), adbtest.NewPhone(t)
	phone.Accept()
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "device")
	got := finishCmd(t, appliance(t, "control", "--device", "adb:", "--adb", client.Address, "--recipe", "android-chrome",
		"open https://shop.test/; pan 50%,80% to 50%,20% over 50ms; key Tab"))
	if got.status != exitGood {
		t.Fatalf("status %d, said %q %q", got.status, got.out, got.err)
	}
	if done := phone.State().Done; len(done) != 1 || !strings.HasSuffix(done[0], "-p com.android.chrome") {
		t.Errorf("the phone did %q; want the intent", done)
	}
	if keys := phone.Keys(); !slices.Equal(keys, []string{"00 2b", "00 00"}) {
		t.Errorf("the phone's keyboard sent %q; want Tab", keys)
	}
	if touches := len(phone.Reports()) - 2; touches < 4 {
		t.Errorf("the finger was seen %d times; want a pan", touches)
	}
}
