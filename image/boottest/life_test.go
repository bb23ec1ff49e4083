package boottest

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"eidetic/image/fat"
)

// lifeCases damage what a box keeps: it must come back by itself, with everything that was complete before.
var lifeCases = []guestCase{
	{"power cut while writing", "", testPowerCut},
	{"damaged data partition", "", testDamagedData},
}

// keepWhole writes a file that must outlive what follows, and returns the token, which must too.
func (b *Box) keepWhole(t *testing.T) (token string) {
	t.Helper()
	b.Run(t, "echo whole > /var/lib/appliance/kept && sync /var/lib/appliance/kept")
	return b.Run(t, "cat /etc/appliance/token")
}

// isWhole checks what keepWhole wrote.
func (b *Box) isWhole(t *testing.T, token string) {
	t.Helper()
	b.expect(t, "what was whole", "cat /var/lib/appliance/kept /etc/appliance/token", "whole\n"+token)
}

func testPowerCut(t *testing.T, b *Box) {
	token := b.keepWhole(t)
	held := b.film(t)
	b.Run(t, "(yes partial > /var/lib/appliance/torn &) ; sleep 0.3")
	b.cut(t)
	// While the box is off, a person puts a configuration on the EFI partition.
	b.putESP(t, "appliance.yaml", "box:\n  hostname: lab7\n")
	b.On(t)
	b.isWhole(t, token)
	b.expect(t, "the configured host name", "hostname", "lab7")
	b.Run(t, "rm -f /var/lib/appliance/torn")
	b.filmSaved(t, held)
}

func testDamagedData(t *testing.T, b *Box) {
	token := b.keepWhole(t)
	b.cut(t)
	// Damage the superblock and the blocks after it: only a new disk would be worse.
	if err := b.FlipData(1, 3000, 1024, 16<<10); err != nil {
		t.Fatal(err)
	}
	b.On(t)
	b.isWhole(t, token)
}

// cut cuts the power.
func (b *Box) cut(t *testing.T) {
	t.Helper()
	if err := b.CutPower(); err != nil {
		t.Fatal(err)
	}
}

// await waits for an event of the virtual machine.
func (b *Box) await(t *testing.T, event string) {
	t.Helper()
	wait, cancel := timeout(t)
	defer cancel()
	if err := b.QMP.Wait(wait, event); err != nil {
		b.Explain(t)
		t.Fatal(err)
	}
}

// pause lets the machine run for a while, or until it resets itself.
func (b *Box) pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// expect compares the output of a command on the box.
func (b *Box) expect(t *testing.T, what, command, want string) {
	t.Helper()
	if got := b.Run(t, command); got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
		b.Explain(t)
	}
}

// says waits until the console shows a text since the machine was last started.
func (b *Box) says(t *testing.T, text string) {
	t.Helper()
	wait, cancel := timeout(t)
	defer cancel()
	for !strings.Contains(b.Console(), text) {
		select {
		case <-wait.Done():
			t.Fatalf("the console does not show %q:\n%s", text, last(b.Console(), 2000))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// putESP writes a file to the root of the EFI partition of a box that is off.
func (b *Box) putESP(t *testing.T, name, text string) {
	t.Helper()
	if err := b.ESP(func(v *fat.Volume) error {
		return v.Create(name, int64(len(text)), bytes.NewReader([]byte(text)), time.Now())
	}); err != nil {
		t.Fatal(err)
	}
}

// post sends an update to the panel and checks its answer.
func (b *Box) post(t *testing.T, bundle string, status int, says string) {
	t.Helper()
	f, err := os.Open(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, text := b.REST(t, http.MethodPost, "/api/v1/update", "application/octet-stream", f); got != status ||
		!strings.Contains(text, says) {
		t.Errorf("POST of an update: %d %s, want %d with %q", got, text, status, says)
	}
}

// refused waits until an update was refused, and checks the reason.
func (b *Box) refused(t *testing.T, why string) {
	t.Helper()
	if said := b.Until(t, "cat /var/lib/appliance/state/update/result.json"); !strings.Contains(said, why) {
		t.Errorf("the update was refused with %s, want %q", said, why)
	}
	b.Until(t, "! ls /var/lib/appliance/state/update/ready.update 2>/dev/null")
	b.Run(t, "rm /var/lib/appliance/state/update/result.json")
}

func (b *Box) version(t *testing.T) string {
	t.Helper()
	return b.Run(t, showVersion)
}

// showVersion prints the version of the system that the box runs.
const showVersion = "sed -n s/^IMAGE_VERSION=//p /etc/os-release"

// listSystems lists the systems on the EFI partition, as the box sees them.
const listSystems = "modprobe vfat; mount -o ro /dev/vda1 /mnt && LC_ALL=C ls -1 /mnt/EFI/Linux; umount /mnt"
