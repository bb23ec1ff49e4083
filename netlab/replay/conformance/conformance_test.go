package conformance

import (
	"slices"
	"testing"
)

// TestChromium drives every case with a real Chromium.
func TestChromium(t *testing.T) {
	s := newStand(t)
	for _, k := range slices.Concat(determinism(), policies(), network()) {
		t.Run(k.name, func(t *testing.T) { s.run(t, k) })
	}
}
