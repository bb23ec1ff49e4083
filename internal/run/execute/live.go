package execute

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"time"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// A run shows what its device's screen shows, to people who look at it meanwhile: while LiveWanted is
// touched in the folder, LivePicture is written there. Files reach out of a run's namespaces, and one
// picture serves all who look.
const (
	LiveWanted  = "wanted"
	LivePicture = "screen.png"
	liveNew     = "screen.new"
)

const (
	// livePeriod is the shortest time between two pictures: what is measured has the processor first.
	livePeriod = time.Second
	// liveWanted is for how long a picture is wanted after somebody has asked for one.
	liveWanted = 3 * time.Second
)

// liveScreen shows its films in a folder.
type liveScreen struct {
	experiment.Screen
	folder string
}

// Film implements [experiment.Screen].
func (s liveScreen) Film(ctx context.Context, path string) (experiment.Film, error) {
	f, err := s.Screen.Film(ctx, path)
	if err != nil || s.folder == "" {
		return f, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ShowLive(ctx, f.Latest, func() lab.Time { return f.Status().LastChange }, s.folder)
	}()
	return watchedFilm{f, func() { stop(); <-ended }}, nil
}

// ShowLive shows the newest pictures of a recording, which last changed at an instant, in a folder until ctx is done.
func ShowLive(ctx context.Context, latest func(func(lab.Format, lab.Frame)) bool, changed func() lab.Time, folder string) {
	ticker := time.NewTicker(livePeriod)
	defer ticker.Stop()
	shown := lab.Time(-1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked, err := os.Stat(filepath.Join(folder, LiveWanted))
		at := changed()
		if err != nil || time.Since(asked.ModTime()) > liveWanted || at == shown {
			continue
		}
		var img image.Image
		latest(func(format lab.Format, frame lab.Frame) {
			if pic, err := visual.PictureOf(format, frame.Pix, format.Bounds()); err == nil { // a copy
				img = pic.Image()
			}
		})
		if img == nil {
			continue
		}
		var b bytes.Buffer
		err = EncodeLive(&b, img)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, liveNew), b.Bytes(), 0o600)
		}
		if err == nil {
			err = os.Rename(filepath.Join(folder, liveNew), filepath.Join(folder, LivePicture))
		}
		if err == nil { // a disk that is full is told elsewhere
			shown = at
		}
	}
}

// EncodeLive writes a picture as PNG, in little time.
func EncodeLive(w io.Writer, img image.Image) error {
	return (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(w, img)
}
