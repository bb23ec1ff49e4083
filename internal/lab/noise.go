package lab

import (
	"fmt"
	"math"
)

// ScreenNoise is what the pictures of a screen do while the screen stands still, and so what of it can be seen to
// change. The zero value is that of a source whose pictures of a still screen are equal.
//
// A picture is looked at in tiles, of 8 × 8 pixels where a pixel has four bytes. A tile has changed when one of its
// samples (a pixel's red, green or blue, or its brightness) has moved by more than Pixel, or the mean of its samples
// by more than Mean; in a tile that is not flat, both by Texture times its contrast more.
type ScreenNoise struct {
	Pixel   int     `json:"pixel_codes"`  // of 255
	Mean    float64 `json:"mean_codes"`   // of 255
	Texture float64 `json:"texture"`      // share of the contrast
	Watched int     `json:"tiles_frames"` // how many tiles were looked at in how many pictures, multiplied
}

// FalseAlarm is how often a tile of a still screen is taken for changed: so often in a frame, by the tail of what was
// seen of the noise.
const FalseAlarm = 1e-10

// MostNoise is how far a pixel of a flat part may move in a screen that can be measured: beyond it a pale text is no
// change any more.
const MostNoise = 40

// Calm is how much wider the limits on flat parts are while nothing has changed lately.
const Calm = 2

// Times returns limits that are so many times as wide on flat parts.
func (n ScreenNoise) Times(by float64) ScreenNoise {
	n.Pixel, n.Mean = int(math.Ceil(by*float64(n.Pixel))), by*n.Mean
	return n
}

// Exact says that there is no noise.
func (n ScreenNoise) Exact() bool { return n.Pixel == 0 && n.Mean == 0 && n.Texture == 0 }

// Wider returns the noise that allows what either of two allows.
func (n ScreenNoise) Wider(o ScreenNoise) ScreenNoise {
	return ScreenNoise{max(n.Pixel, o.Pixel), max(n.Mean, o.Mean), max(n.Texture, o.Texture), n.Watched + o.Watched}
}

// Floor says how much the pictures move by themselves.
func (n ScreenNoise) Floor() string {
	if n.Exact() {
		return "none: pictures of a still screen are equal"
	}
	text := fmt.Sprintf("a pixel moves by up to %d of 255, 8 × 8 pixels together by up to %.1f", n.Pixel, n.Mean)
	if n.Texture > 0 {
		text += fmt.Sprintf("; beside edges by up to %.0f %% of their contrast more", 100*n.Texture)
	}
	return text
}

// Sees says what change is seen for certain: the noise may work against it.
func (n ScreenNoise) Sees() string {
	if n.Exact() {
		return "1 pixel by 1 of 255"
	}
	w := n.Times(Calm)
	text := fmt.Sprintf("on a flat ground 1 pixel by %d of 255, 8 × 8 pixels by %.0f", w.Pixel+n.Pixel+1, math.Ceil(w.Mean+n.Mean))
	if n.Texture > 0 {
		text += fmt.Sprintf("; over black text on white 1 pixel by %.0f", float64(w.Pixel+n.Pixel+1)+255*n.Texture)
	}
	return text
}
