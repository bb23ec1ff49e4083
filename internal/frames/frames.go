// Package frames tells a viewer of a reel what changed in which frame, and gives it the frames' pixels
// without loss, as differences that are small and can be applied forwards and backwards.
//
// A reel flows in; a List, or the bytes of a piece, flow out. A piece is a stretch of successive frames. Its form,
// of 32-bit words with the least byte first:
//
//	the frame before the piece, or −1 where there is none, then frame after frame:
//		number of the frame, number of rectangles, then rectangle after rectangle:
//			x, y, width, height, then width × height pixels, rows from the top
//
// A pixel is R, G, B and 0. That of the first frame is as it is; that of each other frame is exclusive-ored with the
// same pixel of the frame before, so that what is applied twice is undone.
package frames

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"

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

// WritePiece writes the piece that begins with a frame. It reads the reel forwards, frame by frame.
func WritePiece(w io.Writer, r *reel.Reader, first int) error {
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
			d.word(^uint32(0))
			d.word(0)
		}
		if err := d.frame(r, i, changed); err != nil {
			return err
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
	shown, row []uint32
	out        []byte
}

func (d *differ) word(v uint32) { d.out = binary.LittleEndian.AppendUint32(d.out, v) }

// frame appends what leads from the frame that is shown to frame i.
func (d *differ) frame(r *reel.Reader, i int, changed []image.Rectangle) error {
	d.word(uint32(i))
	count := len(d.out)
	d.word(0)
	if len(changed) == 0 {
		return nil
	}
	raster, err := d.access.Read(r, i)
	if err != nil {
		return err
	}
	n := uint32(0)
	for _, c := range changed {
		if tight := d.tight(raster, c); !tight.Empty() {
			d.rectangle(raster, tight)
			n++
		}
	}
	binary.LittleEndian.PutUint32(d.out[count:], n)
	return nil
}

// read returns a stretch of a row of the frame, and of what is shown.
func (d *differ) read(raster visual.Raster, y, x0, x1 int) (is, was []uint32) {
	is = d.row[:x1-x0]
	d.access.Row(is, raster, y, x0)
	for i, c := range is {
		c = d.access.RGB(c)
		is[i] = c>>16&255 | c&0xff00 | c&255<<16
	}
	return is, d.shown[y*d.width:][x0:x1]
}

// tight is the smallest rectangle in c that holds what differs.
func (d *differ) tight(raster visual.Raster, c image.Rectangle) (box image.Rectangle) {
	for y := c.Min.Y; y < c.Max.Y; y++ {
		is, was := d.read(raster, y, c.Min.X, c.Max.X)
		from, to := len(is), 0
		for x, v := range is {
			if v != was[x] {
				from, to = min(from, x), x+1
			}
		}
		if from < to {
			box = box.Union(image.Rect(c.Min.X+from, y, c.Min.X+to, y+1))
		}
	}
	return box
}

// rectangle appends one, and makes what is shown the frame there.
func (d *differ) rectangle(raster visual.Raster, c image.Rectangle) {
	for _, v := range []int{c.Min.X, c.Min.Y, c.Dx(), c.Dy()} {
		d.word(uint32(v))
	}
	for y := c.Min.Y; y < c.Max.Y; y++ {
		is, was := d.read(raster, y, c.Min.X, c.Max.X)
		for x, v := range is {
			d.word(v ^ was[x])
		}
		copy(was, is)
	}
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
