package steady

import (
	"math"
	"slices"

	"eidetic/internal/lab"
)

// What a window of pictures is looked at by.
const (
	channels    = 4  // bytes that are so many apart have a mean of their own, as in compare
	window      = 24 // pictures, of which the last ones are not counted: what begins in them cannot be told from noise
	uncounted   = 3
	mostTiles   = 2000           // are looked at, about: one row of so many, and another one in each window
	flatUntil   = 40             // contrast of a flat tile, with its noise
	mostMoved   = 96             // a tile in which a sample moves by more, moves
	leastAlarms = window * 3 / 4 // pictures with alarms from which on the limits are too narrow
	leastWays   = 3              // steps that tell noise from something that comes or goes
	// A window teaches nothing if more than mostMoving of its tiles move; and tiles of one kind teach something if
	// leastNoisy of them have noise: a caret or a small film is no property of the screen.
	mostMoving, leastNoisy, fewestNoisy = 0.01, 0.03, 16
	// Fewer tiles teach something, too, if all that moves in them is faint: by so many codes in flat parts, or by less
	// than mostTexture of the contrast beside edges. A page of one line has no more, and a blink or a film is not that
	// faint.
	faint = 4
	// The limits are too narrow if more than so many of the flat tiles, or of the others, exceed them, or a few go on
	// doing so.
	flatBeyond, otherBeyond, fewestBeyond = 0.02, 0.10, 3
	// Later windows widen the limits to this much at most, or to twice what the first has found.
	laterPixel  = 8
	mostTexture = 0.30
	meanSteps   = 16  // of a code, in which means are counted
	shareSteps  = 256 // of the contrast, in which what moves beside edges is counted
)

// watch looks at pictures in windows, and learns from those in which the screen stands still.
type watch struct {
	n, turn   int
	every     int // one row of tiles of so many is looked at
	alarms    int // pictures of the window in which tiles were taken for changed
	movers    int // tiles that certainly move
	ref, prev []byte
	tiles     []tile
	sums      []int16 // memory of the tiles'
}

// tile is one tile in a window.
type tile struct {
	plane         *plane
	row, at       int
	clipped       [4]bool // of each channel: at the end of its range, where noise moves it to one side only
	toRef, toPrev int     // sums of squares of steps
	sums          []int16 // of each sample: how far it was from the first picture, in sum
	ways          int     // steps from one picture to the next
	most          int
	contrast      int // with the tiles beside it
	kind          kind
	moved         [window]moves
}

// moves is how far a tile is from the first picture of the window.
// In pixel and mean, what the end of a channel's range hides is made up for.
type moves struct{ raw, rawMean, pixel, mean uint8 }

// look takes in a picture; ok is set when a window has taught something.
func (w *watch) look(h *holder, pix []byte) (learned lab.ScreenNoise, ok bool) {
	if w.n == 0 {
		w.begin(h, pix)
		return learned, false
	}
	if !w.isMoving(w.movers) {
		for i := range w.tiles {
			if t := &w.tiles[i]; !t.moves() {
				if t.look(w.n, w.ref, w.prev, pix); t.moves() {
					w.movers++
				}
			}
		}
		w.keep(h, pix)
	}
	if len(h.changed) > 0 {
		w.alarms++
	}
	if w.n++; w.n < window {
		return learned, false
	}
	w.n = 0
	return w.learn(h)
}

// isMoving says whether so many moving tiles are too many for the window to teach something.
func (w *watch) isMoving(tiles int) bool { return float64(tiles) > mostMoving*float64(len(w.tiles)) }

func (w *watch) begin(h *holder, pix []byte) {
	w.ref, w.tiles = append(w.ref[:0], pix...), w.tiles[:0]
	if w.prev == nil {
		w.prev = make([]byte, len(pix))
		tiles := 0
		for _, p := range h.planes {
			tiles += p.across * p.down
		}
		w.every = max(1, tiles/mostTiles)
	}
	for _, p := range h.planes {
		for row := w.turn % w.every; row < p.down; row += w.every {
			for i := range p.across {
				if (i+1)*p.width <= p.Stride && (row+1)*tileRows <= p.Rows { // whole ones
					w.tiles = append(w.tiles, tile{plane: p, row: row, at: p.Off + row*tileRows*p.Stride + i*p.width})
				}
			}
		}
	}
	if w.sums == nil {
		w.sums = make([]int16, len(pix)/w.every*2)
	}
	clear(w.sums[:cap(w.sums)])
	left := w.sums[:cap(w.sums)]
	for i := range w.tiles {
		t := &w.tiles[i]
		if n := tileRows * t.plane.width; n > len(left) {
			w.tiles = w.tiles[:i]
			break
		} else {
			t.sums, left = left[:n], left[n:]
		}
		t.clip(pix)
	}
	w.keep(h, pix)
	w.turn, w.n, w.alarms, w.movers = w.turn+1, 1, 0, 0
}

// keep notes the rows that are looked at.
func (w *watch) keep(h *holder, pix []byte) {
	turn := w.turn
	if w.n > 0 {
		turn--
	}
	for _, p := range h.planes {
		for row := turn % w.every; row < p.down; row += w.every {
			from, to := p.Off+row*tileRows*p.Stride, p.Off+min((row+1)*tileRows, p.Rows)*p.Stride
			copy(w.prev[from:to], pix[from:to])
		}
	}
}

// clip notes the channels that reach the end of their range.
func (t *tile) clip(pix []byte) {
	for y := range tileRows {
		line := pix[t.at+y*t.plane.Stride:][:t.plane.width]
		for k, v := range line {
			if v == 0 || v == 255 {
				t.clipped[k%channels] = true
			}
		}
	}
}

// moves says whether nothing more can make it stand or have noise.
func (t *tile) moves() bool { return t.most > mostMoved }

func (t *tile) look(n int, ref, prev, pix []byte) {
	var most [4]int
	var sum [4]int
	differs := false
	for y := range tileRows {
		at := t.at + y*t.plane.Stride
		sums := t.sums[y*t.plane.width:][:t.plane.width]
		a, b, c := ref[at:at+t.plane.width], prev[at:at+t.plane.width], pix[at:at+t.plane.width]
		if string(a) == string(c) && string(b) == string(c) {
			continue
		}
		k := 0
		for i, v := range c {
			d, e := int(v)-int(a[i]), int(v)-int(b[i])
			sum[k] += d
			sums[i] += int16(d)
			most[k] = max(most[k], d, -d)
			t.toRef += d * d
			t.toPrev += e * e
			differs = differs || e != 0
			k = (k + 1) % channels
		}
	}
	if differs {
		t.ways++
	}
	var m moves
	samples := tileRows * t.plane.width / channels
	for k := range channels {
		pixel, mean := most[k], max(sum[k], -sum[k])*meanSteps/samples
		m.raw, m.rawMean = max(m.raw, uint8(pixel)), max(m.rawMean, uint8(min(mean, 255)))
		t.most = max(t.most, pixel)
		if t.clipped[k] {
			pixel, mean = 2*pixel, 2*mean-mean/4
		}
		m.pixel, m.mean = max(m.pixel, uint8(min(pixel, 255))), max(m.mean, uint8(min(mean, 255)))
	}
	t.moved[n] = m
}

// mean is how far the tile's mean has been from the first picture's.
func (t *tile) mean() float64 {
	most := uint8(0)
	for _, m := range t.moved[1 : window-uncounted] {
		most = max(most, m.rawMean)
	}
	return float64(most) / meanSteps
}

// kind is what a tile did in a window.
type kind int

const (
	stands kind = iota
	rare        // it has moved too seldom to tell
	noisy
	moving
)

func (t *tile) judge() kind {
	spread := t.toRef
	for _, s := range t.sums {
		spread -= int(s) * int(s) / window
	}
	// Of what forgets where it was, the squares of the steps are twice the squares around the mean (J. von Neumann,
	// 1941); of what moves on, or comes and stays, they are much less.
	switch {
	case t.most == 0:
		return stands
	case t.moves() || t.toPrev < spread:
		return moving
	case t.ways < leastWays:
		return rare
	}
	return noisy
}

// learn draws the conclusion from a window.
func (w *watch) learn(h *holder) (n lab.ScreenNoise, ok bool) {
	if w.isMoving(w.movers) {
		return n, false
	}
	n.Watched = len(w.tiles) * (window - uncounted)
	if !slices.ContainsFunc(w.tiles, func(t tile) bool { return t.most > 0 }) {
		return h.memory.bound(n), true
	}
	var kinds [2][4]int // of flat tiles and of others
	var beyond [2]int   // that exceed what is known
	isFaint := [2]bool{true, true}
	for i := range w.tiles {
		t := &w.tiles[i]
		t.contrast, t.kind = w.contrast(t), t.judge()
		kinds[t.group()][t.kind]++
		if more := float64(t.group()) * h.noise.Texture * float64(t.contrast); t.kind == noisy &&
			(t.most > h.noise.Pixel+int(more) || t.mean() > h.noise.Mean+more/meanShare) {
			beyond[t.group()]++
		}
		if t.kind == noisy && float64(t.most) > max(faint, float64(t.group())*mostTexture*float64(t.contrast)) {
			isFaint[t.group()] = false
		}
	}
	few := func(group int) bool {
		return isFaint[group] && beyond[group] > 0 && (w.alarms >= fewestBeyond || !h.noise.Exact())
	}
	if w.isMoving(kinds[0][moving] + kinds[1][moving]) {
		return n, false
	}
	if few(0) || isNoisy(kinds[0], beyond[0], w.alarms, flatBeyond) {
		var pixel, mean [256]int
		for i := range w.tiles {
			if t := &w.tiles[i]; t.group() == 0 && t.kind == noisy {
				for _, m := range t.moved[1 : window-uncounted] {
					pixel[m.pixel]++
					mean[m.mean]++
				}
			}
		}
		// Another colour is rounded in another way, by up to half a code in each of two pictures.
		n.Pixel = reach(pixel[:], 1) + 1
		// A mean of many samples is normally distributed: the squares of its values go with the logarithms.
		n.Mean = max(float64(reach(mean[:], 2))/meanSteps, float64(n.Pixel)/tileRows)
	}
	n = h.memory.bound(n)
	if few(1) || isNoisy(kinds[1], beyond[1], w.alarms, otherBeyond) {
		n.Texture = w.texture(h.noise.Wider(n))
	}
	return n, true
}

// isNoisy says whether tiles of one kind show more noise than is known: a few that do so have changed.
func isNoisy(kinds [4]int, beyond, alarms int, most float64) bool {
	all := kinds[stands] + kinds[rare] + kinds[noisy] + kinds[moving]
	return kinds[noisy] >= fewestNoisy &&
		beyond >= fewestBeyond && (alarms >= leastAlarms || float64(beyond) >= most*float64(all)) &&
		float64(kinds[noisy]) >= leastNoisy*float64(all)
}

// group is 0 for a tile of a flat part.
func (t *tile) group() int {
	if t.contrast < flatUntil {
		return 0
	}
	return 1
}

// contrast is the largest range of a channel in a tile of the window's first picture, or in one beside it.
func (w *watch) contrast(t *tile) int {
	p, i := t.plane, (t.at-t.plane.Off)%t.plane.Stride/t.plane.width
	most := 0
	for y := max(t.row-1, 0); y <= min(t.row+1, p.down-1); y++ {
		for x := max(i-1, 0); x <= min(i+1, p.across-1); x++ {
			c := &p.seen[y*p.across+x]
			if c.window != w.turn {
				c.window, c.contrast = w.turn, contrastOf(w.ref, p, y, x)
			}
			most = max(most, c.contrast)
		}
	}
	return most
}

// texture is how far what lies beside edges moves more than what is flat, as a share of the contrast.
func (w *watch) texture(flat lab.ScreenNoise) float64 {
	var shares [shareSteps + 1]int
	for i := range w.tiles {
		t := &w.tiles[i]
		if t.group() == 0 || t.kind != noisy {
			continue
		}
		for _, m := range t.moved[1 : window-uncounted] {
			more := max(float64(m.raw)-float64(flat.Pixel), meanShare*(float64(m.rawMean)/meanSteps-flat.Mean), 0)
			shares[min(int(math.Ceil(more/float64(t.contrast)*shareSteps)), shareSteps)]++
		}
	}
	return min(float64(reach(shares[:], 1))/shareSteps, mostTexture)
}

// reach is the value that less than a share of lab.FalseAlarm exceeds, by counts of values: the logarithm of the share
// that exceeds a value is taken to fall on, with a power of the value, as it does between one in a hundred and one in
// ten thousand.
func reach(counts []int, power float64) int {
	all, top := 0, 0
	for v, c := range counts {
		if all += c; c > 0 {
			top = v
		}
	}
	if top == 0 {
		return 0
	}
	exceeds := func(share float64) int {
		left := 0
		for v := len(counts) - 1; v >= 0; v-- {
			if left += counts[v]; float64(left) > share*float64(all) {
				return v
			}
		}
		return 0
	}
	const often = 1e-2
	seldom := max(1e-4, 10/float64(all))
	value := top
	if seldom < often {
		a, b := math.Pow(float64(exceeds(often)), power), math.Pow(float64(exceeds(seldom)), power)
		slope := (b - a) / math.Log10(often/seldom)
		value = max(value, int(math.Ceil(math.Pow(b+float64(slope*math.Log10(seldom/lab.FalseAlarm)), 1/power))))
	}
	return min(value+1, len(counts)-1)
}
