package benchrig

import "testing"

func TestTicks(t *testing.T) {
	got, err := parseTicks("cpu  10 20 30 40 50 60 70 20 5 5\ncpu0 1 2 3\n")
	if want := (Ticks{All: 300, Stolen: 20}); err != nil || got != want {
		t.Errorf("parseTicks() = %+v, %v; want %+v", got, err, want)
	}
	later := Ticks{All: 500, Stolen: 30}.Since(got)
	if later.Percent() != 5 {
		t.Errorf("Percent() = %v, want 5", later.Percent())
	}
	if p := (Ticks{}).Percent(); p != 0 {
		t.Errorf("Percent() = %v for no time at all, want 0", p)
	}
	for _, bad := range []string{"", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4", "cpu 1 2 3 4 5 6 7 x"} {
		if _, err := parseTicks(bad); err == nil {
			t.Errorf("parseTicks(%q) = nil, want an error", bad)
		}
	}
}
