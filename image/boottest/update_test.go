package boottest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// updateCases give a box updates, which it installs or gives up; the power is cut on the way.
var updateCases = []guestCase{
	{"power cut while updating", "", testCutUpdate},
	{"good update from a USB stick, with a power cut at its first start", "", testStickUpdate},
	{"older update", "", testOlderUpdate},
	{"bad update from the head of a fleet", "", testBadUpdate},
}

// versions returns the version of the image that was built, and those of its two updates.
func versions(t *testing.T) (first, next, bad string) {
	t.Helper()
	text, err := os.ReadFile(ImagePath(t, "inputs.json"))
	var record struct{ Version string }
	if err == nil {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		t.Fatal(err)
	}
	return record.Version, record.Version + ".1", record.Version + ".2"
}

// onNext returns the version of the good update, and has a box that does not run it install it.
func (b *Box) onNext(t *testing.T) (next string) {
	t.Helper()
	_, next, _ = versions(t)
	if b.version(t) != next {
		b.restarts(t, func() {
			b.post(t, ImagePath(t, "appliance-test-next.update"), http.StatusAccepted, `"installing":true`)
		})
		b.expect(t, "the version after the update", showVersion, next)
	}
	return next
}

func testDamagedUpdate(t *testing.T, b *Box) {
	b.Run(t, "cd /var/lib/appliance/state/update && echo garbage > ready.update && touch /run/appliance/requests/update")
	b.refused(t, "damaged")
}

func testTamperedUpdate(t *testing.T, b *Box) {
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
	b.expect(t, "systems after refused updates", listSystems, fmt.Sprintf("appliance_%s.efi", b.version(t)))
}

func testCutUpdate(t *testing.T, b *Box) {
	first, next, _ := versions(t)
	token := b.keepWhole(t)
	b.post(t, ImagePath(t, "appliance-test-next.update"), http.StatusAccepted, `"installing":true`)
	b.Run(t, "sleep 0."+fmt.Sprint(rand.IntN(10)))
	b.cut(t)
	b.On(t)
	if v := b.version(t); v != first && v != next {
		t.Errorf("version %s after a cut during an update, want %s or %s", v, first, next)
	}
	b.isWhole(t, token)
}

func testStickUpdate(t *testing.T, b *Box) {
	first, next, _ := versions(t)
	token := b.keepWhole(t)
	if b.version(t) == first { // a power cut before came before the update was complete
		b.QMP.Forget()
		b.plugStick(t, ImagePath(t, "appliance-test-next.update"))
		b.await(t, "RESET")
		b.cut(t) // and on, as restarts does
		if err := b.Boot(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.pause(t, time.Duration(rand.IntN(15000))*time.Millisecond)
		b.cut(t)
		b.On(t)
	}
	if v := b.version(t); v != next {
		t.Fatalf("version %s after the update, want %s", v, next)
	}
	b.Run(t, "systemctl start appliance-bless.service && systemctl is-active appliance-bless.service")
	b.expect(t, "systems after a good update", listSystems, fmt.Sprintf("appliance_%s.efi\nappliance_%s.efi", next, first))
	b.isWhole(t, token)
}

func testOlderUpdate(t *testing.T, b *Box) {
	b.onNext(t)
	b.post(t, ImagePath(t, "appliance-test-old.update"), http.StatusConflict, "not newer")
}

func testBadUpdate(t *testing.T, b *Box) {
	_, next, bad := versions(t)
	b.onNext(t)
	token := b.keepWhole(t)
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
	b.isWhole(t, token)
}
