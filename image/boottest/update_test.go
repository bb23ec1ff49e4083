package boottest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// install sends an update to the box and puts it where the panel would.
func (b *Box) install(t *testing.T, name string) {
	t.Helper()
	file := b.Send(t, ImagePath(t, name))
	b.Run(t, fmt.Sprintf("cp %s /var/lib/appliance/state/update/part && rm %[1]s && cd /var/lib/appliance/state/update && sync part && mv part ready.update && touch /run/appliance/requests/update", file))
}

func (b *Box) version(t *testing.T) string {
	t.Helper()
	return b.Run(t, "sed -n s/^IMAGE_VERSION=//p /etc/os-release")
}

// systems lists the EFI partition's systems, as the box sees them.
func (b *Box) systems(t *testing.T) string {
	t.Helper()
	return b.Run(t, "modprobe vfat; mount -o ro /dev/vda1 /mnt && LC_ALL=C ls -1 /mnt/EFI/Linux; umount /mnt")
}

// The story of an update: refused when damaged, installed when good, and
// marked healthy beside the one before. Then one whose service never starts:
// it is tried three times, and left for the one before, which nobody touched.
func TestUpdate(t *testing.T) {
	b := StartBox(t, BoxOptions{})
	first := b.version(t)

	b.Run(t, "cd /var/lib/appliance/state/update && echo garbage > ready.update && touch /run/appliance/requests/update")
	refused := b.Until(t, "cat /var/lib/appliance/state/update/result.json")
	if !strings.Contains(refused, "damaged") {
		t.Errorf("garbage: %q", refused)
	}
	b.Until(t, "! ls /var/lib/appliance/state/update/ready.update")

	b.Restarts(t, func() { b.install(t, "appliance-test-next.update") })
	if got := b.version(t); got != first+".1" {
		t.Fatalf("version %s after the update, want %s.1", got, first)
	}
	b.Run(t, "systemctl start appliance-bless.service && systemctl is-active appliance-bless.service")
	want := fmt.Sprintf("appliance_%s.1.efi\nappliance_%s.efi", first, first)
	if got := b.systems(t); got != want {
		t.Errorf("systems after a good update:\n%s\nwant:\n%s", got, want)
	}

	started := time.Now()
	b.Restarts(t, func() { b.install(t, "appliance-test-bad.update") })
	t.Logf("fell back %.0f s after a bad update", time.Since(started).Seconds())
	if got := b.version(t); got != first+".1" {
		t.Errorf("version %s after a bad update, want %s.1 as before", got, first)
	}
	want = fmt.Sprintf("appliance_%s.1.efi\nappliance_%s.2+0-3.efi", first, first)
	if got := b.systems(t); got != want {
		t.Errorf("systems after a bad update:\n%s\nwant:\n%s", got, want)
	}
}
