package video

import (
	"bufio"
	"context"
	"fmt"
	"image"
	"os"

	"eidetic/internal/lab"
)

// Y4M writes the frames as a YUV4MPEG2 film at path, on a timeline of constant
// rate in which frames last as long as they stood on the screen. Whole pictures of
// YUYV, UYVY, NV12 and grey frames keep every sample (4:2:2, 4:2:0, mono); others
// become 4:2:0.
func Y4M(ctx context.Context, f Frames, path string, o Options) error {
	err := save(path, func(w *os.File) error {
		b := bufio.NewWriterSize(w, 1<<20)
		if err := writeY4M(b, f, o, picture(f.Format(), o), ctx.Err); err != nil {
			return err
		}
		return b.Flush()
	})
	if err != nil {
		os.Remove(path)
		return fmt.Errorf("film: %w", err)
	}
	return nil
}

// picture returns a film picture that keeps every sample, or nil if there is none.
func picture(f lab.Format, o Options) filmPicture {
	if !o.Crop.Empty() && o.Crop != f.Bounds() || o.Width > 0 && o.Width < f.Width {
		return nil
	}
	e := &exactPicture{f: f, data: make([]byte, f.FrameSize())}
	switch {
	case f.Pixels == lab.NV12:
		e.colour = "420jpeg"
	case (f.Pixels == lab.YUYV || f.Pixels == lab.UYVY) && f.Width%2 == 0:
		e.colour = "422"
	case f.Pixels == lab.Grey:
		e.colour = "mono"
	default:
		return nil
	}
	if f.Range == lab.FullRange {
		e.colour += " XCOLORRANGE=FULL" // as FFmpeg has it
	}
	return e
}

// exactPicture holds a frame's samples, plane after plane.
type exactPicture struct {
	f      lab.Format
	colour string
	data   []byte
}

func (e *exactPicture) header() (w, h int, colour string) { return e.f.Width, e.f.Height, e.colour }
func (e *exactPicture) bytes() []byte                     { return e.data }

func (e *exactPicture) update(f lab.Format, pix []byte, _ []image.Rectangle) error {
	if len(pix) < len(e.data) {
		return fmt.Errorf("%d bytes of %d", len(pix), len(e.data))
	}
	luma := f.Width * f.Height
	chroma := (len(e.data) - luma) / 2
	u, v := e.data[luma:], e.data[min(luma+chroma, len(e.data)):]
	switch f.Pixels {
	case lab.Grey:
		copy(e.data, pix)
	case lab.NV12:
		copy(e.data[:luma], pix)
		for i := range chroma {
			u[i], v[i] = pix[luma+2*i], pix[luma+2*i+1]
		}
	default:
		y0, c0 := 0, 1 // where luma and chroma are in a pair of bytes
		if f.Pixels == lab.UYVY {
			y0, c0 = 1, 0
		}
		for i := range chroma {
			p := pix[4*i : 4*i+4 : 4*i+4]
			e.data[2*i], e.data[2*i+1] = p[y0], p[y0+2]
			u[i], v[i] = p[c0], p[c0+2]
		}
	}
	return nil
}
