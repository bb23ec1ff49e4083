package steady_test

import (
	"bytes"
	"context"
	"image"
	"io"
	"testing"

	"eidetic/capture"
	"eidetic/capture/mjpeg"
	"eidetic/capture/reel"
	"eidetic/capture/steady"
	"eidetic/capture/synthetic/scene"
	"eidetic/capture/through"
	"eidetic/internal/lab"
)

// drawn is a source of a scene's frames.
type drawn struct {
	scene *scene.Scene
	n     int
	pix   []byte
}

const drawnFrames = 300

func (d *drawn) Format() lab.Format {
	return lab.Format{Pixels: lab.BGRX, Width: d.scene.Width, Height: d.scene.Height, Rate: 60}
}

func (d *drawn) Close() error { return nil }

func (d *drawn) Next(context.Context) (f lab.Frame, err error) {
	if d.n == drawnFrames {
		return f, io.EOF
	}
	d.scene.Draw(d.pix, d.n)
	f.Seq, f.Time, f.Pix, f.Changed = uint64(d.n), lab.Time(1+d.n*1e9/60), d.pix, []image.Rectangle{d.Format().Bounds()}
	d.n++
	return f, nil
}

// counted counts the bytes of the pictures that differ from the one before.
type counted struct {
	capture.Source
	last  []byte
	bytes int
}

func (c *counted) Next(ctx context.Context) (lab.Frame, error) {
	f, err := c.Source.Next(ctx)
	if err == nil && !bytes.Equal(f.Pix, c.last) {
		c.last = append(c.last[:0], f.Pix...)
		c.bytes += len(f.Pix)
	}
	return f, err
}

// BenchmarkSizes compares what the JPEGs of five seconds take with what the reel of the held pictures takes.
func BenchmarkSizes(b *testing.B) {
	for _, name := range []string{scene.PageLoad, scene.Scroll, scene.Video} {
		for _, way := range []string{"mjpeg=80", "noise=1,mjpeg=80"} {
			b.Run(name+"/"+way, func(b *testing.B) {
				const width, height = 1280, 720
				for range b.N {
					s, err := scene.New(name, width, height)
					if err != nil {
						b.Fatal(err)
					}
					w, err := through.Parse(way)
					if err != nil {
						b.Fatal(err)
					}
					worn, err := through.New(&drawn{scene: s, pix: make([]byte, 4*width*height)}, w, 1)
					if err != nil {
						b.Fatal(err)
					}
					jpegs := &counted{Source: worn}
					held := steady.New(mjpeg.New(jpegs), &steady.Memory{})
					var file bytes.Buffer
					sink, err := reel.NewWriter(&file, reel.Header{Format: held.Format()})
					if err == nil {
						_, err = capture.Copy(b.Context(), held, sink)
					}
					if err == nil {
						err = sink.Close()
					}
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(jpegs.bytes)/1e6, "MB-jpegs")
					b.ReportMetric(float64(file.Len())/1e6, "MB-reel")
				}
			})
		}
	}
}
