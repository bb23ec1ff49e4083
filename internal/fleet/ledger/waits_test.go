package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet"
)

// waits describes why parts wait, in a line for each.
func (b *bench) why(t testing.TB, runs ...string) string {
	t.Helper()
	all, err := b.Waits(t.Context(), time.Minute, runs...)
	if err != nil {
		t.Fatalf("Waits() = %v; want nil", err)
	}
	states := []string{"free", "busy", "gave-back", "not-ready", "reserved", "silent", "lacking"}
	var lines []string
	for _, w := range all {
		line := fmt.Sprintf("%s×%d", w.Run, w.Parts)
		for _, p := range w.Places {
			line += fmt.Sprintf(" %s/%s:%s", p.Box.Name, p.Device.Name, states[p.State])
			switch said := w.Need.Lacks(p.Box.Name, p.Box.Offer, p.Device); {
			case p.State == Lacking && p.Device.Name != "":
				line += "(" + strings.Join(said, ",") + ")"
			case p.State != Lacking && len(said) > 0:
				t.Errorf("%s/%s is %s and lacks %q", p.Box.Name, p.Device.Name, states[p.State], said)
			case p.State == NotReady:
				line += "(" + p.Device.Problem + ")"
			case p.State == Busy && p.Run != "":
				line += "(" + p.Run + ")"
			}
		}
		line += fmt.Sprintf(" before %d", w.Before)
		if w.Back != nil {
			line += fmt.Sprintf(" back %+v", *w.Back)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Waits says what is true of each device, and its Free is what a claim gets.
func tryWaits(t *testing.T, b *bench) {
	firefox := fleet.Need{Virtual: true, Browsers: []string{"firefox-esr"}, Labels: []string{"room=north"}}
	b.add(t, run("r1", "", fleet.Need{}, fleet.Need{}, firefox))
	want(t, "without boxes", b.why(t, "r1"), "r1×2 before 0\nr1×1 before 0")
	one := b.join(t, "one", offer("a"))
	want(t, "one box", b.why(t, "r1"), "r1×2 one/a:free before 0\nr1×1 one/a:lacking(browser firefox-esr,label room=north) before 0")
	b.add(t, run("r2", "", fleet.Need{Devices: []string{"a"}}))
	b.add(t, run("r3", "", fleet.Need{Devices: []string{"b"}}))
	want(t, "behind another run of another need", b.why(t, "r3", "r2"), "r2×1 one/a:free before 2\nr3×1 one/a:lacking(device b) before 0")
	a, mine := b.claim(t, one, "1")
	want(t, "the first", a.Part, "r1.01")
	want(t, "busy", b.why(t, "r1", "r2"), "r1×1 one/a:busy(r1) before 0\nr1×1 one/a:lacking(browser firefox-esr,label room=north) before 0\nr2×1 one/a:busy(r1) before 1")
	want(t, "a run that is unknown", b.why(t, "x"), "")
	want(t, "no run", b.why(t), "")

	// Given back: another device that could is asked first.
	two := b.join(t, "two", fleet.Offer{})
	wantErr(t, "Return()", b.Return(t.Context(), mine, "no such page"), nil)
	const back = " back {Box:one Device:a Why:no such page}"
	want(t, "given back", b.why(t, "r1")[:len("r1×1 one/a:gave-back two/:lacking before 0")+len(back)],
		"r1×1 one/a:gave-back two/:lacking before 0"+back)
	o := offer("b", "c")
	o.Devices[0].Ready, o.Devices[0].Problem, o.Devices[1].Busy = false, "no display", true
	wantErr(t, "Describe()", b.Describe(t.Context(), two.ID, o), nil)
	first := func() string { return strings.TrimSuffix(strings.Split(b.why(t, "r1"), "\n")[0], back) }
	want(t, "another box", first(), "r1×1 one/a:gave-back two/b:not-ready(no display) two/c:busy before 0")
	wantErr(t, "SetHealth()", b.SetHealth(t.Context(), two.ID, fleet.HealthMaintenance, "new disk"), nil)
	want(t, "in maintenance", first(), "r1×1 one/a:gave-back two/b:reserved two/c:reserved before 0")
	b.clock.move(2 * time.Minute)
	want(t, "silent", first(), "r1×1 one/a:silent two/b:silent two/c:silent before 0")
	wantErr(t, "Describe()", b.Describe(t.Context(), one.ID, offer("a")), nil)

	// What is free is given, and nothing else.
	wantErr(t, "SetHealth()", b.SetHealth(t.Context(), two.ID, fleet.HealthGood, ""), nil)
	wantErr(t, "Describe()", b.Describe(t.Context(), two.ID, offer("b", "c")), nil)
	want(t, "two devices", first(), "r1×1 one/a:gave-back two/b:free two/c:free before 0")
	two.Offer = offer("b", "c")
	a, _ = b.claim(t, two, "1")
	want(t, "the part that one gave back", a.Part+" "+a.Device, "r1.01 b")
	want(t, "after that", b.why(t, "r1", "r2"), "r1×1 one/a:free two/b:busy(r1) two/c:free before 0\n"+
		"r1×1 one/a:lacking(browser firefox-esr,label room=north) two/b:lacking(browser firefox-esr,label room=north) two/c:lacking(browser firefox-esr,label room=north) before 0\n"+
		"r2×1 one/a:free two/b:lacking(device a) two/c:lacking(device a) before 1")
	wantErr(t, "CancelRun()", b.CancelRun(t.Context(), "r1"), nil)
	want(t, "cancelled", b.why(t, "r1"), "")
}

// A count that is not needed exactly is not gone through to its end.
func TestWaitsCounts(t *testing.T) {
	b := &bench{clock: newClock(), database: sqliteFile(t)}
	b.Ledger = openLedger(t, b.database, b.clock)
	b.join(t, "one", offer("a"))
	var last string
	for n := range 12 {
		last = fmt.Sprint("r", n)
		r := run(last, "")
		for range maxParts - 1 {
			r.Parts = append(r.Parts, r.Parts[0])
		}
		b.add(t, r)
	}
	all, err := b.Waits(t.Context(), time.Minute, last, "r1")
	if err != nil || len(all) != 2 || all[0].Before != 100 || all[1].Before != MostBefore+1 || all[1].Parts != maxParts {
		t.Errorf("Waits() = %+v, %v; want 100 parts before r1, and more than %d before %s", all, err, MostBefore, last)
	}
}
