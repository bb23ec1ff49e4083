package head

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/keep/pin"
	"eidetic/internal/lab"
)

// boxWith is a box with one device that is ready.
func boxWith(name, device string) ledger.Box {
	return ledger.Box{ID: "id-" + name, Name: name, Offer: fleet.Offer{Devices: []fleet.OfferedDevice{{Name: device, Kind: "virtual", Ready: true}}}}
}

func rung(w *waiter) bool {
	select {
	case <-w.rung:
		return true
	default:
		return false
	}
}

// A part wakes two of the claims that could get it, and none of the others.
func TestWakeThoseThatFit(t *testing.T) {
	s := newWaiters()
	fit := []*waiter{}
	for range 5 {
		fit = append(fit, s.add(boxWith("one", "phone"), []string{"phone"}))
	}
	others := []*waiter{
		s.add(boxWith("one", "phone"), []string{"tablet"}), // its phone is taken
		s.add(boxWith("two", "phone"), []string{"phone"}),
	}
	resting := boxWith("one", "phone")
	resting.Health = fleet.HealthMaintenance
	others = append(others, s.add(resting, []string{"phone"}))
	gone := s.add(boxWith("one", "phone"), []string{"phone"})
	s.leave(gone)
	if n := s.wake(fleet.Need{Boxes: []string{"one"}}); n != woken {
		t.Errorf("wake() = %d; want %d", n, woken)
	}
	n := 0
	for _, w := range fit {
		if rung(w) {
			n++
		}
	}
	if n != woken || rung(gone) {
		t.Errorf("%d of those that fit were woken; want %d, and not the one that has left", n, woken)
	}
	for i, w := range others {
		if rung(w) {
			t.Errorf("claim %d was woken, and does not fit", i)
		}
	}
	s.wakeBox("id-two")
	if rung(others[0]) || !rung(others[1]) {
		t.Error("wakeBox() woke another box, or not the one that was named")
	}
}

// A head finds parts that another head was asked for. It tries again until they are taken, and leaves those alone for
// which nobody waits.
func TestGlance(t *testing.T) {
	h, l := bareHead(t)
	plan := lab.Plan{Name: "other head", Arm: lab.Arm{Page: "https://www.shop.test/"}, Trials: 1}
	for id, box := range map[string]string{"20261124-120000-a": "one", "20261124-120000-b": "three"} {
		run := ledger.NewRun{ID: id, Plan: plan, Series: "s", Parts: []ledger.NewPart{{Plan: plan, Need: fleet.Need{Boxes: []string{box}}}}}
		if _, err := l.AddRuns(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	one, two := h.waiters.add(boxWith("one", "phone"), []string{"phone"}), h.waiters.add(boxWith("two", "phone"), []string{"phone"})
	for n := range 2 {
		if err := h.glance(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !rung(one) || rung(two) {
			t.Errorf("glance %d: want box one woken, and box two not", n+1)
		}
		if len(h.waiters.left) != 1 {
			t.Errorf("glance %d: %d queues are left alone; want that of box three", n+1, len(h.waiters.left))
		}
	}
}

// A part that is given back wakes a box that waits, also if a glance has left the part alone before, as nobody waited
// then.
func TestGivenBackWakes(t *testing.T) {
	h, l := bareHead(t)
	cert, err := pin.LoadOrCreateBox(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	code, err := l.NewCode(t.Context(), "test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	one, err := l.Join(t.Context(), code, "one", pin.Of(cert.Leaf), boxWith("one", "phone").Offer)
	if err != nil {
		t.Fatal(err)
	}
	plan := lab.Plan{Name: "any", Arm: lab.Arm{Page: "https://www.shop.test/"}, Trials: 1}
	if _, err := l.AddRuns(t.Context(), ledger.NewRun{ID: "20261124-120000-a", Plan: plan, Series: "s", Parts: []ledger.NewPart{{Plan: plan}}}); err != nil {
		t.Fatal(err)
	}
	if err := h.glance(t.Context()); err != nil || len(h.waiters.left) != 1 {
		t.Fatalf("glance() = %v, %v left alone; want nil, and the part", err, h.waiters.left)
	}
	a, err := l.Claim(t.Context(), ledger.Claim{BoxID: one.ID, Request: "1", Free: []string{"phone"}})
	if err != nil {
		t.Fatal(err)
	}
	two := h.waiters.add(boxWith("two", "phone"), []string{"phone"})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/fleet/v1/parts/"+a.Part+"/return", strings.NewReader(`{"reason":"no screen"}`))
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert.Leaf}}
	r.Header.Set(fleet.LeaseHeader, a.Token)
	w := httptest.NewRecorder()
	h.BoxHandler().ServeHTTP(w, r)
	if w.Code != http.StatusNoContent || !rung(two) {
		t.Errorf("POST return = %d %s; want 204, and that the other box is woken", w.Code, w.Body)
	}
}

// bareHead is a head over a ledger of its own, without boxes.
func bareHead(t *testing.T) (*Head, *ledger.Ledger) {
	t.Helper()
	dir := t.TempDir()
	l, err := ledger.Open(t.Context(), ledger.Config{Database: filepath.Join(dir, "fleet.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	blobs, err := blob.OpenFolder(filepath.Join(dir, "files"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := Over(l, Config{Data: dir, Blobs: blobs})
	if err != nil {
		t.Fatal(err)
	}
	return h, l
}
