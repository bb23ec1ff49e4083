package reel

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zeebo/xxh3"

	"eidetic/internal/lab"
)

// Reader reads a reel. It is not safe for use by several goroutines at once;
// open the file once for each.
type Reader struct {
	in     io.ReaderAt
	file   *os.File // in, when Open made it
	size   int64
	t      *table
	flat   held // of Pixels
	rows   held // of Rows
	buf    []byte
	checks *sums // of flat's frame, when sums are checked
}

// held is a decoder and the frame that it holds, or −1.
type held struct {
	dec *decoder
	at  int
}

// Open reads the index of the file at path, or rebuilds it when the file was
// cut off or is damaged (see [Reader.Recovered]). It fails only when the file
// is no reel, or its header cannot be read.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open reel: %w", err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open reel: %w", err)
	}
	r, err := NewReader(f, st.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open reel %s: %w", path, err)
	}
	r.file = f
	return r, nil
}

// NewReader reads the reel of size bytes in in.
func NewReader(in io.ReaderAt, size int64) (*Reader, error) {
	t, err := load(in, size)
	if err != nil {
		return nil, err
	}
	return &Reader{in: in, size: size, t: t, flat: held{at: -1}, rows: held{at: -1}}, nil
}

// Header returns the reel's description.
func (r *Reader) Header() Header { return r.t.header }

// Format describes every frame.
func (r *Reader) Format() lab.Format { return r.t.header.Format }

// Len returns the number of frames.
func (r *Reader) Len() int { return len(r.t.frames) }

// Info returns frame i's facts without decoding pixels. Changed belongs to
// the reader. The first frame, and the first after damage, has the whole
// frame as Changed.
func (r *Reader) Info(i int) lab.FrameInfo { return r.t.frames[i].FrameInfo }

// Sum returns XXH3-64 of frame i's pixels (of its rows' sums, see
// docs/formats/reel.md): frames of one format with equal sums are equal. It
// needs no decoding.
func (r *Reader) Sum(i int) uint64 { return r.t.frames[i].sum }

// Gaps returns what was lost while recording.
func (r *Reader) Gaps() []lab.Gap {
	var gaps []lab.Gap
	for _, n := range r.t.notes {
		if n.Gap != nil {
			gaps = append(gaps, *n.Gap)
		}
	}
	return gaps
}

// Events returns what happened to the source while recording.
func (r *Reader) Events() []lab.SourceEvent {
	var events []lab.SourceEvent
	for _, n := range r.t.notes {
		if n.Event != nil {
			events = append(events, *n.Event)
		}
	}
	return events
}

// Notes returns both in the order of the recording.
func (r *Reader) Notes() Notes { return r.t.notes }

// Lost returns the number of frames that the gaps name.
func (r *Reader) Lost() int {
	n := 0
	for _, g := range r.Gaps() {
		n += g.Count
	}
	return n
}

// Recovered says what was wrong with the file when its index had to be
// rebuilt; nil for a whole file.
func (r *Reader) Recovered() []Damage { return r.t.damage }

// Size returns the bytes of the file.
func (r *Reader) Size() int64 { return r.size }

// Close closes the file that Open opened.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

var errNoKey = errors.New("the key frame that it needs is damaged or missing")

// Pixels returns frame i's pixels, FrameSize bytes (for MJPEG the JPEG), valid
// until the next call. Forward access is fastest; any other starts at the key
// frame before i.
func (r *Reader) Pixels(i int) ([]byte, error) {
	if err := r.has(i); err != nil {
		return nil, err
	}
	if r.Format().Pixels == lab.MJPEG {
		body, err := r.body(i)
		if err != nil {
			r.t.frames[i].bad = err
			return nil, r.frameError(i, i, err)
		}
		return body, nil
	}
	if r.flat.dec == nil {
		r.flat.dec = newDecoder(r.Format(), false)
	}
	if i != r.flat.at && !r.follows(&r.flat, i) && !r.t.frames[i].key {
		if rows, _, err := r.Rows(i); err != nil {
			return nil, err
		} else if rows != nil { // what scrolls on the way costs nothing
			pix := r.flat.dec.cur[:0]
			for _, row := range rows {
				pix = append(pix, row...)
			}
			r.flat.at = i
			return pix, nil
		}
	}
	if err := r.goTo(&r.flat, i); err != nil {
		return nil, err
	}
	return r.flat.dec.cur, nil
}

// has returns an error for a frame that the reel does not have.
func (r *Reader) has(i int) error {
	if i < 0 || i >= len(r.t.frames) {
		return fmt.Errorf("frame %d: the reel has frames 0 … %d", i, len(r.t.frames)-1)
	}
	return nil
}

// goTo decodes up to frame i, from the frame that is held or from a key frame.
func (r *Reader) goTo(w *held, i int) error {
	if i == w.at {
		return nil
	}
	from := i
	for !r.follows(w, from) {
		if bad := r.t.frames[from].bad; bad != nil {
			return r.frameError(i, from, bad)
		}
		if r.t.frames[from].key {
			break
		}
		if from == 0 || r.t.frames[from-1].index != r.t.frames[from].index-1 {
			return r.frameError(i, i, errNoKey)
		}
		from--
	}
	for ; from <= i; from++ {
		follows, key := r.follows(w, from), r.t.frames[from].key
		w.at = -1
		body, err := r.body(from)
		switch {
		case err != nil:
		case w.dec.rows != nil:
			err = w.dec.decodeRows(body, key, follows)
		default:
			err = w.dec.decode(body, key)
		}
		if err != nil {
			r.t.frames[from].bad = err
			return r.frameError(i, from, err)
		}
		w.at = from
	}
	return nil
}

// follows says that frame i is the one that was recorded after the frame that
// w holds. In a damaged file frames may be missing between neighbours.
func (r *Reader) follows(w *held, i int) bool {
	return w.at >= 0 && i == w.at+1 && r.t.frames[i].index == r.t.frames[w.at].index+1
}

// frameError says which frame cannot be had, and because of which.
func (r *Reader) frameError(i, from int, err error) error {
	wrong := &FrameError{Err: fmt.Errorf("frame %d: %w", i, err)}
	if i != from {
		wrong.Err = fmt.Errorf("frame %d: frame %d, on which it rests: %w", i, from, err)
	}
	if r.file != nil {
		wrong.File = r.file.Name()
	}
	return wrong
}

// FrameError says that a file is damaged where a frame is. Recover saves the others.
type FrameError struct {
	File string // "" for a reel that is no file
	Err  error
}

func (e *FrameError) Error() string { return e.Err.Error() }

// Unwrap implements errors.Unwrap.
func (e *FrameError) Unwrap() error { return e.Err }

// body reads and checks the body of frame i.
func (r *Reader) body(i int) ([]byte, error) {
	e := r.t.frames[i]
	b, err := readBlock(r.in, e.at, r.size)
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", e.at, err)
	}
	if b.kind != blockFrame {
		return nil, fmt.Errorf("byte %d: the index names a block that is no frame", e.at)
	}
	limit := int64(2*r.Format().FrameSize() + 1<<20)
	if r.Format().Pixels == lab.MJPEG {
		limit = MaxFrame
	}
	if r.buf, err = b.readBody(r.in, r.buf, limit); err != nil {
		return nil, fmt.Errorf("byte %d: %w", e.at, err)
	}
	return r.buf, nil
}

// check compares frame i's pixels, just decoded, with the sum that was
// written. Rows outside of Changed are not read again when the frame before
// was checked.
func (r *Reader) check(i int, pix []byte, following bool) error {
	var sum uint64
	if r.Format().Pixels == lab.MJPEG {
		sum = xxh3.Hash(pix)
	} else {
		if r.checks == nil {
			r.checks, following = newSums(r.Format()), false
		}
		if !following {
			r.checks.all(pix)
		} else {
			for _, c := range r.Info(i).Changed {
				for p, plane := range r.checks.planes {
					r.checks.touch(p, plane.FromPixels(c), pix)
				}
			}
		}
		sum = r.checks.sum()
	}
	if sum != r.t.frames[i].sum {
		return fmt.Errorf("frame %d: its pixels have the checksum %016x, %016x was recorded", i, sum, r.t.frames[i].sum)
	}
	return nil
}
