package device

import "testing"

func TestDeadChild(t *testing.T) {
	for stat, want := range map[string]int{
		"32454 (chrome_crashpad) Z 1 32453 32453 0 -1": 32454,
		"32454 (chrome_crashpad) S 1 32453 32453 0 -1": 0, // not dead
		"32454 (chrome_crashpad) Z 7 32453 32453 0 -1": 0, // another parent
		"32454 (chromium) Z 1 32453 32453 0 -1":        0,
		"32454 (a) Z 1) Z 1 0":                         0,
		"32454 (chrome_crashpad":                       0, "": 0, "x (chrome_crashpad) Z 1 0": 0,
	} {
		got, ok := deadChild(stat, "chrome_crashpad_handler", "1")
		if ok != (want != 0) || ok && got != want {
			t.Errorf("deadChild(%q) = %d, %t; want %d", stat, got, ok, want)
		}
	}
}
