package boottest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/image/fat"
)

// testLife is the life of one box: power cuts while it writes, updates and starts; updates
// that are refused, installed and given up; a damaged disk. After each step the box must
// come back by itself, with everything that was complete before.
func testLife(t *testing.T) {
	b := StartBox(t, BoxOptions{})
	first := b.version(t)
	next, bad := first+".1", first+".2"
	token := b.Run(t, "cat /etc/appliance/token")

	t.Run("power cut while writing", func(t *testing.T) {
		b.Run(t, "echo whole > /var/lib/appliance/kept && sync /var/lib/appliance/kept")
		held := b.film(t)
		b.Run(t, "(yes partial > /var/lib/appliance/torn &) ; sleep 0.3")
		b.cut(t)
		// While the box is off, a person puts a configuration on the EFI partition.
		b.putESP(t, "appliance.yaml", "box:\n  hostname: lab7\n")
		b.On(t)
		b.expect(t, "what was whole", "cat /var/lib/appliance/kept /etc/appliance/token", "whole\n"+token)
		b.expect(t, "the configured host name", "hostname", "lab7")
		b.Run(t, "rm -f /var/lib/appliance/torn")
		b.filmSaved(t, held)
	})
	t.Run("damaged update", func(t *testing.T) {
		b.Run(t, "cd /var/lib/appliance/state/update && echo garbage > ready.update && touch /run/appliance/requests/update")
		b.refused(t, "damaged")
	})
	t.Run("tampered update", func(t *testing.T) {
		text, err := os.ReadFile(ImagePath(t, "appliance-test-next.update"))
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/2] ^= 1
		tampered := filepath.Join(t.TempDir(), "tampered.update")
		if err := os.WriteFile(tampered, text, 0o600); err != nil {
			t.Fatal(err)
		}
		b.post(t, tampered, http.StatusUnprocessableEntity, "not the one that was signed")
		b.expect(t, "systems after refused updates", listSystems, fmt.Sprintf("appliance_%s.efi", first))
	})
	t.Run("power cut while updating", func(t *testing.T) {
		b.post(t, ImagePath(t, "appliance-test-next.update"), http.StatusAccepted, `"installing":true`)
		b.Run(t, "sleep 0."+fmt.Sprint(rand.IntN(10)))
		b.cut(t)
		b.On(t)
		if v := b.version(t); v != first && v != next {
			t.Errorf("version %s after a cut during an update, want %s or %s", v, first, next)
		}
		b.expect(t, "the token", "cat /etc/appliance/token", token)
	})
	t.Run("good update from a USB stick, with a power cut at its first start", func(t *testing.T) {
		if b.version(t) == first { // the cut came before the update was complete
			b.QMP.Forget()
			b.plugStick(t, ImagePath(t, "appliance-test-next.update"))
			b.await(t, "RESET")
			b.pause(t, time.Duration(rand.IntN(15000))*time.Millisecond)
			b.cut(t)
			b.On(t)
		}
		if v := b.version(t); v != next {
			t.Fatalf("version %s after the update, want %s", v, next)
		}
		b.Run(t, "systemctl start appliance-bless.service && systemctl is-active appliance-bless.service")
		b.expect(t, "systems after a good update", listSystems, fmt.Sprintf("appliance_%s.efi\nappliance_%s.efi", next, first))
	})
	t.Run("older update", func(t *testing.T) {
		b.post(t, ImagePath(t, "appliance-test-old.update"), http.StatusConflict, "not newer")
	})
	t.Run("bad update from the head of a fleet", func(t *testing.T) {
		h := b.startHead(t, "lab-7")
		h.until(t, "the box runs "+next, func(all fleetBoxes) bool { return len(all.Boxes) == 1 && all.Boxes[0].Image == next })
		started := time.Now()
		b.restarts(t, func() { h.updateAll(t, ImagePath(t, "appliance-test-bad.update")) })
		t.Logf("fell back %.0f s after a bad update", time.Since(started).Seconds())
		if v := b.version(t); v != next {
			t.Errorf("version %s after a bad update, want %s as before", v, next)
		}
		if _, text := b.REST(t, http.MethodGet, "/api/v1/update", "", nil); !strings.Contains(text, `"fell_back":true`) {
			t.Errorf("the panel reports %s after a bad update, want it to say that the box fell back", text)
		}
		b.says(t, bad+" did not become healthy, and was given up")
		b.expect(t, "systems after a bad update", listSystems, fmt.Sprintf("appliance_%s.efi\nappliance_%s+0-3.efi", next, bad))
		all := h.until(t, "the update has stopped", func(all fleetBoxes) bool { return all.Rollout != nil && all.Rollout.State != "running" })
		why := "lab-7: it does not run the update: " + bad + " was installed and did not become healthy, so that the box went back to " + next
		if r := all.Rollout; r.State != "stopped" || r.Version != bad || r.Why != why {
			t.Errorf("the update of the boxes to %s is %s: %q; want it stopped: %q", r.Version, r.State, r.Why, why)
		}
		if one := all.Boxes[0]; one.Image != next || one.Health == "maintenance" || one.State == "lost" {
			t.Errorf("the head says %+v of the box after it fell back; want that it gets runs again", one)
		}
		if status, text := b.REST(t, http.MethodDelete, "/api/v1/fleet", "", nil); status/100 != 2 {
			t.Errorf("the box leaves the head: %d %s", status, text)
		}
	})
	t.Run("damaged data partition", func(t *testing.T) {
		b.cut(t)
		// Damage the superblock and the blocks after it: only a new disk would be worse.
		if err := b.FlipData(1, 3000, 1024, 16<<10); err != nil {
			t.Fatal(err)
		}
		b.On(t)
		b.expect(t, "what was whole, after a repair", "cat /var/lib/appliance/kept /etc/appliance/token", "whole\n"+token)
	})
}

// testRestarts configures a box through the service, restores a backup, hangs its system, and resets it to
// factory settings. It runs beside testLife, because each of these costs one or two starts.
func testRestarts(t *testing.T) {
	b := StartBox(t, BoxOptions{})
	token := b.Run(t, "cat /etc/appliance/token")
	b.Run(t, "echo whole > /var/lib/appliance/kept && sync /var/lib/appliance/kept")

	t.Run("configuration from the service", func(t *testing.T) {
		b.restarts(t, func() {
			b.Run(
				t,
				`printf 'box:\n  hostname: lab9\n' > /run/appliance/requests/.new && mv /run/appliance/requests/.new /run/appliance/requests/config`,
			)
		})
		b.expect(t, "the configured host name", "hostname", "lab9")
	})
	t.Run("backup and restore", func(t *testing.T) {
		const workflow = "/api/v1/workflows/kept"
		must := func(want int, method, path, contentType, body string) string {
			status, text := b.REST(t, method, path, contentType, strings.NewReader(body))
			if status != want {
				t.Fatalf("%s %s = %d %.500s; want %d", method, path, status, text, want)
			}
			return text
		}
		must(http.StatusOK, http.MethodPut, workflow, "application/json", `{"plan":{"page":"https://www.shop.example/","trials":3}}`)
		file := must(http.StatusOK, http.MethodGet, "/api/v1/backup", "", "")
		must(http.StatusNoContent, http.MethodDelete, workflow, "", "")
		before := b.Run(t, "systemctl show --property MainPID --value appliance.service")
		must(http.StatusAccepted, http.MethodPost, "/api/v1/restore?replace=everything", "application/x-tar", file)
		// The service starts again by itself.
		b.Run(t, fmt.Sprintf("timeout 300 sh -c 'while [ $(systemctl show --property MainPID --value appliance.service) = %s ]; do sleep 0.2; done'", before))
		b.Healthy(t)
		must(http.StatusOK, http.MethodGet, workflow, "", "")
		b.expect(t, "the token", "cat /etc/appliance/token", token)
	})
	t.Run("hung system", func(t *testing.T) {
		hung := time.Now()
		// systemd's crash handler freezes process 1, so nothing resets the hardware watchdog.
		b.QMP.Forget()
		b.Run(t, "kill -SEGV 1")
		b.await(t, "RESET")
		b.Healthy(t)
		t.Logf("healthy again %.1f s after the system hung", time.Since(hung).Seconds())
	})
	t.Run("factory reset", func(t *testing.T) {
		b.restarts(t, func() {
			status, text := b.REST(t, http.MethodPost, "/api/v1/reset", "application/json", strings.NewReader(`{"delete":"everything"}`))
			if status != http.StatusAccepted {
				t.Fatalf("asked for a factory reset: %d %s", status, text)
			}
		})
		b.expect(t, "the host name", "hostname", "box")
		if now := b.Run(t, "cat /etc/appliance/token"); now == token || now == "" {
			t.Errorf("token %q after a factory reset, %q before; want another one", now, token)
		}
		b.expect(
			t,
			"nothing kept",
			"ls /var/lib/appliance/kept 2>&1 || true",
			"ls: cannot access '/var/lib/appliance/kept': No such file or directory",
		)
	})
}

// restarts calls do, after which the box resets itself one or more times, and waits until
// the box is healthy again. At each reset it switches the emulator off and on: for the box
// that is the same, since its memory is lost either way, and the emulator starts twice as fast.
func (b *Box) restarts(t *testing.T, do func()) {
	t.Helper()
	b.QMP.Forget()
	do()
	b.await(t, "RESET")
	for {
		b.cut(t)
		if err := b.Boot(t.Context()); err != nil {
			t.Fatal(err)
		}
		healthy, stop := timeout(t) // for each start: a bad update takes four
		reset := make(chan bool, 1)
		go func(q *QMP) {
			reset <- q.Wait(healthy, "RESET") == nil
			stop()
		}(b.QMP)
		_, err := b.Uplink.WaitHealthy(healthy, Panel)
		stop()
		if again := <-reset; err == nil {
			return
		} else if !again {
			b.Explain(t)
			t.Fatal(err)
		}
	}
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
	return b.Run(t, "sed -n s/^IMAGE_VERSION=//p /etc/os-release")
}

// listSystems lists the systems on the EFI partition, as the box sees them.
const listSystems = "modprobe vfat; mount -o ro /dev/vda1 /mnt && LC_ALL=C ls -1 /mnt/EFI/Linux; umount /mnt"
