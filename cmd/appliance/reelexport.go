package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"path/filepath"
	"strings"

	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/capture/video"
	"eidetic/internal/lab"
)

// ReelExportCmd writes evidence for people.
type ReelExportCmd struct {
	File       string `arg:"" help:"The reel."`
	Out        string `required:"" help:"What to write, by its name: FILM.webm, FILM.y4m, or PICTURE.png."`
	Frame      int    `default:"0" help:"The frame of a PNG, counted from --start when that is given or found."`
	Strip      bool   `help:"PNG: a filmstrip, pictures at visual changes, with their times."`
	Heat       bool   `help:"PNG: a heat map, how often each pixel changed, with its scale below."`
	Beside     string `placeholder:"REEL" help:"Show this reel to the right of the first, both from their start."`
	Difference string `placeholder:"REEL" help:"Show where this reel differs from the first, both from their start."`
	Start      int    `default:"-1" placeholder:"FRAME" help:"Where the first reel starts. Default with --beside and --difference: at the last frame of the green page, as a trial does, or at its first frame."`
	OtherStart int    `default:"-1" placeholder:"FRAME" help:"Where the other reel starts."`
	Timestamps bool   `help:"Burn each frame's number and time in."`
	Crop       string `placeholder:"WxH+X+Y" help:"Only this part of the picture."`
	Width      int    `help:"Scale the film, or a picture of the strip, down to this many pixels."`
}

// Run writes the file.
func (c *ReelExportCmd) Run(ctx context.Context, std *streams) error {
	if c.Beside != "" && c.Difference != "" {
		return usage(errors.New("--beside and --difference are two different pictures: choose one"))
	}
	r, err := openReel(c.File)
	if err != nil {
		return err
	}
	defer r.Close()
	var part image.Rectangle
	if c.Crop != "" {
		if part, err = parseGeometry(c.Crop); err != nil {
			return usage(fmt.Errorf("--crop: %w", err))
		}
	}
	shown, first, done, err := c.shown(r)
	if err != nil {
		return err
	}
	defer done()
	if c.Timestamps {
		if shown, err = video.Stamped(shown, first); err != nil {
			return usage(err)
		}
	}
	if err := c.write(ctx, std, shown, first, part); err != nil {
		return ofReel(badFile(err))
	}
	_, err = fmt.Fprintln(std.out, c.Out)
	return err
}

// shown returns what is to be exported, and the frame it starts at.
func (c *ReelExportCmd) shown(r *reel.Reader) (video.Frames, int, func(), error) {
	path, combine := c.Beside, video.SideBySide
	if c.Difference != "" {
		path, combine = c.Difference, video.Differences
	}
	if path == "" {
		if c.Start >= r.Len() {
			return nil, 0, nil, usage(fmt.Errorf("--start %d: the reel has the frames 0 … %d", c.Start, r.Len()-1))
		}
		return r, max(0, c.Start), func() {}, nil
	}
	other, err := openReel(path)
	if err != nil {
		return nil, 0, nil, err
	}
	both, err := func() (video.Frames, error) {
		a, err := startOf(r, c.Start)
		if err != nil {
			return nil, err
		}
		b, err := startOf(other, c.OtherStart)
		if err != nil {
			return nil, err
		}
		return combine(r, a, other, b)
	}()
	if err != nil {
		other.Close()
		return nil, 0, nil, usage(err)
	}
	return both, 0, func() { other.Close() }, nil
}

// startOf returns the frame that was asked for, or the last one of the green
// page with which a trial begins, or 0.
func startOf(r *reel.Reader, asked int) (int, error) {
	if asked >= 0 || r.Format().Pixels == lab.MJPEG {
		return max(0, asked), nil
	}
	_, _, last, err := visual.FindContent(r, visual.SyncOptions{})
	if errors.Is(err, visual.ErrNoSync) {
		return 0, nil
	}
	return last, err
}

// write writes the file that the name and the flags ask for.
func (c *ReelExportCmd) write(ctx context.Context, std *streams, f video.Frames, first int, part image.Rectangle) error {
	film := video.Options{First: first, Crop: part, Width: c.Width, Rate: f.Format().Rate}
	switch ext := strings.ToLower(filepath.Ext(c.Out)); {
	case ext == ".webm":
		return video.WebM(ctx, f, c.Out, film)
	case ext == ".y4m":
		return video.Y4M(ctx, f, c.Out, film)
	case ext != ".png":
		return fmt.Errorf("--out %s: the name must end in .webm, .y4m or .png", c.Out)
	case c.Heat:
		if whole := f.Format().Bounds(); !part.Empty() && part.Intersect(whole).Empty() {
			return outside(whole)
		}
		r, err := visual.Analyze(f, visual.Options{Start: first, Content: part.Intersect(f.Format().Bounds())})
		if err != nil {
			return err
		}
		fmt.Fprintf(std.err, "the pixel that changed most did so %d times\n", r.Heat.Most())
		return writePNG(visual.HeatImage(r), image.Rectangle{}, c.Out)
	case c.Strip:
		_, err := video.Contact(ctx, f, c.Out, video.StripOptions{First: first, Crop: part, Width: c.Width})
		return err
	default:
		return writeStill(f, first+c.Frame, part, c.Out)
	}
}

// writeStill writes one frame as PNG.
func writeStill(f video.Frames, frame int, part image.Rectangle, out string) error {
	if frame < 0 || frame >= f.Len() {
		return fmt.Errorf("frame %d is not among 0 … %d", frame, f.Len()-1)
	}
	img, err := video.Still(f, frame)
	if err != nil {
		return err
	}
	return writePNG(img, part, out)
}

// outside says that --crop names a part that the picture does not have.
func outside(picture image.Rectangle) error {
	return fmt.Errorf("--crop: nothing of the picture, which is %v, is in it", picture.Size())
}

// writePNG writes an image, or a part of it.
func writePNG(img *image.RGBA, part image.Rectangle, out string) error {
	var shown image.Image = img
	if !part.Empty() {
		if part = part.Intersect(img.Rect); part.Empty() {
			return outside(img.Rect)
		}
		shown = img.SubImage(part)
	}
	return writeNamed(out, func(w io.Writer) error { return png.Encode(w, shown) })
}
