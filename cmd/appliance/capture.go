package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"eidetic/capture"
	"eidetic/capture/file"
	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
	"eidetic/capture/v4l2"
	"eidetic/capture/x11"
	"eidetic/internal/lab"
)

// CaptureCmd records a screen.
type CaptureCmd struct {
	Source   string        `required:"" placeholder:"SOURCE" help:"x11:DISPLAY (x11::99), v4l2:DEVICE (v4l2:/dev/video0), file:PATH (a Y4M film, a folder of PNG or JPEG), or synthetic:CONTENT (static, load, scroll, noise)."`
	Out      string        `required:"" help:"The reel to write. It must not exist yet."`
	Duration time.Duration `help:"How long; without it until Ctrl-C or until the source ends."`
	Rate     float64       `default:"60" help:"Frames per second, for sources that can choose."`
	Size     string        `placeholder:"WxH" help:"Size of a synthetic screen (1280x720), or to ask a grabber for."`
	Pixels   string        `placeholder:"FORMAT" help:"Pixel format of a synthetic screen (BGRX), or to ask a grabber for."`
	JSON     bool          `name:"json" help:"Print JSON."`
}

// Help is shown by appliance capture --help.
func (CaptureCmd) Help() string {
	return `Example:

  appliance capture --source x11::99 --out screen.reel --duration 10s
  appliance reel info screen.reel

Exit status 1 when a frame was lost.`
}

// Run records until the end, then says how it went.
func (c *CaptureCmd) Run(ctx context.Context, std *streams) error {
	src, err := c.open()
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

// open opens the source that the command line names.
func (c *CaptureCmd) open() (capture.Source, error) {
	kind, name, _ := strings.Cut(c.Source, ":")
	f := lab.Format{Pixels: lab.PixelFormat(c.Pixels), Rate: c.Rate}
	if c.Size != "" {
		if n, err := fmt.Sscanf(c.Size, "%dx%d", &f.Width, &f.Height); n != 2 || err != nil {
			return nil, usage(fmt.Errorf("--size %q is not of the form WIDTHxHEIGHT", c.Size))
		}
	}
	switch kind {
	case "x11":
		src, err := x11.Open(x11.Options{Display: name, Rate: c.Rate})
		if err != nil {
			return nil, cannot(err)
		}
		return src, nil
	case "synthetic":
		if f.Width == 0 {
			f.Width, f.Height = 1280, 720
		}
		if f.Pixels == "" {
			f.Pixels = lab.BGRX
		}
		src, err := synthetic.New(synthetic.Options{
			Format: f, Content: synthetic.Content(name), Clock: lab.Monotonic, Wait: capture.SleepUntil,
		})
		if err != nil {
			return nil, usage(err)
		}
		return src, nil
	case "v4l2":
		src, err := v4l2.Open(v4l2.Options{Path: name, Format: f})
		if err != nil {
			return nil, cannot(err)
		}
		return src, nil
	case "file":
		src, err := file.Open(name, file.Options{Format: f})
		if err != nil {
			return nil, usage(err)
		}
		return src, nil
	default:
		return nil, usage(errors.New("--source must be x11:…, v4l2:…, file:… or synthetic:…, not " + c.Source))
	}
}
