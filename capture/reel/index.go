package reel

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"

	"github.com/klauspost/compress/s2"

	"eidetic/internal/lab"
)

// entry is a frame's place in the file.
type entry struct {
	frameHead
	at  int64
	bad error // why it cannot be decoded, once that is known
}

// table is all that is known of a file without its pixels.
type table struct {
	header Header
	frames []entry
	notes  Notes
	damage []Damage
}

// load reads the file's index, or scans the file when it has none.
func load(r io.ReaderAt, size int64) (*table, error) {
	var start [len(magic)]byte
	if _, err := r.ReadAt(start[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	if string(start[:]) != magic {
		return nil, ErrNotReel
	}
	first, err := readBlock(r, int64(len(magic)), size)
	if err != nil || first.kind != blockHeader {
		return nil, fmt.Errorf("the header cannot be read: %w", cmp.Or(err, errors.New("another block stands in its place")))
	}
	t := &table{}
	if err := json.Unmarshal(first.head, &t.header); err != nil {
		return nil, fmt.Errorf("the header cannot be read: %w", err)
	}
	if err := checkHeader(t.header); err != nil {
		return nil, err
	}
	err = t.fromIndex(r, size)
	if err == nil {
		return t, nil
	}
	why := err
	*t = table{header: t.header}
	t.scan(r, first.end(), size)
	if len(t.damage) == 0 {
		t.damage = append(t.damage, Damage{Offset: size, Frame: -1, What: why.Error()})
	}
	return t, nil
}

var errNoIndex = errors.New("the file has no index: the recording was cut off")

// fromIndex reads the index that the last block points to.
func (t *table) fromIndex(r io.ReaderAt, size int64) error {
	end, err := readBlock(r, size-endSize, size)
	if size < endSize || err != nil || end.kind != blockEnd || len(end.head) != 12 || end.end() != size {
		return errNoIndex
	}
	at := binary.LittleEndian.Uint64(end.head)
	if at >= uint64(end.at) {
		return errors.New("the index is not where the end says")
	}
	b, err := readBlock(r, int64(at), size)
	if err != nil || b.kind != blockIndex || b.end() != end.at {
		return fmt.Errorf("the index cannot be read: %w", cmp.Or(err, errNoBlock))
	}
	packed, err := b.readBody(r, nil, size)
	if err != nil {
		return fmt.Errorf("the index cannot be read: %w", err)
	}
	// An index has no more bytes than the heads in the file.
	if n, err := s2.DecodedLen(packed); err != nil || int64(n) > size {
		return errors.New("the index claims more than the file holds")
	}
	body, err := s2.Decode(nil, packed)
	if err != nil {
		return fmt.Errorf("the index cannot be read: %w", err)
	}
	c := cursor{b: body}
	for last := int64(0); len(c.b) > 0; {
		last += int64(c.int(int(size)))
		kind := c.byte()
		head := c.bytes(c.int(maxHead))
		if c.err != nil || last >= int64(at) {
			return errors.New("the index does not fit the file")
		}
		if err := t.add(kind, head, last); err != nil {
			return fmt.Errorf("the index: %w", err)
		}
	}
	if len(t.frames) != int(binary.LittleEndian.Uint32(end.head[8:])) {
		return errors.New("the index has another number of frames than the end says")
	}
	return nil
}

// add takes one block's head.
func (t *table) add(kind byte, head []byte, at int64) error {
	switch kind {
	case blockFrame:
		h, err := parseFrameHead(head, t.header.Format.Bounds())
		if err != nil {
			return err
		}
		t.frames = append(t.frames, entry{frameHead: h, at: at})
	case blockGap:
		var g lab.Gap
		if err := json.Unmarshal(head, &g); err != nil {
			return fmt.Errorf("gap: %w", err)
		}
		if g.Count < 0 || g.Before < 0 {
			return fmt.Errorf("gap: count %d before frame %d", g.Count, g.Before)
		}
		t.notes = append(t.notes, Note{Gap: &g})
	case blockEvent:
		var e lab.SourceEvent
		if err := json.Unmarshal(head, &e); err != nil {
			return fmt.Errorf("event: %w", err)
		}
		if e.Before < 0 {
			return fmt.Errorf("event: before frame %d", e.Before)
		}
		t.notes = append(t.notes, Note{Event: &e})
	}
	return nil
}

// scan walks through the file's blocks from offset at, over damage.
func (t *table) scan(r io.ReaderAt, at, size int64) {
	for at < size {
		b, err := readBlock(r, at, size)
		if err == nil && b.kind == blockHeader && at > int64(len(magic)) { // two files were joined: the times of its frames begin anew
			t.damage = append(t.damage, Damage{Offset: at, Length: size - at, Frame: len(t.frames),
				What: "another reel begins here, which is not read"})
			break
		}
		if err == nil {
			err = t.add(b.kind, b.head, b.at)
		}
		if err == nil {
			at = b.end()
			continue
		}
		next := findBlock(r, at+1, size)
		t.damage = append(t.damage, Damage{Offset: at, Length: next - at, Frame: len(t.frames), What: err.Error()})
		at = next
	}
	next := 0
	for i := range t.frames {
		// The frame before is missing, so what changed is not known.
		f := &t.frames[i]
		if f.index != next {
			f.Changed = []image.Rectangle{t.header.Format.Bounds()}
			f.Flags &^= lab.FrameRepeat
		}
		next = f.index + 1
	}
}
