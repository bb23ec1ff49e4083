package visual

import (
	"image"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// TestKeptParts: what is computed for changed stretches only equals what is computed for the whole picture, to the last
// bit.
func TestKeptParts(t *testing.T) {
	for seed, size := range []image.Point{{1, 1}, {3, 50}, {200, 2}, {5, 7}, {7, 7}, {23, 31}, {64, 64}, {129, 40}, {333, 222}} {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		final, picture, all := make([]uint32, size.X*size.Y), make([]uint32, size.X*size.Y), make([]span, size.Y)
		everything(all, size.X)
		for i := range final {
			final[i] = uint32(i/3*0x050301) & 0xffffff
		}
		e, s, l := newEdges(size), newSSIM(final, size), newSpeedline(final, size)
		dirty := make([]span, size.Y)
		for step := range 30 {
			clear(dirty)
			for range r.IntN(4) {
				x, y := r.IntN(size.X), r.IntN(size.Y)
				colour, soft := uint32(r.IntN(1<<24)), uint32(r.IntN(2))
				if step > 20 {
					colour = final[y*size.X+x] // the range of values narrows, and with it the thresholds
				}
				for row := y; row < min(y+1+r.IntN(40), size.Y); row++ {
					to := min(x+1+r.IntN(90), size.X)
					for i := x; i < to; i++ {
						picture[row*size.X+i] = (colour + soft*uint32(i*0x010203)) & 0xffffff
					}
					dirty[row] = dirty[row].with(span{x, to})
				}
			}
			l.add(float64(step), picture, dirty)
			freshLine := newSpeedline(final, size)
			freshLine.add(0, picture, all)
			if got, want := l.ssim[len(l.ssim)-1], freshLine.ssim[1]; got != want || l.values != freshLine.values {
				t.Fatalf("%v, step %d: speedline's similarity is %v, want %v, or its histogram differs", size, step, got, want)
			}
			if got, want := s.index(picture, dirty), newSSIM(final, size).index(picture, all); got != want {
				t.Fatalf("%v, step %d: SSIM is %v, want %v", size, step, got, want)
			}
			if got, want := e.count(picture, dirty), newEdges(size).count(picture, all); got != want {
				t.Fatalf("%v, step %d: %d edge pixels, want %d", size, step, got, want)
			}
			if got, want := bitCount(e.kept), flooded(e); got != want {
				t.Fatalf("%v, step %d: %d edge pixels hang together, want %d", size, step, got, want)
			}
		}
	}
}

// TestConnect: windings, and runs that end at a word's end.
func TestConnect(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		size := image.Pt(1+r.IntN(200), 1+r.IntN(40))
		e := newEdges(size)
		share := 0.3 + 0.6*r.Float64()
		for y := range size.Y {
			for x := range size.X {
				at, bit := y*e.words+x/64, uint64(1)<<(x%64)
				if r.Float64() < share {
					e.weak[at] |= bit
					if r.IntN(40) == 0 {
						e.strong[at] |= bit
					}
				}
			}
		}
		if got, want := e.connect(), flooded(e); got != want {
			t.Fatalf("%v: %d pixels hang together, want %d", size, got, want)
		}
	}
}

func bitCount(row []uint64) (n int) {
	for _, v := range row {
		n += bits.OnesCount64(v)
	}
	return n
}

// flooded counts one pixel after the other.
func flooded(e *edges) int {
	has := func(set []uint64, x, y int) bool {
		return x >= 0 && y >= 0 && x < e.size.X && y < e.size.Y && set[y*e.words+x/64]>>(x%64)&1 != 0
	}
	seen := map[image.Point]bool{}
	var stack []image.Point
	visit := func(set []uint64, x, y int) {
		if p := image.Pt(x, y); has(set, x, y) && !seen[p] {
			seen[p] = true
			stack = append(stack, p)
		}
	}
	for y := range e.size.Y {
		for x := range e.size.X {
			visit(e.strong, x, y)
		}
	}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for i := range 9 {
			visit(e.weak, p.X+i%3-1, p.Y+i/3-1)
		}
	}
	return len(seen)
}
