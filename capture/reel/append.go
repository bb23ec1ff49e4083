package reel

import (
	"errors"
	"fmt"
)

// Append writes all frames and notes of another reel of the same format
// behind those written so far. Pixels are not decoded, so it takes no longer than copying
// the file. The reel must be whole; its blocks' checksums are compared.
func (w *Writer) Append(r *Reader) error {
	if w.err != nil {
		return w.err
	}
	if r.Format() != w.header.Format {
		return fmt.Errorf("append to the reel: its frames are %v, the other's %v", w.header.Format, r.Format())
	}
	if len(r.t.damage) > 0 {
		return fmt.Errorf("append to the reel: the other one is damaged: %v", r.t.damage[0])
	}
	notes := r.Notes()
	for i := range r.t.frames {
		if err := notes.Write(w, i); err != nil {
			return err
		}
		if err := w.appendFrame(r, i); err != nil {
			w.err = fmt.Errorf("append frame %d of the reel: %w", w.frames, err)
			return w.err
		}
		w.frames++
	}
	return notes.Write(w, r.Len())
}

func (w *Writer) appendFrame(r *Reader, i int) error {
	body, err := r.body(i)
	if err != nil {
		return err
	}
	h := r.t.frames[i].frameHead
	if i == 0 && !h.key {
		return errors.New("the other reel does not begin with a key frame")
	}
	h.index = w.frames
	w.foreign = true
	if h.key {
		w.keyAt = h.Time
	}
	return w.block(blockFrame, h.append(nil), body)
}

// first says whether the next frame must be coded by itself, because the encoder does
// not have the frame before it.
func (w *Writer) first() bool { return w.frames == 0 || w.foreign }
