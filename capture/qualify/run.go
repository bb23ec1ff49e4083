package qualify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eidetic/capture"
	"eidetic/capture/mjpeg"
	"eidetic/capture/steady"
	"eidetic/internal/lab"
)

// Screen is where the picture is shown, in its full size.
type Screen interface {
	Size() (width, height int)
	// Show shows the number n, 0 with the whole picture, and returns the
	// interval in which it appeared.
	Show(n uint32) (earliest, latest lab.Time, err error)
}

// Options of a qualification.
type Options struct {
	Duration time.Duration // how long numbers are shown
	Rate     float64       // numbers per second; default half the grabber's rate
	// Patience is how long the first and the last number may take to arrive; default 5 s.
	Patience time.Duration
	Record   capture.Options
}

// Run shows the picture on the screen, films it with src, which it closes,
// and judges.
func Run(ctx context.Context, src capture.Source, screen Screen, o Options) (Report, error) {
	f := src.Format()
	judge, err := prepare(f, screen, &o)
	if err != nil {
		src.Close()
		return Report{}, err
	}
	if s, ok := src.(interface{ NotLossless() string }); ok {
		judge.Loses(s.NotLossless())
	}
	if _, _, err := screen.Show(0); err != nil {
		src.Close()
		return Report{}, fmt.Errorf("show the picture: %w", err)
	}
	noise, _, err := steady.Still(ctx, mjpeg.New(src))
	if err != nil {
		src.Close()
		return Report{}, fmt.Errorf("watch the still picture: %w", err)
	}
	r, err := capture.Start(ctx, src, judge, o.Record)
	if err != nil {
		src.Close()
		return Report{}, err
	}
	err = show(ctx, r, judge, screen, o)
	st, serr := r.Stop()
	if err = errors.Join(err, serr); err != nil {
		return Report{}, err
	}
	report := judge.Report(st, o.Rate)
	report.Noise = noise
	return report, nil
}

func prepare(f lab.Format, screen Screen, o *Options) (*Judge, error) {
	judge, err := NewJudge(f)
	if err != nil {
		return nil, err
	}
	if w, h := screen.Size(); w != f.Width || h != f.Height {
		return nil, fmt.Errorf("the screen has %d × %d pixels, the grabber delivers %d × %d: set the screen to the grabber's size", w, h,
			f.Width, f.Height)
	}
	if o.Rate == 0 {
		o.Rate = f.Rate / 2
	}
	if !(o.Rate > 0 && o.Rate <= 1000) {
		return nil, fmt.Errorf("a rate of %g numbers per second cannot be shown", o.Rate)
	}
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	return judge, nil
}

// show shows number after number, on an absolute schedule.
func show(ctx context.Context, r *capture.Recorder, judge *Judge, screen Screen, o Options) error {
	now := lab.Monotonic()
	judge.Shown(now, now)
	if err := arrived(ctx, r, judge, 0, o.Patience); err != nil {
		return err
	}
	period := time.Duration(1e9 / o.Rate)
	tick := time.NewTicker(period)
	defer tick.Stop()
	numbers := uint32(max(1, o.Duration/period))
	for n := uint32(1); n <= numbers; n++ {
		select {
		case <-tick.C:
		case <-r.Done():
			return nil // Stop says why
		case <-ctx.Done():
			return ctx.Err()
		}
		earliest, latest, err := screen.Show(n)
		if err != nil {
			return fmt.Errorf("show number %d: %w", n, err)
		}
		judge.Shown(earliest, latest)
	}
	return arrived(ctx, r, judge, numbers, o.Patience)
}

// arrived waits until a number has been seen, or for the time of patience: the judge
// reports a number that is missing.
func arrived(ctx context.Context, r *capture.Recorder, judge *Judge, n uint32, patience time.Duration) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !judge.Seen(n) {
		select {
		case <-tick.C:
		case <-limit.C:
			return nil
		case <-r.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
