package video

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"

	"eidetic/internal/lab"
)

// ToRGBA converts the part r of a frame into the same part of dst.
// Formats say what colours their samples stand for, see [lab.Format.YCbCr].
func ToRGBA(dst *image.RGBA, f lab.Format, pix []byte, r image.Rectangle) error {
	if f.Pixels == lab.MJPEG {
		img, err := jpeg.Decode(bytes.NewReader(pix))
		if err != nil {
			return fmt.Errorf("JPEG: %w", err)
		}
		draw.Draw(dst, r, img, r.Min, draw.Src)
		return nil
	}
	if len(pix) < f.FrameSize() {
		return fmt.Errorf("%d bytes of %d", len(pix), f.FrameSize())
	}
	yuv, stretch := f.YCbCr(), f.Stretch()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		out := dst.Pix[dst.PixOffset(r.Min.X, y):][:4*r.Dx()]
		in := pix[y*f.Stride():]
		for i, x := 0, r.Min.X; x < r.Max.X; i, x = i+4, x+1 {
			o := out[i : i+4 : i+4]
			o[3] = 255
			switch f.Pixels {
			case lab.BGRX:
				o[0], o[1], o[2] = in[4*x+2], in[4*x+1], in[4*x]
			case lab.BGR24:
				o[0], o[1], o[2] = in[3*x+2], in[3*x+1], in[3*x]
			case lab.Grey:
				o[0], o[1], o[2] = in[x], in[x], in[x]
			case lab.YUYV, lab.UYVY:
				o[0], o[1], o[2] = yuv.RGB(packed(f, in, x))
			case lab.NV12:
				uv := pix[f.Width*f.Height+y/2*(2*((f.Width+1)/2))+x/2*2:]
				o[0], o[1], o[2] = yuv.RGB(in[x], uv[0], uv[1])
			}
			if stretch != nil {
				o[0], o[1], o[2] = stretch[o[0]], stretch[o[1]], stretch[o[2]]
			}
		}
	}
	return nil
}

// packed returns Y, U and V of pixel x of a 4:2:2 row.
func packed(f lab.Format, row []byte, x int) (y, u, v byte) {
	pair := x &^ 1 * 2
	second := min(pair+3, 2*f.Width-1) // an odd width cuts the last pair
	if f.Pixels == lab.YUYV {
		return row[2*x], row[pair+1], row[second]
	}
	return row[2*x+1], row[pair], row[min(pair+2, 2*f.Width-2)]
}
