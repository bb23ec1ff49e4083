package main

import (
	"context"
	"fmt"
	"time"

	"eidetic/capture"
	"eidetic/capture/file"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
)

// CaptureCmd records a screen.
type CaptureCmd struct {
	sourceFlags
	Out      string        `required:"" help:"The reel to write. It must not exist yet."`
	Duration time.Duration `help:"How long; without it until Ctrl-C or until the source ends."`
	JSON     bool          `name:"json" help:"Print JSON."`
}

// Help is shown by appliance capture --help.
func (CaptureCmd) Help() string {
	return `Example:

  appliance capture --source x11::99 --out screen.reel --duration 10s
  appliance capture --source rfb:192.168.122.1:5900 --out machine.reel --duration 10s
  appliance reel info screen.reel

Exit status 1 when a frame was lost.`
}

// Run records until the end, then says how it went.
func (c *CaptureCmd) Run(ctx context.Context, std *streams) error {
	src, err := c.open(ctx)
	if err != nil {
		return err
	}
	h := reel.Header{Format: src.Format(), Source: c.Source, Wall: time.Now()}
	if h.Format.Pixels == lab.MJPEG {
		h.NotLossless = "MJPEG at the source"
	}
	w, err := reel.Create(c.Out, h)
	if err != nil {
		src.Close()
		return badFile(err)
	}
	if c.Duration > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, c.Duration)
		defer stop()
	}
	st, err := record(ctx, src, w)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("%w (%d frames are in %s)", err, st.Frames, c.Out)
	}
	if c.JSON {
		err = printJSON(std.out, st)
	} else {
		_, err = fmt.Fprintf(std.out, "%s: %d frames in %.1f s (%.2f/s), %d lost; interval p50 %.2f, p99 %.2f, longest %.2f ms; %d bytes\n",
			c.Out, st.Frames, st.Elapsed, st.Rate, st.Lost, st.IntervalP50, st.IntervalP99, st.IntervalMax, w.Size())
	}
	if err == nil && st.Lost > 0 {
		err = failed(fmt.Errorf("%d frames were lost: %v", st.Lost, st.Reasons))
	}
	return err
}

// record films a screen, or copies a file, which has time to wait.
func record(ctx context.Context, src capture.Source, w *reel.Writer) (capture.Stats, error) {
	if _, ok := src.(*file.Source); ok {
		return capture.Copy(ctx, src, w)
	}
	r, err := capture.Start(ctx, src, w, capture.Options{})
	if err != nil {
		src.Close()
		return capture.Stats{}, err
	}
	<-r.Done()
	return r.Stop()
}
