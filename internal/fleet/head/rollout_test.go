package head

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/pin"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

// A good update goes to one box after the other, each with the reference before and after; what has no updater is
// skipped.
func TestFleetUpdateGood(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	h.refer()
	one, two := newTestBox(t, h, "lab-1", s.keys), newTestBox(t, h, "lab-2", s.keys)
	newTestBox(t, h, "laptop", nil)
	one.mu.Lock()
	one.factor["1.1"] = 1.1 // less than a quarter: one reading before tells no more
	one.mu.Unlock()
	h.awaitImages("lab-1", "lab-2")
	two.mu.Lock()
	two.trial = func(ctx context.Context) error {
		r, err := h.Boxes().Rollout(ctx)
		if err != nil || r == nil || r.Boxes[1].State == boxWaiting {
			return err // not for the update: the reference was due
		}
		if now, _ := one.Status(); now.Running != "1.1" {
			t.Errorf("lab-2 measures for the update while lab-1 runs %s; want it after lab-1", now.Running)
		}
		return nil
	}
	two.mu.Unlock()
	h.update(s.bundle("1.1"))
	r := h.await("end", has(rolloutDone))
	if got := strings.Join(states(r), " "); got != "updated updated skipped" || !strings.Contains(r.Doing, "2 of 3 boxes updated, laptop skipped") ||
		!strings.Contains(r.Boxes[2].Why, "no updater") {
		t.Fatalf("the update ended with %s, %q, %q; want two boxes updated and the laptop skipped", got, r.Doing, r.Boxes[2].Why)
	}
	for name, b := range map[string]*testBox{"lab-1": one, "lab-2": two} {
		if runs := b.carried(); !slices.Contains(runs, "reference "+name+" virtual 1.0") || !slices.Contains(runs, "reference "+name+" virtual 1.1") {
			t.Errorf("%s measured %q; want the reference with both versions", name, runs)
		}
		if health := h.health(name); health == fleet.HealthMaintenance {
			t.Errorf("%s is in maintenance after the update; want it released", name)
		}
	}
	// Once more: all have it.
	h.update(s.bundle("1.1"), "lab-2", "lab-1")
	if r := h.await("end", has(rolloutDone)); r.Boxes[0].Name != "lab-2" || r.Boxes[0].Why != "it had this version already" {
		t.Errorf("the same update again: %+v; want that lab-2 had it already", r.Boxes)
	}
}

// A box refuses a bundle that another key signed: the head does not look, the others stay as they are, and it gets runs
// again.
func TestFleetUpdateRefused(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	newTestBox(t, h, "lab-1", s.keys)
	two := newTestBox(t, h, "lab-2", s.keys)
	h.awaitImages("lab-1", "lab-2")
	h.update(newSigner(t).bundle("1.1"))
	r := h.await("stop", has(rolloutStopped))
	if got := strings.Join(states(r), " "); got != "failed waiting" || !strings.Contains(r.Why, "lab-1: it does not run the update: update: not signed by a key that this box trusts") {
		t.Errorf("a bundle of another key: %s, %q; want the rollout to stop at lab-1 with the reason", got, r.Why)
	}
	if now, _ := two.Status(); now.Running != "1.0" {
		t.Errorf("lab-2 runs %s; want 1.0", now.Running)
	}
	if health := h.health("lab-1"); health != fleet.HealthUnknown {
		t.Errorf("the health of lab-1 = %s; want it released", health)
	}
}

// The reference is slower with the update: one more reading, and the rollout stops; the box is kept from runs, the
// other one is as it was.
func TestFleetUpdateSlower(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	h.refer()
	one := newTestBox(t, h, "lab-1", s.keys)
	newTestBox(t, h, "lab-2", s.keys)
	one.mu.Lock()
	one.factor["1.1"] = 1.5
	one.mu.Unlock()
	h.awaitImages("lab-1", "lab-2")
	h.update(s.bundle("1.1"))
	r := h.await("stop", has(rolloutStopped))
	if got := strings.Join(states(r), " "); got != "failed waiting" || !strings.Contains(r.Why, "measures otherwise since the update") || !strings.Contains(r.Why, "+50 %") {
		t.Errorf("a slower box: %s, %q; want the rollout to stop with the metric", got, r.Why)
	}
	after := slices.DeleteFunc(one.carried(), func(run string) bool { return run != "reference lab-1 virtual 1.1" })
	if len(after) != 2 {
		t.Errorf("lab-1 measured the reference %d times with the update; want 2", len(after))
	}
	if health := h.health("lab-1"); health != fleet.HealthMaintenance {
		t.Errorf("the health of lab-1 = %s; want maintenance", health)
	}
}

// A box that does not come back, and one that goes back to the old version.
func TestFleetUpdateDoesNotComeBack(t *testing.T) {
	for _, c := range []struct {
		name, becomes, why, health string
	}{
		{"off", "", "did not come back with 1.1 within 30m0s", fleet.HealthMaintenance},
		{"fell back", "1.0", "did not become healthy", fleet.HealthUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, s := newTestHead(t), newSigner(t)
			one := newTestBox(t, h, "lab-1", s.keys)
			newTestBox(t, h, "lab-2", s.keys)
			gone := make(chan struct{})
			one.mu.Lock()
			one.restarts = func(string) string { close(gone); return c.becomes }
			one.mu.Unlock()
			h.awaitImages("lab-1", "lab-2")
			h.update(s.bundle("1.1"))
			<-gone
			if c.becomes == "" {
				h.await("lab-1 is told", boxAt(0, boxUpdating))
				h.clock.forward(returnWithin + time.Minute)
			}
			r := h.await("stop", has(rolloutStopped))
			if got := strings.Join(states(r), " "); got != "failed waiting" || !strings.Contains(r.Why, c.why) {
				t.Errorf("the rollout ends with %s, %q; want failed waiting, %q", got, r.Why, c.why)
			}
			if health := h.health("lab-1"); health != c.health {
				t.Errorf("the health of lab-1 = %s; want %s", health, c.health)
			}
		})
	}
}

// The head is restarted in each state, and the box is killed while it fetches the bundle: the update goes on to its
// end.
func TestFleetUpdateSurvivesRestarts(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	h.refer()
	one := newTestBox(t, h, "lab-1", s.keys)
	reached, goOn := make(chan string), make(chan struct{})
	stall := func(what string) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case reached <- what:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case <-goOn:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	one.mu.Lock()
	one.trial, one.reading = stall("run"), stall("bundle")
	one.mu.Unlock()
	h.awaitImages("lab-1")
	h.update(s.bundle("1.1"))
	<-reached // the reference before
	h.restart()
	h.await("it is measured before", boxAt(0, boxMeasuring))
	goOn <- struct{}{}
	if what := <-reached; what != "bundle" {
		t.Fatalf("the box is in a %s; want the bundle", what)
	}
	one.kill()
	h.await("the box is told", boxAt(0, boxUpdating))
	one.boot(t)
	if what := <-reached; what != "bundle" {
		t.Fatalf("the box that was killed is in a %s; want the bundle again", what)
	}
	h.restart()
	goOn <- struct{}{}
	if what := <-reached; what != "run" {
		t.Fatalf("the box is in a %s; want the reference after the update", what)
	}
	h.restart()
	goOn <- struct{}{}
	r := h.await("end", has(rolloutDone))
	if got := strings.Join(states(r), " "); got != "updated" {
		t.Errorf("the update ended with %s, %q; want updated", got, r.Why)
	}
	if runs := one.carried(); len(runs) != 2 {
		t.Errorf("the box carried out %q; want the reference once with each version", runs)
	}
}

// A box that carries out a run ends it first, and begins no other one; a person stops the update meanwhile.
func TestFleetUpdateWaitsForRuns(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	one := newTestBox(t, h, "lab-1", s.keys)
	reached, goOn := make(chan struct{}), make(chan struct{})
	one.mu.Lock()
	one.trial = func(ctx context.Context) error {
		select {
		case reached <- struct{}{}:
		case <-ctx.Done():
		}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	one.mu.Unlock()
	h.awaitImages("lab-1")
	run := func(name string) {
		if _, err := h.Add(t.Context(), lab.Plan{Name: name, Trials: 4, Arm: lab.Arm{Page: "https://www.shop.example/", Archive: "site.wacz"}}, store.Once{}); err != nil {
			t.Fatal(err)
		}
	}
	run("first")
	<-reached
	run("second")
	bundle := s.bundle("1.1")
	h.update(bundle)
	h.await("the box ends its run", boxAt(0, boxDraining))
	if _, err := h.Boxes().Update(t.Context(), panel.BoxUpdate{Bundle: bytes.NewReader(bundle)}); err == nil || !strings.Contains(err.Error(), "goes on") {
		t.Errorf("a second update = %v; want a refusal", err)
	}
	if r, err := h.Boxes().StopUpdate(t.Context(), "ann"); err != nil || r.State != rolloutStopped || r.Why != "stopped by ann" {
		t.Errorf("StopUpdate() = %+v, %v; want it stopped by ann", r, err)
	}
	if _, err := h.Boxes().StopUpdate(t.Context(), "ann"); err == nil {
		t.Error("StopUpdate() of none = nil; want a refusal")
	}
	if health := h.health("lab-1"); health != fleet.HealthUnknown {
		t.Errorf("the health of lab-1 after the stop = %s; want unknown", health)
	}
	h.update(bundle)
	h.await("the box ends its run", boxAt(0, boxDraining))
	goOn <- struct{}{}
	h.await("the update runs", boxAt(0, boxChecking))
	if runs := one.carried(); len(runs) != 1 {
		t.Errorf("before the update the box carried out %q; want the first run alone", runs)
	}
	h.clock.forward(settleFor + time.Minute) // it measures no reference
	h.await("end", has(rolloutDone))
	<-reached
	goOn <- struct{}{}
	if runs := one.carried(); !slices.Equal(runs, []string{"first 1.0", "second 1.1"}) {
		t.Errorf("the box carried out %q; want the second run with the update", runs)
	}
}

// The head takes no bundle that is none, and answers a repeated request as the first.
func TestFleetUpdateRequests(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	newTestBox(t, h, "lab-1", s.keys)
	good := s.bundle("1.1")
	ask := func(bundle []byte, change func(*panel.BoxUpdate)) (panel.Rollout, error) {
		u := panel.BoxUpdate{Bundle: bytes.NewReader(bundle), By: "test", Key: "k1"}
		if change != nil {
			change(&u)
		}
		return h.Boxes().Update(t.Context(), u)
	}
	for _, c := range []struct {
		name   string
		bundle []byte
		change func(*panel.BoxUpdate)
		status int
		why    string
	}{
		{"nothing", nil, nil, 422, "damaged"},
		{"no bundle", []byte(strings.Repeat("x", 100)), nil, 422, "not an update bundle"},
		{"a huge manifest", []byte("EIDETIC UPDATE 1\n\xff\xff\xff\xff"), nil, 422, "at most 4096"},
		{"cut off", good[:len(good)-1], nil, 422, "1 bytes of its program are missing"},
		{"longer", append(slices.Clone(good), 'x'), nil, 422, "longer than it says"},
		{"no such box", good, func(u *panel.BoxUpdate) { u.Boxes = []string{"lab-9"} }, 404, "no box"},
		{"no such label", good, func(u *panel.BoxUpdate) { u.Labels = []string{"room=2"} }, 422, "no box is asked for"},
		{"no label", good, func(u *panel.BoxUpdate) { u.Labels = []string{"room"} }, 422, "KEY=PATTERN"},
	} {
		var refused *panel.Refusal
		if _, err := ask(c.bundle, c.change); !errors.As(err, &refused) || refused.Status != c.status || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: Update() = %v; want a refusal with status %d and %q", c.name, err, c.status, c.why)
		}
	}
	first, err := ask(good, nil)
	if err != nil || first.Version != "1.1" {
		t.Fatalf("Update() = %+v, %v; want the version 1.1", first, err)
	}
	if again, err := ask(good, nil); err != nil || again.ID != first.ID {
		t.Errorf("Update() again with its key = %+v, %v; want %s", again, err, first.ID)
	}
	if _, err := ask(s.bundle("1.2"), nil); err == nil || !strings.Contains(err.Error(), "Idempotency-Key") {
		t.Errorf("another request with the key = %v; want a refusal", err)
	}
	left, err := filepath.Glob(filepath.Join(h.staging(), "*.update"))
	if err != nil || len(left) > 0 {
		t.Errorf("the head left %q, %v; want nothing", left, err)
	}
}

// Only the box that is told to install the update gets the bundle, by its digest.
func TestFleetUpdateBundleIsForOneBox(t *testing.T) {
	h, s := newTestHead(t), newSigner(t)
	one, two := newTestBox(t, h, "lab-1", s.keys), newTestBox(t, h, "lab-2", s.keys)
	reached := make(chan struct{})
	one.mu.Lock()
	one.reading = func(ctx context.Context) error {
		close(reached)
		<-ctx.Done()
		return ctx.Err()
	}
	one.mu.Unlock()
	h.awaitImages("lab-1", "lab-2")
	bundle := s.bundle("1.1")
	h.update(bundle)
	<-reached
	sum := sha256.Sum256(bundle)
	digest := hex.EncodeToString(sum[:])
	get := func(b *testBox, path string) (int, []byte) {
		t.Helper()
		config := &tls.Config{InsecureSkipVerify: true}
		if b != nil {
			cert, err := pin.LoadBox(filepath.Join(b.dir, "fleet"))
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{*cert}
		}
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+h.at+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, text
	}
	path := "/fleet/v1/updates/" + digest
	if status, text := get(one, path); status != http.StatusOK || !bytes.Equal(text, bundle) {
		t.Errorf("the box whose turn it is gets %d, %d bytes; want the bundle", status, len(text))
	}
	for name, c := range map[string]struct {
		box    *testBox
		path   string
		status int
	}{
		"another box":    {two, path, 404},
		"nobody":         {nil, path, 403},
		"another digest": {one, "/fleet/v1/updates/" + strings.Repeat("0", 64), 404},
		"a path":         {one, "/fleet/v1/updates/..%2F..%2Ffleet.db", 404},
	} {
		if status, text := get(c.box, c.path); status != c.status {
			t.Errorf("%s gets %d %.200s; want %d", name, status, text, c.status)
		}
	}
	// The bundle is needed as long as the update goes on.
	needed := func() bool {
		for d, err := range h.needed(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if d == digest {
				return true
			}
		}
		return false
	}
	if !needed() {
		t.Error("the bundle may be collected while boxes fetch it; want it kept")
	}
	if _, err := h.Boxes().StopUpdate(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	if status, _ := get(one, path); status != http.StatusNotFound {
		t.Errorf("after the stop the box gets %d; want 404", status)
	}
	if needed() {
		t.Error("the bundle is kept after the update; want it collected")
	}
	if health := h.health("lab-1"); health != fleet.HealthMaintenance {
		t.Errorf("the health of lab-1, which was told already = %s; want maintenance", health)
	}
}
