// Package control drives a device's input. Actions flow in; events flow out,
// each with the interval in which the device can have got it. One package a
// transport implements [Controller]; none of them knows what is tested.
//
// A controller refuses to claim more than it knows: the interval of an event
// is [just before the transport was handed the action, the moment the
// transport confirmed that the device has it].
package control

import (
	"context"

	"eidetic/internal/lab"
)

// Button is a pointer button, numbered as X11 and HID do.
type Button int

// The buttons of an ordinary mouse.
const (
	Left   Button = 1
	Middle Button = 2
	Right  Button = 3
)

// Controller drives one device. Its methods return when the device has got the
// input, or an error that says what it cannot do; they are not safe for
// concurrent use, because input has an order.
type Controller interface {
	// Key presses and releases a key or a chord: "Return", "F5", "Ctrl+L".
	// ParseChord has the names.
	Key(ctx context.Context, chord string) (lab.Event, error)
	// Text types the characters one after another or, where it has another way for those that no key types, brings the
	// text at once. The event says which.
	Text(ctx context.Context, text string) (lab.Event, error)
	// Move puts the pointer at x, y in pixels of the screen.
	Move(ctx context.Context, x, y int) (lab.Event, error)
	// Click moves to x, y, presses the button there and releases it.
	Click(ctx context.Context, x, y int, b Button) (lab.Event, error)
	// Scroll turns the wheel at x, y by notches: positive dy scrolls down,
	// positive dx to the right.
	Scroll(ctx context.Context, x, y, dx, dy int) (lab.Event, error)
	// Close releases what is still pressed and the transport.
	Close() error
}

// FileChooser is a controller that answers a program's file dialogue.
type FileChooser interface {
	// ChooseFile clicks at x, y, waits for the file dialogue that this opens, and types the path of a file there. It calls
	// ready, unless that is nil, presses the key that chooses the file, which is the event chosen, and waits until the
	// dialogue is gone. before are the events that led there.
	ChooseFile(
		ctx context.Context, x, y int, path string, ready func(ctx context.Context) error,
	) (before []lab.Event, chosen lab.Event, err error)
}
