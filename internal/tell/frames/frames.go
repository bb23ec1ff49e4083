// Package frames tells a viewer of a reel what changed in which frame, and gives it the frames' pixels
// without loss, as differences that are small and can be applied forwards and backwards.
//
// A reel flows in; a List, or the bytes of a piece, flow out. A piece is a stretch of successive frames. Its form,
// of 32-bit words with the least byte first:
//
//	the base, which is the frame before the piece, or −1 where there is none, then frame after frame:
//		number of the frame
//		x, y, width, height of an area that has moved, and by how many rows, downwards; all 0 where none has
//		number of rectangles, then rectangle after rectangle:
//			x, y, width, height, then width × height pixels, rows from the top
//
// A pixel is R, G, B and 0. That of the base is as it is. Each other frame is the one before, in which first the rows
// of the area that has moved are rotated, what leaves it at one end coming in at the other, and then the rectangles'
// pixels are exclusive-ored. So a page that scrolls takes little more than the rows that come in, and all of it is
// undone in the opposite order. A viewer that has the frame before, or the one after, needs no base: it can be left
// out, and has no rectangles then.
package frames

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"slices"

	"eidetic/analysis/visual"
	"eidetic/capture/reel"
)

// MaxPixels bounds a frame, because a viewer needs memory for a few of them.
const MaxPixels = 1 << 24

// A piece ends with the frame that makes it this long, or makes its rectangles this many whole frames.
const (
	pieceFrames = 60
	pieceWhole  = 4
)

// ErrTooLarge is returned for frames of more than MaxPixels.
var ErrTooLarge = errors.New("the frames are too large to be stepped through")

// List says of each frame of a reel when it was taken and how much it changed.
type List struct {
	Width   int
	Height  int
	Region  image.Rectangle // in which changes are counted
	TimeNS  []int64         // of the box's clock
	Changed []int           // pixels of the region that differ from the frame before
	Pieces  []int           // the first frame of each piece
}

// Read counts the changes of a reel in a region; an empty one is the whole frame.
func Read(r *reel.Reader, region image.Rectangle) (*List, error) {
	f := r.Format()
	if region.Empty() {
		region = f.Bounds()
	}
	if err := check(r); err != nil {
		return nil, err
	}
	found, err := visual.Changes(r, visual.ChangeOptions{Regions: []visual.Region{{Name: "region", Area: region}}, NoLuma: true})
	if err != nil {
		return nil, err
	}
	l := &List{Width: f.Width, Height: f.Height, Region: region, Changed: found.Regions[0].Changed, Pieces: pieces(r)}
	for _, info := range found.Infos {
		l.TimeNS = append(l.TimeNS, int64(info.Time))
	}
	return l, nil
}

// check refuses a reel that has no frames or too large ones.
func check(r *reel.Reader) error {
	f := r.Format()
	switch {
	case r.Len() == 0:
		return errors.New("the reel has no frames")
	case f.Width*f.Height > MaxPixels:
		return fmt.Errorf("%w: %d × %d pixels", ErrTooLarge, f.Width, f.Height)
	}
	return nil
}

// pieces cuts a reel into pieces by what its index says.
func pieces(r *reel.Reader) []int {
	whole := r.Format().Width * r.Format().Height
	var out []int
	frames, pixels := pieceFrames, 0
	for i := range r.Len() {
		area := 0
		for _, c := range r.Info(i).Changed {
			area += c.Dx() * c.Dy()
		}
		if frames == pieceFrames || pixels+area > pieceWhole*whole {
			out = append(out, i)
			frames, pixels = 0, 0
		}
		frames++
		pixels += area
	}
	return out
}

// WritePiece writes the piece that begins with a frame, with its base or without. It reads the reel forwards, frame by
// frame.
func WritePiece(w io.Writer, r *reel.Reader, first int, base bool) error {
	if err := check(r); err != nil {
		return err
	}
	end := r.Len()
	found := false
	for _, at := range pieces(r) {
		if found {
			end = at
			break
		}
		found = at == first
	}
	if !found {
		return fmt.Errorf("no piece begins with frame %d", first)
	}
	access, err := visual.NewAccess(r.Format())
	if err != nil {
		return err
	}
	d := &differ{access: access, width: r.Format().Width, shown: make([]uint32, r.Format().Width*r.Format().Height),
		row: make([]uint32, r.Format().Width)}
	for i := max(first-1, 0); i < end; i++ {
		changed := r.Info(i).Changed
		if i < first || i == 0 {
			changed = []image.Rectangle{r.Format().Bounds()}
		}
		if i == 0 && first == 0 { // there is no frame before
			d.head(-1)
		}
		if err := d.frame(r, i, changed); err != nil {
			return err
		}
		if i < first && !base {
			d.out = d.out[:0]
			d.head(i)
		}
		if _, err := w.Write(d.out); err != nil {
			return err
		}
		d.out = d.out[:0]
	}
	return nil
}

// differ holds the frame that the viewer has after what was written.
type differ struct {
	access     visual.Access
	width      int
	shown, row []uint32 // 0x00RRGGBB
	out        []byte

	was, is []uint64       // hashes of rows, for scroll
	at      map[uint64]int // where a hash is among was; −1 where it is twice
}

// headWords are the words of a frame before its rectangles.
const headWords = 7

// head appends that of a frame in which nothing differs.
func (d *differ) head(i int) {
	d.out = binary.LittleEndian.AppendUint32(d.out, uint32(i))
	d.out = append(d.out, make([]byte, 4*(headWords-1))...)
}

// put sets words that were appended before.
func (d *differ) put(at int, words ...int) {
	for i, v := range words {
		binary.LittleEndian.PutUint32(d.out[at+4*i:], uint32(v))
	}
}

// frame appends what leads from the frame that is shown to frame i.
func (d *differ) frame(r *reel.Reader, i int, changed []image.Rectangle) error {
	start := len(d.out)
	d.head(i)
	if len(changed) == 0 {
		return nil
	}
	raster, err := d.access.Read(r, i)
	if err != nil {
		return err
	}
	var all image.Rectangle
	for _, c := range changed {
		all = all.Union(c)
	}
	if rows := d.scroll(raster, all); rows != 0 {
		d.put(start+4, all.Min.X, all.Min.Y, all.Dx(), all.Dy(), rows)
		d.rotate(all, rows)
		changed = strips(all)
	}
	n := 0
	for _, c := range changed {
		if d.rectangle(raster, c) {
			n++
		}
	}
	d.put(start+4*(headWords-1), n)
	return nil
}

// leastScroll is the height of an area that is looked at for rows that have moved.
const leastScroll = 64

// scroll says by how many rows an area has moved, 0 is not at all: rows of which there was one before say by how many,
// and it is so if more rows are right then. The middle of each row counts, beside which a page may have what stands
// still.
func (d *differ) scroll(raster visual.Raster, area image.Rectangle) (rows int) {
	h := area.Dy()
	if h < leastScroll {
		return 0
	}
	middle := area
	middle.Min.X, middle.Max.X = area.Min.X+area.Dx()/3, area.Max.X-area.Dx()/3
	if d.at == nil {
		d.at = map[uint64]int{}
	}
	clear(d.at)
	d.was, d.is = d.was[:0], d.is[:0]
	row := d.row[:middle.Dx()]
	for y := middle.Min.Y; y < middle.Max.Y; y++ {
		d.was = append(d.was, hashOf(d.shown[y*d.width+middle.Min.X:][:middle.Dx()]))
		d.access.Row(row, raster, y, middle.Min.X)
		d.access.Colours(row)
		d.is = append(d.is, hashOf(row))
	}
	for y, v := range d.was {
		if _, twice := d.at[v]; twice {
			y = -1
		}
		d.at[v] = y
	}
	votes, still := make([]int, 2*h), 0
	for y, v := range d.is {
		if v == d.was[y] {
			still++
		} else if from, ok := d.at[v]; ok && from >= 0 {
			votes[y-from+h]++
		}
	}
	for by, n := range votes {
		if n > votes[rows+h] {
			rows = by - h
		}
	}
	there := 0
	for y, v := range d.is {
		if v == d.was[(y-rows+h)%h] {
			there++
		}
	}
	if there-still < h/leastMoved {
		return 0
	}
	return rows
}

// leastMoved is the part of an area's rows that must be right more often when it has moved.
const leastMoved = 16

// hashOf tells rows of pixels apart; two that it does not cost bytes and no pixel.
func hashOf(row []uint32) uint64 {
	h := uint64(len(row))
	for _, v := range row {
		h = (h ^ uint64(v)) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	return h
}

// rotate moves the rows of what is shown in an area downwards; what leaves it comes in at the other end.
func (d *differ) rotate(area image.Rectangle, rows int) {
	w, h := area.Dx(), area.Dy()
	before := make([]uint32, w*h)
	for y := range h {
		copy(before[y*w:], d.shown[(area.Min.Y+y)*d.width+area.Min.X:][:w])
	}
	for y := range h {
		copy(d.shown[(area.Min.Y+(y+rows+h)%h)*d.width+area.Min.X:][:w], before[y*w:])
	}
}

// strips cuts an area into strips of a few rows, so that what is left of it when it has moved is small.
func strips(area image.Rectangle) (all []image.Rectangle) {
	const rows = 16
	for y := area.Min.Y; y < area.Max.Y; y += rows {
		all = append(all, image.Rect(area.Min.X, y, area.Max.X, min(y+rows, area.Max.Y)))
	}
	return all
}

// rectangle appends what differs in a rectangle, as small as it is, and makes what is shown the frame there. It is
// false where nothing differs.
func (d *differ) rectangle(raster visual.Raster, c image.Rectangle) bool {
	start, stride := len(d.out), 4*c.Dx()
	d.out = slices.Grow(d.out, 16+stride*c.Dy())[:start+16+stride*c.Dy()]
	rows := d.out[start+16:]
	var box image.Rectangle // of what differs, in c
	for y := range c.Dy() {
		is, was := d.row[:c.Dx()], d.shown[(c.Min.Y+y)*d.width+c.Min.X:][:c.Dx()]
		d.access.Row(is, raster, c.Min.Y+y, c.Min.X)
		d.access.Colours(is)
		from, to := 0, len(is)
		for from < to && is[from] == was[from] {
			from++
		}
		for from < to && is[to-1] == was[to-1] {
			to--
		}
		out := rows[y*stride:][:stride]
		if from == to {
			clear(out)
			continue
		}
		box = box.Union(image.Rect(from, y, to, y+1))
		for x, v := range is {
			v ^= was[x]
			binary.LittleEndian.PutUint32(out[4*x:], v>>16&255|v&0xff00|v&255<<16)
		}
		copy(was, is)
	}
	if box.Empty() {
		d.out = d.out[:start]
		return false
	}
	at := 0
	for y := box.Min.Y; y < box.Max.Y; y++ {
		at += copy(rows[at:], rows[y*stride+4*box.Min.X:][:4*box.Dx()])
	}
	d.out = d.out[:start+16+at]
	d.put(start, c.Min.X+box.Min.X, c.Min.Y+box.Min.Y, box.Dx(), box.Dy())
	return true
}

// Picture is frame i without loss.
func Picture(r *reel.Reader, i int) (image.Image, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	if i < 0 || i >= r.Len() {
		return nil, fmt.Errorf("the reel has frames 0 … %d", r.Len()-1)
	}
	pix, err := r.Pixels(i)
	if err != nil {
		return nil, err
	}
	p, err := visual.PictureOf(r.Format(), pix, r.Format().Bounds())
	if err != nil {
		return nil, err
	}
	return p.Image(), nil
}
