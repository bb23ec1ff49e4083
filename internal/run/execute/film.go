package execute

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"syscall"
	"time"

	"eidetic/analysis/framecode"
	"eidetic/analysis/visual"
	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/capture/source"
	"eidetic/capture/steady"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// Screen films the source that Open opens.
type Screen struct {
	Open func(context.Context) (capture.Source, error)
	Name string // name of the source in the reel: "x11::0"
	// Noise is what is known of the screen's noise; nil where its pictures are exact.
	Noise *steady.Memory
	// Part is set for the screen of a plugged-in device: it is waited for until it is plugged
	// in, what it says of itself is kept with each trial, and a browser may leave a part of it
	// to its own bars.
	Part *partScreen
}

// codedScreen films pages that draw codes into their frames.
type codedScreen struct{ experiment.Screen }

// Film implements [experiment.Screen].
func (s codedScreen) Film(ctx context.Context, path string) (experiment.Film, error) {
	f, err := s.Screen.Film(ctx, path)
	if own, ok := f.(*film); ok && err == nil {
		own.coded = true
	}
	return f, err
}

// Film implements [experiment.Screen].
func (s Screen) Film(ctx context.Context, path string) (experiment.Film, error) {
	src, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	header := source.Header(src, s.Name, time.Now())
	var state *lab.SourceState
	if s.Part != nil {
		if state, err = s.Part.opened(header); err != nil {
			src.Close()
			return nil, err
		}
	}
	w, err := reel.Create(path, header)
	if err != nil {
		src.Close()
		return nil, err
	}
	r, err := capture.Start(ctx, src, w, source.Recording(src))
	if err != nil {
		w.Close()
		src.Close()
		return nil, err
	}
	return &film{Recorder: r, reel: w, source: state, noise: s.Noise}, nil
}

// film is a recording and its reel.
type film struct {
	*capture.Recorder
	reel   *reel.Writer
	noise  *steady.Memory
	source *lab.SourceState // of a plugged-in device
	area   image.Rectangle  // the page's part of its screen, once that has been green
	// coded is set until it is known where the page's codes will be.
	coded bool
}

// Shows implements [experiment.Film] by the rule of the analysis, so that the red page that
// ends a trial is the page that the analysis leaves out.
func (f *film) Shows(c color.RGBA) (all bool) {
	f.Latest(func(format lab.Format, frame lab.Frame) {
		area := format.Bounds()
		if f.source != nil { // its browser may have bars around the page
			if c == lab.SyncGreen() {
				f.area = pageOf(format, frame)
			}
			area = f.area
		}
		all = !area.Empty() && visual.ShowsIn(format, frame.Pix, area, c)
		if f.coded && all && c == lab.SyncGreen() {
			if content, err := visual.ContentOf(format, frame.Pix); err == nil {
				f.coded = false
				f.Unheed(framecode.Strip(content.Min))
			}
		}
	})
	return all
}

func (f *film) Status() experiment.FilmStatus {
	s := status(f.Recorder.Status())
	if f.noise != nil {
		s.Noise = f.noise.Noise()
	}
	return s
}

func status(s capture.Status) experiment.FilmStatus {
	if s.Trouble == "" && s.Err != nil {
		s.Trouble = s.Err.Error()
	}
	return experiment.FilmStatus{
		Frames: s.Frames, Lost: s.Lost,
		FirstFrame: s.FirstFrame, LastFrame: s.LastFrame, LastChange: s.LastChange,
		Interruptions: s.Interruptions, Trouble: s.Trouble,
	}
}

func (f *film) Stop() (experiment.FilmStatus, error) {
	stats, err := f.Recorder.Stop()
	if closeErr := f.reel.Close(); err == nil {
		err = closeErr
	}
	if err == nil && stats.Interruptions > 0 {
		err = fmt.Errorf(
			"the source of the pictures was interrupted %d time(s): appliance reel info says when and why",
			stats.Interruptions,
		)
	}
	out := status(f.Recorder.Status())
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) {
		out.Full = err
	}
	out.Frames, out.Lost = stats.Frames, stats.Lost
	out.Period, out.Normal = ms(1e3/stats.Nominal), ms(stats.NormalBound)
	out.MissedProven, out.MissedDrawn, out.Unseen = stats.MissedProven, stats.MissedDrawn, stats.Unseen
	out.Capture = CaptureOf(stats, f.source, f.noise)
	return out, err
}

// CaptureOf describes a recording that has ended. source is that of a plugged-in device, and noise what is known of its
// screen; either may be nil.
func CaptureOf(stats capture.Stats, source *lab.SourceState, noise *steady.Memory) *lab.CaptureState {
	c := &lab.CaptureState{
		Source: source,
		Rate:   micro(stats.Rate), IntervalP99: micro(stats.IntervalP99), IntervalMax: micro(stats.IntervalMax),
		Jitter: micro(stats.Jitter), Scheduling: stats.Scheduling, MissedProven: stats.MissedProven, MissedDrawn: stats.MissedDrawn,
		NormalBound: micro(stats.NormalBound), WorstBound: micro(stats.WorstBound), LostBecause: stats.Reasons,
		Irregular: stats.Irregular, Blue: stats.Blue,
	}
	if noise != nil {
		known := noise.Noise()
		c.Noise = &known
	}
	return c
}

// micro rounds milliseconds to three digits, that is to microseconds.
func micro(v float64) float64 { return math.Round(v*1e3) / 1e3 }

// watched reports the recordings of a screen to a watchdog, if there is one.
type watched struct {
	experiment.Screen
	tell func(FilmNews)
}

func (w watched) Film(ctx context.Context, path string) (experiment.Film, error) {
	f, err := w.Screen.Film(ctx, path)
	if err != nil || w.tell == nil {
		return f, err
	}
	w.tell(FilmBegins)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer w.tell(FilmEnds)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for seen := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			// A source that has reported an interruption is alive. The interruption ends the
			// trial, but is no reason to restart the service.
			s := f.Status()
			if s.Frames > seen || s.Interruptions > 0 {
				seen = s.Frames
				w.tell(FilmTurns)
			}
		}
	}()
	return watchedFilm{f, func() { stop(); <-ended }}, nil
}

// watchedFilm ends the watch when the recording ends.
type watchedFilm struct {
	experiment.Film
	end func()
}

func (f watchedFilm) Stop() (experiment.FilmStatus, error) {
	f.end()
	return f.Film.Stop()
}
