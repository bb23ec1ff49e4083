package boottest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/storytest"
)

// testStory runs the product's main story on the booted image, as cmd/appliance runs it
// with a process. The box's processor is emulated and therefore slow: its screen is filmed
// ten times a second, and a page has loaded once it has been still for longer than this
// machine may stall.
func testStory(t *testing.T, b *Box) {
	storytest.NeedDevice(t)
	roots, leave := startSite(t, b)
	// The site has a certificate authority of its own, as in a company's test network.
	before := b.Run(t, "cat /etc/appliance/appliance.yaml")
	name := b.Run(t, "grep -l -i "+b.Device.MAC+" /sys/class/net/e*/address | cut -d / -f 5")
	config := before + "\nnetwork:\n  trust: |\n    " + strings.ReplaceAll(strings.TrimSpace(roots), "\n", "\n    ") +
		fmt.Sprintf("\ndevices: [{name: laptop, port: %s, rate: 10}]\n", name)
	configure := func(text string) {
		b.Run(t, "cat > /etc/appliance/appliance.yaml <<'END'\n"+text+"\nEND\nsystemctl restart appliance.service")
		b.Healthy(t)
	}
	configure(config)
	defer configure(before) // not t.Cleanup: there the test's context is done, and waiting fails

	useLease(t, b)
	storytest.Plug(t, b.Device, tapName, 800, 500)
	story := storytest.Story{
		Panel: &storytest.Panel{URL: "https://" + Panel, Token: b.Run(t, "cat /etc/appliance/token"), Client: b.Uplink.Client(0)},
		Page:  samplesite.Home, Leave: leave,
		Trials: 1, Still: 10 * time.Second, Limit: 5 * time.Minute, Patience: Patience,
	}
	began := time.Now()
	story.Tell(t)
	t.Logf("the story took %.0f s", time.Since(began).Seconds())
}

// startSite serves the sample shop in the uplink's namespace, with its name server at
// the address that the lease names; leave ends the site.
func startSite(t *testing.T, b *Box) (roots string, leave func()) {
	t.Helper()
	dir := t.TempDir()
	program, pem := filepath.Join(dir, "appliance"), filepath.Join(dir, "root.pem")
	goTool(t, "build", "-o", program, "./cmd/appliance")
	err := b.Uplink.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		for _, a := range samplesite.Hosts() {
			if err != nil {
				break
			}
			err = netlink.AddrReplace(lo, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.Command(program, "site", "--ca-out", pem, "--resolver", Router.Addr().String()+":53")
	cmd.Stdout, cmd.Stderr = write, os.Stderr
	if err := b.Uplink.Start(cmd); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if line, err := bufio.NewReader(read).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the site printed %q (%v), want its ready line", line, err)
	}
	text, err := os.ReadFile(pem)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), func() { _ = cmd.Process.Kill() } // closing the port waits for it
}

// useLease removes the test's own address from the device port, as a device has
// none before it asks for a lease, and restores it at the end.
func useLease(t *testing.T, b *Box) {
	t.Helper()
	addresses := func(change func(netlink.Link) error) {
		err := b.Device.Do(func() error {
			cable, err := netlink.LinkByName(tapName)
			if err != nil {
				return err
			}
			all, err := netlink.AddrList(cable, netlink.FAMILY_V4)
			if err != nil {
				return err
			}
			for _, a := range all {
				if err := netlink.AddrDel(cable, &a); err != nil {
					return err
				}
			}
			return change(cable)
		})
		if err != nil {
			t.Error(err)
		}
	}
	addresses(func(netlink.Link) error { return nil })
	t.Cleanup(func() {
		addresses(func(cable netlink.Link) error {
			return netlink.AddrAdd(
				cable,
				&netlink.Addr{IPNet: &net.IPNet{IP: Device.Addr().AsSlice(), Mask: net.CIDRMask(Device.Bits(), 32)}},
			)
		})
	})
}
