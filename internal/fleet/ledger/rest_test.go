package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// A code is good for one box, for a time.
func tryCodes(t *testing.T, b *bench) {
	code, err := b.NewCode(t.Context(), "ann", time.Hour)
	if err != nil || len(code) < 26 {
		t.Fatalf("NewCode() = %q, %v; want 128 bits", code, err)
	}
	join := func(code, name, print string) error {
		_, err := b.Join(t.Context(), code, name, print, offer("a"))
		return err
	}
	wantErr(t, "Join(a wrong code)", join(code+"A", "one", "p1"), ErrCode)
	wantErr(t, "Join(no code)", join("", "one", "p1"), ErrCode)
	wantErr(t, "Join(a bad name)", join(code, "One!", "p1"), errInvalid)
	first, err := b.Join(t.Context(), code, "one", "p1", offer("a"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Join(t.Context(), code, "one", "p1", offer("a"))
	if err != nil || again.ID != first.ID {
		t.Errorf("Join(the answer was lost) = %+v, %v; want %s", again, err, first.ID)
	}
	wantErr(t, "Join(a stolen code)", join(code, "two", "p2"), ErrCode)
	wantErr(t, "Join(a stolen code, the same name)", join(code, "one", "p2"), ErrCode)
	other, err := b.NewCode(t.Context(), "ann", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Join(a taken name)", join(other, "one", "p2"), ErrNameTaken)
	b.clock.move(time.Hour + 1)
	wantErr(t, "Join(an old code)", join(other, "two", "p2"), ErrCode)
	if _, err := b.NewCode(t.Context(), "ann", 0); !errors.Is(err, errInvalid) {
		t.Errorf("NewCode(valid for nothing) = %v; want an error", err)
	}
	for _, table := range []string{"hash", "maker", "box"} {
		var n int
		if err := b.reader().row(t.Context(), `SELECT count(*) FROM fleet_codes WHERE `+table+` = ?`, code).Scan(&n); err != nil || n > 0 {
			t.Errorf("the code itself is kept as %s (%v)", table, err)
		}
	}
	if renamed := b.join(t, "three", offer("a")); renamed.ID == first.ID {
		t.Error("another certificate has the same box")
	}
	code, err = b.NewCode(t.Context(), "ann", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := b.Join(t.Context(), code, "four", "p1", offer("a")); err != nil || moved.ID != first.ID || moved.Name != "four" {
		t.Errorf("Join(a known certificate) = %+v, %v; want box %s with a new name", moved, err, first.ID)
	}
}

// Boxes are described, labelled and removed.
func tryBoxes(t *testing.T, b *bench) {
	o := offer("a")
	o.Labels = map[string]string{"room": "north", "kind": "lab"}
	one := b.join(t, "one", o)
	wantErr(t, "SetLabels()", b.SetLabels(t.Context(), one.ID, map[string]string{"room": "south"}), nil)
	wantErr(t, "SetLabels(bad)", b.SetLabels(t.Context(), one.ID, map[string]string{"R!": ""}), errInvalid)
	b.clock.move(time.Minute)
	o.Software = "2"
	wantErr(t, "Describe()", b.Describe(t.Context(), one.ID, o), nil)
	got, err := b.BoxOf(t.Context(), "print-one")
	if err != nil || got.Offer.Software != "2" || got.Offer.Labels["room"] != "south" || got.Offer.Labels["kind"] != "lab" ||
		!got.Seen.Equal(b.clock.now()) || got.Health != fleet.HealthUnknown {
		t.Errorf("BoxOf() = %+v, %v; want software 2, room south, kind lab, seen now", got, err)
	}
	b.add(t, run("north", "", fleet.Need{Labels: []string{"room=north"}}))
	b.add(t, run("south", "", fleet.Need{Labels: []string{"room=south"}}))
	a, mine := b.claim(t, got, "1")
	want(t, "part", a.Part, "south")
	if all, err := b.Boxes(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("Boxes() = %+v, %v; want one", all, err)
	}
	wantErr(t, "RemoveBox()", b.RemoveBox(t.Context(), one.ID), nil)
	want(t, "south", b.part(t, "south"), "running queued 1 / -1@one")
	_, err = b.Renew(t.Context(), mine, fleet.Progress{})
	wantErr(t, "Renew(of a removed box)", err, ErrUnknownBox)
	_, err = b.Claim(t.Context(), Claim{one.ID, "2", []string{"a"}})
	wantErr(t, "Claim(of a removed box)", err, ErrUnknownBox)
	_, err = b.BoxOf(t.Context(), "print-one")
	wantErr(t, "BoxOf(a removed box)", err, ErrUnknownBox)
	_, err = b.Box(t.Context(), "one")
	wantErr(t, "Box(a removed box)", err, ErrUnknownBox)
	wantErr(t, "Describe(a removed box)", b.Describe(t.Context(), one.ID, o), ErrUnknownBox)
	wantErr(t, "RemoveBox(again)", b.RemoveBox(t.Context(), one.ID), ErrUnknownBox)
	if again := b.join(t, "one", o); again.ID == one.ID {
		t.Error("a box that was removed and joins again has its old identifier")
	}
}

// A request for a run is accepted once.
func tryAdding(t *testing.T, b *bench) {
	r := run("r1", "")
	r.Once = store.Once{Key: "k", Request: "d"}
	r.Plan.Files = map[string][]byte{"lamp.png": make([]byte, 1<<20)}
	r.Parts[0].Plan.Files = r.Plan.Files
	b.add(t, r)
	if got, err := b.Run(t.Context(), "r1"); err != nil || got.Plan.Files != nil || len(got.Parts[0].Plan.Files["lamp.png"]) != 1<<20 {
		t.Errorf("Run() = %d files of the plan, %d of its part, %v; want the part's alone", len(got.Plan.Files), len(got.Parts[0].Plan.Files), err)
	}
	r.ID = "r2"
	if id, err := b.AddRuns(t.Context(), r); err != nil || id != "r1" {
		t.Errorf("AddRuns(a known key) = %q, %v; want r1", id, err)
	}
	r.Once.Request = "e"
	_, err := b.AddRuns(t.Context(), r)
	wantErr(t, "AddRuns(a key of another request)", err, store.ErrKeyUsed)
	r.ID, r.Once = "r1", store.Once{}
	_, err = b.AddRuns(t.Context(), r)
	wantErr(t, "AddRuns(a known name)", err, store.ErrExists)
	b.clock.move(keysKept + 1)
	r.ID, r.Once = "r3", store.Once{Key: "k", Request: "e"}
	b.add(t, r)
	for what, bad := range map[string]func(*NewRun){
		"name":     func(r *NewRun) { r.ID = "../r" },
		"long":     func(r *NewRun) { r.ID = strings.Repeat("r", 126); r.Parts = append(r.Parts, r.Parts[0]) },
		"parts":    func(r *NewRun) { r.Parts = nil },
		"priority": func(r *NewRun) { r.Priority = 4 },
		"series":   func(r *NewRun) { r.Series = strings.Repeat("s", maxSeries+1) },
	} {
		r := run("r9", "")
		bad(&r)
		_, err := b.AddRuns(t.Context(), r)
		wantErr(t, "AddRuns("+what+")", err, errInvalid)
	}
	// Several are added all or none, under the key of the first.
	several := []NewRun{run("s1", ""), run("s2", "", fleet.Need{}, fleet.Need{}), run("r1", "")}
	several[0].Once = store.Once{Key: "several", Request: "d"}
	_, err = b.AddRuns(t.Context(), several...)
	wantErr(t, "AddRuns(the last has a known name)", err, store.ErrExists)
	several[2].ID = "../r"
	_, err = b.AddRuns(t.Context(), several...)
	wantErr(t, "AddRuns(the last has a bad name)", err, errInvalid)
	_, err = b.Run(t.Context(), "s1")
	wantErr(t, "Run(of several that were refused)", err, store.ErrNotFound)
	several[2].ID = "s3"
	for range 2 {
		if id, err := b.AddRuns(t.Context(), several...); err != nil || id != "s1" {
			t.Errorf("AddRuns(several) = %q, %v; want s1, nil", id, err)
		}
	}
	wantErr(t, "RemoveRun(waiting)", b.RemoveRun(t.Context(), "r1"), store.ErrHeld)
	// A queue that others have filled is full, until runs begin.
	other := openLedger(t, b.database, b.clock)
	if _, err := other.AddRuns(t.Context(), run("o1", "")); err != nil { // it has counted the queue
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO fleet_runs (id, plan, series, priority, reference, state, created, open)
			WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 49993) SELECT 'full-' || i, '{}', '', 2, '', 'queued', 0, 1 FROM c`,
		`UPDATE fleet_state SET n = n + 49993 WHERE name = 'adding'`,
	} {
		if _, err := b.reader().exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "runs that wait", waitingRuns(t, b.Ledger), MaxWaiting-1)
	_, err = b.AddRuns(t.Context(), run("f1", ""), run("f2", ""))
	wantErr(t, "AddRuns(one more than there is room)", err, store.ErrFull)
	b.add(t, run("f1", ""))
	_, err = other.AddRuns(t.Context(), run("f2", ""))
	if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "50000") {
		t.Errorf("AddRuns(a full queue) = %v; want store.ErrFull and 50000", err)
	}
	wantErr(t, "CancelRun()", b.CancelRun(t.Context(), "f1"), nil)
	b.add(t, run("f2", ""))
}

// waitingRuns counts the runs that wait.
func waitingRuns(t testing.TB, l *Ledger) (n int) {
	t.Helper()
	if err := l.reader().row(t.Context(), `SELECT count(*) FROM fleet_runs WHERE state = 'queued'`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func ids(all []Run) (names []string) {
	for _, r := range all {
		names = append(names, r.ID)
	}
	return names
}

// Runs are listed the newest first, in pages.
func tryLists(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	for n := range 5 {
		b.add(t, run(fmt.Sprintf("r%d", n), ""))
		b.clock.move(time.Second)
	}
	b.claim(t, one, "1")
	list := func(f Filter) []string {
		all, err := b.Runs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		return ids(all)
	}
	want(t, "all", list(Filter{}), "[r4 r3 r2 r1 r0]")
	want(t, "a page", list(Filter{Before: "r4", Limit: 2}), "[r3 r2]")
	want(t, "waiting", list(Filter{States: []string{store.StateQueued}, Before: "r3"}), "[r2 r1]")
	want(t, "going on", list(Filter{States: []string{store.StateRunning, stateAssembling}}), "[r0]")
	_, err := b.Runs(t.Context(), Filter{Before: "r9"})
	wantErr(t, "Runs(before an unknown one)", err, store.ErrNotFound)
	_, err = b.Run(t.Context(), "r9")
	wantErr(t, "Run(unknown)", err, store.ErrNotFound)
	_, err = b.Files(t.Context(), "r9")
	wantErr(t, "Files(unknown)", err, store.ErrNotFound)
}

// work runs a ledger's background work until the test, or stop, ends it.
func work(t *testing.T, l *Ledger) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Work(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Work() = %v; want nil", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// ended waits until so many runs have ended.
func ended(t *testing.T, l *Ledger, n int) (all []Run) {
	t.Helper()
	var seq int64
	testlab.Await(t, fmt.Sprintf("%d runs that have ended", n), func() bool {
		more, last, err := l.EndedSince(t.Context(), seq)
		if err != nil {
			t.Fatalf("EndedSince() = %v, %v; want %d runs", ids(all), err, n)
		}
		all, seq = append(all, more...), last
		return len(all) >= n
	}, func() any { return ids(all) })
	return all
}

// withAssembly opens the ledger again with a way to assemble runs.
func (b *bench) withAssembly(t *testing.T, f func(context.Context, Run) (Assembled, error)) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), Config{Database: b.database, Lease: lease, Assemble: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// A run whose parts have ended is assembled once, and its end has a place in the order of all ends.
func tryAssembling(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	for n := range 3 {
		b.add(t, run(fmt.Sprintf("r%d", n), "", fleet.Need{}, fleet.Need{}))
	}
	for n := range 6 {
		a, l := b.claim(t, one, fmt.Sprint(n))
		b.mustEnd(t, l, file(a.Part))
	}
	assemble := func(_ context.Context, r Run) (Assembled, error) {
		a := Assembled{State: store.StateDone}
		for _, p := range r.Parts {
			a.Files = append(a.Files, p.Outcome.Files...)
		}
		return a, nil
	}
	l, other := b.withAssembly(t, assemble), b.withAssembly(t, assemble)
	work(t, l)
	work(t, other)
	all := ended(t, l, 3)
	names := ids(all)
	slices.Sort(names)
	want(t, "ended", names, "[r0 r1 r2]")
	for _, r := range all {
		if r.State != store.StateDone || r.Ended.IsZero() {
			t.Errorf("run %s has state %s and ended %v; want done, now", r.ID, r.State, r.Ended)
		}
		if f, err := l.RunFiles(t.Context(), r.ID); err != nil || len(f) != 2 || f[1].Path != r.ID+".02" {
			t.Errorf("RunFiles(%s) = %v, %v; want two", r.ID, f, err)
		}
	}
	if more, seq, err := l.EndedSince(t.Context(), 2); err != nil || len(more) != 1 || seq != 3 || more[0].ID != all[2].ID {
		t.Errorf("EndedSince(2) = %v, %d, %v; want the last, and 3", ids(more), seq, err)
	}
	var digests []string
	for d, err := range l.Digests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d)
	}
	slices.Sort(digests)
	want(t, "digests", len(slices.Compact(digests)), 6)
	wantErr(t, "Thin()", l.Thin(t.Context(), "r1", func(path string) bool { return path != "r1.02" }), nil)
	if f, err := l.RunFiles(t.Context(), "r1"); err != nil || len(f) != 1 || f[0].Path != "r1.01" {
		t.Errorf("RunFiles(thinned) = %v, %v; want the one that was kept", f, err)
	}
	gone := file("r1.02").SHA256
	for d, err := range l.Digests(t.Context()) {
		if err != nil || d == gone {
			t.Errorf("Digests(after Thin) has %s, %v; want nothing to refer to it", d, err)
		}
	}
	b.add(t, run("r9", ""))
	wantErr(t, "Thin(waits)", l.Thin(t.Context(), "r9", func(string) bool { return true }), store.ErrHeld)
	wantErr(t, "Thin(unknown)", l.Thin(t.Context(), "r8", func(string) bool { return true }), store.ErrNotFound)
	wantErr(t, "RemoveRun()", l.RemoveRun(t.Context(), "r0"), nil)
	wantErr(t, "RemoveRun(again)", l.RemoveRun(t.Context(), "r0"), store.ErrNotFound)
	_, err := l.RunFiles(t.Context(), "r0")
	wantErr(t, "RunFiles(removed)", err, store.ErrNotFound)
}

// A run that cannot be assembled ends as failed, and says why.
func tryAssemblingFails(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	b.add(t, run("r1", ""))
	_, l := b.claim(t, one, "1")
	b.mustEnd(t, l)
	// As after four tries, between which minutes pass.
	if _, err := b.reader().exec(t.Context(), `UPDATE fleet_runs SET tries = ?`, assembleTries-1); err != nil {
		t.Fatal(err)
	}
	failing := b.withAssembly(t, func(context.Context, Run) (Assembled, error) { return Assembled{}, errors.New("no disk") })
	work(t, failing)
	r := ended(t, failing, 1)[0]
	if r.State != store.StateFailed || !strings.Contains(r.Error, "no disk") {
		t.Errorf("the run ended as %s, %q; want failed, with the reason", r.State, r.Error)
	}
}

// A try to assemble a run that fails, panics, has no store or is cut off by the head's stop is made again after a
// while, and one of a head that vanished by another head. What the first of them comes back with is too late.
func tryAssemblingAgain(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	b.add(t, run("r1", ""))
	_, l := b.claim(t, one, "1")
	b.mustEnd(t, l)
	other := openLedger(t, b.database, b.clock)
	tries := 0
	next := func(ctx context.Context, l *Ledger, want bool, f func() (Assembled, error)) {
		t.Helper()
		before := tries
		l.assemble = func(context.Context, Run) (Assembled, error) { tries++; return f() }
		if found, err := l.assembleNext(ctx); err != nil || found != want || tries-before > 1 || want != (tries > before) {
			t.Errorf("assembleNext() = %v, %v after %d tries; want %v", found, err, tries-before, want)
		}
	}
	done := func() (Assembled, error) {
		return Assembled{State: store.StateDone, Files: []fleet.File{file("run.json")}}, nil
	}
	fails := func() (Assembled, error) { return Assembled{}, errors.New("no disk") }
	next(t.Context(), b.Ledger, true, fails)
	next(t.Context(), other, false, done) // not yet
	for range assembleTries {             // which do not count
		b.clock.move(time.Minute)
		b.assemble = func(context.Context, Run) (Assembled, error) { return Assembled{}, &lab.AwayError{What: "the store"} }
		var away *lab.AwayError
		if found, err := b.assembleNext(t.Context()); !found || !errors.As(err, &away) {
			t.Errorf("assembleNext() while the store is away = %v, %v; want a run, and that it is away", found, err)
		}
	}
	b.clock.move(time.Minute)
	next(t.Context(), other, true, func() (Assembled, error) { panic("hostile") })
	b.clock.move(time.Minute)
	stopped, stop := context.WithCancel(t.Context())
	next(stopped, b.Ledger, true, func() (Assembled, error) { stop(); return Assembled{}, stopped.Err() })
	next(t.Context(), b.Ledger, true, func() (Assembled, error) {
		next(t.Context(), other, false, done) // while the first lives
		b.clock.move(lease + 1)
		late := tries
		other.assemble = func(context.Context, Run) (Assembled, error) {
			return Assembled{State: store.StateDone, Error: "the second head's"}, nil
		}
		if found, err := other.assembleNext(t.Context()); err != nil || !found || tries != late {
			t.Errorf("assembleNext() of the other head = %v, %v; want a run", found, err)
		}
		return done()
	})
	all, _, err := b.EndedSince(t.Context(), 0)
	if err != nil || len(all) != 1 || all[0].Error != "the second head's" {
		t.Errorf("EndedSince() = %+v, %v; want one end, of the second head", all, err)
	}
}

// A file that stayed on a box is wanted, and arrives.
func tryWants(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	reel := file("trials/001/reel")
	reel.Stays = true
	b.add(t, run("r1", ""))
	_, mine := b.claim(t, one, "1")
	b.mustEnd(t, mine, file("run.json"), reel)
	l := b.withAssembly(t, func(_ context.Context, r Run) (Assembled, error) {
		moved := reel
		moved.Path = "a/trials/001/reel"
		return Assembled{State: store.StateDone, Files: []fleet.File{file("run.json"), moved}}, nil
	})
	stop := work(t, l)
	ended(t, l, 1)
	stop()
	digests := func() (n int) {
		for d, err := range b.Digests(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if d == reel.SHA256 {
				n++
			}
		}
		return n
	}
	want(t, "references to a file that stays", digests(), 0)
	wantErr(t, "Want(unknown run)", b.Want(t.Context(), "r9", "x"), store.ErrNotFound)
	wantErr(t, "Want(unknown file)", b.Want(t.Context(), "r1", "x"), store.ErrNotFound)
	wantErr(t, "Want(a file that is here)", b.Want(t.Context(), "r1", "run.json"), nil)
	for range 2 {
		wantErr(t, "Want()", b.Want(t.Context(), "r1", "a/trials/001/reel"), nil)
	}
	wanted, err := b.Wanted(t.Context(), one.ID)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "Wanted()", wanted, []fleet.Wanted{{Part: "r1", Path: reel.Path, SHA256: reel.SHA256}})
	b.add(t, run("r2", ""))
	_, mine = b.claim(t, one, "2")
	if r, err := b.Renew(t.Context(), mine, fleet.Progress{}); err != nil || len(r.Wanted) != 1 {
		t.Errorf("Renew() = %+v, %v; want it to tell of the file", r, err)
	}
	wantErr(t, "Arrived()", b.Arrived(t.Context(), reel.SHA256), nil)
	wanted, err = b.Wanted(t.Context(), one.ID)
	if err != nil || len(wanted) != 0 {
		t.Errorf("Wanted() = %v, %v; want none", wanted, err)
	}
	want(t, "references to a file that arrived", digests(), 2)
	if f, err := b.RunFiles(t.Context(), "r1"); err != nil || f[1].Stays {
		t.Errorf("RunFiles() = %+v, %v; want the file here", f, err)
	}
}

func tryReadings(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	for n := range 3 {
		wantErr(t, "AddReading()", b.AddReading(t.Context(), one.ID, "a", json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))), nil)
	}
	wantErr(t, "AddReading(no JSON)", b.AddReading(t.Context(), one.ID, "a", json.RawMessage(`{`)), errInvalid)
	wantErr(t, "AddReading(a stranger's)", b.AddReading(t.Context(), "box-x", "a", json.RawMessage(`{}`)), ErrUnknownBox)
	all, err := b.Readings(t.Context(), one.ID, "a", 2)
	if err != nil || len(all) != 2 || string(all[0]) != `{"n":2}` {
		t.Errorf("Readings() = %s, %v; want the newest two", all, err)
	}
}

// A setting is swapped together with the health of a box, or not at all.
func trySwap(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	swap := func(from, to string, health string) error {
		var old json.RawMessage
		if from != "" {
			old = json.RawMessage(from)
		}
		return b.SwapSetting(t.Context(), "rollout", old, json.RawMessage(to), BoxHealth{one.ID, health, "why"}, BoxHealth{"box-gone", health, ""})
	}
	health := func() string {
		got, err := b.Box(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		return got.Health
	}
	wantErr(t, "swap of what is not there", swap(`{"n":0}`, `{"n":1}`, fleet.HealthBad), ErrChanged)
	wantErr(t, "swap of nothing", swap("", `{"n": 1}`, fleet.HealthMaintenance), nil)
	want(t, "health", health(), fleet.HealthMaintenance)
	wantErr(t, "swap of nothing again", swap("", `{"n":2}`, fleet.HealthBad), ErrChanged)
	wantErr(t, "swap of another", swap(`{"n":7}`, `{"n":2}`, fleet.HealthBad), ErrChanged)
	wantErr(t, "swap for no JSON", swap(`{"n": 1}`, `{`, fleet.HealthBad), errInvalid)
	wantErr(t, "swap with no health", swap(`{"n": 1}`, `{}`, "fine"), errInvalid)
	want(t, "health after refused swaps", health(), fleet.HealthMaintenance)
	// What was read is what is swapped, byte for byte, also for the same again.
	read, err := b.Setting(t.Context(), "rollout")
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "swap for the same", swap(string(read), string(read), fleet.HealthGood), nil)
	want(t, "health", health(), fleet.HealthGood)
	const heads = 8
	won := make(chan error, heads)
	for n := range heads {
		go func() { won <- swap(string(read), fmt.Sprintf(`{"head":%d}`, n), fleet.HealthBad) }()
	}
	winners := 0
	for range heads {
		if err := <-won; err == nil {
			winners++
		} else if !errors.Is(err, ErrChanged) {
			t.Errorf("swap() = %v; want nil or ErrChanged", err)
		}
	}
	want(t, "heads that swapped", winners, 1)
}

// Needs and series for which nothing waits are forgotten, and come back when they are needed.
func tryHousekeeping(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	count := func(table string) (n int) {
		if err := b.reader().row(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for round := range 3 {
		for n := range 3 {
			b.add(t, run(fmt.Sprintf("r%d-%d", round, n), fmt.Sprint("s", round, n), fleet.Need{Devices: []string{"a", fmt.Sprint(n)}}))
		}
		want(t, "needs", count("fleet_needs"), 3)
		for n := range 3 {
			_, l := b.claim(t, one, fmt.Sprint(round, n))
			if n == 1 {
				b.expire(t) // the queue was closed, and opens again
				_, l = b.claim(t, one, fmt.Sprint(round, n, "again"))
			}
			b.mustEnd(t, l)
		}
		wantErr(t, "Sweep()", b.Sweep(t.Context()), nil)
		want(t, "needs after all ended", count("fleet_needs"), 0)
	}
	want(t, "series after all ended", count("fleet_series"), 0)
}
