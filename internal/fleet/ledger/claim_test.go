package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
)

// A part is claimed, renewed and ended by one box, and nobody can take it from the box meanwhile.
func tryLease(t *testing.T, b *bench) {
	one, two := b.join(t, "one", offer("a")), b.join(t, "two", offer("a"))
	b.add(t, run("r1", ""))
	a, mine := b.claim(t, one, "q1")
	want(t, "part, run and device", a.Part+" "+a.Run+" "+a.Device, "r1 r1 a")
	want(t, "attempt", a.Attempt, 1)
	again, _ := b.claim(t, one, "q1")
	want(t, "the repeated claim", again, a)
	other, _ := b.claim(t, two, "q1")
	want(t, "another box's claim", other.Part, "")
	more, _ := b.claim(t, one, "q2")
	want(t, "another claim of the box", more.Part, "")
	if r, err := b.Renew(t.Context(), mine, fleet.Progress{Trial: 1, Of: 2}); err != nil || r.LeaseFor != lease || r.Cancel {
		t.Errorf("Renew() = %+v, %v; want a lease of %v", r, err, lease)
	}
	if p, err := b.PartOf(t.Context(), mine); err != nil || p.Progress.Trial != 1 || p.Box != "one" {
		t.Errorf("PartOf() = %+v, %v; want trial 1 on box one", p, err)
	}
	under := func() string {
		all, err := b.UnderWay(t.Context())
		return fmt.Sprint(all, err)
	}
	want(t, "under way", under(), "[{r1 r1 "+one.ID+" one a {1 2 }}] <nil>")
	for what, c := range map[string]struct {
		lease Lease
		want  error
	}{
		"a wrong token":       {Lease{one.ID, a.Part, "x"}, ErrLost},
		"another box's token": {Lease{two.ID, a.Part, a.Token}, ErrLost},
		"an unknown part":     {Lease{one.ID, "r2", a.Token}, store.ErrNotFound},
		"a stranger":          {Lease{"box-x", a.Part, a.Token}, ErrUnknownBox},
	} {
		_, err := b.Renew(t.Context(), c.lease, fleet.Progress{})
		wantErr(t, "Renew("+what+")", err, c.want)
		_, err = b.PartOf(t.Context(), c.lease)
		wantErr(t, "PartOf("+what+")", err, c.want)
		wantErr(t, "Hold("+what+")", b.Hold(t.Context(), c.lease, nil), c.want)
		wantErr(t, "Return("+what+")", b.Return(t.Context(), c.lease, ""), c.want)
		wantErr(t, "End("+what+")", b.End(t.Context(), c.lease, fleet.Outcome{State: store.StateDone}), c.want)
	}
	want(t, "r1", b.part(t, "r1"), "running running 1 one/a")
	b.mustEnd(t, mine, file("run.json"))
	b.mustEnd(t, mine, file("run.json")) // repeated
	want(t, "under way after the end", under(), "[] <nil>")
	want(t, "r1", b.part(t, "r1"), "assembling done 1 one/a done 1")
	_, err := b.Renew(t.Context(), mine, fleet.Progress{})
	wantErr(t, "Renew(after the end)", err, ErrLost)
	wantErr(t, "Hold(after the end)", b.Hold(t.Context(), mine, nil), ErrLost)
	wantErr(t, "Return(after the end)", b.Return(t.Context(), mine, ""), ErrLost)
	late, _ := b.claim(t, one, "q1")
	want(t, "a claim that comes late", late.Part, "")
}

// A lease that is renewed lasts; one that is not runs out, and its part goes to another box, with a new token. The old
// one is refused from then on.
func tryExpired(t *testing.T, b *bench) {
	one, two := b.join(t, "one", offer("a")), b.join(t, "two", offer("a"))
	b.add(t, run("r1", ""))
	a, first := b.claim(t, one, "1")
	for range 3 {
		b.clock.move(lease / 2)
		if err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Renew(t.Context(), first, fleet.Progress{}); err != nil {
			t.Fatalf("Renew() = %v; want nil", err)
		}
	}
	wantErr(t, "Hold()", b.Hold(t.Context(), first, []fleet.File{file("trials/001/trial.json"), file("trials/001/reel")}), nil)
	b.expire(t)
	want(t, "r1", b.part(t, "r1"), "running queued 1 / -1@one")
	again, second := b.claim(t, two, "1")
	want(t, "attempt", again.Attempt, 2)
	if again.Token == a.Token {
		t.Error("the second attempt has the token of the first")
	}
	_, err := b.Renew(t.Context(), first, fleet.Progress{})
	wantErr(t, "Renew(the old token)", err, ErrLost)
	wantErr(t, "Hold(the old token)", b.Hold(t.Context(), first, nil), ErrLost)
	wantErr(t, "End(the old token)", b.End(t.Context(), first, fleet.Outcome{State: store.StateDone}), ErrLost)
	b.mustEnd(t, second)
	wantErr(t, "End(the old token)", b.End(t.Context(), first, fleet.Outcome{State: store.StateDone}), ErrLost)
	want(t, "r1", b.part(t, "r1"), "assembling done 2 two/a -1@one done 0")
	r, err := b.Run(t.Context(), "r1")
	if err != nil || len(r.Parts[0].Attempts[0].Files) != 2 {
		t.Errorf("Run() = %+v, %v; want the two files of the first attempt", r, err)
	}
}

// A lease that ran out is still the newest while nobody has claimed the part: its box goes on.
func tryLate(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a", "b"))
	for _, how := range []string{"renew", "hold", "end"} {
		id := "r-" + how
		b.add(t, run(id, ""))
		_, mine := b.claim(t, one, id)
		b.expire(t)
		want(t, id, b.part(t, id), "running queued 1 / -1@one")
		switch how {
		case "renew":
			_, err := b.Renew(t.Context(), mine, fleet.Progress{})
			wantErr(t, "Renew(late)", err, nil)
		case "hold":
			wantErr(t, "Hold(late)", b.Hold(t.Context(), mine, nil), nil)
		}
		if how != "end" {
			want(t, id, b.part(t, id), "running running 1 one/a")
			if a, _ := b.claim(t, one, "other"); a.Part != "" {
				t.Errorf("Claim() = %s; want nothing: the part was taken back", a.Part)
			}
		}
		b.mustEnd(t, mine)
		want(t, id, b.part(t, id), "assembling done 1 one/a done 0")
	}
	// The box has begun something else on the device: what it left is lost to it.
	b.add(t, run("r1", "", fleet.Need{Devices: []string{"a"}}))
	_, old := b.claim(t, one, "old")
	b.expire(t)
	first := run("r2", "", fleet.Need{Devices: []string{"a"}, Boxes: []string{"one"}})
	first.Priority = 1
	b.add(t, first)
	if a, _ := b.claim(t, one, "new"); a.Part != "r2" {
		t.Fatalf("Claim() = %s; want r2", a.Part)
	}
	_, err := b.Renew(t.Context(), old, fleet.Progress{})
	wantErr(t, "Renew(a device that is in use)", err, ErrLost)
	b.mustEnd(t, old) // what it has measured is whole
}

// A repeated claim is the same claim, also after its lease ran out, and never an unknown second lease.
func tryRepeated(t *testing.T, b *bench) {
	one, two := b.join(t, "one", offer("a")), b.join(t, "two", offer("a"))
	b.add(t, run("r1", ""))
	a, _ := b.claim(t, one, "q")
	b.expire(t)
	again, mine := b.claim(t, one, "q")
	want(t, "the repeated claim", again, a)
	b.expire(t)
	if other, l := b.claim(t, two, "q"); other.Attempt != 2 {
		t.Errorf("Claim() = %+v; want attempt 2", other)
	} else {
		b.mustEnd(t, l)
	}
	b.add(t, run("r2", ""))
	third, mine2 := b.claim(t, one, "q") // the first answer never came, and the part is gone
	want(t, "the claim's part", third.Part, "r2")
	_, err := b.Renew(t.Context(), mine, fleet.Progress{})
	wantErr(t, "Renew(the old token)", err, ErrLost)
	b.add(t, run("r3", ""))
	wantErr(t, "Return()", b.Return(t.Context(), mine2, "no"), nil)
	late, _ := b.claim(t, one, "q")
	want(t, "a claim that comes after the box returned the part", late.Part, "")
}

// After three attempts that vanished a part ends with what the best of them handed in.
func tryExhausted(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	b.add(t, run("r1", ""))
	var last Lease
	for n := range mostAttempts {
		var a fleet.Assignment
		a, last = b.claim(t, one, fmt.Sprint(n))
		want(t, "attempt", a.Attempt, n+1)
		files := []fleet.File{file("trials/001/trial.json"), file("trials/002/trial.json")}
		if n != 1 {
			files = files[:1]
		}
		wantErr(t, "Hold()", b.Hold(t.Context(), last, files), nil)
		b.expire(t)
	}
	want(t, "r1", b.part(t, "r1"), "assembling interrupted 3 one/a -1@one -3@one interrupted 2")
	r, err := b.Run(t.Context(), "r1")
	if err != nil || r.Parts[0].Outcome.Trials != 2 || !strings.Contains(r.Parts[0].Outcome.Error, "3 boxes vanished") {
		t.Errorf("Run() = %+v, %v; want an outcome of 2 trials that says why", r.Parts[0].Outcome, err)
	}
	if f, err := b.Files(t.Context(), "r1"); err != nil || len(f) != 2 {
		t.Errorf("Files() = %v, %v; want two", f, err)
	}
	wantErr(t, "End(too late)", b.End(t.Context(), last, fleet.Outcome{State: store.StateDone}), ErrLost)
}

// A part that a box returns keeps its place, but is not for the same device again unless nobody else fits.
func tryReturned(t *testing.T, b *bench) {
	one, two := b.join(t, "one", offer("a", "b")), b.join(t, "two", offer("c"))
	b.add(t, run("r1", ""))
	b.add(t, run("r2", ""))
	a, mine := b.claim(t, one, "1")
	want(t, "part and device", a.Part+a.Device, "r1a")
	wantErr(t, "Return()", b.Return(t.Context(), mine, "no such page"), nil)
	wantErr(t, "Return(again)", b.Return(t.Context(), mine, "no such page"), ErrLost)
	_, err := b.Renew(t.Context(), mine, fleet.Progress{})
	wantErr(t, "Renew(returned)", err, ErrLost)
	a, mine = b.claim(t, one, "2")
	want(t, "part and device", a.Part+a.Device, "r1b") // its place is the first, and device b has not tried
	wantErr(t, "Return()", b.Return(t.Context(), mine, "no such page"), nil)
	a, last := b.claim(t, one, "3")
	want(t, "part", a.Part, "r2")
	b.mustEnd(t, last)
	a, _ = b.claim(t, one, "4")
	want(t, "part", a.Part, "") // box two can
	a, mine = b.claim(t, two, "1")
	want(t, "part and device", a.Part+a.Device, "r1c")
	want(t, "attempt", a.Attempt, 3)
	wantErr(t, "Return()", b.Return(t.Context(), mine, "no such page"), nil)
	a, mine = b.claim(t, one, "5")
	want(t, "part", a.Part, "r1") // all have tried
	wantErr(t, "Return()", b.Return(t.Context(), mine, "no such page"), nil)
	wantErr(t, "SetHealth()", b.SetHealth(t.Context(), two.ID, fleet.HealthMaintenance, ""), nil)
	a, _ = b.claim(t, two, "2")
	want(t, "part for a box in maintenance", a.Part, "")
	for n := 6; b.part(t, "r1")[:7] == "running"; n++ {
		if a, mine = b.claim(t, one, fmt.Sprint(n)); a.Part == "" {
			t.Fatalf("Claim(%d): nothing; want r1", n)
		}
		wantErr(t, "Return()", b.Return(t.Context(), mine, fmt.Sprint("something else, ", n)), nil)
	}
	want(t, "attempt", a.Attempt, mostClaims)
	if got := b.part(t, "r1"); !strings.HasPrefix(got, "assembling interrupted 100") {
		t.Errorf("r1 = %s; want it interrupted", got)
	}
}

// A part that no box can carry out ends as failed, once a device has given it back three times for the same reason; it
// gets it again only when all others that fit have tried.
func tryReturnedForTheSameReason(t *testing.T, b *bench) {
	one, two := b.join(t, "one", offer("a")), b.join(t, "two", offer("b"))
	b.add(t, run("r1", ""))
	n := 0
	giveBack := func(box Box, why string) {
		t.Helper()
		n++
		a, mine := b.claim(t, box, fmt.Sprint(n))
		want(t, "part", a.Part, "r1")
		wantErr(t, "Return()", b.Return(t.Context(), mine, why), nil)
	}
	giveBack(one, "busy") // which does not count
	for range mostSame - 1 {
		giveBack(two, "this page is not reached")
		giveBack(one, "this page is not reached")
	}
	if got := b.part(t, "r1"); !strings.HasPrefix(got, "running queued 5") {
		t.Errorf("r1 = %s; want it to wait", got)
	}
	giveBack(two, "this page is not reached")
	if got := b.part(t, "r1"); !strings.HasPrefix(got, "assembling failed 6") {
		t.Errorf("r1 = %s; want it failed", got)
	}
	r, err := b.Run(t.Context(), "r1")
	if err != nil || r.Parts[0].Outcome == nil || r.Parts[0].Outcome.Error != "this page is not reached" {
		t.Errorf("r1 = %+v, %v; want the boxes' reason", r, err)
	}
}

// A cancelled run ends its waiting parts at once, and tells the boxes that have the others.
func tryCancelled(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	b.add(t, run("r1", "", fleet.Need{}, fleet.Need{}, fleet.Need{Boxes: []string{"nobody"}}))
	a, mine := b.claim(t, one, "1")
	want(t, "part", a.Part, "r1.01")
	wantErr(t, "CancelRun()", b.CancelRun(t.Context(), "r1"), nil)
	wantErr(t, "CancelRun(again)", b.CancelRun(t.Context(), "r1"), nil)
	wantErr(t, "CancelRun(unknown)", b.CancelRun(t.Context(), "r9"), store.ErrNotFound)
	r, err := b.Run(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "states", []string{r.State, r.Parts[0].State, r.Parts[1].State, r.Parts[2].State}, "[running running interrupted interrupted]")
	if n, err := b.Renew(t.Context(), mine, fleet.Progress{}); err != nil || !n.Cancel {
		t.Errorf("Renew() = %+v, %v; want it to tell of the cancellation", n, err)
	}
	wantErr(t, "End()", b.End(t.Context(), mine, fleet.Outcome{State: store.StateInterrupted}), nil)
	want(t, "r1", b.part(t, "r1"), "assembling interrupted 1 one/a interrupted 0")
	// A part of a cancelled run that its box gives back does not wait again.
	for _, how := range []string{"vanished", "returned"} {
		b.add(t, run("r-"+how, ""))
		_, mine = b.claim(t, one, how)
		wantErr(t, "CancelRun()", b.CancelRun(t.Context(), "r-"+how), nil)
		if how == "returned" {
			wantErr(t, "Return()", b.Return(t.Context(), mine, "stopped"), nil)
		} else {
			b.expire(t)
		}
		want(t, how, b.part(t, "r-"+how)[:25], "assembling interrupted 1 ")
	}
}

// Parts are given by priority, reference runs first, and in turns between series.
func tryTurns(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	add := func(id, series string, priority int, reference string) {
		r := run(id, series)
		r.Priority, r.Reference = priority, reference
		if reference != "" {
			r.Parts[0].Need.Reference = true
		}
		b.add(t, r)
	}
	for n := range 3 {
		add(fmt.Sprintf("x%d", n), "x", 0, "")
	}
	for n := range 2 {
		add(fmt.Sprintf("y%d", n), "y", 2, "")
	}
	add("low", "z", 3, "")
	add("high", "z", 1, "")
	add("ref", "z", 0, "one/a")
	var order []string
	next := func() {
		a, l := b.claim(t, one, fmt.Sprint(len(order)))
		if a.Part == "" {
			t.Fatalf("Claim() after %v: nothing", order)
		}
		order = append(order, a.Part)
		b.mustEnd(t, l)
	}
	for range 5 {
		next()
	}
	add("y2", "y", 0, "") // y has had as much as x: it does not go behind all of x
	add("w0", "w", 0, "") // new: its turn is now
	for range 5 {
		next()
	}
	want(t, "order", order, "[ref high x0 y0 x1 y1 w0 x2 y2 low]")
}

// A box whose numbers cannot be trusted gets only runs that measure it.
func tryHealth(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	b.add(t, run("r1", ""))
	for _, health := range []string{fleet.HealthBad, fleet.HealthMaintenance} {
		wantErr(t, "SetHealth()", b.SetHealth(t.Context(), one.ID, health, "drift"), nil)
		a, _ := b.claim(t, one, health)
		want(t, "part while "+health, a.Part, "")
		r := run("ref-"+health, "", fleet.Need{Reference: true})
		r.Reference = "one/a"
		b.add(t, r)
		a, l := b.claim(t, one, health+"2")
		want(t, "part while "+health, a.Part, "ref-"+health)
		b.mustEnd(t, l)
	}
	if b.SetHealth(t.Context(), one.ID, "fine", "") == nil {
		t.Error("SetHealth(fine) = nil; want an error")
	}
	wantErr(t, "SetHealth()", b.SetHealth(t.Context(), one.ID, fleet.HealthDrifting, ""), nil)
	// A claim that looked before the box was kept from runs takes none.
	c := Claim{BoxID: one.ID, Request: "late", Free: []string{"a"}}
	all, err := b.look(t.Context(), c)
	if err != nil || len(all) != 1 {
		t.Fatalf("look() = %+v, %v; want the run that waits", all, err)
	}
	wantErr(t, "SetHealth()", b.SetHealth(t.Context(), one.ID, fleet.HealthMaintenance, ""), nil)
	wantErr(t, "take() after the look", b.update(t.Context(), "claim", func(tx *tx) error {
		box, err := tx.holdBox(t.Context(), one.ID)
		if err == nil {
			_, err = b.take(t.Context(), tx, box, c, all)
		}
		return err
	}), ErrNothing)
	wantErr(t, "SetHealth()", b.SetHealth(t.Context(), one.ID, fleet.HealthDrifting, ""), nil)
	a, _ := b.claim(t, one, "x")
	want(t, "part while drifting", a.Part, "r1")
}

// tryManyAtOnce lets boxes claim and end at the same time: no part is given twice.
func tryManyAtOnce(t *testing.T, b *bench) { crowd(t, b, []*Ledger{b.Ledger}) }

// tryTwoHeads does so through two heads on one database.
func tryTwoHeads(t *testing.T, b *bench) {
	crowd(t, b, []*Ledger{b.Ledger, openLedger(t, b.database, b.clock)})
}

func crowd(t *testing.T, b *bench, heads []*Ledger) {
	const boxes, runs = 6, 10
	var all []Box
	for n := range boxes {
		all = append(all, b.join(t, fmt.Sprintf("box-%d", n), offer("a", "b")))
	}
	for n := range runs {
		b.add(t, run(fmt.Sprintf("r%02d", n), fmt.Sprint(n%3), fleet.Need{}, fleet.Need{Devices: []string{"b"}}))
	}
	var mu sync.Mutex
	var given []string
	var wait sync.WaitGroup
	for n := range boxes {
		head := heads[n%len(heads)]
		for _, device := range []string{"a", "b"} {
			wait.Go(func() {
				for i := 0; ; i++ {
					a, err := head.Claim(t.Context(), Claim{all[n].ID, fmt.Sprint(device, i), []string{device}})
					if errors.Is(err, ErrNothing) {
						return
					}
					if err == nil {
						mu.Lock()
						given = append(given, a.Part)
						mu.Unlock()
						err = head.End(t.Context(), Lease{all[n].ID, a.Part, a.Token}, fleet.Outcome{State: store.StateDone})
					}
					if err != nil {
						t.Errorf("box %d: %v", n, err)
						return
					}
				}
			})
		}
	}
	wait.Wait()
	slices.Sort(given)
	if len(given) != 2*runs || len(slices.Compact(given)) != 2*runs {
		t.Errorf("%d parts were given: %v; want each of %d once", len(given), given, 2*runs)
	}
	left, err := b.Runs(t.Context(), Filter{States: []string{store.StateQueued, store.StateRunning}})
	if err != nil || len(left) > 0 {
		t.Errorf("Runs() = %+v, %v; want none that goes on", left, err)
	}
}

// After the clock was put back, because it was wrong before, a lease lasts no longer than any other: a box that goes on
// keeps its part, the part of one that has gone is given to another, and nobody counts as seen in the future.
func tryClockPutBack(t *testing.T, b *bench) {
	one, two := b.join(t, "one", offer("a")), b.join(t, "two", offer("a"))
	b.add(t, run("r1", ""))
	b.add(t, run("r2", ""))
	_, gone := b.claim(t, one, "1")
	_, stays := b.claim(t, two, "1")
	wantErr(t, "Sweep()", b.Sweep(t.Context()), nil)
	b.clock.move(-5 * time.Hour)
	wantErr(t, "Sweep()", b.Sweep(t.Context()), nil)
	for range beats + 2 {
		b.clock.move(lease / beats)
		if _, err := b.Renew(t.Context(), stays, fleet.Progress{}); err != nil {
			t.Fatalf("Renew() = %v; want nil", err)
		}
		wantErr(t, "Sweep()", b.Sweep(t.Context()), nil)
	}
	want(t, "the part of the box that has gone", b.part(t, gone.Part), "running queued 1 / -1@one")
	want(t, "the part of the box that goes on", b.part(t, stays.Part), "running running 1 two/a")
	for _, box := range []Box{one, two} {
		got, err := b.Box(t.Context(), box.Name)
		if err != nil || got.Seen.After(b.clock.now()) {
			t.Errorf("Box(%s) was seen at %v, %v; want no later than now, %v", box.Name, got.Seen, err, b.clock.now())
		}
	}
	b.clock.move(100 * lease) // no head lives for a while: leases last anew, as ever
	again := openLedger(t, b.database, b.clock)
	wantErr(t, "Sweep()", again.Sweep(t.Context()), nil)
	want(t, "after an outage", b.part(t, stays.Part), "running running 1 two/a")
}

// Leases do not run out while no head is there to renew them.
func tryOutage(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a"))
	b.add(t, run("r1", ""))
	_, mine := b.claim(t, one, "1")
	wantErr(t, "Sweep()", b.Sweep(t.Context()), nil)
	b.clock.move(100 * lease)
	again := openLedger(t, b.database, b.clock)
	wantErr(t, "Sweep()", again.Sweep(t.Context()), nil)
	b.clock.move(lease / beats)
	wantErr(t, "Sweep()", again.Sweep(t.Context()), nil)
	want(t, "r1", b.part(t, "r1"), "running running 1 one/a")
	_, err := again.Renew(t.Context(), mine, fleet.Progress{})
	wantErr(t, "Renew()", err, nil)
	b.clock.move(10 * lease)                         // the head lives on, but could not work, as without its database
	wantErr(t, "Sweep()", b.Sweep(t.Context()), nil) // the first afterwards
	want(t, "r1", b.part(t, "r1"), "running running 1 one/a")
	b.expire(t)
	want(t, "r1", b.part(t, "r1"), "running queued 1 / -1@one")
}
