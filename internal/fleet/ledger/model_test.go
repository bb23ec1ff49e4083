package ledger

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
)

// model is what boxes and people have done, and what they were told.
type model struct {
	*Ledger
	tb       testing.TB
	clock    *clock
	database string
	boxes    []*modelBox
	runs     int
	parts    map[string]*modelPart
	late     []call // under way for long
}

// modelBox is a box that believes what it is told.
type modelBox struct {
	Box
	requests int
	has      map[string]Lease // by device
	old      []Lease          // that it had once
}

// modelPart is what is known of a part.
type modelPart struct {
	newest  int            // attempt that was handed out
	tokens  map[string]int // attempts
	endedBy string         // token whose end was accepted
}

// call is a call of a box, which may be carried out late and more than once.
type call func(t *rapid.T)

// send carries a call out, as a network does: it may be lost on its way, its answer may be lost, it may come twice, or
// late.
func (m *model) send(t *rapid.T, do func(t *rapid.T) (answer func())) {
	nobody := func(t *rapid.T) { do(t) }
	switch rapid.SampledFrom([]string{"well", "well", "well", "lost", "answer lost", "twice", "late"}).Draw(t, "network") {
	case "well":
		do(t)()
	case "answer lost":
		do(t)
	case "twice":
		do(t)()
		do(t)
	case "late":
		m.late = append(m.late, nobody)
	}
}

func (m *model) ctx() context.Context { return context.Background() }

// told remembers which token an assignment has. The same attempt has the same token, however often it is told.
func (m *model) told(t *rapid.T, a fleet.Assignment) {
	p := m.parts[a.Part]
	if p == nil {
		t.Fatalf("part %s was given, which nobody added", a.Part)
	}
	if n, ok := p.tokens[a.Token]; ok && n != a.Attempt {
		t.Fatalf("part %s has the token of attempt %d for attempt %d", a.Part, n, a.Attempt)
	}
	if p.endedBy != "" {
		t.Fatalf("part %s was given after its end", a.Part)
	}
	p.tokens[a.Token] = a.Attempt
	p.newest = max(p.newest, a.Attempt)
}

func (m *model) add(t *rapid.T) {
	m.runs++
	needs := []fleet.Need{{}, {Devices: []string{"a"}}, {Boxes: []string{"one"}}, {Boxes: []string{"two"}, Devices: []string{"b"}}}
	r := run(fmt.Sprintf("r%d", m.runs), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "series"),
		rapid.SliceOfN(rapid.SampledFrom(needs), 1, 3).Draw(t, "needs")...)
	r.Priority = rapid.IntRange(1, 3).Draw(t, "priority")
	r.Once = store.Once{Key: r.ID, Request: r.ID}
	for i := range r.Parts {
		m.parts[partID(r.ID, i, len(r.Parts))] = &modelPart{tokens: map[string]int{}}
	}
	for range rapid.IntRange(1, 2).Draw(t, "times") {
		if id, err := m.AddRuns(m.ctx(), r); err != nil || id != r.ID {
			t.Fatalf("AddRuns(%s) = %q, %v; want it, nil", r.ID, id, err)
		}
	}
}

func (m *model) claim(t *rapid.T) {
	b := rapid.SampledFrom(m.boxes).Draw(t, "box")
	c := Claim{BoxID: b.ID, Request: fmt.Sprint(b.requests)}
	for _, d := range b.Offer.Devices {
		if _, ok := b.has[d.Name]; !ok {
			c.Free = append(c.Free, d.Name)
		}
	}
	m.send(t, func(t *rapid.T) func() {
		a, err := m.Claim(m.ctx(), c)
		if errors.Is(err, ErrNothing) {
			return func() {}
		}
		if err != nil {
			t.Fatalf("Claim(%+v) = %v", c, err)
		}
		m.told(t, a)
		return func() {
			b.requests++
			b.has[a.Device] = Lease{b.ID, a.Part, a.Token}
		}
	})
}

// lease chooses a lease that a box has or had.
func (m *model) lease(t *rapid.T) (b *modelBox, l Lease, ok bool) {
	b = rapid.SampledFrom(m.boxes).Draw(t, "box")
	var all []Lease
	for _, d := range b.Offer.Devices {
		if l, ok := b.has[d.Name]; ok {
			all = append(all, l, l)
		}
	}
	all = append(all, b.old...)
	if len(all) == 0 {
		return b, l, false
	}
	return b, rapid.SampledFrom(all).Draw(t, "lease"), true
}

func (b *modelBox) drop(l Lease) {
	for device, has := range b.has {
		if has == l {
			delete(b.has, device)
			b.old = append(b.old, l)
		}
	}
}

// checkRight fails unless a call that was accepted came from the newest attempt of a part that has not ended otherwise.
func (m *model) checkRight(t *rapid.T, what string, l Lease) {
	p := m.parts[l.Part]
	if p.tokens[l.Token] != p.newest {
		t.Fatalf("%s of attempt %d of %s was accepted, and %d is the newest", what, p.tokens[l.Token], l.Part, p.newest)
	}
	if p.endedBy != "" && p.endedBy != l.Token {
		t.Fatalf("%s of %s was accepted after another attempt had ended it", what, l.Part)
	}
}

func (m *model) renew(t *rapid.T) {
	b, l, ok := m.lease(t)
	if !ok {
		return
	}
	m.send(t, func(t *rapid.T) func() {
		_, err := m.Renew(m.ctx(), l, fleet.Progress{})
		switch {
		case err == nil:
			m.checkRight(t, "Renew", l)
		case errors.Is(err, ErrLost):
			return func() { b.drop(l) }
		default:
			t.Fatalf("Renew(%+v) = %v", l, err)
		}
		return func() {}
	})
}

func (m *model) end(t *rapid.T) {
	b, l, ok := m.lease(t)
	if !ok {
		return
	}
	m.send(t, func(t *rapid.T) func() {
		err := m.End(m.ctx(), l, fleet.Outcome{State: store.StateDone, Error: l.Token})
		switch {
		case err == nil:
			m.checkRight(t, "End", l)
			m.parts[l.Part].endedBy = l.Token
		case !errors.Is(err, ErrLost):
			t.Fatalf("End(%+v) = %v", l, err)
		}
		return func() { b.drop(l) }
	})
}

func (m *model) giveBack(t *rapid.T) {
	b, l, ok := m.lease(t)
	if !ok {
		return
	}
	m.send(t, func(t *rapid.T) func() {
		err := m.Return(m.ctx(), l, "no")
		switch {
		case err == nil:
			m.checkRight(t, "Return", l)
		case !errors.Is(err, ErrLost):
			t.Fatalf("Return(%+v) = %v", l, err)
		}
		return func() { b.drop(l) }
	})
}

// arrive carries out a call that was under way for long; nobody waits for its answer.
func (m *model) arrive(t *rapid.T) {
	if len(m.late) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.late)-1).Draw(t, "late call")
	do := m.late[i]
	m.late = slices.Delete(m.late, i, i+1)
	do(t)
}

func (m *model) tick(t *rapid.T) {
	for range rapid.IntRange(1, beats+1).Draw(t, "tenths of a lease") {
		m.clock.move(lease/beats + 1)
		if err := m.Sweep(m.ctx()); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *model) restart(t *rapid.T) {
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.clock.move(time.Duration(rapid.IntRange(0, 10).Draw(t, "minutes")) * time.Minute)
	m.reopen(t)
}

func (m *model) reopen(t *rapid.T) {
	l, err := Open(m.ctx(), Config{Database: m.database, Lease: lease, Now: m.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	m.Ledger = l
}

// crash is a box that forgets everything. Calls that it made before may still be under way.
func (m *model) crash(t *rapid.T) {
	b := rapid.SampledFrom(m.boxes).Draw(t, "box")
	for _, d := range b.Offer.Devices {
		if l, ok := b.has[d.Name]; ok {
			b.drop(l)
		}
	}
	b.has = map[string]Lease{}
	b.requests += 1000
}

func (m *model) cancel(t *rapid.T) {
	if m.runs == 0 {
		return
	}
	if err := m.CancelRun(m.ctx(), fmt.Sprintf("r%d", rapid.IntRange(1, m.runs).Draw(t, "run"))); err != nil {
		t.Fatal(err)
	}
}

// check holds the database against the model.
func (m *model) check(t *rapid.T) {
	for id, p := range m.parts {
		var state, outcome string
		var attempt, live int
		if err := m.reader().row(m.ctx(), `SELECT state, outcome, attempt, (SELECT count(*) FROM fleet_attempts a WHERE a.part = p.id AND a.state = 'live')
			FROM fleet_parts p WHERE id = ?`, id).Scan(&state, &outcome, &attempt, &live); err != nil {
			t.Fatalf("part %s: %v", id, err)
		}
		if (live == 1) != (state == store.StateRunning) || live > 1 {
			t.Fatalf("part %s is %s and has %d live leases", id, state, live)
		}
		if p.endedBy != "" && outcome != text(fleet.Outcome{State: store.StateDone, Error: p.endedBy}) {
			t.Fatalf("part %s has the outcome %s; want that of the end that was accepted", id, outcome)
		}
	}
	var double int
	if err := m.reader().row(m.ctx(), `SELECT count(*) FROM (SELECT 1 AS x FROM fleet_attempts WHERE state = 'live' GROUP BY box, device HAVING count(*) > 1) AS d`).
		Scan(&double); err != nil || double > 0 {
		t.Fatalf("%d devices have two live leases (%v)", double, err)
	}
}

// drain lets the boxes work without faults, and fails if a run does not end.
func (m *model) drain(t *rapid.T) {
	for range 4 * (len(m.parts) + 2) {
		for _, b := range m.boxes {
			for _, d := range b.Offer.Devices {
				b.requests++
				a, err := m.Claim(m.ctx(), Claim{b.ID, fmt.Sprint("drain", b.requests), []string{d.Name}})
				if errors.Is(err, ErrNothing) {
					continue
				}
				if err == nil {
					m.told(t, a)
					err = m.End(m.ctx(), Lease{b.ID, a.Part, a.Token}, fleet.Outcome{State: store.StateDone, Error: a.Token})
				}
				if err != nil {
					t.Fatal(err)
				}
				m.parts[a.Part].endedBy = a.Token
			}
		}
		m.clock.move(lease/beats + 1)
		if err := m.Sweep(m.ctx()); err != nil {
			t.Fatal(err)
		}
	}
	left, err := m.Runs(m.ctx(), Filter{States: []string{store.StateQueued, store.StateRunning}, Limit: 1000})
	if err != nil || len(left) > 0 {
		t.Fatalf("Runs() = %v, %v; want none that goes on", ids(left), err)
	}
	if all := assembled(m.tb, m.Ledger); len(all) != m.runs {
		t.Fatalf("%d of %d runs were assembled; want all", len(all), m.runs)
	}
}

// TestFleetModel interleaves calls of people and boxes, with a network that loses, doubles and delays them, with
// leases that run out, boxes that crash and heads that restart: no part has two live leases, no end is accepted
// but the newest attempt's and only once, and whatever fits a box ends in the end.
func TestFleetModel(t *testing.T) {
	dir := t.TempDir()
	if shm, err := os.MkdirTemp("/dev/shm", "fleet"); err == nil { // no disk is waited for
		t.Cleanup(func() { _ = os.RemoveAll(shm) })
		dir = shm
	}
	empty := filepath.Join(dir, "empty.db")
	b := &bench{clock: newClock(), database: empty}
	b.Ledger = openLedger(t, empty, b.clock)
	boxes := []Box{b.join(t, "one", offer("a", "b")), b.join(t, "two", offer("a", "b"))}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(empty)
	if err != nil {
		t.Fatal(err)
	}
	// Each check is some hundred transactions, which the race detector makes slow; more with -rapid.checks 1000.
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set("40"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
	}
	n, tb := 0, t
	rapid.Check(t, func(t *rapid.T) {
		n++
		m := &model{tb: tb, clock: newClock(), database: filepath.Join(dir, fmt.Sprintf("%d.db", n)), parts: map[string]*modelPart{}}
		if err := os.WriteFile(m.database, image, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, box := range boxes {
			m.boxes = append(m.boxes, &modelBox{Box: box, has: map[string]Lease{}})
		}
		m.reopen(t)
		defer func() {
			_ = m.Close()
			for _, suffix := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(m.database + suffix)
			}
		}()
		t.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"add":     m.add,
			"claim":   m.claim,
			"claim 2": m.claim,
			"renew":   m.renew,
			"end":     m.end,
			"return":  m.giveBack,
			"arrive":  m.arrive,
			"tick":    m.tick,
			"restart": m.restart,
			"crash":   m.crash,
			"cancel":  m.cancel,
		})
		m.drain(t)
		m.check(t)
	})
}
