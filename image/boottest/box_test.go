package boottest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// cases run in this order on one box. Each leaves the box healthy and, as far as another
// case could notice, unchanged; the most disturbing cases come last.
var cases = []guestCase{
	{"nothing failed", "", testNothingFailed},
	{"memory", "", testMemory},
	{"data partition", "", testDataPartition},
	{"modules", "loads all drivers at once, half a minute of the emulated processor; the cases below load those that they use", testModules},
	{"settings", "", testSettings},
	{"ports and console", "", testConsole},
	{"box package", "", func(t *testing.T, b *Box) { b.Test(t, "./image/box", "TestOnTheBox") }},
	{"memory of a run", "the second version of control groups, where TestRunIsBoundedInMemory meets the first", func(t *testing.T, b *Box) {
		b.Test(t, "./internal/run/isolate", "^TestRunIsBoundedInMemory$")
	}},
	{"access point", "", testAccessPoint},
	{"doctor", "asks what package internal/box/doctor and the command ask in their tests", testDoctor},
	{"no way in", "", testNoWayIn},
	{"grabber", "", testGrabber},
	{"grabber's colours", "films three hundred times; the case above films each format in one of six ways", testGrabberColours},
	{"USB grabber", "", testUSBGrabber},
	{"USB grabbers", "nine films more; the case above has a fault of each kind that leaves the stick plugged in", testUSBGrabbers},
	{"USB keyboard", "", testGadget},
	{"USB port", "one more port, as the two of the story", testUSBPort},
	{"third port", "one more port, as the two of the story", testThirdPort},
	{"damaged update", "", testDamagedUpdate},
	{"tampered update", "sends a whole update through the emulated box; image/update and image/box refuse all kinds", testTamperedUpdate},
	{"story", "", testStory},
	{"Wi-Fi", "tells the story once more, by the box's radio; the cases above have the access point and the story", testWiFi},
	{"hung service", "waits for the service's watchdog", testHungService},
}

func TestSizes(t *testing.T) {
	for name, most := range map[string]int64{"appliance.img": 400_000_000, "appliance.efi": 150_000_000} {
		info, err := os.Stat(ImagePath(t, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f MB", name, float64(info.Size())/1e6)
		if info.Size() > most {
			t.Errorf("%s has %d bytes, want at most %d", name, info.Size(), most)
		}
	}
}

func testNothingFailed(t *testing.T, b *Box) {
	if out := b.Run(t, "systemctl --failed --no-legend --plain; systemctl is-system-running --wait"); out != "running" {
		t.Errorf("the state of the system is %q, want running", out)
		b.Explain(t)
	}
}

// The idle system leaves most of the memory to archives and recordings.
func testMemory(t *testing.T, b *Box) {
	var total, available int
	out := b.Run(t, "awk '/MemTotal|MemAvailable/ {print $2}' /proc/meminfo")
	if _, err := fmt.Sscan(out, &total, &available); err != nil {
		t.Fatal(err)
	}
	used := (total - available) / 1024
	t.Logf(
		"idle: %d of %d MiB in use, the service %s bytes",
		used,
		total/1024,
		b.Run(t, "systemctl show appliance.service -P MemoryCurrent"),
	)
	if used > 600 {
		t.Errorf("the idle system uses %d MiB, want less", used)
	}
}

// testDataPartition checks that the data partition takes the rest of the disk, and that nothing on it can be executed.
func testDataPartition(t *testing.T, b *Box) {
	out := b.Run(t, "findmnt -n -o SOURCE,FSTYPE,OPTIONS /var/lib/appliance && stat -c '%U %a' /var/lib/appliance/state")
	if !strings.Contains(out, "ext4") || !strings.Contains(out, "noexec") || !strings.Contains(out, "appliance 700") {
		t.Errorf("got %q", out)
	}
	var size int
	if _, err := fmt.Sscan(b.Run(t, "lsblk -b -n -o SIZE /dev/vda2"), &size); err != nil || size < 1600<<20 {
		t.Errorf("the data partition of a disk of 2 GiB or more has %d bytes (%v)", size, err)
		b.Explain(t)
	}
}

// testModules loads the drivers that boxes need and those that imitate hardware for tests.
func testModules(t *testing.T, b *Box) {
	out := b.Run(t, "modprobe -a vivid dummy_hcd mac80211_hwsim libcomposite usb_f_hid ch341 cp210x ftdi_sio uvcvideo uinput ath9k && "+
		"ls -1d /dev/video0 /sys/class/udc/dummy_udc.0 /sys/class/ieee80211/phy0 /dev/uinput")
	if strings.Count(out, "\n") != 3 {
		t.Errorf("got %q", out)
	}
	b.Until(t, "modprobe -r vivid dummy_hcd mac80211_hwsim") // udev may still use the new devices
}

// testSettings checks kernel settings that the service needs and may not change itself, and the product's own times:
// the test build gives units longer to start, and the tests of faults shorten how long a fault lasts.
func testSettings(t *testing.T, b *Box) {
	b.expect(t, "TCP forgets what it measured", "cat /proc/sys/net/ipv4/tcp_no_metrics_save", "1")
	b.expect(t, "nothing is forwarded", "cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding", "0\n0")
	b.expect(t, "the machine's watchdog, in microseconds", "busctl get-property "+systemWatchdog, "t 30000000")
	b.expect(t, "the service's watchdog", "systemctl show -P WatchdogUSec appliance.service", "20s")
	b.expect(t, "how long a unit may start", "grep -h ^DefaultTimeoutStartSec /etc/systemd/system.conf.d/box.conf", "DefaultTimeoutStartSec=30s")
	b.expect(t, "how long the service may start", "grep ^TimeoutStartSec /usr/lib/systemd/system/appliance.service", "TimeoutStartSec=60s")
	b.expect(t, "how long an update may take to become healthy",
		"grep ^ExecStart /usr/lib/systemd/system/appliance-bless.service; appliance box bless --help | grep -o 'within=[0-9a-z]*'",
		"ExecStart=/usr/bin/appliance box bless\nwithin=90s")
}

// testConsole checks that the port with the lease is the uplink and the other one a device
// port, and that the console shows both, with the token.
func testConsole(t *testing.T, b *Box) {
	token := b.Run(t, "cat /etc/appliance/token")
	banner := b.awaitBanner(t, "https://10.77.0.2:8080/", "box.local", "SHA-256", token, "Uplink", "Device   ", "192.168.77.1", "Health   ok")
	t.Logf("the console shows:\nEidetic %s", banner)
	if picture := os.Getenv("CONSOLE_PNG"); picture != "" { // for docs/img
		if err := b.Screenshot(t.Context(), picture); err != nil {
			t.Error(err)
		}
	}
	b.expect(t, "the firewall's uplink", "nft list set inet box uplink | grep elements | xargs", "elements = { enp0s16 }")
	b.Until(t, "grep enp0s16 /var/lib/appliance/uplink") // kept for later boots
	b.expect(t, "the firewall's device ports", "nft list set inet box device_ports | grep elements | xargs", "elements = { enp0s17 }")
}

// testThirdPort plugs in a network card while the box runs, which becomes a device port, and
// removes it again, which must not disturb anything.
func testThirdPort(t *testing.T, b *Box) {
	if err := b.PlugNIC(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	b.awaitBanner(t, "192.168.78.1")
	wait, cancel := timeout(t)
	defer cancel()
	if err := b.UnplugNIC(wait, 0); err != nil {
		t.Fatal(err)
	}
	b.Until(t, "! ip -br link | grep -i "+b.Third.MAC)
	b.Healthy(t)
}

// testHungService stops the service's process, which then no longer notifies the watchdog; systemd must restart it.
func testHungService(t *testing.T, b *Box) {
	before := b.Run(t, "systemctl show -P MainPID appliance.service")
	b.Run(t, "kill -STOP "+before)
	stopped := time.Now()
	b.Until(t, fmt.Sprintf("[ $(systemctl show -P MainPID appliance.service) != %s ] && systemctl is-active appliance.service", before))
	b.Healthy(t)
	t.Logf("healthy again %.1f s after the service hung", time.Since(stopped).Seconds())
	if out := b.Run(t, "journalctl -b -u appliance.service --no-pager | grep -c 'Watchdog timeout'"); out == "0" {
		t.Error("the service was restarted, but not by the watchdog")
	}
}
