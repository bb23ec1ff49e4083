package service

import (
	"errors"
	"testing"

	"eidetic/internal/run/seat"
	"eidetic/internal/web/panel"
)

// TestSeatOfRuns: the virtual device has a screen in runs only, and no input.
func TestSeatOfRuns(t *testing.T) {
	var list deviceList
	list.add("virtual", &virtualDevice{seat: seat.Seat{Live: t.TempDir()}})
	all := seats{&list}
	var refused *panel.Refusal
	if _, err := all.Screen(t.Context(), "virtual"); !errors.As(err, &refused) || refused.Status != 409 || !errors.Is(err, seat.ErrNoScreen) {
		t.Errorf("Screen() = %v", err)
	}
	if _, err := all.Drive("virtual", panel.Driver{}); !errors.As(err, &refused) || refused.Status != 409 {
		t.Errorf("Drive() = %v", err)
	}
	if _, err := all.Screen(t.Context(), "none"); !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("Screen() of no device = %v", err)
	}
}
