package link

import "testing"

func TestFlight(t *testing.T) {
	for profile, want := range map[string]int{
		"native":                                0,
		"rtt=100ms":                             0,
		"rtt=28ms,down=5mbit":                   leastFlight,
		"rtt=100ms,down=8mbit":                  3 * 100_000,
		"rtt=100ms,down=8mbit; 1s: down=16mbit": 3 * 200_000,
		"rtt=100ms,down=8mbit; 1s: down=0":      3 * 100_000,
	} {
		p, err := Parse(profile)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Flight(); got != want {
			t.Errorf("%s: %d bytes, want %d", profile, got, want)
		}
	}
}
