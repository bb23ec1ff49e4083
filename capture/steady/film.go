package steady

import (
	"context"
	"errors"
	"io"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// Recording is a recording that can be read by index, as a reel can.
type Recording interface {
	Format() lab.Format
	Len() int
	Info(i int) lab.FrameInfo
	Pixels(i int) ([]byte, error)
}

// Stirs says whether a recording has a window of frames in each of which half of the picture changes, as noise has it;
// a film that fills the screen has it too. No pixels are read.
func Stirs(r Recording) bool {
	f, run := r.Format(), 0
	for i := range r.Len() {
		area := 0
		for _, c := range r.Info(i).Changed {
			area += c.Dx() * c.Dy()
		}
		if run++; 2*area < f.Width*f.Height {
			run = 0
		}
		if run == window {
			return true
		}
	}
	return false
}

// Play is a source of a recording's frames.
func Play(r Recording) capture.Source { return &player{r: r} }

type player struct {
	r Recording
	n int
}

func (p *player) Format() lab.Format { return p.r.Format() }

func (p *player) Close() error { return nil }

func (p *player) Next(ctx context.Context) (lab.Frame, error) {
	if p.n == p.r.Len() {
		return lab.Frame{}, io.EOF
	}
	pix, err := p.r.Pixels(p.n)
	info := p.r.Info(p.n)
	if p.n++; len(info.Changed) == 0 {
		info.Flags |= lab.FrameRepeat
	}
	return lab.Frame{FrameInfo: info, Pix: pix}, errors.Join(err, ctx.Err())
}

// Hold writes a recording as it is without its noise, which is learned from the whole of it first. One without noise is
// not written.
func Hold(ctx context.Context, r Recording, sink capture.Sink) (lab.ScreenNoise, error) {
	m := &Memory{}
	if err := each(ctx, New(Play(r), m), func(lab.Frame) error { return nil }); err != nil || m.Noise().Exact() {
		return lab.ScreenNoise{}, err
	}
	return m.Noise(), each(ctx, New(Play(r), m), sink.WriteFrame)
}

func each(ctx context.Context, src capture.Source, do func(lab.Frame) error) error {
	for {
		f, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(f)
		}
		if err != nil {
			return err
		}
	}
}

// Still learns the noise of a source whose screen stands still, in about a second. JPEGs have to be decoded before it.
// moved is the largest share of the screen on which more than the noise moved in a picture of the last window: then it
// did not stand still there.
func Still(ctx context.Context, src capture.Source) (noise lab.ScreenNoise, moved float64, err error) {
	m, whole := &Memory{}, src.Format().Bounds()
	held := New(src, m)
	for n := 0; n < 3*window; n++ {
		f, err := held.Next(ctx)
		var other *capture.Interruption
		switch {
		case errors.As(err, &other) && other.Ends == nil:
		case err != nil:
			return m.Noise(), moved, err
		case n >= 2*window:
			area := 0
			for _, r := range f.Changed {
				area += r.Dx() * r.Dy()
			}
			moved = max(moved, float64(area)/float64(whole.Dx()*whole.Dy()))
		}
	}
	return m.Noise(), moved, nil
}
