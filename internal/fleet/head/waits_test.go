package head

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

func TestWhyAPartWaits(t *testing.T) {
	box := func(name, health, reason string) *ledger.Box {
		return &ledger.Box{Name: name, Health: health, Reason: reason, Seen: time.Date(2026, 11, 25, 12, 3, 0, 0, time.UTC)}
	}
	one, two := box("lab-1", fleet.HealthGood, ""), box("lab-2", fleet.HealthMaintenance, "new\n\tdisk")
	device := func(name string) fleet.OfferedDevice { return fleet.OfferedDevice{Name: name} }
	for _, c := range []struct {
		name string
		wait ledger.Wait
		want string
	}{
		{"no box", ledger.Wait{}, "the fleet has no box: appliance boxes code makes a link with which one joins"},
		{"lacking", ledger.Wait{Need: fleet.Need{Virtual: true, Labels: []string{"room=3"}}, Places: []ledger.Place{
			{Box: one, State: ledger.Lacking},
			{Box: two, Device: fleet.OfferedDevice{Name: "phone", Kind: "port"}, State: ledger.Lacking},
		}}, "no box has what it needs: lab-1 lacks a device, and the others no less"},
		{"next", ledger.Wait{Places: []ledger.Place{{Box: one, Device: device("virtual")}, {Box: two, Device: device("virtual"), State: ledger.Reserved}}},
			"lab-1/virtual is free, and it is next"},
		{"not yet", ledger.Wait{Before: 3, Places: []ledger.Place{{Box: one, Device: device("virtual")}, {Box: one, Device: device("phone")}}},
			"2 devices that fit are free, and 3 parts come first"},
		{"busy", ledger.Wait{Before: 1, Places: []ledger.Place{{Box: one, Device: device("virtual"), State: ledger.Busy, Run: "r1"}, {Box: two, State: ledger.Lacking}}},
			"lab-1/virtual carries out r1, and 1 part comes first"},
		{"its own", ledger.Wait{Places: []ledger.Place{{Box: one, Device: device("virtual"), State: ledger.Busy}}},
			"lab-1/virtual carries out a run of its own box, and it is next"},
		{"all busy", ledger.Wait{Before: ledger.MostBefore + 1, Places: []ledger.Place{{Box: one, Device: device("a"), State: ledger.Busy}, {Box: two, Device: device("a"), State: ledger.Busy}},
			Back: &ledger.Back{Box: "lab-3", Device: "c", Why: "no such page"}},
			"2 devices that fit are busy, and more than 1000 parts come first; lab-3/c gave it back: no such page"},
		{"trouble", ledger.Wait{Places: []ledger.Place{
			{Box: one, Device: device("a"), State: ledger.Silent}, {Box: two, Device: device("b"), State: ledger.Reserved}, {Box: one, Device: fleet.OfferedDevice{Name: "c", Problem: "no cable"}, State: ledger.NotReady},
			{Box: one, Device: device("d"), State: ledger.Silent}, {Box: two, Device: device("e"), State: ledger.Lacking},
		}}, "lab-1/c is not ready: no cable; lab-2 is in maintenance: new disk; nothing was heard of lab-1 since 2026-11-25 12:03:00 UTC"},
		{"much trouble", ledger.Wait{Places: []ledger.Place{
			{Box: one, Device: device("a"), State: ledger.NotReady}, {Box: one, Device: device("b"), State: ledger.NotReady}, {Box: one, Device: device("c"), State: ledger.NotReady},
			{Box: one, Device: device("d"), State: ledger.NotReady}, {Box: one, Device: device("e"), State: ledger.NotReady},
		}}, "lab-1/a is not ready; lab-1/b is not ready; lab-1/c is not ready; and more devices that fit do not get it either"},
		{"bad", ledger.Wait{Places: []ledger.Place{{Box: box("lab-3", fleet.HealthBad, ""), Device: device("a"), State: ledger.Reserved}}}, "lab-3 is bad"},
		{"given back", ledger.Wait{Places: []ledger.Place{{Box: one, Device: device("a"), State: ledger.GaveBack}}, Back: &ledger.Back{Box: "lab-1", Device: "a", Why: "no such page"}},
			"lab-1/a gets it again after a pause; lab-1/a gave it back: no such page"},
	} {
		if got := whyOf(c.wait); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
}

// waits returns what is said of a run once f is true of it.
func (h *testHead) waits(run, what string, f func(string) bool) {
	h.t.Helper()
	last := ""
	h.until("it waits because "+what, func() bool {
		all, err := h.Waits(h.t.Context(), run)
		if err != nil {
			h.t.Fatalf("Waits() = %v; want nil", err)
		}
		last = all[run]
		return f(last)
	}, func() { h.t.Logf("it waits because %s", last) })
}

// A person is told why a run waits, as it changes.
func TestWaits(t *testing.T) {
	h := newTestHead(t)
	one := newTestBox(t, h, "lab-1", nil)
	h.until("the box says what it has", func() bool {
		b, err := h.ledger.Box(t.Context(), "lab-1")
		return err == nil && len(b.Offer.Devices) > 0
	}, func() {})
	begun, release := make(chan struct{}, 10), make(chan struct{})
	one.mu.Lock()
	one.trial = func(ctx context.Context) error {
		begun <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	one.mu.Unlock()
	add := func(name string) string {
		t.Helper()
		id, err := h.Add(t.Context(), lab.Plan{Name: name, Trials: 4, Arm: lab.Arm{Page: "https://www.shop.example/", Archive: "site.wacz"}}, store.Once{})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	is := func(want string) (string, func(string) bool) {
		return want, func(got string) bool { return got == want }
	}
	wait := func(run, want string) {
		t.Helper()
		what, f := is(want)
		h.waits(run, what, f)
	}
	first := add("first")
	<-begun
	second, third := add("second"), add("third")
	wait(first, "")
	wait(second, "lab-1/virtual carries out "+first+", and it is next")
	wait(third, "lab-1/virtual carries out "+first+", and 1 part comes first")
	if all, err := h.Waits(t.Context(), first, second, third, "none"); err != nil || len(all) != 2 {
		t.Errorf("Waits() = %q, %v; want the two that wait", all, err)
	}
	long := strings.Repeat("a new disk ✂ ", 60)
	yes, no := true, false
	if _, err := h.Boxes().Change(t.Context(), "lab-1", panel.BoxChange{Maintenance: &yes, Reason: &long}); err != nil {
		t.Fatal(err)
	}
	h.waits(second, "the box is in maintenance", func(got string) bool {
		return strings.HasPrefix(got, "lab-1 is in maintenance: a new disk ✂ a new disk") && strings.HasSuffix(got, "…") && utf8.RuneCountInString(got) < mostWhy+50
	})
	h.clock.forward(lostAfter + time.Minute) // the box is heard of again with its next description
	if _, err := h.Boxes().Change(t.Context(), "lab-1", panel.BoxChange{Maintenance: &no}); err != nil {
		t.Fatal(err)
	}
	wait(second, "lab-1/virtual carries out "+first+", and it is next")
	one.kill()
	h.clock.forward(lostAfter + time.Minute)
	h.waits(second, "the box is silent", func(got string) bool { return strings.HasPrefix(got, "nothing was heard of lab-1 since 20") })
	if err := h.Boxes().Remove(t.Context(), "lab-1"); err != nil {
		t.Fatal(err)
	}
	wait(third, "the fleet has no box: appliance boxes code makes a link with which one joins")
}
