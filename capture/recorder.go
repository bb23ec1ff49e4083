package capture

import (
	"context"
	"errors"

	"eidetic/internal/lab"
)

// Status is where a recording is now.
type Status struct {
	Frames     int      // frames that reached the sink
	Lost       int      // frames lost so far
	FirstFrame lab.Time // time of the first frame
	LastFrame  lab.Time // time of the newest frame that reached the sink
	// LastChange is the time of the newest frame with a changed pixel; the
	// screen has been still for LastFrame − LastChange.
	LastChange lab.Time
	Err        error // what ended the recording, if something did
}

// Stats is what a finished recording was like.
type Stats struct {
	Frames  int            // frames in the sink
	Repeats int            // of them equal to the frame before
	Lost    int            // frames that are not in the sink
	Reasons map[string]int // why, as in lab.Gap
	Elapsed float64        // seconds from the first to the last frame
	Rate    float64        // measured frames per second, from the source's own times and sequence
	// Intervals between neighbouring frames' times, in milliseconds: the
	// median, the 99th percentile, the longest, and the root mean square
	// deviation from the nominal period.
	IntervalP50, IntervalP99, IntervalMax, Jitter float64
	RingPeak                                      int    // most buffers in use at once
	Scheduling                                    string // "SCHED_FIFO", "nice -10" or "normal"
}

// Recorder is a recording that runs.
type Recorder struct{}

// Start records src into sink until Stop is called, ctx ends, or src does.
// The recorder closes src; closing sink is left to the caller, after Stop.
func Start(ctx context.Context, src Source, sink Sink, o Options) (*Recorder, error) {
	return nil, errors.New("capture: not wired yet")
}

// Status is cheap (one short lock) and may be called from anywhere.
func (r *Recorder) Status() Status { return Status{} }

// Latest calls fn with the newest picture that reached the sink; false if there
// is none yet. The picture must not be kept or changed; the sink waits while fn runs.
func (r *Recorder) Latest(fn func(lab.Format, lab.Frame)) bool { return false }

// Done is closed when the recording has ended by itself or by Stop.
func (r *Recorder) Done() <-chan struct{} { return nil }

// Stop ends the recording, waits until every frame taken so far is in the
// sink, and closes the source. The error is what ended it early, if anything.
func (r *Recorder) Stop() (Stats, error) { return Stats{}, nil }
