//go:build box

package boottest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// install sends an update to the box and puts it where the panel would.
func (f *fixture) install(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	port, err := f.uplink.ServeFile(imagePath(name))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	out, err := f.Shell.Run(ctx, fmt.Sprintf("cd /var/lib/appliance/state/update && cat < /dev/tcp/%s/%d > part && mv part ready.update && touch /run/appliance/requests/update", router.Addr(), port))
	if err != nil {
		t.Fatal(err, out)
	}
}

// restarted waits for the machine to reset itself n times.
func (f *fixture) restarted(ctx context.Context, t *testing.T, n int, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for range n {
		if err := f.QMP.Wait(ctx, "RESET"); err != nil {
			f.explain(t)
			t.Fatal(err)
		}
	}
}

func (f *fixture) version(ctx context.Context, t *testing.T) string {
	t.Helper()
	return f.run(ctx, t, "sed -n s/^IMAGE_VERSION=//p /etc/os-release")
}

// systems lists the EFI partition's systems, as the box sees them.
func (f *fixture) systems(ctx context.Context, t *testing.T) string {
	t.Helper()
	return f.run(ctx, t, "modprobe vfat; mount -o ro /dev/vda1 /mnt && LC_ALL=C ls -1 /mnt/EFI/Linux; umount /mnt")
}

// The story of an update: refused when damaged, installed when good, and
// marked healthy beside the one before.
func TestUpdate(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t, imagePath("appliance-test.img"))
	f.boot(ctx, t)
	first := f.version(ctx, t)

	f.run(ctx, t, "cd /var/lib/appliance/state/update && echo garbage > ready.update && touch /run/appliance/requests/update")
	refused := f.run(ctx, t, "for i in $(seq 100); do test -e /var/lib/appliance/state/update/result.json && break; sleep 0.1; done; cat /var/lib/appliance/state/update/result.json; ls /var/lib/appliance/state/update")
	if !strings.Contains(refused, "damaged") || strings.Contains(refused, "ready.update") {
		t.Errorf("garbage: %q", refused)
	}

	f.install(ctx, t, "appliance-test-next.update")
	f.restarted(ctx, t, 1, 60*time.Second)
	f.healthy(ctx, t)
	if got := f.version(ctx, t); got != first+".1" {
		t.Fatalf("version %s after the update, want %s.1", got, first)
	}
	f.run(ctx, t, "systemctl start appliance-bless.service && systemctl is-active appliance-bless.service")
	want := fmt.Sprintf("appliance_%s.1.efi\nappliance_%s.efi", first, first)
	if got := f.systems(ctx, t); got != want {
		t.Errorf("systems after a good update:\n%s\nwant:\n%s", got, want)
	}
	t.Logf("updated from %s to %s.1", first, first)
}

// A system whose service never starts is tried three times, and left for the
// one before, which nobody touched.
func TestBadUpdateFallsBack(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t, imagePath("appliance-test.img"))
	f.boot(ctx, t)
	first := f.version(ctx, t)
	started := time.Now()
	f.install(ctx, t, "appliance-test-bad.update")
	f.restarted(ctx, t, 4, 5*time.Minute) // into it, and out of it three times
	f.healthy(ctx, t)
	t.Logf("fell back %.0f s after a bad update", time.Since(started).Seconds())
	if got := f.version(ctx, t); got != first {
		t.Errorf("version %s after a bad update, want %s as before", got, first)
	}
	if got, want := f.systems(ctx, t), fmt.Sprintf("appliance_%s.2+0-3.efi\nappliance_%s.efi", first, first); got != want {
		t.Errorf("systems after a bad update:\n%s\nwant:\n%s", got, want)
	}
}
