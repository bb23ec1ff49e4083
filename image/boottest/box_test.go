//go:build box

package boottest

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/image/fat"
)

// Addresses in the uplink's namespace.
var (
	router = netip.MustParsePrefix("10.77.0.1/24")
	lease  = netip.MustParsePrefix("10.77.0.2/24")
	panel  = netip.AddrPortFrom(lease.Addr(), 8080).String()
)

// limit is the promise: from power-on to healthy, in software emulation on two processors.
const limit = 40 * time.Second

// fixture is a machine with an uplink that has a DHCP server and a device port.
type fixture struct {
	*Machine
	uplink, device *Port
}

func newFixture(t *testing.T, image string) *fixture {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("boot tests make namespaces: run them as root")
	}
	uplink, err := NewPort("52:54:00:00:00:01", router)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(uplink.Close)
	device, err := NewPort("52:54:00:00:00:02", netip.MustParsePrefix("192.168.77.2/24"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(device.Close)
	if err := uplink.ServeLease(lease, router.Addr()); err != nil {
		t.Fatal(err)
	}
	m, err := New(t.TempDir(), Options{Disk: image, Size: 2 << 30, Ports: []*Port{uplink, device}})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{m, uplink, device}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the machine's console ended with:\n%s", last(f.Console(), 4000))
		}
		_ = f.CutPower()
	})
	return f
}

// boot switches on and waits until the box is healthy; it returns how long that took.
func (f *fixture) boot(ctx context.Context, t *testing.T) time.Duration {
	t.Helper()
	if err := f.Boot(ctx); err != nil {
		t.Fatal(err)
	}
	return f.healthy(ctx, t)
}

func (f *fixture) healthy(ctx context.Context, t *testing.T) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	if _, err := f.uplink.WaitHealthy(ctx, panel); err != nil {
		f.explain(t)
		t.Fatal(err)
	}
	return f.Since()
}

// explain logs what the box itself says is wrong.
func (f *fixture) explain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	out, err := f.Shell.Run(ctx, "systemctl --no-pager --failed; systemctl --no-pager list-jobs; ip -br addr; journalctl --no-pager -b -u 'appliance*' | tail -n 40; journalctl --no-pager -b -p warning | tail -n 20")
	t.Logf("the box says (%v):\n%s", err, out)
}

func (f *fixture) run(ctx context.Context, t *testing.T, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := f.Shell.Run(ctx, command)
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(out)
}

func imagePath(name string) string { return filepath.Join("..", "..", "out", "image", name) }

func TestSizes(t *testing.T) {
	for name, most := range map[string]int64{"appliance.img": 400_000_000, "appliance.efi": 150_000_000} {
		info, err := os.Stat(imagePath(name))
		if err != nil {
			t.Fatalf("%v; make image makes it", err)
		}
		t.Logf("%s: %.1f MB", name, float64(info.Size())/1e6)
		if info.Size() > most {
			t.Errorf("%s has %d bytes, at most %d are promised", name, info.Size(), most)
		}
	}
}

// One boot, looked at from all sides: what it takes, what it is, what it
// opens, what it survives.
func TestBox(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t, imagePath("appliance-test.img"))
	took := f.boot(ctx, t)
	t.Logf("healthy %.1f s after power-on", took.Seconds())
	if took > limit {
		t.Errorf("healthy after %v, %v is promised", took, limit)
	}
	t.Run("nothing failed", func(t *testing.T) {
		if out := f.run(ctx, t, "systemctl --failed --no-legend --plain; systemctl is-system-running --wait"); out != "running" {
			t.Errorf("the system is %q", out)
			f.explain(t)
		}
	})
	t.Run("memory", func(t *testing.T) {
		t.Logf("idle:\n%s", f.run(ctx, t, "grep -E 'MemTotal|MemAvailable|Shmem:' /proc/meminfo; systemctl show appliance.service -P MemoryCurrent"))
	})
	t.Run("data partition", func(t *testing.T) {
		out := f.run(ctx, t, "findmnt -n -o SOURCE,FSTYPE,OPTIONS /var/lib/appliance && stat -c '%U %a' /var/lib/appliance/state && df --output=size -m /var/lib/appliance | tail -n 1")
		if !strings.Contains(out, "ext4") || !strings.Contains(out, "noexec") || !strings.Contains(out, "appliance 700") {
			t.Errorf("got %q", out)
		}
		t.Log(out)
	})
	t.Run("modules", func(t *testing.T) {
		out := f.run(ctx, t, "modprobe -a vivid dummy_hcd sch_netem mac80211_hwsim libcomposite usb_f_hid ch341 cp210x ftdi_sio uvcvideo uinput ath9k && ls -1d /dev/video0 /sys/class/udc/dummy_udc.0 /sys/class/ieee80211/phy0 /dev/uinput")
		if strings.Count(out, "\n") != 3 {
			t.Errorf("got %q", out)
		}
		f.run(ctx, t, "ip link add v0 type veth peer name v1 && ip link set v0 up && tc qdisc add dev v0 root netem delay 10ms && tc qdisc show dev v0 | grep -q netem && ip link del v0 && modprobe -r vivid dummy_hcd mac80211_hwsim")
	})
	t.Run("ports and console", func(t *testing.T) { testConsole(ctx, t, f) })
	t.Run("no way in", func(t *testing.T) { testPorts(ctx, t, f) })
	t.Run("hung service", func(t *testing.T) { testHungService(ctx, t, f) })
}

// From the uplink only the panel answers, from a device's port nothing.
func testPorts(ctx context.Context, t *testing.T, f *fixture) {
	var all []int
	for port := 1; port <= 9000; port++ {
		all = append(all, port)
	}
	scan, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for _, side := range []struct {
		name    string
		port    *Port
		address netip.Addr
		want    string
	}{
		{"uplink", f.uplink, lease.Addr(), "[8080]"},
		{"device", f.device, deviceSide, "[]"},
	} {
		open, err := side.port.OpenPorts(scan, side.address, all, 300*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(open); got != side.want {
			t.Errorf("open on the side of the %s: %s, documented: %s", side.name, got, side.want)
		}
	}
	listening := f.run(ctx, t, "ss -Hltun | awk '{print $1, $5}' | sort -u")
	t.Logf("listening:\n%s", listening)
}

// deviceSide is the box's address on its first device port.
var deviceSide = netip.MustParseAddr("192.168.77.1")

// The port with the lease is the uplink, the other one a device's, and the
// console says so, with the token.
func testConsole(ctx context.Context, t *testing.T, f *fixture) {
	token := f.run(ctx, t, "cat /etc/appliance/token")
	want := []string{"http://10.77.0.2:8080/", "box.local", token, "Uplink", "Device   ", "192.168.77.1", "Health   ok"}
	wait, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	for {
		console := last(f.Console(), 2000)
		missing := ""
		for _, w := range want {
			if !strings.Contains(console, w) {
				missing = w
			}
		}
		if missing == "" {
			_, banner, _ := strings.Cut(console, "Eidetic ")
			t.Logf("the console says:\nEidetic %s", banner)
			break
		}
		select {
		case <-wait.Done():
			f.explain(t)
			t.Fatalf("the console does not say %q", missing)
		case <-time.After(500 * time.Millisecond):
		}
	}
	out := f.run(ctx, t, "ip -br -4 addr; nft list set inet box device_ports | grep elements; resolvectl mdns | cat")
	if !strings.Contains(out, "192.168.77.1/24") || !strings.Contains(out, "elements") {
		t.Errorf("ports: %q", out)
	}
	t.Log(out)
}

// A stopped process does not ping; systemd ends it and starts it again.
func testHungService(ctx context.Context, t *testing.T, f *fixture) {
	before := f.run(ctx, t, "systemctl show -P MainPID appliance.service")
	f.run(ctx, t, "kill -STOP "+before)
	stopped := time.Now()
	wait, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for {
		after, err := f.Shell.Run(wait, "systemctl show -P MainPID appliance.service; systemctl is-active appliance.service")
		if pid, state, _ := strings.Cut(strings.TrimSpace(after), "\n"); err == nil && state == "active" && pid != before {
			break
		}
		if wait.Err() != nil {
			t.Fatalf("still the hung process %s after %v: %v", before, time.Since(stopped), err)
		}
	}
	if _, err := f.uplink.WaitHealthy(wait, panel); err != nil {
		t.Fatal(err)
	}
	t.Logf("healthy again %.1f s after the service hung", time.Since(stopped).Seconds())
	if out := f.run(ctx, t, "journalctl -b -u appliance.service --no-pager | grep -c 'Watchdog timeout'"); out == "0" {
		t.Error("it was not the watchdog")
	}
}

// What was written and synced before the power went is there after; a hung
// system is reset by the hardware's watchdog.
func TestPowerAndHardwareWatchdog(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t, imagePath("appliance-test.img"))
	f.boot(ctx, t)
	token := f.run(ctx, t, "cat /etc/appliance/token")
	t.Logf("first boot:\n%s", f.run(ctx, t, `echo whole > /var/lib/appliance/kept && sync /var/lib/appliance/kept && ls -la /var/lib/appliance && findmnt /var/lib/appliance
		journalctl -b -u appliance-setup -o short-monotonic --no-pager | tail -n 20`))
	f.run(ctx, t, "(yes partial > /var/lib/appliance/torn &) ; sleep 0.3")
	if err := f.CutPower(); err != nil {
		t.Fatal(err)
	}
	const config = "box:\n  hostname: lab7\n"
	if err := f.ESP(func(v *fat.Volume) error {
		return v.Create("appliance.yaml", int64(len(config)), strings.NewReader(config), time.Now())
	}); err != nil {
		t.Fatal(err)
	}
	took := f.boot(ctx, t)
	if name := f.run(ctx, t, "hostname"); name != "lab7" {
		t.Errorf("host name %q, configured on the EFI partition: lab7", name)
	}
	t.Logf("healthy %.1f s after a power cut:\n%s", took.Seconds(), f.run(ctx, t, "ls -la /var/lib/appliance; findmnt /var/lib/appliance; dmesg | grep -i ext4; journalctl -b -u appliance-setup -o short-monotonic --no-pager | tail -n 20; systemd-analyze; systemd-analyze blame | head -15; systemd-analyze critical-chain appliance.service"))
	if out := f.run(ctx, t, "cat /var/lib/appliance/kept; cat /etc/appliance/token"); out != "whole\n"+token {
		t.Errorf("after the power cut: %q, want the file and the token as before", out)
	}
	// systemd's crash handler freezes process 1: nobody feeds the watchdog.
	hung := time.Now()
	f.run(ctx, t, "kill -SEGV 1")
	wait, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	if err := f.QMP.Wait(wait, "WATCHDOG"); err != nil {
		t.Fatal(err)
	}
	t.Logf("reset by the i6300esb after %.1f s", time.Since(hung).Seconds())
	f.healthy(ctx, t)
}
