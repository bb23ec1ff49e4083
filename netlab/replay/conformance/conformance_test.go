package conformance

import (
	"slices"
	"testing"
)

func cases() []kase {
	return slices.Concat(determinism(), codings(), charsets(), policies(), network(), peers(), live())
}

// TestChromium drives every case with a real Chromium.
func TestChromium(t *testing.T) {
	s := newStand(t)
	s.browser = newChromium(t, s)
	drive(t, s, "chromium")
}

// TestFirefox drives the essential ones with a real Firefox.
func TestFirefox(t *testing.T) {
	s := newStand(t)
	s.browser = newFirefox(t, s)
	drive(t, s, "firefox")
}

func drive(t *testing.T, s *stand, name string) {
	for _, k := range cases() {
		if k.only == "" || k.only == name {
			t.Run(k.name, func(t *testing.T) { s.run(t, k) })
		}
	}
}
