// Package source opens a screen to film by its name, as people write it on a
// command line: "x11::99", "v4l2:/dev/video0", "camera:/dev/video2", "rfb:HOST:PORT", "scrcpy:SERIAL",
// "file:PATH", "synthetic:CONTENT". In go the name and what is asked of the source; out comes
// a capture.Source of one of the packages beside this one.
package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"eidetic/capture"
	"eidetic/capture/file"
	"eidetic/capture/mjpeg"
	"eidetic/capture/reel"
	"eidetic/capture/rfb"
	"eidetic/capture/scrcpy"
	"eidetic/capture/steady"
	"eidetic/capture/synthetic"
	"eidetic/capture/through"
	"eidetic/capture/v4l2"
	"eidetic/capture/x11"
	"eidetic/internal/base/adbserver"
	"eidetic/internal/lab"
)

// Options of a source; what is zero is the source's choice.
type Options struct {
	Name     string         // KIND:NAME
	Format   lab.Format     // asked for; a source may deliver another one
	Password lab.Secret     // of a VNC server
	Controls map[string]int // of a grabber or camera, set first
	EDID     string         // a mode that an HDMI receiver is to offer: 1080p60
	Server   string         // the file of scrcpy's server, where it is not at its usual place
	ADB      adbserver.Client
	// Through is what a rehearsed grabber does to exact pictures (package through); "": nothing.
	Through string
	// Noise is what is known of the screen's noise. With it the pictures are held where only noise moves; without it
	// they are recorded as they come.
	Noise *steady.Memory
	// Latency is the least and the greatest time from the screen to a frame's time stamp; see [Late].
	Latency [2]time.Duration
}

// The defaults of sources that can choose.
const (
	defaultRate                      = 60 // frames a second
	syntheticWidth                   = 1280
	syntheticHeight                  = 720
	syntheticBuffers                 = 16
	kinds                            = "x11:…, v4l2:…, camera:…, rfb:…, scrcpy:…, file:… or synthetic:…"
	syntheticPixels  lab.PixelFormat = lab.BGRX
)

// OptionError says that what was asked for cannot be, whatever the machine's state.
type OptionError struct{ Err error }

func (e *OptionError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *OptionError) Unwrap() error { return e.Err }

// Open opens the source. An error is an [OptionError], or comes from the machine:
// a display, device, server or program that is not there.
func Open(ctx context.Context, o Options) (capture.Source, error) {
	src, err := open(ctx, o)
	if err != nil {
		return src, err
	}
	if src, err = Worn(src, o.Through, o.Noise); err != nil || o.Latency[1] == 0 {
		return src, err
	}
	return &Late{src, o.Latency[0], o.Latency[1]}, nil
}

// Worn has a source pass through a rehearsed grabber, if there is one, and has its pictures decoded and held if noise
// is not nil.
func Worn(src capture.Source, way string, noise *steady.Memory) (capture.Source, error) {
	if way != "" {
		w, err := through.Parse(way)
		if err == nil {
			var worn *through.Source
			if worn, err = through.New(src, w, uint64(time.Now().UnixNano())); err == nil {
				src = worn
			}
		}
		if err != nil {
			src.Close()
			return nil, &OptionError{err}
		}
	}
	if noise != nil {
		src = steady.New(mjpeg.New(src), noise)
	}
	return src, nil
}

func open(ctx context.Context, o Options) (capture.Source, error) {
	kind, name, _ := strings.Cut(o.Name, ":")
	f := o.Format
	if f.Rate == 0 && kind != "file" {
		f.Rate = defaultRate
	}
	switch kind {
	case "x11":
		return opened(x11.Open(x11.Options{Display: name, Rate: f.Rate}))
	case "rfb":
		return opened(rfb.Open(ctx, rfb.Options{Address: name, Password: o.Password, Rate: f.Rate}))
	case "scrcpy":
		return opened(scrcpy.Open(ctx, scrcpy.Options{
			Client: o.ADB, Serial: name, Server: o.Server, Rate: f.Rate,
			MaxSize: max(o.Format.Width, o.Format.Height), MaxRate: int(math.Ceil(o.Format.Rate)),
		}))
	case "synthetic":
		if f.Width == 0 {
			f.Width, f.Height = syntheticWidth, syntheticHeight
		}
		if f.Pixels == "" {
			f.Pixels = syntheticPixels
		}
		return asked(synthetic.New(synthetic.Options{
			Format: f, Content: synthetic.Content(name), Clock: lab.Monotonic, Wait: capture.SleepUntil, Buffers: syntheticBuffers,
		}))
	case "camera":
		return openCamera(ctx, name, o)
	case "v4l2":
		options := v4l2.Options{Path: name, Format: f, Controls: o.Controls}
		if o.EDID != "" {
			edid, err := v4l2.NewEDID(o.EDID)
			if err != nil {
				return nil, &OptionError{err}
			}
			options.EDID = edid
		}
		return opened(v4l2.Open(options))
	case "file":
		src, err := file.Open(ctx, name, file.Options{Format: f})
		if errors.Is(err, file.ErrNoDecoder) {
			return nil, err
		}
		return asked(src, err)
	}
	return nil, &OptionError{fmt.Errorf("a source must be %s, not %s", kinds, o.Name)}
}

// opened returns a source, or the error alone: a nil pointer in an interface is not nil.
func opened[S capture.Source](src S, err error) (capture.Source, error) {
	if err != nil {
		return nil, err
	}
	return src, nil
}

// asked is opened for sources whose errors are about what was asked for.
func asked[S capture.Source](src S, err error) (capture.Source, error) {
	if err != nil {
		return nil, &OptionError{err}
	}
	return src, nil
}

// Notes is what a source knows of itself, for the header of a reel; nil is nothing.
func Notes(src capture.Source) map[string]string {
	if s, ok := src.(interface{ Notes() map[string]string }); ok {
		return s.Notes()
	}
	return nil
}

// Header is the header of a reel that is recorded now from the source of this name.
func Header(src capture.Source, name string, now time.Time) reel.Header {
	h := reel.Header{Format: src.Format(), Source: name, Wall: now, Notes: Notes(src)}
	if h.NotLossless = notLossless(src); h.NotLossless == "" && h.Format.Pixels == lab.MJPEG {
		h.NotLossless = "MJPEG at the source"
	}
	return h
}

// notLossless is what a source knows of losses before it; "" is nothing.
func notLossless(src capture.Source) string {
	if s, ok := src.(interface{ NotLossless() string }); ok {
		return s.NotLossless()
	}
	return ""
}

// Recording is how a trial films a source.
func Recording(src capture.Source) capture.Options {
	return capture.Options{Whole: true, Card: isCard(src)}
}

// isCard says whether a source is a grabber, which names its card.
func isCard(src capture.Source) bool { return Notes(src)["card"] != "" }

// Record films a source into a sink until ctx or the source ends. A file is copied,
// because it can wait for the sink.
func Record(ctx context.Context, src capture.Source, sink capture.Sink) (capture.Stats, error) {
	if _, ok := src.(*file.Source); ok {
		return capture.Copy(ctx, src, sink)
	}
	r, err := capture.Start(ctx, src, sink, capture.Options{Card: isCard(src)})
	if err != nil {
		src.Close()
		return capture.Stats{}, err
	}
	<-r.Done()
	return r.Stop()
}
