package ledger

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger/pgtest"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

// clock is a clock that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// bench is a ledger under test.
type bench struct {
	*Ledger
	clock    *clock
	database string
}

const lease = 3 * time.Minute

// openLedger opens a ledger whose clock the test moves.
func openLedger(t testing.TB, database string, c *clock) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), Config{Database: database, Lease: lease, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// sqliteFile is the path of a database that is not there yet.
func sqliteFile(t testing.TB) string { return filepath.Join(t.TempDir(), "fleet.db") }

// startPostgres starts a server of the test's own, or skips the test.
func startPostgres(t testing.TB) *pgtest.Cluster {
	t.Helper()
	testlab.NeedNamespaces(t)
	testlab.Need(t, pgtest.Programs() != "", "PostgreSQL's server; install it with: make deps")
	c, err := pgtest.Start(t.Context(), testlab.TempDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestFleetLedger is what a ledger promises, on SQLite and on PostgreSQL.
func TestFleetLedger(t *testing.T) {
	cases := []struct {
		name string
		try  func(*testing.T, *bench)
	}{
		{"lease", tryLease},
		{"expired", tryExpired},
		{"late", tryLate},
		{"repeated", tryRepeated},
		{"exhausted", tryExhausted},
		{"returned", tryReturned},
		{"returned for the same reason", tryReturnedForTheSameReason},
		{"cancelled", tryCancelled},
		{"turns", tryTurns},
		{"health", tryHealth},
		{"waits", tryWaits},
		{"many at once", tryManyAtOnce},
		{"two heads", tryTwoHeads},
		{"outage", tryOutage},
		{"clock put back", tryClockPutBack},
		{"codes", tryCodes},
		{"boxes", tryBoxes},
		{"adding", tryAdding},
		{"lists", tryLists},
		{"assembling", tryAssembling},
		{"assembling fails", tryAssemblingFails},
		{"assembling again", tryAssemblingAgain},
		{"wants", tryWants},
		{"readings", tryReadings},
		{"swap", trySwap},
		{"housekeeping", tryHousekeeping},
	}
	all := func(t *testing.T, database func() string) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				b := &bench{clock: newClock(), database: database()}
				b.Ledger = openLedger(t, b.database, b.clock)
				c.try(t, b)
			})
		}
	}
	t.Run("sqlite", func(t *testing.T) { all(t, func() string { return sqliteFile(t) }) })
	t.Run("postgres", func(t *testing.T) {
		testlab.Long(t, "another database")
		server := startPostgres(t)
		all(t, func() string { return emptyDatabase(t, server) })
	})
}

func emptyDatabase(t testing.TB, server *pgtest.Cluster) string {
	t.Helper()
	address, err := server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func offer(devices ...string) fleet.Offer {
	o := fleet.Offer{Software: "1", Cores: 2}
	for _, name := range devices {
		o.Devices = append(o.Devices, fleet.OfferedDevice{Name: name, Kind: "virtual", Ready: true, Browsers: []string{"chromium"}})
	}
	return o
}

// join makes a box of the fleet.
func (b *bench) join(t testing.TB, name string, o fleet.Offer) Box {
	t.Helper()
	code, err := b.NewCode(t.Context(), "test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	box, err := b.Join(t.Context(), code, name, "print-"+name, o)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func run(id, series string, parts ...fleet.Need) NewRun {
	r := NewRun{ID: id, Series: series, Plan: lab.Plan{Name: id, Trials: 1}}
	if len(parts) == 0 {
		parts = []fleet.Need{{}}
	}
	for _, n := range parts {
		r.Parts = append(r.Parts, NewPart{Plan: lab.Plan{Name: id, Trials: 1}, Need: n})
	}
	return r
}

func (b *bench) add(t testing.TB, r NewRun) {
	t.Helper()
	if _, err := b.AddRuns(t.Context(), r); err != nil {
		t.Fatalf("AddRuns(%s) = %v; want nil", r.ID, err)
	}
}

// claim claims a part for all devices of a box.
func (b *bench) claim(t testing.TB, box Box, request string) (fleet.Assignment, Lease) {
	t.Helper()
	c := Claim{BoxID: box.ID, Request: request}
	for _, d := range box.Offer.Devices {
		c.Free = append(c.Free, d.Name)
	}
	a, err := b.Claim(t.Context(), c)
	if err != nil && !errors.Is(err, ErrNothing) {
		t.Fatalf("Claim(%s) = %v; want a part or ErrNothing", request, err)
	}
	return a, Lease{box.ID, a.Part, a.Token}
}

// expire moves the clock until a lease that is not renewed has run out, while a head lives.
func (b *bench) expire(t testing.TB) {
	t.Helper()
	for range beats + 2 {
		b.clock.move(lease / beats)
		if err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) mustEnd(t testing.TB, l Lease, files ...fleet.File) {
	t.Helper()
	if err := b.End(t.Context(), l, fleet.Outcome{State: store.StateDone, Files: files}); err != nil {
		t.Fatalf("End(%s) = %v; want nil", l.Part, err)
	}
}

// part describes the first part of a run in a line.
func (b *bench) part(t testing.TB, run string) string {
	t.Helper()
	r, err := b.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	p := r.Parts[0]
	out := fmt.Sprintf("%s %s %d %s/%s", r.State, p.State, p.Attempt, p.Box, p.Device)
	for _, a := range p.Attempts {
		out += fmt.Sprintf(" -%d@%s", a.Attempt, a.Box)
	}
	if p.Outcome != nil {
		out += fmt.Sprintf(" %s %d", p.Outcome.State, len(p.Outcome.Files))
	}
	return out
}

func file(path string) fleet.File {
	return fleet.File{Path: path, Bytes: 1, SHA256: hashOf(path)}
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s = %s; want %s", what, g, w)
	}
}

func wantErr(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || want == nil && got != nil {
		t.Errorf("%s = %v; want %v", what, got, want)
	}
}
