package visual

import (
	"errors"
	"fmt"

	"eidetic/internal/lab"
)

// RowFrames is a recording that can tell its frames' rows apart. Rows returns frame i as rows of memory that nobody
// writes to again, and which parts of it stood in frame i−1, at the same or another place; nil if the
// frame can be had in one piece only.
type RowFrames interface {
	Rows(i int) ([][]byte, []lab.Move, error)
}

// Raster is a frame's pixels: as rows, or in one piece that is valid until the next frame is read.
type Raster struct {
	pix   []byte
	rows  [][]byte
	moves []lab.Move
}

// Flat is a frame in one piece.
func Flat(pix []byte) Raster { return Raster{pix: pix} }

// Moves returns what stood in the frame before, as far as it is known.
func (r Raster) Moves() []lab.Move { return r.moves }

// Lasting says that the raster stays valid when other frames are read.
func (r Raster) Lasting() bool { return r.rows != nil }

// Copy makes a raster lasting, in the memory of an older copy that is not needed any more.
func (r Raster) Copy(old Raster) Raster {
	if r.Lasting() {
		return r
	}
	return Raster{pix: append(old.pix[:0], r.pix...)}
}

// IsZero says that there is no picture.
func (r Raster) IsZero() bool { return r.rows == nil && r.pix == nil }

// line returns the memory that holds row y, and the number of the row in it.
func (r Raster) line(y int) ([]byte, int) {
	if r.rows != nil {
		return r.rows[y], 0
	}
	return r.pix, y
}

// sameLine says that row y of both is the same memory, so that it need not be compared.
func (r Raster) sameLine(other Raster, y int) bool {
	return r.rows != nil && other.rows != nil && &r.rows[y][0] == &other.rows[y][0]
}

// Read returns a frame, as rows if the recording has any.
func (a Access) Read(frames Frames, i int) (Raster, error) {
	if f, ok := frames.(RowFrames); ok {
		rows, moves, err := f.Rows(i)
		if err != nil {
			return Raster{}, err
		}
		if rows != nil {
			r := Raster{rows: rows, moves: moves}
			return r, a.Check(r)
		}
	}
	pix, err := frames.Pixels(i)
	if err != nil {
		return Raster{}, err
	}
	return Flat(pix), a.Check(Flat(pix))
}

// Check says what is wrong with a frame whose size is not the format's.
func (a Access) Check(r Raster) error {
	if r.rows == nil {
		return a.plane.check(r.pix)
	}
	f, rows := a.plane.format, r.rows
	if a.plane.planes > 1 {
		return errors.New("rows of a format with several planes")
	}
	if len(rows) != f.Height {
		return fmt.Errorf("%d rows, the format has %d", len(rows), f.Height)
	}
	for y, row := range rows {
		if len(row) != a.plane.stride {
			return fmt.Errorf("row %d has %d bytes, the format %d", y, len(row), a.plane.stride)
		}
	}
	return nil
}
