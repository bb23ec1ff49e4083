package lab

import "time"

// AwayError is of a database or a store that does not answer now, because it is on another machine, or locked by another
// program: what was asked for is right, and may succeed later. Its text names neither users nor addresses, so that
// whoever asked may see it; Err is for the log.
type AwayError struct {
	What string // such as "the fleet's database"
	Err  error
}

// AwayFor is when it is worth asking again.
const AwayFor = 5 * time.Second

func (e *AwayError) Error() string { return e.What + " does not answer now: ask again in a while" }

// Unwrap is for [errors.Is] and [errors.As].
func (e *AwayError) Unwrap() error { return e.Err }
