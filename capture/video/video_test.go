package video_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
	"eidetic/capture/video"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// record returns a reel in memory of a synthetic screen.
func record(t testing.TB, f lab.Format, frames int) *reel.Reader {
	t.Helper()
	src, err := synthetic.New(synthetic.Options{Format: f, Content: synthetic.Load, Frames: frames})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := reel.NewWriter(&file, reel.Header{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	for {
		fr, err := src.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.WriteFrame(fr)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := reel.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWebM(t *testing.T) {
	testlab.NeedProgram(t, "vpxenc")
	for _, p := range []lab.PixelFormat{lab.BGRX, lab.YUYV, lab.NV12} {
		r := record(t, lab.Format{Pixels: p, Width: 321, Height: 201, Rate: 60}, 90)
		path := filepath.Join(t.TempDir(), "film.webm")
		if err := video.WebM(context.Background(), r, path, video.Options{}); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		data, err := os.ReadFile(path)
		if err != nil || len(data) < 1000 || !bytes.HasPrefix(data, []byte{0x1a, 0x45, 0xdf, 0xa3}) {
			t.Errorf("%s: %d bytes that are not WebM (%v)", p, len(data), err)
		}
	}
}

func TestWebMOfHDIsQuick(t *testing.T) {
	testlab.NeedProgram(t, "vpxenc")
	r := record(t, lab.Format{Pixels: lab.BGRX, Width: 1280, Height: 720, Rate: 60}, 600)
	start := time.Now()
	path := filepath.Join(t.TempDir(), "film.webm")
	if err := video.WebM(context.Background(), r, path, video.Options{}); err != nil {
		t.Fatal(err)
	}
	st, _ := os.Stat(path)
	t.Logf("10 s of 720p60 in %v, %d bytes", time.Since(start).Round(time.Millisecond), st.Size())
}

func TestWebMErrors(t *testing.T) {
	testlab.NeedProgram(t, "vpxenc")
	r := record(t, lab.Format{Pixels: lab.Grey, Width: 64, Height: 64, Rate: 60}, 10)
	missing := filepath.Join(t.TempDir(), "no", "such", "film.webm")
	if err := video.WebM(context.Background(), r, missing, video.Options{}); err == nil {
		t.Error("an output that cannot be written is not reported")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	path := filepath.Join(t.TempDir(), "film.webm")
	if err := video.WebM(ctx, r, path, video.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a film that was given up is left behind")
	}
	if err := video.WebM(context.Background(), r, path, video.Options{First: 5, Last: 20}); err == nil {
		t.Error("frames that are not there are not reported")
	}
	t.Setenv("PATH", "")
	if err := video.WebM(context.Background(), r, path, video.Options{}); !errors.Is(err, video.ErrNoEncoder) {
		t.Errorf("without vpxenc: %v", err)
	}
}

func TestFilmstripAtChangesEndsWithTheLastChange(t *testing.T) {
	r := record(t, lab.Format{Pixels: lab.BGRX, Width: 640, Height: 360, Rate: 60}, 200)
	dir := t.TempDir()
	thumbs, err := video.Filmstrip(context.Background(), r, dir, video.StripOptions{Max: 6, Crop: image.Rect(0, 20, 640, 360)})
	if err != nil {
		t.Fatal(err)
	}
	if len(thumbs) != 6 || thumbs[0].Frame != 0 || thumbs[5].Frame != 199 {
		t.Errorf("Filmstrip() = %+v; want 6 pictures from frame 0 to frame 199", thumbs)
	}
	for _, th := range thumbs {
		file, err := os.Open(filepath.Join(dir, th.File))
		if err != nil {
			t.Fatal(err)
		}
		img, err := jpeg.Decode(file)
		file.Close()
		if err != nil || img.Bounds().Dx() != 200 || img.Bounds().Dy() != 106 {
			t.Errorf("%s has the bounds %v (%v), want 200 × 106", th.File, img.Bounds(), err)
		}
	}
	sheet := filepath.Join(dir, "contact.png")
	thumbs, err = video.Contact(context.Background(), r, sheet, video.StripOptions{EveryMS: 500})
	if err != nil || len(thumbs) != 7 || thumbs[1].Frame != 30 {
		t.Errorf("Contact() = %+v, %v; want 7 pictures, the second of frame 30", thumbs, err)
	}
	file, err := os.Open(sheet)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := png.Decode(file); err != nil {
		t.Error(err)
	}
}

func TestStillOfEveryFormatShowsTheSameColours(t *testing.T) {
	white := map[lab.PixelFormat][]byte{
		lab.BGRX: {255, 255, 255, 0}, lab.BGR24: {255, 255, 255}, lab.Grey: {255},
		lab.YUYV: {235, 128}, lab.UYVY: {128, 235},
	}
	for p, pixel := range white {
		f := lab.Format{Pixels: p, Width: 6, Height: 4, Rate: 60}
		img, err := video.Still(one{f, bytes.Repeat(pixel, 24)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range img.Pix {
			if v != 255 {
				t.Errorf("%s: byte %d of white is %d", p, i, v)
				break
			}
		}
	}
	// Pure red by BT.601, limited range: Y 81, U 90, V 240.
	img, err := video.Still(one{lab.Format{Pixels: lab.NV12, Width: 2, Height: 2, Rate: 60}, []byte{81, 81, 81, 81, 90, 240}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r := img.RGBAAt(1, 1); r.R < 252 || r.G > 3 || r.B > 3 {
		t.Errorf("red is %v", r)
	}
	// What the source says of its colours counts: the same red in full range by BT.709, and RGB of limited range.
	for _, c := range []struct {
		f   lab.Format
		pix []byte
	}{
		{lab.Format{Pixels: lab.NV12, Matrix: lab.BT709, Range: lab.FullRange}, []byte{54, 54, 54, 54, 99, 255}},
		{lab.Format{Pixels: lab.BGR24, Range: lab.LimitedRange}, bytes.Repeat([]byte{16, 16, 235}, 4)},
	} {
		c.f.Width, c.f.Height, c.f.Rate = 2, 2, 60
		img, err := video.Still(one{c.f, c.pix}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r := img.RGBAAt(1, 1); r.R < 252 || r.G > 3 || r.B > 3 {
			t.Errorf("%+v: red is %v", c.f, r)
		}
	}
}

// A film of full range says so, or players would show it pale.
func TestY4MTellsTheRange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "film.y4m")
	f := lab.Format{Pixels: lab.NV12, Width: 2, Height: 2, Rate: 60, Range: lab.FullRange}
	if err := video.Y4M(t.Context(), one{f, []byte{1, 2, 3, 4, 5, 6}}, path, video.Options{}); err != nil {
		t.Fatal(err)
	}
	film, err := os.ReadFile(path)
	if head, _, _ := bytes.Cut(film, []byte("\n")); err != nil || !bytes.HasSuffix(head, []byte(" C420jpeg XCOLORRANGE=FULL")) {
		t.Errorf("the film begins with %q (%v), want its range at the end", head, err)
	}
}

// one is a recording of a single frame.
type one struct {
	f   lab.Format
	pix []byte
}

func (o one) Format() lab.Format         { return o.f }
func (o one) Len() int                   { return 1 }
func (o one) Info(int) lab.FrameInfo     { return lab.FrameInfo{} }
func (o one) Pixels(int) ([]byte, error) { return o.pix, nil }
