package ledger

import (
	"database/sql"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger/pgtest"
	"eidetic/internal/keep/store"
	"eidetic/internal/rigs/testlab"
)

// update writes the databases of the present version to testdata: do so before a release, under the version's name.
var update = flag.Bool("update", false, "write testdata/v1.db and testdata/v1.sql")

// fill puts into a ledger what every later version must be able to go on with.
func fill(t *testing.T, b *bench) {
	one := b.join(t, "one", offer("a", "b"))
	b.add(t, run("ended", "x"))
	_, l := b.claim(t, one, "q0")
	b.mustEnd(t, l, file("run.json"))
	b.add(t, run("going", "x", fleet.Need{}, fleet.Need{Boxes: []string{"two"}}))
	a, l := b.claim(t, one, "q1")
	want(t, "part", a.Part, "going.01")
	wantErr(t, "Hold()", b.Hold(t.Context(), l, []fleet.File{file("trials/001/trial.json")}), nil)
	b.add(t, run("waiting", "y"))
	wantErr(t, "AddReading()", b.AddReading(t.Context(), one.ID, "a", []byte(`{}`)), nil)
}

// goOn goes on with what fill left.
func goOn(t *testing.T, b *bench) {
	one, err := b.Box(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the ended run", b.part(t, "ended"), "assembling done 1 one/a done 1")
	a, l := b.claim(t, one, "q1")
	want(t, "the repeated claim", a.Part+a.Device, "going.01a")
	b.mustEnd(t, l, file("trials/001/trial.json"))
	a, l = b.claim(t, one, "q2")
	want(t, "the next claim", a.Part, "waiting")
	b.mustEnd(t, l)
	two := b.join(t, "two", offer("a"))
	a, l = b.claim(t, two, "q1")
	want(t, "the new box's claim", a.Part, "going.02")
	b.mustEnd(t, l)
	left, err := b.Runs(t.Context(), Filter{States: []string{stateAssembling}})
	if err != nil || len(left) != 3 {
		t.Errorf("Runs(assembling) = %v, %v; want three", ids(left), err)
	}
	if r, err := b.Readings(t.Context(), one.ID, "a", 1); err != nil || len(r) != 1 {
		t.Errorf("Readings() = %s, %v; want one", r, err)
	}
}

// TestFleetReleasedSQLite goes on with a database that a released version wrote.
func TestFleetReleasedSQLite(t *testing.T) {
	fixture := filepath.Join("testdata", "v1.db")
	b := &bench{clock: newClock(), database: sqliteFile(t)}
	if *update {
		b.Ledger = openLedger(t, b.database, b.clock)
		fill(t, b)
		_, err := b.write.ExecContext(t.Context(), `VACUUM`)
		image, errRead := []byte(nil), b.Close()
		if err == nil && errRead == nil {
			image, errRead = os.ReadFile(b.database)
		}
		if err := errors.Join(err, errRead, os.WriteFile(fixture, image, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	image, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.database, image, 0o600); err != nil {
		t.Fatal(err)
	}
	b.Ledger = openLedger(t, b.database, b.clock)
	goOn(t, b)
}

// TestFleetReleasedPostgres does so with PostgreSQL.
func TestFleetReleasedPostgres(t *testing.T) {
	testlab.Long(t, "another database")
	server := startPostgres(t)
	fixture := filepath.Join("testdata", "v1.sql")
	if *update {
		b := &bench{clock: newClock(), database: emptyDatabase(t, server)}
		b.Ledger = openLedger(t, b.database, b.clock)
		fill(t, b)
		dump := exec.CommandContext(t.Context(), filepath.Join(pgtest.Programs(), "pg_dump"), "--inserts", "--no-owner", b.database)
		out, err := dump.Output()
		if err != nil {
			t.Fatal(err)
		}
		var lines []string // without psql's own commands
		for line := range strings.Lines(string(out)) {
			if !strings.HasPrefix(line, `\`) {
				lines = append(lines, line)
			}
		}
		if err := os.WriteFile(fixture, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{clock: newClock(), database: emptyDatabase(t, server)}
	db, err := sql.Open("pgx", b.database)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), string(text))
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	b.Ledger = openLedger(t, b.database, b.clock)
	goOn(t, b)
}

// A step that fails leaves the database as it was, and a newer version's database is refused.
func TestFleetSteps(t *testing.T) {
	b := &bench{clock: newClock(), database: sqliteFile(t)}
	b.Ledger = openLedger(t, b.database, b.clock)
	step := func(all ...string) error {
		return b.update(t.Context(), "migrate", func(tx *tx) error { return tx.migrate(t.Context(), all) })
	}
	if err := step(append(steps(), `CREATE TABLE fleet_new (n BIGINT); SELECT wrong FROM nothing`)...); err == nil {
		t.Error("a wrong step is no error")
	}
	wantErr(t, "the step again, put right", step(append(steps(), `CREATE TABLE fleet_new (n BIGINT)`)...), nil)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Config{Database: b.database})
	if err == nil || !strings.Contains(err.Error(), "a newer one wrote it") || errors.Is(err, store.ErrNotFound) {
		t.Errorf("Open(a newer version's) = %v; want an error that says so", err)
	}
	if _, err := Open(t.Context(), Config{Database: "postgres://nobody:secret@/x?host=/nowhere"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("Open(no server) = %v; want an error without the password", err)
	}
}
