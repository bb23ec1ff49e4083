package retention

import (
	"strings"
	"testing"
	"time"
)

var now = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC) // constant

// days makes runs of 1 GB, 0.9 of it evidence, so many days old.
func days(ages ...int) (runs []Run) {
	for _, age := range ages {
		runs = append(runs, Run{ID: now.AddDate(0, 0, -age).Format("20060102"), Wall: now.AddDate(0, 0, -age), Bytes: 1e9, Evidence: 9e8})
	}
	return runs
}

// gone lists the IDs of a decision.
func gone(d Decision) string {
	var all []string
	for _, one := range d.Delete {
		all = append(all, one.Run)
	}
	return strings.Join(all, " ")
}

func TestDecide(t *testing.T) {
	needed := days(1, 100, 200)
	needed[2].Needed = "it is pinned"
	thinned := days(1, 100)
	thinned[1].Evidence = 0
	for name, c := range map[string]struct {
		policy Policy
		runs   []Run
		free   int64
		aged   bool
		gone   string
		short  int64
		kept   int
	}{
		"no policy":                        {Policy{}, days(1, 1000), 0, true, "", 0, 0},
		"by age, the oldest first":         {Policy{KeepDays: 90}, days(1, 100, 200), 0, true, "20260629 20261007", 0, 0},
		"by age, with a clock in doubt":    {Policy{KeepDays: 90}, days(1, 100, 200), 0, false, "", 0, 0},
		"by age, of the future":            {Policy{KeepDays: 90}, days(-1000, -1), 0, true, "", 0, 0},
		"by size":                          {Policy{KeepGB: 2.5}, days(1, 2, 3, 4), 0, true, "20270111 20270112", 0, 0},
		"by room":                          {Policy{KeepFreeGB: 2}, days(1, 2, 3), 15e8, true, "20270112", 0, 0},
		"what is needed stays":             {Policy{KeepDays: 90}, needed, 0, true, "20261007", 0, 1},
		"not enough that may go":           {Policy{KeepGB: 1}, needed, 0, true, "20261007 20270114", 2e8, 1},
		"what is gone is not deleted anew": {Policy{KeepDays: 90}, thinned, 0, true, "", 0, 0},
	} {
		d := Decide(c.policy, c.runs, c.free, now, c.aged)
		if gone(d) != c.gone || d.Short != c.short || len(d.Kept) != c.kept {
			t.Errorf("%s: deletes %q, short of %d, keeps %d; want %q, %d, %d", name, gone(d), d.Short, len(d.Kept), c.gone, c.short, c.kept)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, p := range []Policy{{KeepDays: -1}, {KeepGB: -1}, {KeepFreeGB: 1e9}} {
		if field, err := p.Check(); err == nil || field == "" {
			t.Errorf("Check() of %+v = %q, %v; want its field", p, field, err)
		}
	}
	if _, err := (Policy{KeepDays: 90, KeepGB: 1.5}).Check(); err != nil {
		t.Error(err)
	}
}
