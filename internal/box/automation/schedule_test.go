package automation

import (
	"errors"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/store"
)

// tick lets the schedules look at the clock.
func (b *testBox) tick() {
	b.t.Helper()
	if _, err := b.fireAll(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// schedule makes or replaces a schedule.
func (b *testBox) schedule(name string, timing Timing) Schedule {
	b.t.Helper()
	old, err := b.Schedule(b.t.Context(), name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		b.t.Fatal(err)
	}
	s, err := b.PutSchedule(b.t.Context(), name, timing, "tester", Expect{Version: old.Revision})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// firings are what became of a schedule's times, the newest first.
func (b *testBox) firings(name string) []Firing {
	b.t.Helper()
	all, err := b.Firings(b.t.Context(), name, 500)
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// waiting is how many runs are in the queue.
func (b *testBox) waiting() int {
	b.t.Helper()
	all, err := b.jobs.Jobs(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return len(all)
}

func TestScheduleStartsRuns(t *testing.T) {
	b := newTestBox(t, nil)
	stop := b.carryOut()
	defer stop()
	b.put("checkout", planOf("https://a.test/"))
	made := b.clock.Now()
	s := b.schedule("often", Timing{Workflow: "checkout", Every: "2h"})
	if !s.Next.Equal(made.Add(2 * time.Hour)) {
		t.Errorf("next = %v; want two hours after %v", s.Next, made)
	}
	b.tick()
	b.clock.add(2*time.Hour - time.Second)
	b.tick()
	if n := b.waiting(); n != 0 {
		t.Fatalf("%d runs before the time; want none", n)
	}
	b.put("checkout", planOf("https://b.test/")) // the newest version is started
	b.clock.add(time.Second)
	b.tick()
	b.tick()
	id := <-b.runner.started
	all := b.firings("often")
	if len(all) != 1 || all[0].State != FiringRun || all[0].Run != id || all[0].Missed != 0 || !all[0].Due.Equal(made.Add(2*time.Hour)) {
		t.Fatalf("firings = %+v; want one, with the run %s", all, id)
	}
	// The run before goes on: this time is skipped, and says so.
	b.clock.add(2 * time.Hour)
	b.tick()
	if all = b.firings("often"); len(all) != 2 || all[0].State != FiringSkipped || all[0].Run != id || !strings.Contains(all[0].Reason, "still running") {
		t.Fatalf("firings = %+v; want the second skipped, because of the first's run", all)
	}
	b.end(store.StateDone)
	run, err := b.runs.Run(id)
	if err != nil || run.Plan.From == nil || run.Plan.From.Schedule != "often" || run.Plan.From.Version != 2 {
		t.Errorf("the run came from %+v, %v; want the schedule and version 2", run.Plan.From, err)
	}
	b.clock.add(2 * time.Hour)
	b.tick()
	second := <-b.runner.started
	b.end(store.StateDone)
	if all = b.firings("often"); all[0].Run != second || second == id {
		t.Errorf("firings = %+v; want another run after the first has ended", all)
	}
	if err := b.RemoveWorkflow(t.Context(), "checkout", Expect{Any: true}); !errors.Is(err, ErrInUse) {
		t.Errorf("RemoveWorkflow() that a schedule starts = %v; want ErrInUse", err)
	}
	if err := b.RemoveSchedule(t.Context(), "often", Expect{Any: true}); err != nil || len(b.firings("often")) != 0 {
		t.Errorf("RemoveSchedule() = %v, %d firings are left", err, len(b.firings("often")))
	}
}

// Times that passed while the box was off are made up for by one run, which says for how many.
func TestMissedTimesAreOneRun(t *testing.T) {
	b := newTestBox(t, nil)
	b.put("checkout", planOf("https://a.test/"))
	b.schedule("nightly", Timing{Workflow: "checkout", Cron: "30 2 * * *", Zone: "Europe/Berlin"})
	b.clock.add(5 * 24 * time.Hour) // off
	b.restart()
	b.tick()
	b.tick()
	all := b.firings("nightly")
	if len(all) != 1 || all[0].State != FiringRun || all[0].Missed != 4 || !all[0].Due.Equal(at(t, "2026-11-07T01:30:00Z")) || b.waiting() != 1 {
		t.Errorf("firings = %+v, %d runs; want one run for five times, of the last", all, b.waiting())
	}
	s, err := b.Schedule(t.Context(), "nightly")
	if err != nil || !s.Next.Equal(at(t, "2026-11-08T01:30:00Z")) {
		t.Errorf("next = %v, %v; want the night after", s.Next, err)
	}
}

// A process that ends between the decision and the queue, or between the queue and the note of
// it, starts the run once.
func TestKilledBetweenDecisionAndRun(t *testing.T) {
	b := newTestBox(t, nil)
	b.put("checkout", planOf("https://a.test/"))
	b.schedule("often", Timing{Workflow: "checkout", Every: "2h"})
	rows, err := b.schedules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.clock.add(2 * time.Hour)
	if _, err := b.fire(t.Context(), rows[0]); err != nil { // decided, and killed
		t.Fatal(err)
	}
	b.restart()
	b.tick()
	all := b.firings("often")
	if len(all) != 1 || all[0].State != FiringRun || b.waiting() != 1 {
		t.Fatalf("firings = %+v, %d runs; want one of each", all, b.waiting())
	}
	if _, err := b.db.Exec(`UPDATE firings SET state = 'waiting', run = ''`); err != nil { // queued, and killed before that was noted
		t.Fatal(err)
	}
	b.restart()
	b.tick()
	if again := b.firings("often"); len(again) != 1 || again[0].Run != all[0].Run || b.waiting() != 1 {
		t.Errorf("firings = %+v, %d runs; want the run %s alone", again, b.waiting(), all[0].Run)
	}
}

func TestClockSteps(t *testing.T) {
	b := newTestBox(t, nil)
	b.put("checkout", planOf("https://a.test/"))
	began := b.clock.Now()
	b.schedule("often", Timing{Workflow: "checkout", Every: "2h"})
	next := func() time.Time {
		t.Helper()
		s, err := b.Schedule(t.Context(), "often")
		if err != nil {
			t.Fatal(err)
		}
		return *s.Next
	}
	b.clock.set(began.Add(2 * time.Hour))
	b.tick()
	// A time server puts the clock back by a second: the time that was dealt with is not due again.
	b.clock.set(began.Add(2*time.Hour - time.Second))
	b.tick()
	b.clock.set(began.Add(2 * time.Hour))
	b.tick()
	if all := b.firings("often"); len(all) != 1 || !next().Equal(began.Add(4*time.Hour)) {
		t.Fatalf("after a second back: %+v, next %v; want one firing, next at 4 h", all, next())
	}
	// The clock was years ahead, and is put right: there is one run for what seemed to have
	// passed, and the times go on from now, not from then.
	if err := b.queue.Cancel(t.Context(), b.firings("often")[0].Run); err != nil {
		t.Fatal(err)
	}
	b.clock.set(began.Add(4 * 365 * 24 * time.Hour))
	b.tick()
	if all := b.firings("often"); len(all) != 2 || all[0].State != FiringRun || all[0].Missed < 17000 {
		t.Fatalf("years ahead: %+v; want one more run, for more than 17000 times", all)
	}
	b.clock.set(began.Add(3 * time.Hour))
	b.tick()
	b.tick()
	if all := b.firings("often"); len(all) != 3 || all[0].State != FiringClock || !strings.Contains(all[0].Reason, "put back") || !next().Equal(began.Add(4*time.Hour)) {
		t.Fatalf("put right: %+v, next %v; want a note, next at 4 h", all, next())
	}
	if err := b.queue.Cancel(t.Context(), b.firings("often")[1].Run); err != nil {
		t.Fatal(err)
	}
	b.clock.set(began.Add(4 * time.Hour))
	b.tick()
	if all := b.firings("often"); len(all) != 4 || all[0].State != FiringRun || all[0].Missed != 0 {
		t.Fatalf("after that: %+v; want a run at its time", all)
	}
	// A box without a battery starts in the past, and finds the time a little later.
	b.clock.set(began.Add(-1000 * time.Hour))
	b.restart()
	b.tick()
	b.clock.set(began.Add(7 * time.Hour))
	b.tick()
	runs := 0
	for _, f := range b.firings("often") {
		if f.State == FiringRun {
			runs++
		}
	}
	if runs > 4 || next().After(began.Add(8*time.Hour)) {
		t.Errorf("after a start in the past: %d runs, next %v; want at most one more, and next at 8 h or before: %+v", runs, next(), b.firings("often"))
	}
}

// After power comes back, the device appears a while after the schedule is due.
func TestRunThatTheQueueRefuses(t *testing.T) {
	b := newTestBox(t, nil)
	b.put("checkout", planOf("https://a.test/"))
	b.schedule("often", Timing{Workflow: "checkout", Every: "2m"})
	b.runner.setRefuse(errors.New("device laptop: not there yet"))
	b.clock.add(2 * time.Minute)
	b.tick()
	if all := b.firings("often"); len(all) != 1 || all[0].State != FiringWaits || !strings.Contains(all[0].Reason, "not there yet") {
		t.Fatalf("firings = %+v; want one that waits", all)
	}
	b.clock.add(2 * time.Minute) // due again meanwhile
	b.tick()
	if all := b.firings("often"); len(all) != 2 || all[0].State != FiringSkipped {
		t.Fatalf("firings = %+v; want the second skipped", all)
	}
	b.runner.setRefuse(nil)
	b.tick()
	if all := b.firings("often"); all[1].State != FiringRun || b.waiting() != 1 {
		t.Fatalf("firings = %+v; want the first's run, now that there is a device", all)
	}
	if err := b.queue.Cancel(t.Context(), b.firings("often")[1].Run); err != nil {
		t.Fatal(err)
	}
	b.runner.setRefuse(errors.New("device laptop: gone for good"))
	b.clock.add(2 * time.Minute)
	b.tick()
	b.clock.add(6 * time.Minute)
	b.tick()
	if all := b.firings("often"); all[1].State != FiringRefused || !strings.Contains(all[1].Reason, "gone for good") {
		t.Errorf("firings = %+v; want the last but one refused, with the reason", all)
	}
}

func TestPausedScheduleStartsNothing(t *testing.T) {
	b := newTestBox(t, nil)
	b.put("checkout", planOf("https://a.test/"))
	b.schedule("often", Timing{Workflow: "checkout", Every: "2h"})
	if s := b.schedule("often", Timing{Workflow: "checkout", Every: "2h", Paused: true}); s.Next != nil {
		t.Errorf("next of a paused schedule = %v; want none", s.Next)
	}
	b.clock.add(9 * time.Hour)
	b.tick()
	if all := b.firings("often"); len(all) != 0 {
		t.Errorf("firings while paused = %+v; want none", all)
	}
	s := b.schedule("often", Timing{Workflow: "checkout", Every: "2h"})
	b.tick()
	if all := b.firings("often"); len(all) != 0 || !s.Next.Equal(b.clock.Now().Add(2*time.Hour)) {
		t.Errorf("after the pause: %+v, next %v; want nothing made up for, and next in 2 h", all, s.Next)
	}
	var wrong *WrongError
	for _, bad := range []Timing{{Workflow: "nope", Every: "2h"}, {Workflow: "checkout"}, {Workflow: "checkout", Cron: "x"}} {
		if _, err := b.PutSchedule(t.Context(), "x", bad, "", Expect{}); !errors.As(err, &wrong) {
			t.Errorf("PutSchedule(%+v) = %v; want a WrongError", bad, err)
		}
	}
	if _, err := b.PutSchedule(t.Context(), "often", Timing{Workflow: "checkout", Every: "3h"}, "", Expect{Version: 1}); !errors.Is(err, ErrChanged) {
		t.Errorf("PutSchedule() of an old revision = %v; want ErrChanged", err)
	}
}
