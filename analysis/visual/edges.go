package visual

import "image"

// edges counts the edge pixels of a picture: Canny 1986 as browsertime calls
// OpenCV for its Contentful Speed Index: grey, Gaussian blur σ 1 in 8-bit fixed
// point, Sobel 3×3 with the L1 norm, thresholds at 10 % and 30 % of the blurred
// picture's range above its smallest value.
type edges struct {
	size       image.Point
	grey, blur []uint8
	pass       []uint16
	dx, dy     []int16
	magnitude  []int32 // with a border of one zero on each side
	state      []uint8 // the same size: edgeNone, edgeWeak or edgeStrong
	stack      []int
}

const (
	edgeNone = iota
	edgeWeak
	edgeStrong
)

func newEdges(size image.Point) *edges {
	n, bordered := size.X*size.Y, (size.X+2)*(size.Y+2)
	return &edges{size: size, grey: make([]uint8, n), blur: make([]uint8, n), pass: make([]uint16, n),
		dx: make([]int16, n), dy: make([]int16, n), magnitude: make([]int32, bordered), state: make([]uint8, bordered)}
}

func (e *edges) count(picture []uint32) int {
	for i, p := range picture {
		e.grey[i] = uint8(luma(p))
	}
	e.gaussian()
	low, high := e.blur[0], e.blur[0]
	for _, v := range e.blur {
		low, high = min(low, v), max(high, v)
	}
	e.sobel()
	span, base := float64(high-low), float64(low)
	return e.canny(int32(float64(0.10*span)+base), int32(float64(0.30*span)+base))
}

// gaussian blurs with 1 14 62 102 62 14 1 over 256, whole-sample reflection at
// the borders, rounding half up once at the end. The peer's 13 taps are 0 beyond these.
func (e *edges) gaussian() {
	w, h := e.size.X, e.size.Y
	kernel := [7]uint32{1, 14, 62, 102, 62, 14, 1}
	for y := range h {
		in, out := e.grey[y*w:][:w], e.pass[y*w:][:w]
		for x := range out {
			sum := uint32(0)
			for k, weight := range kernel {
				sum += weight * uint32(in[reflect101(x+k-3, w)])
			}
			out[x] = uint16(sum)
		}
	}
	var rows [7][]uint16
	for y := range h {
		for k := range rows {
			rows[k] = e.pass[reflect101(y+k-3, h)*w:][:w]
		}
		for x := range w {
			sum := uint32(1 << 15)
			for k, weight := range kernel {
				sum += weight * uint32(rows[k][x])
			}
			e.blur[y*w+x] = uint8(sum >> 16)
		}
	}
}

// reflect101 maps an index into 0 … n−1 by whole-sample reflection: d c b | a b c d | c b a.
func reflect101(i, n int) int {
	if n == 1 {
		return 0
	}
	period := 2 * (n - 1)
	i %= period
	if i < 0 {
		i += period
	}
	if i >= n {
		return period - i
	}
	return i
}

// sobel fills in the gradient; beyond the border the picture goes on as at the border.
func (e *edges) sobel() {
	w, h := e.size.X, e.size.Y
	for y := range h {
		up, here, down := e.blur[max(y-1, 0)*w:][:w], e.blur[y*w:][:w], e.blur[min(y+1, h-1)*w:][:w]
		for x := range w {
			l, r := max(x-1, 0), min(x+1, w-1)
			dx := int(up[r]) - int(up[l]) + 2*(int(here[r])-int(here[l])) + int(down[r]) - int(down[l])
			dy := int(down[l]) - int(up[l]) + 2*(int(down[x])-int(up[x])) + int(down[r]) - int(up[r])
			e.dx[y*w+x], e.dy[y*w+x] = int16(dx), int16(dy)
			e.magnitude[(y+1)*(w+2)+x+1] = int32(max(dx, -dx) + max(dy, -dy))
		}
	}
}

// canny thins the gradient to its ridges and keeps those above low that hang
// together with one above high.
func (e *edges) canny(low, high int32) int {
	w, stride := e.size.X, e.size.X+2
	clear(e.state)
	e.stack = e.stack[:0]
	for i := range e.dx {
		at := (i/w+1)*stride + i%w + 1
		m := e.magnitude[at]
		if m <= low || !e.ridge(at, m, int(e.dx[i]), int(e.dy[i])) {
			continue
		}
		e.state[at] = edgeWeak
		if m > high {
			e.state[at] = edgeStrong
			e.stack = append(e.stack, at)
		}
	}
	n := 0
	for len(e.stack) > 0 {
		at := e.stack[len(e.stack)-1]
		e.stack = e.stack[:len(e.stack)-1]
		n++
		for _, d := range [8]int{-stride - 1, -stride, -stride + 1, -1, 1, stride - 1, stride, stride + 1} {
			if e.state[at+d] == edgeWeak {
				e.state[at+d] = edgeStrong
				e.stack = append(e.stack, at+d)
			}
		}
	}
	return n
}

// ridge says whether the magnitude at a place is a maximum along its gradient,
// which is rounded to one of four directions. Of two equal ones in a row the
// first counts; across a diagonal neither does.
func (e *edges) ridge(at int, m int32, dx, dy int) bool {
	const tan22 = 13573 // tan 22.5° in 15 bits
	stride := e.size.X + 2
	x, y := max(dx, -dx), max(dy, -dy)<<15
	flat := x * tan22
	switch {
	case y < flat:
		return m > e.magnitude[at-1] && m >= e.magnitude[at+1]
	case y > flat+x<<16: // tan 67.5° = tan 22.5° + 2
		return m > e.magnitude[at-stride] && m >= e.magnitude[at+stride]
	default:
		side := 1
		if dx^dy < 0 {
			side = -1
		}
		return m > e.magnitude[at-stride-side] && m > e.magnitude[at+stride+side]
	}
}
