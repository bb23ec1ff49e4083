// Package fattest is a disk in memory whose power can fail.
//
// In flow writes of the code under test, out flow the states in which a real
// disk could be found after a power cut at any byte: all synced data and, of the
// rest, a prefix, or any of its sectors in any order.
package fattest

import (
	"errors"
	"io"
	"maps"
	"math/rand/v2"
)

const (
	page   = 4096
	sector = 512
)

// ErrPower is the error of writes after the power has failed.
var ErrPower = errors.New("fattest: the power is gone")

// Disk is a sparse disk. It implements fat.Device.
type Disk struct {
	size   int64
	pages  map[int64]*[page]byte // all written data, synced or not
	synced map[int64]*[page]byte // the data that a power cut cannot lose; nil when not tracked
	since  []write               // writes since the last Sync

	// Left is the number of bytes that can be written before the power fails; negative for no limit.
	Left int64
	// Written counts the bytes of all writes, Syncs the calls of Sync.
	Written int64
	Syncs   int
}

type write struct {
	at   int64
	data []byte
}

// New returns an empty disk of size bytes.
func New(size int64) *Disk {
	return &Disk{size: size, pages: make(map[int64]*[page]byte), Left: -1}
}

// Copy returns an independent disk with the same bytes, all of them synced.
// Unchanged pages are shared until they are written.
func (d *Disk) Copy() *Disk {
	return &Disk{size: d.size, pages: maps.Clone(d.pages), synced: maps.Clone(d.pages), Left: -1}
}

// ReadAt implements io.ReaderAt.
func (d *Disk) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > d.size {
		return 0, io.ErrUnexpectedEOF
	}
	for done := 0; done < len(p); {
		at := off + int64(done)
		n := min(len(p)-done, int(page-at%page))
		if b := d.pages[at/page]; b != nil {
			copy(p[done:done+n], b[at%page:])
		} else {
			clear(p[done : done+n])
		}
		done += n
	}
	return len(p), nil
}

// WriteAt implements io.WriterAt. If the power fails during it, the bytes before that
// point are written.
func (d *Disk) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > d.size {
		return 0, io.ErrShortWrite
	}
	n := len(p)
	if d.Left >= 0 && int64(n) > d.Left {
		n = int(d.Left)
	}
	d.put(off, p[:n])
	d.since = append(d.since, write{off, append([]byte(nil), p[:n]...)})
	d.Written += int64(n)
	if d.Left >= 0 {
		d.Left -= int64(n)
	}
	if n < len(p) {
		return n, ErrPower
	}
	return n, nil
}

func (d *Disk) put(off int64, p []byte) {
	for len(p) > 0 {
		b := new([page]byte)
		if old := d.pages[off/page]; old != nil {
			*b = *old // pages may be shared with a copy
		}
		n := copy(b[off%page:], p)
		d.pages[off/page] = b
		off, p = off+int64(n), p[n:]
	}
}

// Sync implements fat.Device.
func (d *Disk) Sync() error {
	if d.Left == 0 {
		return ErrPower
	}
	d.Syncs++
	d.since = nil
	d.synced = maps.Clone(d.pages)
	return nil
}

// Lose returns the disk in a state that is possible after a power cut: of the data written
// since the last Sync, only some sectors arrived, chosen by r.
func (d *Disk) Lose(r *rand.Rand) *Disk {
	found := &Disk{size: d.size, pages: maps.Clone(d.synced), Left: -1}
	if found.pages == nil {
		found.pages = make(map[int64]*[page]byte)
	}
	type piece struct {
		at   int64
		data []byte
	}
	var pieces []piece
	for _, w := range d.since {
		for len(w.data) > 0 {
			n := min(len(w.data), int(sector-w.at%sector))
			pieces = append(pieces, piece{w.at, w.data[:n]})
			w.at, w.data = w.at+int64(n), w.data[n:]
		}
	}
	for _, p := range pieces {
		if r.IntN(2) == 0 {
			found.put(p.at, p.data)
		}
	}
	found.synced = maps.Clone(found.pages)
	return found
}
