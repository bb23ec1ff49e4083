package execute

import (
	"context"
	"errors"
	"fmt"
	"image"
	"strings"
	"sync"
	"time"

	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/capture/source"
	"eidetic/control/connect"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// replugLimit is how long a part that was unplugged is waited for before the next trial.
const replugLimit = 3 * time.Minute

// soonLimit is how long controls are waited for where a device that hangs, and has taken them away, can be restarted.
const soonLimit = 30 * time.Second

// patiently opens a part of a device, and waits until it is plugged in. Its error makes one trial
// invalid, unless the part was asked for something that it never does.
func patiently[P any](ctx context.Context, limit time.Duration, open func(context.Context) (P, error)) (P, error) {
	deadline := time.Now().Add(limit)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		p, err := open(ctx)
		var wrongSource *source.OptionError
		var wrongControls *connect.OptionError
		switch {
		case err == nil || ctx.Err() != nil || errors.As(err, &wrongSource) || errors.As(err, &wrongControls):
			return p, err
		case time.Now().After(deadline):
			return p, experiment.Broken(fmt.Errorf("%w (it was waited for, for %v)", err, limit))
		}
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-ticker.C:
		}
	}
}

// partScreen is the screen of a plugged-in device: what it has said of itself, and where a picture
// of it lies.
type partScreen struct {
	name    string // "v4l2:/dev/video0"
	latency []float64

	mu   sync.Mutex
	last *lab.SourceState // nil before it was opened
}

// opened notes what a source says of itself.
func (p *partScreen) opened(h reel.Header) (*lab.SourceState, error) {
	s := SourceOf(p.name, h, p.latency)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = s
	return s, nil
}

// SourceOf is what films a plugged-in device's screen, by its name and the header of the reel; latency is what is
// subtracted, in ms.
func SourceOf(name string, h reel.Header, latency []float64) *lab.SourceState {
	return &lab.SourceState{
		Name: name, Pixels: h.Format.Pixels, Chroma: chroma(h.Format.Pixels), Width: h.Format.Width, Height: h.Format.Height,
		Rate: micro(h.Format.Rate), Notes: h.Notes, NotLossless: h.NotLossless, Latency: latency,
	}
}

// chroma says how a format has colours in less resolution; "" where it has them whole.
func chroma(p lab.PixelFormat) string {
	return map[lab.PixelFormat]string{lab.YUYV: "4:2:2", lab.UYVY: "4:2:2", lab.NV12: "4:2:0"}[p]
}

// size is that of the newest film's pictures; 0, 0 before the first.
func (p *partScreen) size() image.Point {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return image.Point{}
	}
	return image.Pt(p.last.Width, p.last.Height)
}

// describe is for a run's environment.
func (p *partScreen) describe() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return p.name
	}
	s := p.last
	words := []string{p.name, fmt.Sprintf("%d×%d %s at %g Hz", s.Width, s.Height, s.Pixels, s.Rate)}
	for _, note := range []string{"card", "layout", "colour", "signal"} {
		if text := s.Notes[note]; text != "" {
			words = append(words, note+" "+text)
		}
	}
	if s.Chroma != "" {
		words = append(words, "chroma "+s.Chroma+": lossless of what the grabber delivers, not of the picture")
	}
	if len(s.Latency) == 2 {
		words = append(words, fmt.Sprintf("%g … %g ms of latency subtracted", s.Latency[0], s.Latency[1]))
	}
	return strings.Join(words, ", ")
}

// pageOf returns the part of a picture that the green page covers: at least a quarter of the
// screen, or nothing.
func pageOf(f lab.Format, frame lab.Frame) image.Rectangle {
	area, err := visual.ContentOf(f, frame.Pix)
	if err != nil || 4*area.Dx()*area.Dy() < f.Width*f.Height {
		return image.Rectangle{}
	}
	return area
}
