// Package lab holds the words that the whole product shares, as types: time,
// frame, exchange, event, measurement, trial, run. It imports the standard
// library only, knows none of the instruments, and is imported by all of them.
//
// All instants are nanoseconds of the box's CLOCK_MONOTONIC ([Time]); a wall
// clock time is kept once per run and per trial, for people.
package lab
