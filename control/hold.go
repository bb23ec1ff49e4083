package control

import (
	"context"

	"eidetic/internal/lab"
)

// Holder is a controller that can hold a button down while other actions move the pointer.
type Holder interface {
	Controller
	// Press moves to x, y and presses the button there, which stays down until Lift or Close.
	Press(ctx context.Context, x, y int, b Button) (lab.Event, error)
	// Lift releases the button that Press holds.
	Lift(ctx context.Context) (lab.Event, error)
}
