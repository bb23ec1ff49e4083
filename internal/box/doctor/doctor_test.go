package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"eidetic/control/power/powertest"
	"eidetic/internal/base/scrcpyserver/servertest"
	"eidetic/internal/run/frequency"
	"eidetic/netlab/wifi/radio"
)

func TestHardware(t *testing.T) {
	file := &fstest.MapFile{}
	for name, root := range map[string]fstest.MapFS{
		"v4l2":     {"dev/video0": file},
		"controls": {"sys/class/udc/fe980000.usb": file, "dev/serial/by-id/usb-1a86": file},
		"none":     {},
	} {
		for _, f := range checkHardware(root) {
			if f.OK != (f.Name == name) || f.OK == (f.Remedy != "") {
				t.Errorf("with the hardware %q: finding %+v; want OK = %v, and a remedy only if it is not", name, f, f.Name == name)
			}
		}
	}
}

// TestRadios: what a radio can do decides whether it can be a device's Wi-Fi, and the words say why not.
func TestRadios(t *testing.T) {
	channels := func(rule func(*radio.Channel), numbers ...int) (list []radio.Channel) {
		for _, n := range numbers {
			c := radio.Channel{Number: n, MHz: 5000 + 5*n}
			if n < 14 {
				c.MHz = 2407 + 5*n
			}
			if rule != nil {
				rule(&c)
			}
			list = append(list, c)
		}
		return list
	}
	low := channels(nil, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	listen, radar := func(c *radio.Channel) { c.Listen = true }, func(c *radio.Channel) { c.Radar = true }
	both := slices.Concat(low, channels(nil, 36, 40, 44, 48), channels(radar, 52, 56))
	for _, c := range []struct {
		name, country, found, remedy string
		radios                       []radio.Radio
		err                          error
	}{
		{name: "none", found: "no Wi-Fi radio", remedy: "ath9k"},
		{name: "no nl80211", err: errors.New("no such family"), found: "no Wi-Fi radio: no such family", remedy: "ath9k"},
		{name: "both bands", country: "DE", radios: []radio.Radio{{Name: "phy0", Interfaces: []string{"wlan0"}, AccessPoint: true, MostStations: 8, Channels: both}},
			found: "wlan0: access point on 1-11, 36, 40, 44, 48, at most 8 devices (country DE)"},
		{name: "no mode", country: "DE", radios: []radio.Radio{{Name: "phy0", Channels: both}},
			found: "phy0: no access point mode, so it cannot be a device's Wi-Fi (country DE)", remedy: "ath9k_htc"},
		{name: "one of two", country: "DE", radios: []radio.Radio{{Name: "phy0", Channels: both}, {Name: "phy1", AccessPoint: true, Channels: low}},
			found: "phy0: no access point mode, so it cannot be a device's Wi-Fi; phy1: access point on 1-11, no 5 GHz (country DE)"},
		{name: "no country", country: "00", radios: []radio.Radio{{Name: "phy0", AccessPoint: true, Channels: slices.Concat(low, channels(listen, 36, 40))}},
			found: "phy0: access point on 1-11, none of 5 GHz by the country's rules (no country, so what is allowed everywhere)"},
		{name: "5 GHz alone", country: "00", radios: []radio.Radio{{Name: "phy0", AccessPoint: true, Channels: channels(listen, 36, 40)}},
			found: "phy0: access point, but on no channel, none of 5 GHz by the country's rules (no country, so what is allowed everywhere)", remedy: "wifi: {country: DE}"},
	} {
		f := checkRadios(func() ([]radio.Radio, string, error) { return c.radios, c.country, c.err })
		if f.Found != c.found || f.OK != (c.remedy == "") || !strings.Contains(f.Remedy, c.remedy) {
			t.Errorf("%s: %+v; want %q, and a remedy with %q", c.name, f, c.found, c.remedy)
		}
	}
}

// What switches a device's power at this machine is found, and what is missing has a remedy.
func TestPower(t *testing.T) {
	k := powertest.NewKernel(t)
	if f := checkPower(t.Context(), k.Kernel); f.OK || f.Remedy == "" {
		t.Errorf("of a machine without a hub: %+v; want a remedy", f)
	}
	k.AddHub("1-1", powertest.Ganged, nil)
	k.AddHub("1-2", powertest.Hub2, nil)
	k.AddLine("gpiochip0/17", false, nil)
	f := checkPower(t.Context(), k.Kernel)
	if want := "power: {usb: PORT} can switch 1-2.[1-4]; power: {gpio: gpiochip0/LINE} is possible"; !f.OK || f.Found != want {
		t.Errorf("found %q; want %q", f.Found, want)
	}
}

// TestFrequency: what runs would set is told, and where they set nothing, why.
func TestFrequency(t *testing.T) {
	root := t.TempDir()
	if f := checkFrequency(frequency.Machine{Root: root}); f.OK || f.Found != "the kernel shows no frequencies: runs set nothing" {
		t.Errorf("a virtual machine: %+v", f)
	}
	set := func(name, text string) string {
		file := filepath.Join(root, "sys/devices/system/cpu/cpufreq/policy0", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	set("scaling_available_governors", "performance powersave")
	set("scaling_governor", "powersave")
	if f := checkFrequency(frequency.Machine{Root: root}); !f.OK || !strings.HasPrefix(f.Found, "during runs: governor performance in place of powersave; put back") {
		t.Errorf("a machine that can be set: %+v", f)
	}
	set("scaling_governor", "performance")
	if f := checkFrequency(frequency.Machine{Root: root}); !f.OK || !strings.Contains(f.Found, "already") {
		t.Errorf("a machine that is set: %+v", f)
	}
}

// The server of scrcpy is found with its version, and what is missing has a remedy.
func TestScrcpy(t *testing.T) {
	if f := checkScrcpy("/none"); f.OK || f.Remedy == "" || !strings.Contains(f.Found, "there is no server at /none") {
		t.Errorf("of a machine without the file: %+v; want a remedy", f)
	}
	path := servertest.Jar(t, "3.3.4")
	if f := checkScrcpy(path); !f.OK || f.Found != path+", version 3.3.4" {
		t.Errorf("found %+v; want the file and its version", f)
	}
}

// A machine that tells its energy names what of; one that tells none says so, and has no number.
func TestEnergy(t *testing.T) {
	root := t.TempDir()
	if f := checkEnergy(root); f.OK || f.Remedy == "" || !strings.Contains(f.Found, "does not tell") {
		t.Errorf("without the kernel's files: %+v; want a remedy", f)
	}
	zone := filepath.Join(root, "class/powercap/intel-rapl:0")
	if err := os.MkdirAll(zone, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"name": "package-0\n", "energy_uj": "5\n", "max_energy_range_uj": "262143328850\n"} {
		if err := os.WriteFile(filepath.Join(zone, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if f := checkEnergy(root); !f.OK || f.Found != "package-0" {
		t.Errorf("with a processor's: %+v", f)
	}
}

// A machine whose browser of the Chromium family has another name has a browser.
func TestChromeCountsAsChromium(t *testing.T) {
	dir := t.TempDir()
	chrome := filepath.Join(dir, "google-chrome")
	if err := os.WriteFile(chrome, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for _, f := range checkPrograms(false) {
		if f.Name == "chromium" && (!f.OK || f.Found != chrome) {
			t.Errorf("finding %+v; want %s", f, chrome)
		}
		if f.Name == "xvfb" && (f.OK || f.Remedy != "apt-get install xvfb") {
			t.Errorf("finding %+v; want a program that is missing, and its package", f)
		}
	}
}

// TestVirtual: whether the virtual device can run is told with its browsers and the memory, and what to do if it cannot;
// on a box nothing can be installed, so an image is named.
// Too few open files are told of before a browser ends of it.
func TestFiles(t *testing.T) {
	for most, want := range map[uint64]string{64: "only 64 files open here (ulimit -Hn)", 1023: "only 1023", 1024: "", unix.RLIM_INFINITY: ""} {
		if err := checkFiles(most); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("checkFiles(%d) = %v, want %q", most, err, want)
		}
	}
}

func TestVirtual(t *testing.T) {
	free := func(kib int) fstest.MapFS {
		return fstest.MapFS{"proc/meminfo": &fstest.MapFile{Data: fmt.Appendf(nil, "MemTotal:  9000000 kB\nMemAvailable:   %d kB\n", kib)}}
	}
	for _, c := range []struct {
		name, found, remedy string
		browsers            []string
		lacks               error
		free                int
		onBox               bool
	}{
		{name: "good", browsers: []string{"chromium", "firefox-esr"}, free: 2_000_000, onBox: true,
			found: "chromium, firefox-esr; 2048 MB of memory are free"},
		{name: "an image without browsers", onBox: true, lacks: errors.New("apt-get install chromium"), free: 2_000_000,
			found: "this box's image has no browser", remedy: "make image BROWSERS=chromium"},
		{name: "a machine without programs", lacks: errors.New("apt-get install chromium"), free: 2_000_000,
			found: "it cannot run", remedy: "apt-get install chromium"},
		{name: "little memory", browsers: []string{"chromium"}, free: 500_000,
			found: "chromium; 512 MB of memory are free", remedy: "have 1000 MB free"},
	} {
		f := checkVirtual(free(c.free), c.browsers, c.lacks, c.onBox)
		if f.OK != (c.remedy == "") || f.Found != c.found || !strings.Contains(f.Remedy, c.remedy) {
			t.Errorf("%s: %+v; want %q, and a remedy with %q", c.name, f, c.found, c.remedy)
		}
	}
	t.Setenv("PATH", t.TempDir())
	for _, f := range checkPrograms(true) {
		want := noImage
		if slices.Contains([]string{"chromium", "certutil", "xvfb"}, f.Name) {
			want = anotherImage
		}
		if !f.OK && f.Remedy != want {
			t.Errorf("on a box without %s: %q; want %q", f.Name, f.Remedy, want)
		}
	}
}

func TestChoose(t *testing.T) {
	all := []Finding{{Name: "a", OK: true}, {Name: "b"}, {Name: "c", OK: true}}
	for _, c := range []struct {
		names []string
		want  string
		good  bool
	}{{nil, "a b c", false}, {[]string{"c", "a"}, "a c", true}, {[]string{"b"}, "b", false}} {
		got, err := Choose(all, c.names)
		var names []string
		for _, f := range got {
			names = append(names, f.Name)
		}
		if err != nil || strings.Join(names, " ") != c.want || AllGood(got) != c.good {
			t.Errorf("Choose(%q) = %q, %v, all good: %v; want %q, nil, %v", c.names, names, err, AllGood(got), c.want, c.good)
		}
	}
	if _, err := Choose(all, []string{"warp"}); err == nil || !strings.Contains(err.Error(), "a, b, c") {
		t.Errorf("Choose of an unknown check: %v; want the names of those that there are", err)
	}
}
