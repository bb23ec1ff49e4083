// Package lab holds the types that all packages share: time, frame, exchange, event,
// measurement, trial, run. It imports only the standard library and none of the
// instruments; the instruments import it.
//
// All instants are nanoseconds of the box's CLOCK_MONOTONIC ([Time]); a wall
// clock time is kept once per run and per trial, for people.
package lab
