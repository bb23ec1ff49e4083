package service

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
)

// part is one of the things that a service consists of. The parts of a list are started in its order, each once the
// part before it works, and stopped in reverse order.
type part struct {
	name string
	// start makes what later parts use, and returns what stops it again, or nil. Its context ends when the service is
	// to stop. A part without start only works.
	start func(context.Context) (stop func() error, err error)
	// work goes on in the background from then on, until its context is done; an error stops the service. It has
	// returned when the part is stopped. A part without work only answers.
	work func(context.Context) error
	// untilStop lets work go on until all later parts have stopped, because these use it. Every other part's work is
	// told at once when the service is to stop.
	untilStop bool
}

// serveParts starts the parts, waits until ctx is done or a part fails, and stops those that were started. The error
// is that of the part that failed, with its name; it is nil if ctx was done first, also if that was during the start.
func serveParts(ctx context.Context, parts []part, log *slog.Logger) error {
	serving, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var stops []func()
	for _, p := range parts {
		if serving.Err() != nil {
			break
		}
		stop, err := p.begin(serving, fail, log)
		if err != nil {
			fail(err)
			break
		}
		stops = append(stops, stop)
	}
	<-serving.Done()
	for _, stop := range slices.Backward(stops) {
		stop()
	}
	if failure, failed := context.Cause(serving).(*partError); failed {
		return failure
	}
	return nil
}

// begin starts a part and its work, and returns what stops both.
func (p part) begin(serving context.Context, fail context.CancelCauseFunc, log *slog.Logger) (stop func(), err error) {
	var undo func() error
	if p.start != nil {
		if undo, err = p.start(serving); err != nil {
			return nil, &partError{p.name, err}
		}
	}
	if p.untilStop {
		serving = context.WithoutCancel(serving)
	}
	ctx, end := context.WithCancel(serving)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if p.work == nil {
			return
		}
		if err := p.work(ctx); err != nil {
			log.Error("a part of the service failed", "part", p.name, "error", err)
			fail(&partError{p.name, err})
		}
	}()
	return func() {
		end()
		<-ended
		if undo == nil {
			return
		}
		if err := undo(); err != nil {
			log.Warn("a part of the service did not stop well", "part", p.name, "error", err)
		}
	}, nil
}

// partError says which part of the service failed.
type partError struct {
	part string
	err  error
}

func (e *partError) Error() string { return fmt.Sprintf("%s: %v", e.part, e.err) }

func (e *partError) Unwrap() error { return e.err }
