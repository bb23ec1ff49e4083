package control

import (
	"errors"
	"fmt"
	"time"
)

// RepeatDelay is how long a key may be down before a device repeats it by itself: 250 ms at the earliest on the systems
// that we know, 500 ms on most. A finger that rests for so long is a long press to some.
const RepeatDelay = 400 * time.Millisecond

// HeldError says that the release of a key or a finger came so late that the device may have made more of it than a
// press: what the input meant is not known. The release was sent nevertheless.
type HeldError struct {
	What  string        // "the key"
	Down  time.Duration // the longest that it can have been down
	Limit time.Duration
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s stayed down for up to %v, and after %v the device may have repeated it by itself or taken it for a long press: "+
		"this machine or the way to the device stood still between press and release",
		e.What, e.Down.Round(time.Millisecond), e.Limit)
}

// CheckHeld returns a HeldError for what was down for longer than a limit; 0 is RepeatDelay.
func CheckHeld(what string, down, limit time.Duration) error {
	if limit == 0 {
		limit = RepeatDelay
	}
	if down > limit {
		return &HeldError{what, down, limit}
	}
	return nil
}

// IsHeld says whether all that is wrong with input is that it may have been down for too long.
func IsHeld(err error) bool {
	var held *HeldError
	return errors.As(err, &held)
}
