package adb_test

import (
	"math"
	"strings"
	"testing"

	"eidetic/control/adb"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/rigs/testlab"
)

// testApps: a package is started by the activity of its icon, and what its processes use is told.
func testApps(t *testing.T, p adb.Phone, phone *adbtest.Phone) {
	t.Helper()
	const name = "org.example.notes"
	phone.Change(func(s *adbtest.State) {
		s.Packages = append(s.Packages, name)
		s.Running = []adbtest.Process{
			{PID: 4000, Name: name, Ticks: 120}, {PID: 4001, Name: name + ":sync", Ticks: 30}, {PID: 5, Name: name + "x", Ticks: 900},
		}
	})
	ctx := within(t)
	component, err := p.Component(ctx, name)
	if want := name + "/.Main"; component != want || err != nil {
		t.Errorf("Component() = %q, %v; want %q", component, err, want)
	}
	if err := p.Start(ctx, component); err != nil {
		t.Error(err)
	}
	did := phone.State().Done
	if last, want := did[len(did)-1], "am start -n '"+component+"'"; last != want {
		t.Errorf("the phone did %q; want %q", last, want)
	}
	use, err := p.Used(ctx, name, true)
	if err != nil || use.Processes != 2 || use.Ran != 1_500_000_000 || use.Memory < 2*50000<<10 || use.At == 0 {
		t.Errorf("Used() = %+v, %v; want 2 processes, 1.5 s and their memory", use, err)
	}
	phone.Change(func(s *adbtest.State) { s.Running[1].Unread = "No such file or directory" })
	if use, err := p.Used(ctx, name, false); err != nil || use.Processes != 1 || use.Ran != 1_200_000_000 {
		t.Errorf("Used() when one of two processes has just ended = %+v, %v; want the other's 1.2 s", use, err)
	}
	phone.Change(func(s *adbtest.State) { s.Running[1].Unread = "Permission denied" })
	if use, err := p.Used(ctx, name, false); err == nil || !strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("Used() of files that may not be read = %+v, %v; want an error that says so", use, err)
	}
	if use, err := p.Used(ctx, "com.none.such", true); err != nil || use.Processes != 0 {
		t.Errorf("Used() of a package that does not run = %+v, %v; want none", use, err)
	}
	_, noIcon := p.Component(ctx, "com.none.such")
	for says, err := range map[string]error{
		"that can be started": noIcon, "does not exist": p.Start(ctx, "com.none.such/.Main"), "no package": p.Start(ctx, "x; reboot"),
		"no activity": p.Start(ctx, name+"/x; reboot"),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v; want one that says %q", err, says)
		}
	}
}

func FuzzUsed(f *testing.F) {
	f.Add("4000 org.example.notes\n", "4000 (x) S 1 1 0 0 -1 1 9 0 0 0 5 2 0 0 10 -10 40 0 555\n", "TOTAL PSS: 50 TOTAL RSS: 1\nTOTAL: 7\n")
	f.Add("", ")", "TOTAL:")
	f.Add("", ") S 1 1 0 0 -1 1 9 0 0 0 549755813887 549755813887 0", "")
	f.Fuzz(func(t *testing.T, ps, stat, memory string) {
		defer testlab.Input(t)()
		if n := len(adb.PIDsOf(ps, "org.example.notes")); n > 50 {
			t.Errorf("%d processes are read; want at most 50", n)
		}
		if ran, ok := adb.RanOf(stat); ok && (ran < 0 || ran > math.MaxInt64/50) {
			t.Errorf("a processor time of %v; want one that can be added 50 times", ran)
		}
		if got := adb.MemoryOf(memory); got < 0 {
			t.Errorf("%d bytes of memory", got)
		}
	})
}
