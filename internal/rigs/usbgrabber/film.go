package usbgrabber

import (
	"bytes"
	"image"
	"image/jpeg"
	"math/rand/v2"

	"eidetic/capture/qualify"
	"eidetic/capture/synthetic"
	"eidetic/internal/lab"
)

// quality is that of the stick's JPEGs.
const quality = 80

// draw returns the bytes of a picture; nil for one that is not sent.
func (p *player) draw(number int, fault Fault) ([]byte, error) {
	f := p.format
	f.Pixels = lab.YUYV
	switch fault {
	case Lost:
		return nil, nil
	case Blue:
		NoSignal(f, p.pix, number)
	default:
		p.g.o.Film(f, p.pix, number)
	}
	if fault == Torn {
		p.g.o.Film(f, p.other, number+1)
		half := f.Stride() * (f.Height / 2)
		copy(p.pix[half:], p.other[half:])
	}
	if p.format.Pixels != lab.MJPEG {
		return p.pix, nil
	}
	m := image.NewYCbCr(f.Bounds(), image.YCbCrSubsampleRatio422)
	for i := range m.Cb {
		m.Y[2*i], m.Cb[i], m.Y[2*i+1], m.Cr[i] = p.pix[4*i], p.pix[4*i+1], p.pix[4*i+2], p.pix[4*i+3]
	}
	var b bytes.Buffer
	err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality})
	return b.Bytes(), err
}

// Scroll is a page that moves up by eight rows a picture, with the number on top. Each row has a word at a place of its
// own.
func Scroll(f lab.Format, pix []byte, n int) {
	for y := range f.Height {
		random := rand.New(rand.NewPCG(uint64(y+8*n), 9))
		row := pix[y*f.Stride():][:f.Stride()]
		for x := 0; x < len(row); x += 2 {
			row[x], row[x+1] = 200, 128
		}
		from := 2 * random.IntN(f.Width-64)
		for x := from; x < from+2*64; x += 2 {
			row[x] = byte(30 + random.IntN(60))
		}
	}
	synthetic.DrawCounter(f, pix, uint32(n))
}

// NoSignal is what a stick shows whose HDMI cable is pulled: one blue, by BT.601 in limited range.
func NoSignal(_ lab.Format, pix []byte, _ int) {
	for i := 0; i < len(pix); i += 4 {
		copy(pix[i:], []byte{41, 240, 41, 110})
	}
}

// Still is a page that stands still, with a number on top that stays.
func Still(f lab.Format, pix []byte, _ int) { Scroll(f, pix, 0) }

// Noisy moves each brightness of a film by up to so many codes.
func Noisy(film Film, codes int) Film {
	return func(f lab.Format, pix []byte, n int) {
		film(f, pix, n)
		random := rand.New(rand.NewPCG(uint64(n), 44))
		for i := 0; i+16 <= len(pix); i += 16 {
			bits := random.Uint64()
			for k := 0; k < 16; k += 2 {
				pix[i+k] += byte(int(bits>>(4*k)&0xff)%(2*codes+1) - codes)
			}
		}
	}
}

// Sharpened raises the contrast of each row's edges, as cheap scalers do.
func Sharpened(film Film) Film {
	return func(f lab.Format, pix []byte, n int) {
		film(f, pix, n)
		for y := range f.Height {
			row := pix[y*f.Stride():][:f.Stride()]
			before := int(row[0])
			for x := 2; x < len(row)-2; x += 2 {
				now := int(row[x])
				row[x] = byte(min(max(now+(2*now-before-int(row[x+2]))/4, 0), 255))
				before = now
			}
		}
	}
}

// Scaled is a film that was drawn for another size and scaled to this one by its nearest pixels.
func Scaled(film Film, width, height int) Film {
	return func(f lab.Format, pix []byte, n int) {
		from := f
		from.Width, from.Height = width, height
		drawn := make([]byte, from.FrameSize())
		film(from, drawn, n)
		for y := range f.Height {
			row := drawn[y*height/f.Height*from.Stride():]
			for x := range f.Width {
				pix[y*f.Stride()+2*x] = row[2*(x*width/f.Width)]
				pix[y*f.Stride()+2*x+1] = row[4*(x/2*width/f.Width)+1+2*(x&1)]
			}
		}
	}
}

// Test is the picture by which grabbers are qualified.
func Test(f lab.Format, pix []byte, n int) {
	shown := qualify.Picture(f.Width, f.Height, uint32(n))
	for i := range f.Width * f.Height {
		pix[2*i], pix[2*i+1] = byte(16+(int(shown[4*i+1])*219+127)/255), 128
	}
}
