package experiment

import (
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestDialogueMakesInvalid: a password's dialogue stands over the page, unless a later answer ended it.
func TestDialogueMakesInvalid(t *testing.T) {
	asked := lab.Served{URL: "https://p.test/pic", Status: 401, AsksPassword: true, Stage: lab.StageExact}
	given := lab.Served{URL: "https://p.test/pic", Status: 200, Stage: lab.StageExact}
	other := lab.Served{URL: "https://p.test/", Status: 200, Stage: lab.StageExact}
	for _, c := range []struct {
		served []lab.Served
		want   bool
	}{
		{[]lab.Served{other, asked}, true},
		{[]lab.Served{asked, other}, true},
		{[]lab.Served{asked, given}, false},
		{[]lab.Served{other, given}, false},
		{[]lab.Served{asked, given, asked}, true},
	} {
		reasons := judge(&lab.Trial{}, facts{served: c.served})
		got := slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(r, "https://p.test/pic answers 401") })
		if got != c.want {
			t.Errorf("%+v: invalid because of %q; want a dialogue %v", c.served, reasons, c.want)
		}
	}
}

// TestBlueMakesInvalid: a grabber that had no signal between start and end has not shown the page.
func TestBlueMakesInvalid(t *testing.T) {
	for _, c := range []struct {
		from, to lab.Time
		want     bool
	}{{10, 90, false}, {10, 110, true}, {150, 160, true}, {190, 300, true}, {200, 300, false}} {
		trial := &lab.Trial{
			StartTime: 100, Events: []lab.Event{{Name: "end", Latest: 200}},
			Capture: &lab.CaptureState{Blue: []lab.Blue{{From: c.from, To: c.to, Frames: 9}}},
		}
		reasons := judge(trial, facts{})
		if got := slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(r, "one blue") }); got != c.want {
			t.Errorf("blue from %d to %d: invalid because of %q; want it named %v", c.from, c.to, reasons, c.want)
		}
	}
}

// TestEndTooEarly: of a load that asked for little, an end that the plan chose is named.
func TestEndTooEarly(t *testing.T) {
	for _, c := range []struct {
		steps []*lab.TrialStep
		want  string
	}{
		{nil, "it was taken for loaded too early"},
		{[]*lab.TrialStep{{Expect: "changed and still 1.5s", Default: true}}, "it was taken for loaded too early"},
		{[]*lab.TrialStep{{Expect: "still 1s"}, {Expect: "still 1s"}}, "it was taken for loaded too early"},
		{[]*lab.TrialStep{{Expect: "still 1s in 0%,0%,100%,50%"}}, "its end (still 1s in 0%,0%,100%,50%) may have held before it had loaded"},
	} {
		reasons := judge(&lab.Trial{Asked: 6, Recorded: 25, Steps: c.steps}, facts{})
		if len(reasons) != 1 || !strings.Contains(reasons[0], "only 6 of the 25 exchanges that were recorded of it: "+c.want) {
			t.Errorf("%+v: invalid because of %q; want %q", c.steps, reasons, c.want)
		}
	}
}
