package reel

import (
	"bytes"
	"path/filepath"
	"syscall"
	"testing"
)

// badDisk is a file of which some bytes cannot be read.
type badDisk struct {
	*bytes.Reader
	from, to int64
}

func (d badDisk) ReadAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) <= d.from || at >= d.to {
		return d.Reader.ReadAt(b, at)
	}
	n, _ := d.Reader.ReadAt(b[:max(0, d.from-at)], at)
	return n, syscall.EIO
}

// A sector that the disk cannot read any more costs the frames in it and those
// that rest on them, wherever it is behind the header.
func TestUnreadableSector(t *testing.T) {
	s := newSample(t)
	size := int64(len(s.data))
	for from := s.blocks[1].at / sector * sector; from < size; from += sector {
		disk := badDisk{bytes.NewReader(s.data), max(from, s.blocks[1].at), min(from+sector, size)}
		r, err := NewReader(disk, size)
		if err != nil {
			t.Fatalf("sector at %d: %v", from, err)
		}
		path := filepath.Join(t.TempDir(), "saved.reel")
		w, err := Create(path, r.Header())
		if err != nil {
			t.Fatal(err)
		}
		report, err := r.walk(w)
		if err != nil || len(report.Damage) == 0 {
			t.Fatalf("sector at %d: %+v, %v", from, report, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		// Six frames rest on each key frame; a sector may hold one's end and the next one's head.
		if lost := len(s.pix) - report.Frames; lost > 12 {
			t.Errorf("sector at %d: %d of %d frames are lost: %v", from, lost, len(s.pix), report.Damage)
		}
		saved, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range saved.Len() {
			pix, err := saved.Pixels(i)
			if err != nil || !bytes.Equal(pix, s.pix[saved.Info(i).Seq]) {
				t.Errorf("sector at %d: frame %d is not as it was (%v)", from, saved.Info(i).Seq, err)
			}
		}
		if err := saved.Close(); err != nil {
			t.Error(err)
		}
	}
}
