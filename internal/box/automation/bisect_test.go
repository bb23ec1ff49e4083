package automation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// bench is a Bisector that deploys and finds nothing by itself.
type bench struct {
	reason string // why nothing can be deployed
	orders []Order
	found  Found
}

func (b *bench) CheckRepository(string) error { return nil }
func (b *bench) DeployHead(context.Context, string) (revision, reason string, err error) {
	return "c9", b.reason, nil
}
func (b *bench) PlanAt(_, _ string, p lab.Plan) (lab.Plan, error) { return p, nil }
func (b *bench) Busy(string) string                               { return "" }
func (b *bench) Begin(_ context.Context, o Order) (string, error) {
	b.orders = append(b.orders, o)
	return "b1", nil
}
func (b *bench) Found(string) (Found, error) { return b.found, nil }

// A revision that cannot be deployed has no run, and the log says why.
func TestNothingDeployed(t *testing.T) {
	b := newTestBox(t, nil)
	b.Bisector = &bench{reason: "the command failed: exit status 2"}
	b.put("checkout", planOf("https://a.test/"))
	if _, err := b.PutSchedule(t.Context(), "often", Timing{Workflow: "checkout", Every: "2h", Bisect: &Bisecting{Repository: "shop"}}, "ada", Expect{}); err != nil {
		t.Fatal(err)
	}
	b.clock.add(2 * time.Hour)
	for range 2 { // the deployment begins; what came of it is noted
		if _, err := b.fireAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.deployers.Wait()
	}
	past, err := b.Firings(t.Context(), "often", 5)
	if err != nil || len(past) != 1 || past[0].State != FiringRefused || past[0].Reason != "the revision c9 cannot be deployed: the command failed: exit status 2" {
		t.Errorf("Firings() = %+v, %v; want one that is refused", past, err)
	}
}

// An alert is bisected between the revisions of the last good and the first bad run, once; where these are one, there
// is no bisect.
func TestAlertIsBisected(t *testing.T) {
	for name, c := range map[string]struct {
		revisions [3]string
		want      string // state, and what is ordered or why not
	}{
		"between two":     {[3]string{"c1", "c4", "c4"}, "due c1 c4"},
		"of one revision": {[3]string{"c4", "c4", "c4"}, "none: the runs before and after it measured the same revision"},
		"the first run":   {[3]string{"", "c4", "c4"}, "due  c4"},
		"without any":     {[3]string{}, "none: the runs do not say which revision they measured"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestBox(t, nil)
			own := &bench{found: Found{State: "running"}}
			b.Bisector = own
			b.put("checkout", planOf("https://a.test/"))
			if _, err := b.PutSchedule(t.Context(), "often", Timing{Workflow: "checkout", Every: "2h", Bisect: &Bisecting{Repository: "shop", Pairs: 90}}, "ada",
				Expect{}); err != nil {
				t.Fatal(err)
			}
			finding, p := lab.NoChange, 0.5
			for day, revision := range c.revisions {
				if day > 0 {
					finding, p = lab.Slower, 0.0001
				}
				b.compareAt(day, 500, 690*p, finding, p, revision)
			}
			a := b.alerts(true)[0]
			got := a.Bisection.State + " " + a.Bisection.Good + " " + a.Bisection.Bad
			if a.Bisection.State == bisectionNone {
				got = a.Bisection.State + ": " + a.Bisection.Reason
			}
			if got != c.want {
				t.Errorf("the bisection of the alert is %+v; want %s", a.Bisection, c.want)
			}
			for range 2 {
				if err := b.bisectAll(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if want := strings.HasPrefix(c.want, bisectionDue); (len(own.orders) == 1) != want || want && (own.orders[0].Pairs != 90 || own.orders[0].Plan.Treatment == nil) {
				t.Errorf("%d bisects begin: %+v; want one: %v", len(own.orders), own.orders, want)
			}
		})
	}
}

// TestGoodRunOfAnotherBox: in a fleet the run before the one that is slower may be of another box, and so of another
// series.
func TestGoodRunOfAnotherBox(t *testing.T) {
	b := newTestBox(t, nil)
	b.Bisector = &bench{found: Found{State: "running"}}
	b.put("checkout", planOf("https://a.test/"))
	if _, err := b.PutSchedule(t.Context(), "often", Timing{Workflow: "checkout", Every: "2h", Bisect: &Bisecting{Repository: "shop"}}, "ada", Expect{}); err != nil {
		t.Fatal(err)
	}
	fired := func(run string) {
		t.Helper()
		if _, err := b.db.ExecContext(t.Context(), `INSERT INTO firings (schedule, due, at, missed, state, run, reason) VALUES ('often', 0, 0, 0, ?, ?, '')`,
			FiringRun, run); err != nil {
			t.Fatal(err)
		}
	}
	for day, c := range []struct{ box, revision, verdict string }{
		{"lab-1", "c1", lab.NoChange}, {"lab-1", "c2", lab.NoChange}, {"lab-1", "c3", lab.Slower}, {"lab-1", "c9", lab.NoChange},
	} {
		run := &lab.Run{ID: store.NewID(time.Date(2026, 8, 1+day, 3, 0, 0, 0, time.UTC), "checkout"), State: store.StateDone, Name: "checkout",
			Plan:        lab.Plan{Name: "checkout", Arm: lab.Arm{Page: "https://a.test/"}, From: &lab.Origin{Schedule: "often", Revision: c.revision}},
			Environment: lab.Environment{Box: &lab.BoxState{Name: c.box}}, Comparison: &lab.Comparison{Verdict: c.verdict}}
		f, err := store.Create(b.data, run)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if day == 3 { // this one was made after the slower one
			fired(store.NewID(time.Date(2026, 8, 3, 9, 0, 0, 0, time.UTC), "checkout"))
		}
		fired(run.ID)
	}
	b.compareAt(2, 500, 690, lab.Slower, 0.0001, "c5")
	if a := b.alerts(true); len(a) != 1 || a[0].Bisection == nil || a[0].Bisection.Good != "c2" || a[0].Bisection.Bad != "c5" {
		t.Errorf("the alert is %+v; want a bisection from c2, which the other box measured, to c5", a)
	}
}

// An alert is bad for a gate until it is resolved, except while it is accepted; from when the acceptance ends it is bad
// again.
func TestBadUntilItIsOver(t *testing.T) {
	b := newTestBox(t, nil)
	b.put("checkout", planOf("https://a.test/"))
	b.compare(0, 500, 690, lab.Slower, 0.0002)
	id := b.alerts(true)[0].ID
	bad := func(when string, want bool) {
		t.Helper()
		all, err := b.Alerts(t.Context(), Filter{Bad: true, Limit: 5})
		if err != nil || (len(all) == 1 && all[0].ID == id) != want {
			t.Errorf("%s: the bad alerts are %+v, %v; want the alert among them: %v", when, all, err, want)
		}
	}
	bad("raised", true)
	if _, err := b.Acknowledge(t.Context(), id, "ada", "", nil); err != nil {
		t.Fatal(err)
	}
	bad("acknowledged", true)
	var wrong *WrongError
	for _, c := range []struct {
		reason string
		in     time.Duration
	}{{"", time.Hour}, {"x", 0}, {"x", 400 * 24 * time.Hour}} {
		if _, err := b.Accept(t.Context(), id, "ada", c.reason, b.clock.Now().Add(c.in)); !errors.As(err, &wrong) {
			t.Errorf("Accept(%q, in %v) = %v; want a WrongError", c.reason, c.in, err)
		}
	}
	if _, err := b.Accept(t.Context(), id, "ada", "the cache", b.clock.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	bad("accepted", false)
	b.clock.add(time.Hour)
	bad("no longer accepted", true)
	if _, err := b.Resolve(t.Context(), id, "ada", "reverted"); err != nil {
		t.Fatal(err)
	}
	bad("resolved", false)
	if _, err := b.Resolve(t.Context(), id, "ada", ""); !errors.Is(err, ErrResolved) {
		t.Errorf("a second Resolve() = %v; want ErrResolved", err)
	}
	if _, err := b.Resolve(t.Context(), 99, "ada", ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Resolve() of none = %v; want ErrNotFound", err)
	}
	// The same again is another alert.
	b.compare(1, 500, 690, lab.Slower, 0.0002)
	if all := b.alerts(true); len(all) != 1 || all[0].ID == id {
		t.Errorf("after it was resolved: %+v; want another alert", all)
	}
}
