package video

import (
	"fmt"
	"image"
)

// Difference shows where frame i of a and frame j of b differ: differing pixels
// red, the stronger the more they differ, over a pale copy of a's. It returns
// the number of pixels that differ. Both must have one size.
func Difference(a Frames, i int, b Frames, j int) (*image.RGBA, int, error) {
	x, err := Still(a, i)
	if err != nil {
		return nil, 0, fmt.Errorf("difference: %w", err)
	}
	y, err := Still(b, j)
	if err != nil {
		return nil, 0, fmt.Errorf("difference: %w", err)
	}
	if x.Rect != y.Rect {
		return nil, 0, fmt.Errorf("difference: pictures of %v and %v", x.Rect.Size(), y.Rect.Size())
	}
	differ := 0
	for k := 0; k < len(x.Pix); k += 4 {
		p, q := x.Pix[k:k+4:k+4], y.Pix[k:k+4:k+4]
		largest := 0
		for c := range 3 {
			largest = max(largest, int(p[c])-int(q[c]), int(q[c])-int(p[c]))
		}
		pale := byte(190 + (int(p[0])+int(p[1])+int(p[2]))/12)
		p[0], p[1], p[2] = pale, pale, pale
		if largest > 0 {
			differ++
			p[0], p[1], p[2] = 255, byte(160-largest*160/255), byte(160-largest*160/255)
		}
	}
	return x, differ, nil
}
