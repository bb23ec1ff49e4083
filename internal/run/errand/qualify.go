package errand

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"time"

	"eidetic/capture/mjpeg"
	"eidetic/capture/qualify"
	"eidetic/capture/source"
	"eidetic/capture/steady"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
)

// The files of a qualification besides its report.
const (
	reportData    = "qualification.json"
	shownFile     = "shown.png"
	arrivedFile   = "arrived.png"
	differentFile = "different.png"
)

// source opens what sees the device's screen, as its pictures come.
func (d Device) source(ctx context.Context) (o source.Options, err error) {
	parts, err := d.Seat.Open()
	return parts.Screen, err
}

// qualify shows numbers on the screen that the device's grabber sees, and keeps how they arrive.
func (k *Keeper) qualify(ctx context.Context, e *errand, d Device) error {
	o, err := d.source(ctx)
	if err != nil {
		return err
	}
	o.Latency = [2]time.Duration{} // it is what is measured
	screen, rate, done, err := d.screen(ctx, e, o)
	if err != nil {
		return err
	}
	defer done()
	src, err := source.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("the grabber: %w", err)
	}
	f := src.Format()
	run := k.newRun(e, d, lab.KindQualification, "qualification of "+d.Name)
	run.Environment.Screen = fmt.Sprintf("%s, %d × %d at %g/s", o.Name, f.Width, f.Height, f.Rate)
	e.begins(Working, "showing pictures and looking for them", e.request.Length)
	r, err := qualify.Run(ctx, src, screen, qualify.Options{Duration: e.request.Length, Rate: rate})
	if err != nil {
		return err
	}
	run.Elapsed, run.Warnings = time.Since(run.Wall).Seconds(), r.Problems
	e.tell(func(s *Status) {
		s.State, s.Doing, s.Ends, s.Frames, s.Note = Keeping, "writing the report", nil, r.Capture.Frames, r.Verdict()
	})
	return k.put(e, run, func(dir string) error { return writeQualification(dir, run, r) })
}

// screen opens what shows the pictures, and says how many numbers a second it can; 0 is the usual rate.
func (d Device) screen(ctx context.Context, e *errand, o source.Options) (s qualify.Screen, rate float64, done func(), err error) {
	if d.Display != "" {
		x, err := qualify.OpenXScreen(d.Display)
		if err != nil {
			return nil, 0, nil, err
		}
		return x, 0, func() { _ = x.Close() }, nil
	}
	src, err := source.Open(ctx, o)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("the grabber: %w", err)
	}
	f := src.Format()
	if err := src.Close(); err != nil {
		return nil, 0, nil, fmt.Errorf("the grabber: %w", err)
	}
	page, done := d.Pictures.begin(ctx, f.Width, f.Height)
	e.begins(Waiting, "", MostWait)
	limited, cancel := context.WithTimeoutCause(ctx, MostWait, fmt.Errorf("nobody opened http://box.test%s on the device, in %d × %d pixels, within %v",
		PicturesPath, f.Width, f.Height, MostWait))
	defer cancel()
	if err := page.fits(limited, func(doing string) { e.tell(func(s *Status) { s.Doing = doing }) }); err != nil {
		done()
		return nil, 0, nil, err
	}
	return page, pictureRate, done, nil
}

//go:embed qualification.gohtml
var page string

// figure is a picture of the report.
type figure struct{ File, Text string }

// writeQualification writes the report with its numbers and pictures.
func writeQualification(dir string, run *lab.Run, r qualify.Report) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, reportData), append(data, '\n'), 0o644); err != nil {
		return err
	}
	figures, err := writeFigures(dir, r.Sample)
	if err != nil {
		return err
	}
	t, err := template.New("qualification").Parse(page)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{
		"Run": run, "When": run.Wall.UTC().Format("2006-01-02 15:04 UTC"), "Report": r, "Lines": r.Lines(), "Figures": figures, "Data": reportData,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, report.FileName), b.Bytes(), 0o644)
}

// writeFigures writes a picture as it was shown and as it arrived, and where they differ.
func writeFigures(dir string, s *qualify.Sample) ([]figure, error) {
	if s == nil {
		return nil, nil
	}
	arrived, err := s.Image()
	if err != nil {
		return nil, err
	}
	shown, err := s.Shown()
	if err != nil {
		return nil, err
	}
	all := []figure{
		{shownFile, fmt.Sprintf("Number %d as it was shown", s.Number)}, {arrivedFile, "The same as it arrived"},
		{differentFile, fmt.Sprintf("Where they differ: the difference of each channel, %d times", enlarged)},
	}
	for i, img := range []image.Image{shown, arrived, difference(shown, arrived)} {
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, all[i].File), b.Bytes(), 0o644); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// enlarged is how many times a difference is drawn.
const enlarged = 16

// difference draws where two pictures of one size differ.
func difference(a, b image.Image) image.Image {
	out := image.NewRGBA(a.Bounds())
	apart := func(x, y uint32) uint8 {
		d := int(x>>8) - int(y>>8)
		return uint8(min(255, enlarged*max(d, -d)))
	}
	for y := out.Rect.Min.Y; y < out.Rect.Max.Y; y++ {
		for x := out.Rect.Min.X; x < out.Rect.Max.X; x++ {
			ar, ag, ab, _ := a.At(x, y).RGBA()
			br, bg, bb, _ := b.At(x, y).RGBA()
			out.SetRGBA(x, y, color.RGBA{apart(ar, br), apart(ag, bg), apart(ab, bb), 255})
		}
	}
	return out
}

// NoiseReport is what the screen does while it stands still, and so what of it can be seen to change.
type NoiseReport struct {
	lab.ScreenNoise
	Floor, Sees string // in words
	Screen      string // what was watched
	TooNoisy    bool   // for a run
}

// noise watches a screen that stands still.
func (k *Keeper) noise(ctx context.Context, e *errand, d Device) error {
	o, err := d.source(ctx)
	if err != nil {
		return err
	}
	src, err := source.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("the screen: %w", err)
	}
	defer src.Close()
	f := src.Format()
	e.begins(Working, "watching the screen", noiseTime)
	limited, cancel := context.WithTimeoutCause(ctx, noiseTime, errors.New("the screen gave too few pictures"))
	defer cancel()
	n, moved, err := steady.Still(limited, mjpeg.New(src))
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	if err != nil {
		return err
	}
	note := ""
	switch percent := 100 * moved; {
	case moved > mostMoving:
		return fmt.Errorf("the screen did not stand still: %.0f %% of it moved; show a page that stands still, and watch again", percent)
	case moved > 0:
		note = fmt.Sprintf("something moved on %.1f %% of the screen, which was left out", percent)
	}
	e.tell(func(s *Status) {
		s.Note = note
		screen := fmt.Sprintf("%s, %d × %d %s at %g/s", o.Name, f.Width, f.Height, f.Pixels, f.Rate)
		s.Noise = &NoiseReport{n, n.Floor(), n.Sees(), screen, n.Pixel > lab.MostNoise}
	})
	return nil
}

// mostMoving is the share of a screen that may move while its noise is watched: a caret, a clock.
const mostMoving = 0.25

// noiseTime bounds how long a screen is watched: one that a VNC server shows only where it changes gives few pictures.
const noiseTime = 20 * time.Second
