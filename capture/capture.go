// Package capture films a screen without losing a frame unnoticed.
//
// Frames flow one way: a [Source] (package x11, v4l2, file, synthetic) delivers
// them on its own clock, the [Recorder] takes each into a bounded ring of
// buffers that are allocated once, and a second goroutine compares it with the
// frame before, notes exactly what changed, and hands it to a [Sink] (package
// reel's Writer). Whatever is lost on the way, by the source or because the
// sink could not keep up, is counted and written into the sink as a gap.
//
// What "lost" means follows V4L2: sources number their frames, and a step of
// more than one in the numbers is a loss (struct v4l2_buffer, "sequence").
package capture

import (
	"context"
	"fmt"

	"eidetic/internal/lab"
)

// Source delivers the frames of one screen. Next and Close are called from
// one goroutine, which is locked to its thread.
type Source interface {
	// Format describes every frame; it does not change while the source is open.
	Format() lab.Format
	// Next blocks until the next frame on the source's own clock. The frame's
	// Pix and Changed are valid until the next call; Pix is there with
	// lab.FrameRepeat too, which only says that it need not be compared. A
	// source that does not know what changed says so with Format().Bounds().
	// Next returns io.EOF when a finite source ends, ctx's error when ctx ends,
	// and an *Interruption when something else came in the place of a frame.
	Next(ctx context.Context) (lab.Frame, error)
	// Close frees what the source holds.
	Close() error
}

// Sink takes a recording: in order, from one goroutine. *reel.Writer is one.
type Sink interface {
	// WriteFrame takes one frame. Its Changed covers every pixel that differs
	// from the frame written before, and is empty when none does. Pix and
	// Changed are valid during the call only; Pix is there in any case.
	WriteFrame(lab.Frame) error
	// WriteGap says that frames are missing here.
	WriteGap(lab.Gap) error
	// WriteEvent says what happened to the source here.
	WriteEvent(lab.SourceEvent) error
}

// Interruption is the error with which [Source.Next] reports an event in the
// place of a frame: a signal that is lost, another resolution, a device that was
// unplugged. It goes into the recording, in order with the frames.
type Interruption struct {
	Event lab.SourceEvent
	// Ends says why no frame of Source.Format can follow; the recording then ends, and
	// the caller may open the source again for the next one. Nil: Next is called again.
	Ends error
}

func (i *Interruption) Error() string {
	if i.Ends != nil {
		return i.Ends.Error()
	}
	return fmt.Sprintf("%s %s", i.Event.Kind, i.Event.Detail)
}

func (i *Interruption) Unwrap() error { return i.Ends }

// Options of a recording; the zero value is a good start.
type Options struct {
	// Ring is the number of frame buffers between source and sink: how long
	// the sink may stall before frames are lost. At least 4; default 64, or
	// as many as fit into 256 MiB. A buffer takes memory when it is first used.
	Ring int
	// NoPriority leaves the grabbing thread's scheduling and GOMAXPROCS as they
	// are. Otherwise SCHED_FIFO is asked for, else nice −10 (Stats says what was
	// granted), and GOMAXPROCS is raised, see Start.
	NoPriority bool
	// Whole has a frame that the source marks as damaged count as lost (lab.GapCorrupt), because what the screen showed
	// then is not known. Otherwise it is kept, marked.
	Whole bool
	// Card has stretches be named in which a grabber shows one blue, as it does without a signal (lab.SourceBlue).
	Card bool
}
