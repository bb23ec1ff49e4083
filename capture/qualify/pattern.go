// Package qualify measures how well a grabber delivers what is on a screen: a
// picture with a changing number is shown on a screen that the grabber sees, and the
// frames that it delivers are compared with what was shown.
//
// In flow the times at which numbers were shown, and frames; out flows a
// [Report]: numbers that never arrived, frames that were torn, how regular the frames'
// times are, how long a picture took to arrive, and whether the pixels
// are those that were shown.
package qualify

import (
	"math/rand/v2"

	"eidetic/capture/synthetic"
	"eidetic/internal/lab"
)

// MinWidth and MinHeight are the smallest screen that the picture fits on.
const (
	MinWidth  = 160
	MinHeight = 80
)

// The picture, from the top: a strip with the number, every level of grey, a
// board of single black and white pixels, which scaling and 4:2:0 compression blur, and
// noise, which no lossy compression keeps.
const (
	stripRows = 16
	greyRows  = 16
	boardRows = 16
)

// rows of the areas.
const (
	greyTop  = stripRows
	boardTop = greyTop + greyRows
	noiseTop = boardTop + boardRows
)

// Picture draws the picture with the number n, as BGRX.
func Picture(width, height int, n uint32) []byte {
	f := lab.Format{Pixels: lab.BGRX, Width: width, Height: height, Rate: 1}
	pix := make([]byte, f.FrameSize())
	for y := greyTop; y < min(height, noiseTop); y++ {
		for x := range width {
			v := grey(x, y, width)
			copy(pix[4*(y*width+x):], []byte{v, v, v})
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := 4 * noiseTop * width; i < len(pix); i += 4 {
		v := random.Uint32()
		pix[i], pix[i+1], pix[i+2] = byte(v), byte(v>>8), byte(v>>16)
	}
	synthetic.DrawCounter(f, pix, n)
	return pix
}

// Strip draws only the rows that hold the number.
func Strip(width int, n uint32) []byte {
	f := lab.Format{Pixels: lab.BGRX, Width: width, Height: stripRows, Rate: 1}
	pix := make([]byte, f.FrameSize())
	synthetic.DrawCounter(f, pix, n)
	return pix
}

// grey is the level of a pixel in the two grey areas.
func grey(x, y, width int) byte {
	if y < boardTop {
		return byte(x * 256 / width)
	}
	return byte(255 * ((x + y) & 1))
}
