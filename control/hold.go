package control

import (
	"context"
	"image"

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

// TextPreparer is a controller that knows before it types how a text gets to its device.
type TextPreparer interface {
	Controller
	// PrepareText makes ready for a text, which may take some seconds, and returns an error for one that cannot get to the
	// device. What no key types may be pasted: it then comes at once.
	PrepareText(ctx context.Context, text string) (pasted bool, err error)
}

// Toucher is a controller with a touch screen for several fingers.
type Toucher interface {
	Controller
	// Touch puts one finger at each point. They stay until the next Touch, which moves them, in their order, and lifts
	// those that it does not name: without a point, all.
	Touch(ctx context.Context, fingers ...image.Point) (lab.Event, error)
}
