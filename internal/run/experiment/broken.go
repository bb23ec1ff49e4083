package experiment

import (
	"errors"
	"fmt"
)

// brokenError is a failure of one trial after which the next may succeed.
type brokenError struct {
	error
	// temporary says that nothing but an interruption was to blame: of the pictures, of the controls, of the device.
	temporary bool
}

func (e *brokenError) Unwrap() error { return e.error }

func (e *brokenError) isTemporary() bool { return e != nil && e.temporary }

func broken(format string, args ...any) error {
	return &brokenError{error: fmt.Errorf(format, args...)}
}

func interrupted(format string, args ...any) error {
	return &brokenError{fmt.Errorf(format, args...), true}
}

// Broken marks an instrument's error as one after which the next trial may succeed.
func Broken(err error) error { return &brokenError{err, true} }

// Failed marks the error of a step that did not do what its plan expects. It is temporary if its cause is.
func Failed(err, cause error) error {
	var b *brokenError
	return &brokenError{err, errors.As(cause, &b) && b.temporary}
}

// IsBroken says whether an error is one that Broken marked.
func IsBroken(err error) bool {
	var b *brokenError
	return errors.As(err, &b)
}
