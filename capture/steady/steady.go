// Package steady holds a screen's picture where only its noise moves, so that a screen that stands still gives equal
// pictures, whatever cable, converter or compression is between: analogue noise, a panel's dithering, a grabber's
// JPEG. The source's pictures flow in; out flow pictures in which each tile is as it was when it last changed, with
// the tiles that changed. Whoever decides about change afterwards (start, rest, the visual metrics, the frame
// rate) compares pixels exactly, and so all decide by the one rule that stands here.
//
// What noise is, is learned from the pictures alone: in a window of pictures, a tile that moves little and forgets from
// picture to picture where it was (its steps are as large as its distances from the first picture) moves by noise;
// what moves on, comes and stays, or blinks does not. The thresholds are where the tail of what was seen of the noise
// falls below lab.FalseAlarm. They only grow, and hold for all recordings of one screen (Memory).
//
// A source whose pictures of a still screen are equal keeps thresholds of zero, and its pictures pass as they are.
package steady

import (
	"bytes"
	"context"
	"image"
	"slices"
	"sync"

	"eidetic/capture"
	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// Memory is what is known of a screen's noise; the zero value is a screen that nobody has watched yet.
type Memory struct {
	mu    sync.Mutex
	noise lab.ScreenNoise
	begun bool
	most  int // what the noise of pixels may become
}

// Noise is what is known now.
func (m *Memory) Noise() lab.ScreenNoise {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.noise
}

// bound keeps later windows, in which a film may have passed for noise, from widening the limits without end.
func (m *Memory) bound(n lab.ScreenNoise) lab.ScreenNoise {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.begun {
		m.begun, m.most = true, max(laterPixel, 2*n.Pixel)
	}
	n.Pixel = min(n.Pixel, m.most)
	n.Mean = min(n.Mean, float64(n.Pixel))
	return n
}

func (m *Memory) widen(n lab.ScreenNoise) lab.ScreenNoise {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noise = m.noise.Wider(n)
	return m.noise
}

// Source is a capture.Source over another one.
type Source struct {
	capture.Source
	memory *Memory
	*holder
}

var _ capture.Source = (*Source)(nil)

// New holds the pictures of a source, which the caller gives over. Pictures that are compressed, whose pixels cannot be
// compared, pass.
func New(from capture.Source, m *Memory) capture.Source {
	if from.Format().Pixels == lab.MJPEG {
		return from
	}
	return &Source{from, m, newHolder(from.Format(), m)}
}

// Next returns the next picture.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	f, err := s.Source.Next(ctx)
	if err != nil {
		return f, err
	}
	f.Pix, f.Changed = s.hold(f)
	return f, nil
}

// Noise is what is known of the screen's noise.
func (s *Source) Noise() lab.ScreenNoise { return s.memory.Noise() }

// Notes are those of the source, and what is known of its noise.
func (s *Source) Notes() map[string]string {
	notes := map[string]string{}
	if n, ok := s.Source.(interface{ Notes() map[string]string }); ok {
		for k, v := range n.Notes() {
			notes[k] = v
		}
	}
	if n := s.memory.Noise(); !n.Exact() {
		notes["noise"] = n.Floor()
	}
	return notes
}

// NotLossless says what the source lost, and that tiles are held.
func (s *Source) NotLossless() string {
	text := ""
	if n, ok := s.Source.(interface{ NotLossless() string }); ok {
		text = n.NotLossless()
	}
	if n := s.memory.Noise(); !n.Exact() {
		if text != "" {
			text += "; "
		}
		text += "held still where only noise moves: " + n.Floor()
	}
	return text
}

// Tiles are tileRows high, and as wide as tileBytes or, of pixels of three bytes, 24 bytes.
const (
	tileRows  = 8
	tileBytes = 32
)

// holder holds one picture after another.
type holder struct {
	format  lab.Format
	memory  *Memory
	noise   lab.ScreenNoise
	planes  []*plane
	held    []byte // nil before the first picture
	watch   watch
	changed []image.Rectangle
	alert   int // for how many pictures still the narrow limits hold
}

// plane is one of the picture's arrays, in tiles.
type plane struct {
	diff.Plane
	width        int // bytes of a tile
	across, down int
	moved        []bool  // tiles that this picture has changed
	contrast     []int16 // of each tile of the held picture; −1: not known
	seen         []seen  // the same of the watch's
}

type seen struct{ window, contrast int }

func newHolder(f lab.Format, m *Memory) *holder {
	h := &holder{format: f, memory: m, noise: m.Noise()}
	for _, p := range diff.Planes(f) {
		t := &plane{Plane: p, width: tileBytes}
		if p.Unit == 3 {
			t.width = 24
		}
		t.across, t.down = (p.Stride+t.width-1)/t.width, (p.Rows+tileRows-1)/tileRows
		t.moved, t.contrast = make([]bool, t.across*t.down), make([]int16, t.across*t.down)
		t.seen = make([]seen, t.across*t.down)
		h.planes = append(h.planes, t)
	}
	return h
}

// hold takes in a picture, and returns the one that is held from now on with what changed in it.
func (h *holder) hold(f lab.Frame) ([]byte, []image.Rectangle) {
	if h.held == nil {
		h.held = bytes.Clone(f.Pix)
		h.forget()
		h.look(f.Pix)
		return h.held, append(h.changed[:0], h.format.Bounds())
	}
	h.changed = h.changed[:0]
	h.alert = max(0, h.alert-1)
	if f.Flags&lab.FrameRepeat == 0 {
		within := f.Changed
		if len(within) == 0 {
			within = []image.Rectangle{h.format.Bounds()}
		}
		for _, p := range h.planes {
			h.changed = h.plane(p, f.Pix, within)
		}
	}
	h.look(f.Pix)
	return h.held, h.changed
}

// look shows a picture to the watch, and takes over what that has learned.
func (h *holder) look(pix []byte) {
	if learned, ok := h.watch.look(h, pix); ok {
		h.noise = h.memory.widen(learned)
	}
}

func (h *holder) forget() {
	for _, p := range h.planes {
		for i := range p.contrast {
			p.contrast[i] = -1
		}
	}
}

// alertFor is for how many pictures the narrow limits hold after a change that is beyond the wide ones. What changes is
// often faint at its edges and at its end (what fades in slows down): that is seen at once by the narrow limits, or
// never by the wide ones, but not late, when noise adds to it.
const alertFor = 6

// calm is how much wider the limits are while nothing has changed lately.
const calm = lab.Calm

// plane compares one array, and takes over the tiles that have changed.
func (h *holder) plane(p *plane, pix []byte, within []image.Rectangle) []image.Rectangle {
	if h.noise.Exact() {
		return h.exact(p, pix, within)
	}
	found := h.find(p, pix, within, h.noise.Times(calm))
	if found {
		h.alert = alertFor + 1 // this picture is the first
	}
	if h.alert > 0 {
		found = h.find(p, pix, within, h.noise)
	}
	if !found {
		return h.changed
	}
	return h.take(p, pix)
}

// exact takes over all that differs, of a screen without noise.
func (h *holder) exact(p *plane, pix []byte, within []image.Rectangle) []image.Rectangle {
	for row := range p.down {
		if p.differs(h.held, pix, row, within) {
			h.changed = h.takeRow(p, row, func(i int) bool { return h.copy(p, pix, row, i) })
		}
	}
	if len(h.changed) > 0 {
		h.alert = alertFor + 1
	}
	return h.changed
}

// differs says whether a row of tiles, if it touches an area, is not as held.
func (p *plane) differs(held, pix []byte, row int, within []image.Rectangle) bool {
	y0, y1 := row*tileRows, min((row+1)*tileRows, p.Rows)
	start, end := p.Off+y0*p.Stride, p.Off+y1*p.Stride
	return !bytes.Equal(held[start:end], pix[start:end]) && touches(within, p.ToPixels(image.Rect(0, y0, p.Units(), y1)))
}

// find marks the tiles that are beyond limits, and says whether there are any.
func (h *holder) find(p *plane, pix []byte, within []image.Rectangle, n lab.ScreenNoise) (found bool) {
	l := newLimits(n)
	for row := range p.down {
		moved := p.moved[row*p.across:][:p.across]
		clear(moved)
		if !p.differs(h.held, pix, row, within) {
			continue
		}
		for i := range moved {
			if compare(h.held, pix, p, row, i, l) && (n.Texture == 0 || h.exceeds(p, pix, row, i, n)) {
				moved[i], found = true, true
			}
		}
	}
	return found
}

func touches(rects []image.Rectangle, r image.Rectangle) bool {
	for _, one := range rects {
		if one.Overlaps(r) {
			return true
		}
	}
	return false
}

// exceeds says whether a tile has moved by more than it may beside edges.
func (h *holder) exceeds(p *plane, pix []byte, row, i int, n lab.ScreenNoise) bool {
	contrast := 0
	for y := max(row-1, 0); y <= min(row+1, p.down-1); y++ {
		for x := max(i-1, 0); x <= min(i+1, p.across-1); x++ {
			contrast = max(contrast, h.contrast(p, y, x))
		}
	}
	more := n.Texture * float64(contrast)
	if more < 1 {
		return true
	}
	n.Pixel, n.Mean = n.Pixel+int(more), n.Mean+more/meanShare
	return compare(h.held, pix, p, row, i, newLimits(n))
}

// meanShare is how much less than its pixels a tile's mean moves beside edges: what compression does to them, goes both
// ways.
const meanShare = 4

// contrast is the largest range that a channel of a tile has in the held picture.
func (h *holder) contrast(p *plane, row, i int) int {
	c := &p.contrast[row*p.across+i]
	if *c < 0 {
		*c = int16(contrastOf(h.held, p, row, i))
	}
	return int(*c)
}

func contrastOf(pix []byte, p *plane, row, i int) int {
	period := p.Unit
	low, high := [4]byte{255, 255, 255, 255}, [4]byte{}
	for y := row * tileRows; y < min((row+1)*tileRows, p.Rows); y++ {
		line := pix[p.Off+y*p.Stride:][i*p.width : min((i+1)*p.width, p.Stride)]
		k := 0
		for _, v := range line {
			low[k], high[k] = min(low[k], v), max(high[k], v)
			if k++; k == period {
				k = 0
			}
		}
	}
	most := 0
	for k := range period {
		most = max(most, int(high[k])-int(low[k]))
	}
	return most
}

// take takes over the tiles that have changed, and those beside them: a change that reaches into them by little would
// else be seen later, when noise adds to it.
func (h *holder) take(p *plane, pix []byte) []image.Rectangle {
	for row := range p.down {
		h.changed = h.takeRow(p, row, func(i int) bool { return p.beside(row, i) && h.copy(p, pix, row, i) })
	}
	return h.changed
}

// takeRow adds the areas of a row's tiles that have been taken over.
func (h *holder) takeRow(p *plane, row int, taken func(i int) bool) []image.Rectangle {
	from := -1
	for i := 0; i <= p.across; i++ {
		moved := i < p.across && taken(i)
		switch {
		case moved && from < 0:
			from = i
		case !moved && from >= 0:
			r := image.Rect(from*p.width/p.Unit, row*tileRows, min(i*p.width, p.Stride)/p.Unit, min((row+1)*tileRows, p.Rows))
			h.changed = append(h.changed, p.ToPixels(r).Intersect(h.format.Bounds()))
			from = -1
		}
	}
	return h.changed
}

// beside says whether a tile or one next to it has changed.
func (p *plane) beside(row, i int) bool {
	for y := max(row-1, 0); y <= min(row+1, p.down-1); y++ {
		if slices.Contains(p.moved[y*p.across+max(i-1, 0):y*p.across+min(i+2, p.across)], true) {
			return true
		}
	}
	return false
}

// copy takes a tile over, and says whether it differs at all.
func (h *holder) copy(p *plane, pix []byte, row, i int) (differs bool) {
	p.contrast[row*p.across+i] = -1
	for y := row * tileRows; y < min((row+1)*tileRows, p.Rows); y++ {
		from, to := p.Off+y*p.Stride+i*p.width, p.Off+y*p.Stride+min((i+1)*p.width, p.Stride)
		if differs = differs || !bytes.Equal(h.held[from:to], pix[from:to]); differs {
			copy(h.held[from:to], pix[from:to])
		}
	}
	return differs
}
