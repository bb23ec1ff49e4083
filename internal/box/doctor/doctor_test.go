package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"eidetic/control/power/powertest"
)

func TestHardware(t *testing.T) {
	file := &fstest.MapFile{}
	for name, root := range map[string]fstest.MapFS{
		"v4l2":     {"dev/video0": file},
		"radio":    {"sys/class/ieee80211/phy0": file},
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
	for _, f := range checkPrograms() {
		if f.Name == "chromium" && (!f.OK || f.Found != chrome) {
			t.Errorf("finding %+v; want %s", f, chrome)
		}
		if f.Name == "xvfb" && (f.OK || f.Remedy != "apt-get install xvfb") {
			t.Errorf("finding %+v; want a program that is missing, and its package", f)
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
