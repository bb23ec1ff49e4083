package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/fleettest"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// checkWhole checks that a part was ended once, as done, with all files of all trials.
func checkWhole(t *testing.T, h *fleettest.Head, p fleettest.Part, trials int) {
	t.Helper()
	if p.Ends != 1 || p.Outcome == nil || p.Outcome.State != store.StateDone || p.Outcome.Trials != trials || p.Outcome.Thrown != trials/3 {
		t.Errorf("part %s ended %d times, as %+v; want once, done, %d trials, %d thrown", p.ID, p.Ends, p.Outcome, trials, trials/3)
		return
	}
	got := map[string]string{}
	for _, f := range p.Outcome.Files {
		content, err := h.Content(f.SHA256)
		if err != nil || int64(len(content)) != f.Bytes {
			t.Errorf("%s of part %s has %d bytes at the head, %v; want %d", f.Path, p.ID, len(content), err, f.Bytes)
		}
		got[f.Path] = string(content)
	}
	run, err := store.DecodeRun(strings.NewReader(got["run.json"]))
	if err != nil || len(run.Trials) != trials || run.State != store.StateDone {
		t.Errorf("run.json of part %s: %+v, %v; want %d trials", p.ID, run, err, trials)
		return
	}
	for n := 1; n <= trials; n++ {
		name := fmt.Sprintf("trials/%03d/reel", n)
		if want := fmt.Sprintf("reel of %s, trial %d", run.ID, n); got[name] != want {
			t.Errorf("%s of part %s = %q; want %q", name, p.ID, got[name], want)
		}
	}
}

// A box joins, fetches what a part replays, carries it out and hands it in; then it holds nothing any more.
func TestFleetPartIsCarriedOut(t *testing.T) {
	h := fleettest.NewHead(t)
	b := joined(t, h, &simulated{})
	a := assignment("20270115-080000-shop.01", 4)
	a.Archives = []fleet.ArchiveFile{h.AddSource("shop.wacz", []byte("a recording"))}
	a.Plan.Archive = a.Archives[0].SHA256 + ".wacz"
	h.Add(a)
	checkWhole(t, h, awaitEnd(t, h, a.Part), 4)
	awaitNoParts(t, b.keeper.Dir)
	if text, err := os.ReadFile(filepath.Join(b.archives.dir, a.Plan.Archive)); string(text) != "a recording" || err != nil {
		t.Errorf("the recording on the box = %q, %v", text, err)
	}
	if run, err := b.store.Run(a.Part); err != nil || run.Plan.Device != "virtual" {
		t.Errorf("the box's run of the part: %+v, %v; want one with the part's ID", run, err)
	}
	var id Identity
	text, err := os.ReadFile(filepath.Join(b.keeper.Dir, identityFile))
	if err == nil {
		err = json.Unmarshal(text, &id)
	}
	if err != nil || id.Name != "lab-1" || id.ID == "" || !fleet.IsDigest(id.Pin) {
		t.Errorf("%s = %+v, %v", identityFile, id, err)
	}
	if info, err := os.Stat(filepath.Join(b.keeper.Dir, "box.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v; want mode 0600", info, err)
	}
}

// The head hears of each trial while it goes on, however long the lease lasts.
func TestFleetProgressIsTold(t *testing.T) {
	h := fleettest.NewHead(t)
	h.Lease = time.Hour
	release := make(chan struct{})
	joined(t, h, &simulated{trial: func(_ context.Context, _ string, n int) error {
		if n == 2 {
			<-release
		}
		return nil
	}})
	h.Add(assignment("p", 2))
	h.Await(limited(t), t, "the second trial", func() bool { return h.Part("p").Progress.Trial == 2 })
	close(release)
	checkWhole(t, h, awaitEnd(t, h, "p"), 2)
}

// While a local run has the device, nothing is claimed for it; a device that is not ready gets nothing either.
func TestFleetBusyDeviceIsNotFree(t *testing.T) {
	h := fleettest.NewHead(t)
	going, release := make(chan struct{}), make(chan struct{})
	b := joined(t, h, &simulated{trial: func(_ context.Context, id string, n int) error {
		if strings.HasSuffix(id, "-local") && n == 1 {
			close(going)
			<-release
		}
		return nil
	}})
	b.setOffer(func(o *fleet.Offer) { o.Devices[0].Ready = false; o.Devices[0].Problem = "no cable" })
	h.Await(limited(t), t, "description, and the end of the claim that was made before it", func() bool {
		for _, o := range h.Offers {
			return len(o.Devices) == 1 && !o.Devices[0].Ready && h.Waiting == 0
		}
		return false
	})
	h.Add(assignment("p", 1))
	if _, err := b.queue.Add(t.Context(), lab.Plan{Name: "local", Device: "virtual", Trials: 1}, store.Once{}); err != nil {
		t.Fatal(err)
	}
	<-going
	b.setOffer(func(o *fleet.Offer) { o.Devices[0].Ready = true })
	h.Lock()
	calls := h.Calls["PUT offer"]
	h.Unlock()
	h.Await(limited(t), t, "two more descriptions", func() bool { return h.Calls["PUT offer"] >= calls+2 })
	h.Lock()
	if p := h.Part("p"); p.Attempt != 0 {
		t.Errorf("the part was claimed %d times while the device had a local run", p.Attempt)
	}
	h.Unlock()
	close(release)
	checkWhole(t, h, awaitEnd(t, h, "p"), 1)
}

// What the box cannot carry out it gives back with the reason, and does not ask for more at once.
func TestFleetPartIsGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(b *box, r *simulated, a *fleet.Assignment)
		want  string
	}{
		"refused": {func(_ *box, r *simulated, _ *fleet.Assignment) {
			r.accept = func(lab.Plan) error { return errors.New("there is no such browser") }
		}, "there is no such browser"},
		"vanished": {func(_ *box, r *simulated, _ *fleet.Assignment) {
			r.before = func(string) error { return errors.New("device virtual: it is no longer there") }
		}, "it is no longer there"},
		"full": {func(b *box, _ *simulated, _ *fleet.Assignment) {
			b.archives.err = errors.New("no space left on device")
		}, "no space left on device"},
		"damaged":  {func(_ *box, _ *simulated, a *fleet.Assignment) { a.Archives[0].SHA256 = strings.Repeat("ab", 32) }, "SHA-256"},
		"too long": {func(_ *box, _ *simulated, a *fleet.Assignment) { a.Archives[0].Bytes-- }, "more than"},
		"missing":  {func(_ *box, _ *simulated, a *fleet.Assignment) { a.Archives[0].SHA256 = strings.Repeat("cd", 32) }, "no such recording"},
	} {
		t.Run(name, func(t *testing.T) {
			h := fleettest.NewHead(t)
			r := &simulated{}
			dir := t.TempDir()
			a := assignment("p", 1)
			a.Archives = []fleet.ArchiveFile{h.AddSource("x.wacz", []byte("content"))}
			b, err := openBox(t.Context(), dir, r)
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(b, r, &a)
			if name == "damaged" {
				h.Sources[a.Archives[0].SHA256] = []byte("content")
			}
			wrong := b.archives.err
			if err := b.close(); err != nil {
				t.Fatal(err)
			}
			b, _ = start(t, dir, r)
			b.archives.mu.Lock()
			b.archives.err = wrong
			b.archives.mu.Unlock()
			if _, err := b.keeper.Join(t.Context(), h.Link(), "lab-1"); err != nil {
				t.Fatal(err)
			}
			h.Add(a)
			h.Await(limited(t), t, "return", func() bool { return len(h.Part("p").Returns) > 0 })
			awaitNoParts(t, b.keeper.Dir)
			h.Lock()
			defer h.Unlock()
			if p := h.Part("p"); len(p.Returns) != 1 || !strings.Contains(p.Returns[0], c.want) || p.Attempt != 1 || p.Outcome != nil {
				t.Errorf("the part was given back as %q after %d attempts, outcome %v; want once, with %q", p.Returns, p.Attempt, p.Outcome, c.want)
			}
			if c.want == "SHA-256" || c.want == "more than" {
				if names, err := b.archives.Names(); err != nil || len(names) > 0 {
					t.Errorf("the box keeps %q, %v; want no recording", names, err)
				}
			}
		})
	}
}

// A box whose lease is lost stops its run, keeps what it measured, and goes on with it when it gets the part again.
func TestFleetLostLease(t *testing.T) {
	h := fleettest.NewHead(t)
	h.Lease = 30 * 1e6 // 30 ms: renewals are quick
	third, going := make(chan struct{}), make(chan struct{}, 10)
	first := true
	b := joined(t, h, &simulated{trial: func(ctx context.Context, _ string, n int) error {
		if n == 3 && first {
			first = false
			going <- struct{}{}
			<-ctx.Done()
			close(third)
		}
		return nil
	}})
	h.Add(assignment("p", 5))
	<-going
	h.Lock()
	h.Part("p").Token = "another's"
	h.Unlock()
	<-third
	awaitNoParts(t, b.keeper.Dir)
	if run, err := b.store.Run("p"); err != nil || run.State != store.StateInterrupted || len(run.Trials) != 2 {
		t.Errorf("the box's run: %+v, %v; want it interrupted, with 2 trials", run, err)
	}
	h.Expire("p")
	got := awaitEnd(t, h, "p")
	checkWhole(t, h, got, 5)
	if got.Attempt != 2 {
		t.Errorf("the part ended in attempt %d; want 2", got.Attempt)
	}
}

// A run that the head cancels is stopped, and handed in as it is.
func TestFleetCancel(t *testing.T) {
	h := fleettest.NewHead(t)
	h.Lease = 30 * 1e6
	b := joined(t, h, &simulated{trial: func(ctx context.Context, _ string, n int) error {
		if n == 3 {
			h.Lock()
			h.Part("p").Cancel = true
			h.Unlock()
			<-ctx.Done()
		}
		return nil
	}})
	h.Add(assignment("p", 5))
	got := awaitEnd(t, h, "p")
	if got.Outcome.State != store.StateInterrupted || got.Outcome.Trials != 2 || len(got.Outcome.Files) < 5 {
		t.Errorf("the part ended as %+v; want interrupted, with 2 trials and their files", got.Outcome)
	}
	awaitNoParts(t, b.keeper.Dir)
	// One that is to stop before it begins is not begun.
	h.Add(assignment("q", 5))
	h.Lock()
	h.Part("q").Cancel = true
	h.Unlock()
	if got := awaitEnd(t, h, "q"); got.Outcome.State != store.StateInterrupted {
		t.Errorf("the part ended as %+v; want interrupted", got.Outcome)
	}
}

// Whole trials are at the head before the run ends.
func TestFleetEarlyHandIn(t *testing.T) {
	h := fleettest.NewHead(t)
	released := make(chan struct{})
	joined(t, h, &simulated{trial: func(ctx context.Context, _ string, n int) error {
		if n == 3 {
			<-released
		}
		return nil
	}})
	h.Add(assignment("p", 3))
	h.Await(limited(t), t, "two trials", func() bool {
		return slices.ContainsFunc(h.Part("p").Held, func(f fleet.File) bool { return f.Path == "trials/002/trial.json" })
	})
	close(released)
	checkWhole(t, h, awaitEnd(t, h, "p"), 3)
}

// While the head is away the box goes on, and hands in later; what it holds cannot be left by accident.
func TestFleetHeadIsAway(t *testing.T) {
	h := fleettest.NewHead(t)
	begun := make(chan struct{})
	b := joined(t, h, &simulated{trial: func(_ context.Context, _ string, n int) error {
		if n == 1 {
			h.Lock()
			h.Fault = dropAll
			h.Unlock()
			close(begun)
		}
		return nil
	}})
	l := b.queue.Events().Listen("p")
	defer l.Close()
	h.Add(assignment("p", 3))
	<-begun
	for ended := false; !ended; {
		<-l.Wake()
		for _, e := range l.Take() {
			ended = ended || e.Terminal()
		}
	}
	h.Lock()
	calls := h.Calls["POST end"]
	h.Unlock()
	h.Await(limited(t), t, "some attempts", func() bool { return h.Calls["POST end"] >= calls+3 })
	var holds *HoldsError
	if err := b.keeper.Leave(limited(t), false); !errors.As(err, &holds) {
		t.Errorf("Leave() = %v; want a HoldsError", err)
	}
	if needed := b.keeper.Needed(); needed["p"] == "" {
		t.Errorf("Needed() = %v; want the run that waits", needed)
	}
	h.Lock()
	h.Fault = nil
	h.Unlock()
	checkWhole(t, h, awaitEnd(t, h, "p"), 3)
	awaitNoParts(t, b.keeper.Dir)
	if err := b.keeper.Leave(limited(t), false); err != nil || b.keeper.Joined() {
		t.Errorf("Leave() = %v, joined %v; want nil, false", err, b.keeper.Joined())
	}
}

func dropAll(*http.Request) fleettest.Fault { return fleettest.DropRequest }

// A part that the head gives to the same box once more, for another device, before the box knows that its lease is
// lost: the older run is stopped and stays, and the newer one is handed in.
func TestFleetNewerAttemptFollows(t *testing.T) {
	h := fleettest.NewHead(t)
	going := make(chan struct{})
	b := joined(t, h, &simulated{trial: func(ctx context.Context, id string, n int) error {
		if id == "p" && n == 2 {
			close(going)
			<-ctx.Done()
		}
		return nil
	}})
	b.setOffer(func(o *fleet.Offer) {
		o.Devices = append(o.Devices, fleet.OfferedDevice{Name: "other", Kind: "virtual", Ready: true})
	})
	h.Add(assignment("p", 3))
	<-going
	h.Lock()
	h.Part("p").Offered.Device = "other"
	h.Unlock()
	h.Expire("p")
	got := awaitEnd(t, h, "p")
	checkWhole(t, h, got, 3)
	awaitNoParts(t, b.keeper.Dir)
	old, err := b.store.Run("p")
	if err != nil || old.State != store.StateInterrupted || len(old.Trials) != 1 || got.Attempt != 2 {
		t.Errorf("the older run: %+v, %v; the part ended in attempt %d; want it interrupted after a trial, and 2", old, err, got.Attempt)
	}
	if run, err := b.store.Run("p-2"); err != nil || run.Plan.Device != "other" {
		t.Errorf("the newer run: %+v, %v; want one on the other device", run, err)
	}
}
