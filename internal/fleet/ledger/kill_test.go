package ledger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
	"eidetic/internal/rigs/testlab"
)

const childVariable = "EIDETIC_TEST_FLEET_CHILD"

// TestFleetKilledHead kills a process (SIGKILL) that adds, claims and ends on SQLite, several times: what it had been
// told is there, and every run ends once.
func TestFleetKilledHead(t *testing.T) {
	if database := os.Getenv(childVariable); database != "" {
		childWorks(t, database)
		return
	}
	database := sqliteFile(t)
	told := map[string]string{} // by run or part, what was answered
	for round := range 4 {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestFleetKilledHead$")
		cmd.Env = append(os.Environ(), childVariable+"="+database, fmt.Sprintf("EIDETIC_TEST_ROUND=%d", round))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := testlab.Start(t, cmd); err != nil {
			t.Fatal(err)
		}
		var other []string
		lines := bufio.NewScanner(out)
		n := 0
		for lines.Scan() {
			what, id, ok := strings.Cut(lines.Text(), " ")
			if !ok || !strings.HasPrefix(what, "told:") {
				other = append(other, lines.Text())
				continue
			}
			told[id] = what
			if n++; n == 40+7*round {
				if err := cmd.Process.Kill(); err != nil { // in the middle of what comes next
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || n < 40 {
			t.Fatalf("the child ended by itself (%v), having said:\n%s", err, strings.Join(other, "\n"))
		}
	}
	c := newClock()
	b := &bench{Ledger: openLedger(t, database, c), clock: c, database: database}
	checkTold(t, b.Ledger, told)
	finish(t, b)
}

// childWorks adds, claims and ends until it is killed. It says what it was told.
func childWorks(t *testing.T, database string) {
	c := newClock()
	b := &bench{Ledger: openLedger(t, database, c), clock: c, database: database}
	round := os.Getenv("EIDETIC_TEST_ROUND")
	box := b.join(t, "box-"+round, offer("a", "b", "c"))
	churn(t.Context(), b.Ledger, box, round, func(what, id string) { fmt.Println("told:"+what, id) })
}

// churn adds, claims and ends parts until an error, and tells of each answer.
func churn(ctx context.Context, l *Ledger, box Box, name string, tell func(what, id string)) error {
	var wait sync.WaitGroup
	errs := make(chan error, 4)
	wait.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			id, err := l.AddRuns(ctx, run(fmt.Sprintf("%s-%d", name, n), name, fleet.Need{}, fleet.Need{}))
			if err != nil {
				errs <- err
				return
			}
			tell("added", id)
		}
	})
	for _, d := range box.Offer.Devices {
		wait.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				a, err := l.Claim(ctx, Claim{box.ID, fmt.Sprintf("%s-%d", d.Name, n), []string{d.Name}})
				if errors.Is(err, ErrNothing) {
					continue
				}
				if err == nil {
					tell("claimed", a.Part)
					err = l.End(ctx, Lease{box.ID, a.Part, a.Token}, fleet.Outcome{State: store.StateDone})
				}
				if err != nil {
					errs <- err
					return
				}
				tell("ended", a.Part)
			}
		})
	}
	wait.Wait()
	return <-errs
}

// checkTold holds the database against what callers were told of it.
func checkTold(t *testing.T, l *Ledger, told map[string]string) {
	t.Helper()
	for id, what := range told {
		var found int
		query := `SELECT count(*) FROM fleet_parts WHERE id = ? AND state = 'done'`
		switch what {
		case "told:added":
			query = `SELECT count(*) FROM fleet_runs WHERE id = ?`
		case "told:claimed":
			query = `SELECT count(*) FROM fleet_parts WHERE id = ? AND state IN ('running', 'done')`
		}
		if err := l.reader().row(t.Context(), query, id).Scan(&found); err != nil || found != 1 {
			t.Errorf("%s %s: found %d (%v); want it kept", what, id, found, err)
		}
	}
}

// finish lets a new box carry out what is left, and checks that every run ends once.
func finish(t *testing.T, b *bench) {
	t.Helper()
	box := b.join(t, "last", offer("a"))
	b.expire(t)
	for n := 0; ; n++ {
		a, l := b.claim(t, box, fmt.Sprint(n))
		if a.Part == "" {
			break
		}
		b.mustEnd(t, l)
	}
	var runs int
	if err := b.reader().row(t.Context(), `SELECT count(*) FROM fleet_runs`).Scan(&runs); err != nil {
		t.Fatal(err)
	}
	if all := assembled(t, b.Ledger); runs == 0 || len(all) != runs {
		t.Errorf("%d of %d runs were assembled; want all", len(all), runs)
	}
}

// assembled assembles what waits for it, and checks that each run is assembled once and has its place in the order of
// ends.
func assembled(t testing.TB, l *Ledger) []Run {
	t.Helper()
	var times []string
	l.assemble = func(_ context.Context, r Run) (Assembled, error) {
		times = append(times, r.ID)
		return Assembled{State: store.StateDone}, nil
	}
	for found := true; found; {
		var err error
		if found, err = l.assembleNext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var all []Run
	for seq := int64(0); ; {
		more, last, err := l.EndedSince(t.Context(), seq)
		if err != nil || last != seq+int64(len(more)) {
			t.Fatalf("EndedSince(%d) = %d runs, %d, %v; want places without a gap", seq, len(more), last, err)
		}
		if len(more) == 0 {
			break
		}
		all, seq = append(all, more...), last
	}
	want(t, "runs in the order in which they were assembled", ids(all), times)
	slices.Sort(times)
	if len(slices.Compact(times)) != len(all) {
		t.Errorf("%d runs were assembled %d times; want each once", len(times), len(all))
	}
	return all
}

// TestFleetKilledPostgres kills the server (SIGKILL of its first process) while two heads work with it, and starts it
// again: what was accepted is there, and the heads go on without being opened again.
func TestFleetKilledPostgres(t *testing.T) {
	testlab.Long(t, "another database")
	server := startPostgres(t)
	c := newClock()
	b := &bench{clock: c, database: emptyDatabase(t, server)}
	b.Ledger = openLedger(t, b.database, c)
	heads := []*Ledger{b.Ledger, openLedger(t, b.database, c)}
	boxes := []Box{b.join(t, "one", offer("a", "b")), b.join(t, "two", offer("a", "b"))}
	told := map[string]string{}
	for round := range 2 {
		var mu sync.Mutex
		enough := make(chan struct{})
		n := 0
		var wait sync.WaitGroup
		for i, head := range heads {
			wait.Go(func() {
				err := churn(t.Context(), head, boxes[i], fmt.Sprint("n", i, "x", round), func(what, id string) {
					mu.Lock()
					defer mu.Unlock()
					told[id] = "told:" + what
					if n++; n == 60 {
						close(enough)
					}
				})
				if err == nil || errors.Is(err, io.EOF) {
					t.Errorf("the head that lost its database says %v; want an error that tells of the database", err)
				}
			})
		}
		select {
		case <-enough:
		case <-time.After(testlab.Hang):
			t.Fatal("the heads do nothing")
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, head := range heads {
			if err := head.Sweep(t.Context()); err != nil {
				t.Errorf("Sweep() after the restart = %v, because of %v; want nil", err, errors.Unwrap(err))
			}
		}
	}
	checkTold(t, b.Ledger, told)
	finish(t, b)
}
