package visual

import (
	"image"
	"math/bits"
)

// edges counts the edge pixels of a picture: Canny 1986 as browsertime calls
// OpenCV for its Contentful Speed Index: grey, Gaussian blur σ 1 in 8-bit fixed
// point, Sobel 3×3 with the L1 norm, thresholds at 10 % and 30 % of the blurred
// picture's range above its smallest value.
//
// A load changes a part of its page in most frames, so each step is done again only for what depends on
// changed pixels. What hangs together is found 64 pixels at a time.
type edges struct {
	size       image.Point
	grey, blur []uint8
	pass       []uint16   // grey, blurred along the rows
	values     [256]int32 // histogram of blur
	dx, dy     []int16
	magnitude  []uint16 // with a border of one zero on each side
	ridges     []uint16 // magnitude where it is a maximum along the gradient, else 0; rows of words × 64
	low, high  int32    // the thresholds that the bits follow

	words        int      // of a row
	weak, strong []uint64 // a bit a pixel: ridges above low, and above high
	kept         []uint64 // ridges above low that hang together with one above high
	started      bool

	changed, blurred, bent, ridged []span
}

func newEdges(size image.Point) *edges {
	n, words := size.X*size.Y, (size.X+63)/64
	e := &edges{size: size, grey: make([]uint8, n), blur: make([]uint8, n), pass: make([]uint16, n),
		dx: make([]int16, n), dy: make([]int16, n), magnitude: make([]uint16, (size.X+2)*(size.Y+2)),
		ridges: make([]uint16, 64*words*size.Y), words: words,
		weak: make([]uint64, words*size.Y), strong: make([]uint64, words*size.Y), kept: make([]uint64, words*size.Y)}
	for _, s := range []*[]span{&e.changed, &e.blurred, &e.bent, &e.ridged} {
		*s = make([]span, size.Y)
	}
	e.values[0] = int32(n)
	return e
}

// gaussReach is how far the blur reaches: 3 pixels of 7 taps.
const gaussReach = 3

// count returns the edge pixels of a picture of which only the stretches dirty, one a row, differ from the picture
// before.
func (e *edges) count(picture []uint32, dirty []span) int {
	w := e.size.X
	copy(e.changed, dirty)
	if !e.started || min(w, e.size.Y) <= 2*gaussReach {
		everything(e.changed, w)
		e.started = true
	}
	for y, s := range e.changed {
		if s.empty() {
			continue
		}
		grey := e.grey[y*w:][s.from:s.to]
		for i, p := range picture[y*w:][s.from:s.to] {
			grey[i] = uint8(luma(p))
		}
	}
	spread(e.blurred, e.changed, gaussReach, w)
	spread(e.bent, e.blurred, 1, w)
	spread(e.ridged, e.bent, 1, w)
	e.gaussian()
	for y, s := range e.bent {
		if !s.empty() {
			e.sobel(y, s)
		}
	}
	low, high := e.thresholds()
	moved := low != e.low || high != e.high
	e.low, e.high = low, high
	for y, s := range e.ridged {
		e.thin(y, s)
		if moved {
			s = span{0, w}
		}
		e.threshold(y, s)
	}
	return e.connect()
}

// gaussian blurs with 1 14 62 102 62 14 1 over 256, whole-sample reflection at
// the borders, rounding half up once at the end. The peer's 13 taps are 0 beyond these.
func (e *edges) gaussian() {
	w, h := e.size.X, e.size.Y
	for y, s := range e.changed {
		if s = s.wider(gaussReach, w); !s.empty() {
			blurRow(e.pass[y*w:][:w], e.grey[y*w:][:w], s)
		}
	}
	var rows [7][]uint16
	for y, s := range e.blurred {
		if s.empty() {
			continue
		}
		for k := range rows {
			rows[k] = e.pass[reflect101(y+k-gaussReach, h)*w:][s.from:s.to]
		}
		n := s.to - s.from
		a, b, c, d := rows[0][:n], rows[1][:n], rows[2][:n], rows[3][:n]
		f, g, i := rows[4][:n], rows[5][:n], rows[6][:n]
		out := e.blur[y*w:][s.from:s.to][:n]
		for x, was := range out {
			sum := 1<<15 + uint32(a[x]) + uint32(i[x]) + 14*(uint32(b[x])+uint32(g[x])) + 62*(uint32(c[x])+uint32(f[x])) + 102*uint32(d[x])
			if v := uint8(sum >> 16); v != was {
				e.values[was]--
				e.values[v]++
				out[x] = v
			}
		}
	}
}

// blurRow is the blur along a stretch of a row, times 256.
func blurRow(out []uint16, in []uint8, s span) {
	inner := span{max(s.from, gaussReach), min(s.to, len(in)-gaussReach)}
	if inner.empty() {
		inner = span{s.to, s.to}
	}
	for _, border := range [2]span{{s.from, inner.from}, {inner.to, s.to}} {
		for x := border.from; x < border.to; x++ {
			at := func(by int) uint32 { return uint32(in[reflect101(x+by, len(in))]) }
			out[x] = uint16(at(-3) + at(3) + 14*(at(-2)+at(2)) + 62*(at(-1)+at(1)) + 102*at(0))
		}
	}
	if inner.empty() {
		return
	}
	n := inner.to - inner.from
	in = in[inner.from-gaussReach:]
	a, b, c, d, f, g, i := in[:n], in[1:][:n], in[2:][:n], in[3:][:n], in[4:][:n], in[5:][:n], in[6:][:n]
	out = out[inner.from:][:n]
	for x := range out {
		out[x] = uint16(uint32(a[x]) + uint32(i[x]) + 14*(uint32(b[x])+uint32(g[x])) + 62*(uint32(c[x])+uint32(f[x])) + 102*uint32(d[x]))
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

// sobel fills in the gradient of a stretch of row y; beyond the border the picture goes on as at the border.
func (e *edges) sobel(y int, s span) {
	w, h := e.size.X, e.size.Y
	up, here, down := e.blur[max(y-1, 0)*w:][:w], e.blur[y*w:][:w], e.blur[min(y+1, h-1)*w:][:w]
	dxs, dys, magnitude := e.dx[y*w:][:w], e.dy[y*w:][:w], e.magnitude[(y+1)*(w+2)+1:][:w]
	for x := s.from; x < s.to; x++ {
		l, r := max(x-1, 0), min(x+1, w-1)
		ul, ur, dl, dr := int32(up[l]), int32(up[r]), int32(down[l]), int32(down[r])
		dx := ur - ul + 2*(int32(here[r])-int32(here[l])) + dr - dl
		dy := dl - ul + 2*(int32(down[x])-int32(up[x])) + dr - ur
		dxs[x], dys[x] = int16(dx), int16(dy)
		magnitude[x] = uint16(max(dx, -dx) + max(dy, -dy))
	}
}

// thresholds are those of the blurred picture's range.
func (e *edges) thresholds() (low, high int32) {
	first, last := 0, 255
	for e.values[first] == 0 {
		first++
	}
	for e.values[last] == 0 {
		last--
	}
	span, base := float64(last-first), float64(first)
	return int32(float64(0.10*span) + base), int32(float64(0.30*span) + base)
}

// thin keeps the gradient's ridges in a stretch of row y.
func (e *edges) thin(y int, s span) {
	if s.empty() {
		return
	}
	w := e.size.X
	dx, dy, ridges := e.dx[y*w:][:w], e.dy[y*w:][:w], e.ridges[y*64*e.words:][:w]
	at := (y+1)*(w+2) + 1
	for x := s.from; x < s.to; x++ {
		m := e.magnitude[at+x]
		if m != 0 && !e.ridge(at+x, m, int(dx[x]), int(dy[x])) {
			m = 0
		}
		ridges[x] = m
	}
}

// ridge says whether the magnitude at a place is a maximum along its gradient,
// which is rounded to one of four directions. Of two equal ones in a row the
// first counts; across a diagonal neither does.
func (e *edges) ridge(at int, m uint16, dx, dy int) bool {
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

// threshold sets the bits of the words that hold a stretch of row y.
func (e *edges) threshold(y int, s span) {
	if s.empty() {
		return
	}
	for k := s.from / 64; k <= (s.to-1)/64; k++ {
		at := y*e.words + k
		var weak, strong uint64
		for i, m := range e.ridges[64*at:][:64] { // what is beyond the row's end is 0
			weak |= uint64(uint32(e.low-int32(m))>>31) << i
			strong |= uint64(uint32(e.high-int32(m))>>31) << i
		}
		e.weak[at], e.strong[at] = weak, strong
	}
}

// connect counts the weak pixels that hang together with a strong one. The strong ones grow along the rows, and from
// row to row downwards and upwards by turns, until nothing grows.
func (e *edges) connect() int {
	n, h := e.words, e.size.Y
	copy(e.kept, e.strong)
	for pass := 0; ; pass++ {
		grew := false
		for i := range h {
			y, beside := i, i-1
			if pass%2 == 1 {
				y, beside = h-1-i, h-i
			}
			var near []uint64
			if i > 0 {
				near = e.kept[beside*n:][:n]
			}
			if grow(e.kept[y*n:][:n], e.weak[y*n:][:n], near) {
				grew = true
			}
		}
		if !grew && pass > 0 {
			break
		}
	}
	count := 0
	for _, v := range e.kept {
		count += bits.OnesCount64(v)
	}
	return count
}

// grow lets the bits of a row, and those that touch them from the row beside it, fill the runs of weak that they lie
// in. It says whether the row has become more.
func grow(row, weak, beside []uint64) bool {
	weak = weak[:len(row)]
	var carry uint64
	var more uint64
	for k, m := range weak {
		if m == 0 {
			carry = 0
			continue
		}
		was := row[k]
		seed := was
		if beside != nil {
			b := beside[k]
			near := b | b<<1 | b>>1
			if k > 0 {
				near |= beside[k-1] >> 63
			}
			if k+1 < len(beside) {
				near |= beside[k+1] << 63
			}
			seed |= near & m
		}
		// Added to the runs, a seed carries to its run's end: all bits from it on turn over.
		sum, over := bits.Add64(m, seed, carry)
		row[k] = m & ((sum ^ m) | seed)
		carry = over
		more |= row[k] ^ was
	}
	var high uint64 // the bit that the word above lets in
	for k := len(row) - 1; k >= 0; k-- {
		m, was := weak[k], row[k]
		v := was | high<<63&m
		for by := 1; by < 64; by *= 2 {
			v |= m & (v >> by)
			m &= m >> by
		}
		row[k] = v
		more |= v ^ was
		high = v & 1
	}
	return more != 0
}
