package plan

import (
	"slices"
	"testing"

	"eidetic/internal/lab"
)

func TestCovariatesOfPlan(t *testing.T) {
	page := lab.Arm{Page: "https://shop.test/", Archive: "a.wacz"}
	machine := []string{lab.CovariateMeter, lab.CovariateMeterProcessor}
	for name, c := range map[string]struct {
		plan lab.Plan
		want []string
	}{
		"one arm":       {lab.Plan{Arm: page}, nil},
		"a recording":   {lab.Plan{Arm: page, Treatment: &lab.Arm{Archive: "b.wacz"}}, lab.Covariates()},
		"another link":  {lab.Plan{Arm: page, Treatment: &lab.Arm{Link: "3g"}}, []string{lab.CovariateSettle, lab.CovariateMeter, lab.CovariatePage, lab.CovariateMeterProcessor}},
		"warm":          {lab.Plan{Arm: lab.Arm{Page: page.Page, Archive: "a.wacz", State: lab.StateWarm}, Treatment: &lab.Arm{Archive: "b.wacz"}}, machine},
		"another state": {lab.Plan{Arm: page, Treatment: &lab.Arm{State: lab.StateWarm}}, nil},
		"other flags":   {lab.Plan{Arm: page, Treatment: &lab.Arm{Browser: &lab.Browser{Name: lab.Chromium, Flags: []string{"--x"}}}}, nil},
		"none":          {lab.Plan{Arm: page, Treatment: &lab.Arm{Archive: "b.wacz"}, Covariates: []string{"none"}}, []string{"none"}},
	} {
		got, err := Check(Request{Plan: c.plan}, Options{Scope: ScopePerson})
		if err != nil || !slices.Equal(got.Covariates, c.want) {
			t.Errorf("%s: Check() has the covariates %q, %v; want %q", name, got.Covariates, err, c.want)
		}
	}
	for name, p := range map[string]lab.Plan{
		"one arm":          {Arm: page, Covariates: []string{lab.CovariateMeter}},
		"none and another": {Arm: page, Treatment: &lab.Arm{Archive: "b.wacz"}, Covariates: []string{"none", lab.CovariateMeter}},
		"twice":            {Arm: page, Treatment: &lab.Arm{Archive: "b.wacz"}, Covariates: []string{lab.CovariateMeter, lab.CovariateMeter}},
		"unknown":          {Arm: page, Treatment: &lab.Arm{Archive: "b.wacz"}, Covariates: []string{"speed_index_ms"}},
	} {
		if _, err := Check(Request{Plan: p}, Options{Scope: ScopePerson}); err == nil {
			t.Errorf("%s: Check() has no error", name)
		}
	}
}

func TestSizeAndRecordingsOfPlan(t *testing.T) {
	page := lab.Arm{Page: "https://a.test/"}
	other := &lab.Arm{Page: "https://b.test/"}
	for name, c := range map[string]struct {
		plan lab.Plan
		want int // recordings; -1 for an error
	}{
		"shared":             {lab.Plan{Arm: page, Treatment: other}, 0},
		"shared, several":    {lab.Plan{Arm: page, Treatment: other, Recordings: 5}, 5},
		"recorded":           {lab.Plan{Arm: page, Treatment: other, Timing: "recorded"}, 6},
		"recorded once":      {lab.Plan{Arm: page, Treatment: other, Timing: "recorded", Recordings: 1}, 1},
		"too few":            {lab.Plan{Arm: page, Treatment: other, Timing: "recorded", Recordings: 3}, -1},
		"one page":           {lab.Plan{Arm: page, Treatment: &lab.Arm{Link: "3g"}, Recordings: 5}, -1},
		"filled":             {lab.Plan{Arm: page, Treatment: other, Recordings: 5, Miss: lab.MissFill}, -1},
		"find":               {lab.Plan{Arm: page, Treatment: other, Find: "10ms"}, 0},
		"find percent":       {lab.Plan{Arm: page, Treatment: other, Find: "0.5 %"}, 0},
		"find nothing":       {lab.Plan{Arm: page, Treatment: other, Find: "0ms"}, -1},
		"find a word":        {lab.Plan{Arm: page, Treatment: other, Find: "all"}, -1},
		"find in one arm":    {lab.Plan{Arm: page, Find: "10ms"}, -1},
		"find in few":        {lab.Plan{Arm: page, Treatment: other, Find: "10ms", Trials: 8}, -1},
		"find in recordings": {lab.Plan{Arm: page, Treatment: other, Find: "10ms", Timing: "recorded"}, -1},
		"find in many":       {lab.Plan{Arm: page, Treatment: &lab.Arm{Link: "3g"}, Find: "10ms", Users: []lab.PlanUser{{Name: "a"}, {Name: "b"}}}, -1},
	} {
		got, err := Check(Request{Plan: c.plan}, Options{Scope: ScopePerson})
		if (err != nil) != (c.want < 0) || err == nil && got.Recordings != c.want {
			t.Errorf("%s: Check() has %d recordings, %v; want %d", name, got.Recordings, err, c.want)
		}
	}
}
