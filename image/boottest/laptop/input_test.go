package main

import (
	"slices"
	"testing"
	"time"
)

// TestInOrder: what two devices did is sent in the order in which the kernel had it, what one did in its own, and nothing
// while another device may still bring what was before.
func TestInOrder(t *testing.T) {
	mouse := []event{{10, kindKey, 272, 1}, {10, 0, 0, 0}, {40, kindKey, 272, 0}}
	keyboard := []event{{30, kindKey, 20, 1}, {30, 0, 0, 0}, {50, kindKey, 20, 0}}
	due, later := inOrder(slices.Concat(keyboard, mouse), 40*time.Nanosecond)
	want := []event{mouse[0], mouse[1], keyboard[0], keyboard[1], mouse[2]}
	if !slices.Equal(due, want) || !slices.Equal(later, keyboard[2:]) {
		t.Errorf("inOrder() = %v, and later %v; want %v, and later %v", due, later, want, keyboard[2:])
	}
}
