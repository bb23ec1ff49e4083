package reel

import (
	"encoding/binary"
	"image"

	"github.com/zeebo/xxh3"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// sums keeps the checksum of a frame's pixels: XXH3-64 of the little-endian
// XXH3-64s of all rows of all planes. Only rows that changed are read again.
type sums struct {
	planes []diff.Plane
	first  []int  // of each plane, in rows
	rows   []byte // 8 bytes a row
}

func newSums(f lab.Format) *sums {
	s := &sums{planes: diff.Planes(f)}
	n := 0
	for _, p := range s.planes {
		s.first = append(s.first, n)
		n += p.Rows
	}
	s.rows = make([]byte, 8*n)
	blank := make([]byte, f.FrameSize())
	s.all(blank)
	return s
}

// touch reads the rows of r, units of plane i, again.
func (s *sums) touch(i int, r image.Rectangle, pix []byte) {
	p := s.planes[i]
	for y := r.Min.Y; y < r.Max.Y; y++ {
		binary.LittleEndian.PutUint64(s.rows[8*(s.first[i]+y):], xxh3.Hash(p.Row(pix, y, 0, p.Units())))
	}
}

// all reads every row.
func (s *sums) all(pix []byte) {
	for i, p := range s.planes {
		s.touch(i, p.Bounds(), pix)
	}
}

func (s *sums) sum() uint64 { return xxh3.Hash(s.rows) }
